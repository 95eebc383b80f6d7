#include "io/drive/own_car.hpp"

#include "core/parallel.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/drive/sweep_clock.hpp"
#include "io/drive/sweep_file.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

constexpr double kBetweenScans_m = 0.2;
constexpr std::size_t kFewestScans = 5, kMostScans = 40;
constexpr double kAlways = 0.5;
/// The space of a car around a sensor on its roof, along and across its way.
constexpr double kHalfLength_m = 4, kHalfWidth_m = 1.3;
/// Bonnet, boot and roof; the wheels are not seen from above.
constexpr double kAboveRoad_m = 0.4;
constexpr double kAboveSensor_m = 0.3;

/// Along and across the way of the car, horizontally in the frame of the sensor.
struct CarAxes {
    Vec3d forward{0, 0, 0};  ///< length 1
    double along(Vec3d p) const { return p.x * forward.x + p.y * forward.y; }
    double across(Vec3d p) const { return p.y * forward.x - p.x * forward.y; }
};

/// What a scan shows around the sensor.
struct SensorView {
    std::vector<std::uint32_t> cells;  ///< that hold a point, ascending, each once
    std::vector<double> lane_m;        ///< heights of points before and behind the car, in its lane
};

/// Scans at least some way apart, evenly chosen along it.
std::vector<const DriveScan*> scans_along_way(const Drive& drive) {
    std::vector<const DriveScan*> by_time;
    for (const DriveScan& scan : drive.scans) by_time.push_back(&scan);
    std::sort(by_time.begin(), by_time.end(),
              [](const DriveScan* a, const DriveScan* b) { return a->sweep.begin_s < b->sweep.begin_s; });
    std::vector<const DriveScan*> apart;
    Vec3d last{0, 0, 0};
    for (const DriveScan* scan : by_time) {
        const Vec3d at = drive.trajectory.at(scan->sweep.begin_s)->translation;
        if (!apart.empty() && length(at - last) < kBetweenScans_m) continue;
        apart.push_back(scan);
        last = at;
    }
    if (apart.size() <= kMostScans) return apart;
    std::vector<const DriveScan*> chosen;
    for (std::size_t i = 0; i < kMostScans; ++i) chosen.push_back(apart[i * apart.size() / kMostScans]);
    return chosen;
}

/// Nothing when the sensor does not move along its own horizon.
std::optional<CarAxes> axes_of(const std::vector<const DriveScan*>& scans) {
    Vec3d sum{0, 0, 0};
    for (const DriveScan* scan : scans) {
        const SweepClock clock(scan->sweep, scan->path.string());
        const Pose begin = clock.world_from_sensor(scan->sweep.begin_s),
                   end = clock.world_from_sensor(scan->sweep.end_s);
        sum = sum + rotate(conjugate(begin.rotation), end.translation - begin.translation);
    }
    const double flat = std::sqrt(sum.x * sum.x + sum.y * sum.y);
    if (flat < kBetweenScans_m || std::fabs(sum.z) > 0.3 * flat) return std::nullopt;
    return CarAxes{{sum.x / flat, sum.y / flat, 0}};
}

bool in_lane(Vec3d p, const CarAxes& axes) {
    constexpr double kLeastAlong_m = 4, kMostAlong_m = 10, kBelowSensor_m = 0.5;
    const double along = std::fabs(axes.along(p));
    return along >= kLeastAlong_m && along <= kMostAlong_m && std::fabs(axes.across(p)) <= kHalfWidth_m &&
           p.z < -kBelowSensor_m;
}

void sort_once(std::vector<std::uint32_t>& cells) {
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
}

SensorView view_of(const DriveScan& scan, const CarAxes& axes, const OpenScan& open,
                   const CancelToken& cancel) {
    ReadOptions options;
    options.sweep = scan.sweep;
    options.mask.max_range_m = 2 * SensorCell::kReach_m;
    const auto file = in_the_world(open(scan.path), options, scan.path.string());
    const SweepClock clock(scan.sweep, scan.path.string());
    SensorView view;
    PointBatch batch;
    for (std::size_t block = 0; block < file->block_count(); ++block) {
        cancel.check();
        file->read_block(block, batch);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const Pose pose = clock.world_from_sensor(batch.gps_time[i]);
            const Vec3d p = rotate(conjugate(pose.rotation),
                                   Vec3d{batch.x[i], batch.y[i], batch.z[i]} - pose.translation);
            if (const auto cell = SensorCell::of(p)) view.cells.push_back(*cell);
            if (in_lane(p, axes)) view.lane_m.push_back(p.z);
        }
        sort_once(view.cells);
    }
    return view;
}

/// Height of the road in the frame of the sensor. Nothing when too little of it is seen.
std::optional<double> road_height(const std::vector<SensorView>& views) {
    std::vector<double> heights;
    for (const SensorView& view : views)
        heights.insert(heights.end(), view.lane_m.begin(), view.lane_m.end());
    constexpr std::size_t kFewestPoints = 100;
    if (heights.size() < kFewestPoints) return std::nullopt;
    return median_of(std::move(heights));
}

/// The cells and the 26 around each, ascending: noise and the flexing of a car do not end at a cell.
std::vector<std::uint32_t> with_neighbours(const std::vector<std::uint32_t>& cells) {
    std::vector<std::uint32_t> all;
    for (const std::uint32_t cell : cells)
        for (int n = 0; n < 27; ++n) {
            const Vec3d step{n % 3 - 1.0, n / 3 % 3 - 1.0, n / 9 - 1.0};
            if (const auto other = SensorCell::of(SensorCell::centre(cell) + SensorCell::kSize_m * step))
                all.push_back(*other);
        }
    sort_once(all);
    return all;
}

}  // namespace

void SensorOccupancy::add_scan(std::span<const Vec3d> in_sensor) {
    std::vector<std::uint32_t> cells;
    for (const Vec3d& p : in_sensor)
        if (const auto cell = SensorCell::of(p)) cells.push_back(*cell);
    sort_once(cells);
    add_cells(cells);
}

void SensorOccupancy::add_cells(std::span<const std::uint32_t> cells) {
    for (const std::uint32_t cell : cells) ++scans_of_[cell];
    ++scans_;
}

std::vector<std::uint32_t> SensorOccupancy::cells(double least_share) const {
    std::vector<std::uint32_t> result;
    for (const auto& [cell, scans] : scans_of_)
        if (scans >= least_share * static_cast<double>(scans_)) result.push_back(cell);
    std::sort(result.begin(), result.end());
    return result;
}

std::vector<std::uint32_t> find_own_car(const Drive& drive, const OpenScan& open, const CancelToken& cancel) {
    const std::vector<const DriveScan*> scans = scans_along_way(drive);
    if (scans.size() < kFewestScans) return {};
    const auto axes = axes_of(scans);
    if (!axes) return {};
    std::vector<SensorView> views(scans.size());
    parallel_for(scans.size(), [&](std::size_t i) { views[i] = view_of(*scans[i], *axes, open, cancel); });
    const auto road_m = road_height(views);
    if (!road_m) return {};
    SensorOccupancy occupancy;
    for (const SensorView& view : views) occupancy.add_cells(view.cells);
    const auto in_space_of_car = [&](std::uint32_t cell) {
        const Vec3d p = SensorCell::centre(cell);
        return std::fabs(axes->along(p)) <= kHalfLength_m && std::fabs(axes->across(p)) <= kHalfWidth_m &&
               p.z >= *road_m + kAboveRoad_m && p.z <= kAboveSensor_m;
    };
    std::vector<std::uint32_t> always = occupancy.cells(kAlways);
    std::erase_if(always, [&](std::uint32_t cell) { return !in_space_of_car(cell); });
    std::vector<std::uint32_t> car = with_neighbours(always);
    std::erase_if(car, [&](std::uint32_t cell) { return !in_space_of_car(cell); });
    return car;
}

}  // namespace citysplat::io
