#include "splat/city_thickness.hpp"

#include "core/parallel.hpp"
#include "splat/city_sample.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <tuple>

namespace citysplat::splat {

namespace {

constexpr std::uint64_t kSampledPoints = 4'000'000;
constexpr std::int64_t kCellSteps = kLatticePerMetre / 2;
static_assert(adjust::kThicknessCell_m == 0.5 && adjust::kPass_s == 1.0);

/// A point of a flat place: which cell, which pass.
struct TimedPoint {
    std::int32_t cell_x, cell_y, cell_z;
    std::uint32_t pass, point;

    auto cell() const { return std::tie(cell_x, cell_y, cell_z); }
    auto key() const { return std::tie(cell_x, cell_y, cell_z, pass, point); }
};

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
                (static_cast<double>(slots_) / n - 1) / TilePoint::kSlotsPerSecond};
    }

  private:
    std::int64_t points_ = 0, slots_ = 0;
    std::array<std::int64_t, 3> sum_{}, sensor_{};
    std::array<std::int64_t, 6> second_{};
};

adjust::Thickness thickness_of(const tiling::Region& region, const ClassTable& classes) {
    std::vector<TimedPoint> timed;
    const LatticePoint origin = region.frame.origin();  // whole metres: cells fit into it
    for (std::uint32_t i = 0; i < region.points.size(); ++i) {
        const TilePoint& p = region.points[i];
        if (p.slot == TilePoint::kNoSlot || !p.has_sensor() || classes.dynamic(p.label)) continue;
        const auto cell = [](std::int32_t v) { return static_cast<std::int32_t>(floor_div(v, kCellSteps)); };
        timed.push_back({cell(p.x), cell(p.y), cell(p.z), (p.slot - 1) / TilePoint::kSlotsPerSecond, i});
    }
    std::sort(timed.begin(), timed.end(),
              [](const TimedPoint& a, const TimedPoint& b) { return a.key() < b.key(); });
    adjust::Thickness thickness;
    std::vector<adjust::PassOfCell> passes;
    PassSums sums;
    for (std::size_t i = 0; i < timed.size(); ++i) {
        const TimedPoint& t = timed[i];
        const TilePoint& p = region.points[t.point];
        sums.add({p.x - t.cell_x * kCellSteps, p.y - t.cell_y * kCellSteps, p.z - t.cell_z * kCellSteps}, p);
        const bool last_of_cell = i + 1 == timed.size() || timed[i + 1].cell() != t.cell();
        if (!last_of_cell && timed[i + 1].pass == t.pass) continue;
        passes.push_back(sums.pass({to_metres(origin.x + t.cell_x * kCellSteps),
                                    to_metres(origin.y + t.cell_y * kCellSteps),
                                    to_metres(origin.z + t.cell_z * kCellSteps)}));
        sums = {};
        if (!last_of_cell) continue;
        if (const auto gap = adjust::gap_of(passes)) thickness.add(*gap);
        passes.clear();
    }
    return thickness;
}

}  // namespace

adjust::Thickness measure_thickness(const tiling::RegionReader& reader, const ClassMap& classes,
                                    const CancelToken& cancel, Progress& progress) {
    const std::vector<LatticeBox> places = plan_sample(reader).places;
    std::uint64_t points = 0;
    for (const LatticeBox& place : places) points += reader.count_at_most(place);
    const std::size_t step = static_cast<std::size_t>(points / kSampledPoints) + 1;
    const ClassTable table(classes);
    adjust::Thickness all;
    std::mutex adding;
    const std::size_t count = (places.size() + step - 1) / step;
    Progress::Stage stage(progress, "measuring thickness", count, "places");
    for_each_chunk(count, 1, cancel, [&](std::size_t i, std::size_t) {
        const adjust::Thickness part = thickness_of(reader.read(places[i * step], 0), table);
        stage.advance(1);
        const std::lock_guard lock(adding);
        all.add(part);
    });
    return all;
}

}  // namespace citysplat::splat
