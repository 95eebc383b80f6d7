#include "sim/recorded/recorded_drive.hpp"

#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "io/input/adjusted_file.hpp"
#include "io/input/open_point_file.hpp"
#include "sim/recorded/empty_rays.hpp"
#include "sim/recorded/ray_caster.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::sim {

namespace {

/// A file that lasts longer holds more than a sweep.
constexpr double kLongestSweep_s = 1;
/// A file with more points is read in pieces without asking how long it lasts.
constexpr std::uint64_t kMostPointsOfSweep = 4'000'000;
/// Sweeps that the beams of a drive are taken from.
constexpr std::size_t kSweepsForBeams = 8;

/// Appends the points of `more`.
void append(PointBatch& to, const PointBatch& more) {
    const auto add = [](auto& column, const auto& values) {
        column.insert(column.end(), values.begin(), values.end());
    };
    add(to.x, more.x), add(to.y, more.y), add(to.z, more.z);
    add(to.gps_time, more.gps_time);
    add(to.intensity, more.intensity);
    add(to.label, more.label);
    add(to.sensor, more.sensor);
    add(to.withheld, more.withheld);
    add(to.beam, more.beam);
    add(to.empty_rays, more.empty_rays);
    to.no_return += more.no_return;
}

bool is_sweep(const PointBatch& points) {
    if (points.gps_time.empty()) return true;
    const auto [first, last] = std::minmax_element(points.gps_time.begin(), points.gps_time.end());
    return first == points.gps_time.end() || *last - *first <= kLongestSweep_s;
}

/// Sets the direction of a ray, also in the frame of the sensor.
void aim(RecordedRay& ray, Vec3d direction, const Quaternion& world_from_sensor) {
    ray.direction = direction;
    const Vec3d local = rotate(conjugate(world_from_sensor), direction);
    ray.azimuth_rad = exact::atan2(local.y, local.x);
    ray.elevation_rad = exact::asin(local.z);
}

[[noreturn]] void refuse_without_sensor(const InputSource& source, const PointBatch& batch,
                                        const Trajectory& trajectory) {
    const std::string name = source.path.string();
    if (trajectory.empty())
        throw InputError(name + ": it does not say where the sensor was; give --trajectory");
    if (batch.gps_time.empty())
        throw InputError(name +
                         ": its points have no times, so the trajectory cannot say where the sensor was");
    throw InputError(name + ": its times, about " + std::to_string(batch.gps_time[0]) +
                     " s, are not covered by the trajectory, " + std::to_string(trajectory.begin_s()) +
                     " to " + std::to_string(trajectory.end_s()) + " s; see --time-offset");
}

}  // namespace

RecordedDrive::RecordedDrive(std::vector<InputSource> sources, ReadOptions reading, Trajectory trajectory)
    : sources_(std::move(sources)), reading_(std::move(reading)), trajectory_(std::move(trajectory)) {}

std::optional<Pose> RecordedDrive::pose_at(const InputSource& source, double time_s) const {
    std::optional<Pose> pose = source.drive ? source.sensor_at(time_s) : trajectory_.at(time_s);
    if (!pose || !reading_.adjustment) return pose;
    // Points are where the adjusted trajectory puts them, so their sensor looks where that one says.
    const Adjustment& adjustment = *reading_.adjustment;
    const auto given = adjustment.given.empty() ? pose : adjustment.given.at(time_s),
               adjusted = adjustment.adjusted.at(time_s);
    if (!given || !adjusted) return pose;
    return *adjusted * inverse(*given) * *pose;
}

std::unique_ptr<PointFile> RecordedDrive::open(const InputSource& source) const {
    ReadOptions options = source.read_options(reading_);
    options.mask.own_car.clear();  // marked instead, see rays_of()
    return open_point_file(source.path, options);
}

RecordedScan RecordedDrive::rays_of(const InputSource& source, const PointBatch& batch) const {
    SensorMask car;
    if (source.drive) car.own_car = source.drive->own_car;
    RecordedScan scan;
    scan.name = source.path.string();
    scan.has_intensity = !batch.intensity.empty();
    scan.has_labels = !batch.label.empty();
    scan.no_return = batch.no_return;
    scan.rays.reserve(batch.size() + batch.empty_rays.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (!batch.withheld.empty() && batch.withheld[i] != 0) continue;
        RecordedRay ray;
        ray.time_s = batch.gps_time.empty() ? 0 : batch.gps_time[i];
        std::optional<Pose> pose = pose_at(source, ray.time_s);
        if (!batch.sensor.empty()) {
            if (!pose) pose.emplace();
            pose->translation = batch.sensor[i];
        }
        if (!pose) {
            ++scan.without_sensor;
            continue;
        }
        const Vec3d to_point = Vec3d{batch.x[i], batch.y[i], batch.z[i]} - pose->translation;
        ray.range_m = length(to_point);
        if (!(ray.range_m >= kDeadZone_m)) {
            ++scan.no_return;
            continue;
        }
        ray.origin = pose->translation;
        aim(ray, to_point * (1 / ray.range_m), pose->rotation);
        if (!batch.beam.empty()) ray.beam = batch.beam[i];
        if (scan.has_intensity) ray.intensity = batch.intensity[i];
        if (scan.has_labels) ray.label = batch.label[i];
        ray.own_car = car.reason(rotate(conjugate(pose->rotation), to_point)).has_value();
        scan.own_car += ray.own_car;
        if (scan.rays.empty()) scan.world_from_sensor = *pose;
        scan.rays.push_back(ray);
    }
    scan.returns = scan.rays.size();
    if (scan.rays.empty() && scan.without_sensor > 0) refuse_without_sensor(source, batch, trajectory_);
    for (const PointBatch::EmptyRay& empty : batch.empty_rays) {
        RecordedRay ray;
        ray.origin = empty.origin;
        ray.time_s = empty.time_s;
        ray.beam = empty.beam;
        aim(ray, empty.direction, pose_at(source, empty.time_s).value_or(Pose{}).rotation);
        scan.rays.push_back(ray);
    }
    return scan;
}

std::optional<RecordedScan> RecordedDrive::read_sweep(std::size_t index, const CancelToken& cancel) const {
    const InputSource& source = sources_[index];
    const auto file = open(source);
    if (file->info().points > kMostPointsOfSweep) return std::nullopt;
    PointBatch batch, whole;
    for (std::size_t block = 0; block < file->block_count(); ++block) {
        cancel.check();
        file->read_block(block, batch);
        append(whole, batch);
    }
    if (!is_sweep(whole)) return std::nullopt;
    return rays_of(source, whole);
}

void RecordedDrive::read(std::size_t index, const CancelToken& cancel,
                         const std::function<void(const RecordedScan&)>& use) const {
    const InputSource& source = sources_[index];
    if (std::optional<RecordedScan> sweep = read_sweep(index, cancel)) {
        if (beams_.size() > 0) {
            assign_beams(beams_, sweep->rays, sweep->returns);
            const auto rotation = [&](double time_s) {
                return pose_at(source, time_s).value_or(sweep->world_from_sensor).rotation;
            };
            add_empty_rays(beams_, rotation, *sweep);
        }
        return use(*sweep);
    }
    const auto file = open(source);
    PointBatch batch;
    for (std::size_t block = 0; block < file->block_count(); ++block) {
        cancel.check();
        file->read_block(block, batch);
        use(rays_of(source, batch));
    }
}

void RecordedDrive::find_beams(const CancelToken& cancel) {
    std::vector<BeamTable> tables;
    const std::size_t sweeps = std::min(kSweepsForBeams, sources_.size());
    for (std::size_t k = 0; k < sweeps; ++k) {
        const auto sweep = read_sweep((2 * k + 1) * sources_.size() / (2 * sweeps), cancel);
        if (auto table = sweep ? sim::find_beams(std::span(sweep->rays).first(sweep->returns)) : std::nullopt)
            tables.push_back(std::move(*table));
    }
    beams_ = merged(tables);
}

}  // namespace citysplat::sim
