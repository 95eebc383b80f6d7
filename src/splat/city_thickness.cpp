#include "splat/city_thickness.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>

namespace citysplat::splat {

namespace {

constexpr std::uint64_t kSampledPoints = 4'000'000;
constexpr std::int64_t kCellSteps = kLatticePerMetre / 2;
static_assert(adjust::kThicknessCell_m == 0.5 && adjust::kPass_s == 1.0);

/// The first cell of a place along x and y, counted from the frame.
struct FirstCell {
    std::int64_t x, y;
};

/// A point with its cell and its pass in one number, so that points are sorted by both. Places are 8 m wide:
/// 6 bits hold a cell of x and y, 20 one of z, 29 a pass.
struct TimedPoint {
    std::uint64_t key;
    std::uint32_t point;

    static constexpr int kPassBits = 29, kZBits = 20, kXYBits = 6;
    static constexpr std::int64_t kZBias = 1 << (kZBits - 1);

    TimedPoint() = default;
    TimedPoint(const TilePoint& p, std::uint32_t index, const FirstCell& first) : point(index) {
        const auto cell = [](std::int32_t v) { return floor_div(v, kCellSteps); };
        const auto z = static_cast<std::uint64_t>(cell(p.z) + kZBias);
        const auto xy = static_cast<std::uint64_t>((cell(p.x) - first.x) << kXYBits | (cell(p.y) - first.y));
        key = (xy << kZBits | z) << kPassBits | (p.slot - 1) / TilePoint::kSlotsPerSecond;
    }
    std::uint64_t cell() const { return key >> kPassBits; }
    /// The corner of its cell, in steps from the frame.
    std::array<std::int64_t, 3> corner(const FirstCell& first) const {
        const auto xy = static_cast<std::int64_t>(cell() >> kZBits);
        const auto z = static_cast<std::int64_t>(cell() & ((std::uint64_t{1} << kZBits) - 1)) - kZBias;
        return {(first.x + (xy >> kXYBits)) * kCellSteps,
                (first.y + (xy & ((1 << kXYBits) - 1))) * kCellSteps, z * kCellSteps};
    }
    friend auto operator<=>(const TimedPoint&, const TimedPoint&) = default;
};

/// Seconds of a slot (model/point.hpp). Slots begin again after 13 years, and a time just before zero has one
/// of the last: the last day of them is taken for times before zero, as clocks have that start with a drive.
double time_of(double slot) {
    constexpr double kAll_s = static_cast<double>(UINT32_MAX) / TilePoint::kSlotsPerSecond, kDay_s = 86400;
    const double time_s = (slot - 1) / TilePoint::kSlotsPerSecond;
    return time_s < kAll_s - kDay_s ? time_s : time_s - kAll_s;
}

/// Exact sums over the points of a pass in a cell, in steps from the cell's corner.
class PassSums {
  public:
    void add(std::array<std::int64_t, 3> offset, const TilePoint& point) {
        ++points_;
        slots_ += point.slot;
        const std::array<std::int64_t, 3> sensor{point.sensor_dx, point.sensor_dy, point.sensor_dz};
        for (std::size_t i = 0, k = 0; i < 3; ++i) {
            sum_[i] += offset[i];
            sensor_[i] += sensor[i];
            for (std::size_t j = i; j < 3; ++j) second_[k++] += offset[i] * offset[j];
        }
    }
    bool empty() const { return points_ == 0; }

    adjust::PassOfCell pass(Vec3d corner_m) const {
        const auto n = static_cast<double>(points_);
        const auto mean = [&](std::int64_t sum, double unit) { return static_cast<double>(sum) * unit / n; };
        const Vec3d at{mean(sum_[0], kLatticeStep_m), mean(sum_[1], kLatticeStep_m),
                       mean(sum_[2], kLatticeStep_m)};
        const auto scatter = [&](std::size_t k, std::size_t i, std::size_t j) {
            return (static_cast<double>(second_[k]) -
                    static_cast<double>(sum_[i]) * static_cast<double>(sum_[j]) / n) *
                   (kLatticeStep_m * kLatticeStep_m);
        };
        constexpr double kSensorStep_m = 1.0 / TilePoint::kSensorStepsPerMetre;
        const Vec3d sensor{mean(sensor_[0], kSensorStep_m), mean(sensor_[1], kSensorStep_m),
                           mean(sensor_[2], kSensorStep_m)};
        return {{n,
                 corner_m + at,
                 {scatter(0, 0, 0), scatter(1, 0, 1), scatter(2, 0, 2), scatter(3, 1, 1), scatter(4, 1, 2),
                  scatter(5, 2, 2)}},
                corner_m + at + sensor,
                time_of(static_cast<double>(slots_) / n)};
    }

  private:
    std::int64_t points_ = 0, slots_ = 0;
    std::array<std::int64_t, 3> sum_{}, sensor_{};
    std::array<std::int64_t, 6> second_{};
};

adjust::Thickness thickness_of(const tiling::Region& region, const ClassTable& classes) {
    std::vector<TimedPoint> timed;
    const LatticePoint origin = region.frame.origin();  // whole metres: cells fit into it
    const FirstCell first{floor_div(region.covered.min_x - origin.x, kCellSteps),
                          floor_div(region.covered.min_y - origin.y, kCellSteps)};
    for (std::uint32_t i = 0; i < region.points.size(); ++i) {
        const TilePoint& p = region.points[i];
        if (p.slot == TilePoint::kNoSlot || !p.has_sensor() || classes.dynamic(p.label)) continue;
        timed.emplace_back(p, i, first);
    }
    std::sort(timed.begin(), timed.end());
    adjust::Thickness thickness;
    std::vector<adjust::PassOfCell> passes;
    PassSums sums;
    for (std::size_t i = 0; i < timed.size(); ++i) {
        const TimedPoint& t = timed[i];
        const TilePoint& p = region.points[t.point];
        const std::array<std::int64_t, 3> corner = t.corner(first);
        sums.add({p.x - corner[0], p.y - corner[1], p.z - corner[2]}, p);
        const bool last_of_cell = i + 1 == timed.size() || timed[i + 1].cell() != t.cell();
        if (!last_of_cell && timed[i + 1].key == t.key) continue;
        passes.push_back(sums.pass({to_metres(origin.x + corner[0]), to_metres(origin.y + corner[1]),
                                    to_metres(origin.z + corner[2])}));
        sums = {};
        if (!last_of_cell) continue;
        if (const auto gap = adjust::gap_of(passes)) thickness.add(*gap);
        passes.clear();
    }
    return thickness;
}

}  // namespace

ThicknessSample::ThicknessSample(const std::vector<LatticeBox>& places, const tiling::RegionReader& reader,
                                 const ClassTable& classes)
    : classes_(classes) {
    std::uint64_t points = 0;
    for (const LatticeBox& place : places) points += reader.count_at_most(place);
    step_ = static_cast<std::size_t>(points / kSampledPoints) + 1;
}

void ThicknessSample::see(std::size_t place, const tiling::Region& region) {
    if (place % step_ != 0) return;
    const adjust::Thickness part = thickness_of(region, classes_);
    const std::lock_guard lock(adding_);
    all_.add(part);
}

}  // namespace citysplat::splat
