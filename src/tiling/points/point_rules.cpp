#include "tiling/points/point_rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace citysplat::tiling {

namespace {

/// Sensor minus point in 2⁻⁶ m. A sensor farther away than the field can hold keeps its direction.
void set_sensor(TilePoint& point, const LatticePoint& at, const Vec3d& sensor) {
    constexpr std::int64_t kDivisor = kLatticePerMetre / TilePoint::kSensorStepsPerMetre;
    constexpr double kMost = 511.0 * TilePoint::kSensorStepsPerMetre;
    const auto steps = [](double sensor_m, std::int64_t from) {
        return static_cast<double>(floor_div(to_lattice(sensor_m) - from + kDivisor / 2, kDivisor));
    };
    std::array<double, 3> d{steps(sensor.x, at.x), steps(sensor.y, at.y), steps(sensor.z, at.z)};
    const double largest = std::max({std::abs(d[0]), std::abs(d[1]), std::abs(d[2])});
    if (largest > kMost)
        for (double& v : d) v = std::floor(v * (kMost / largest) + 0.5);
    point.sensor_dx = static_cast<std::int16_t>(d[0]);
    point.sensor_dy = static_cast<std::int16_t>(d[1]);
    point.sensor_dz = static_cast<std::int16_t>(d[2]);
}

bool on_earth(const Vec3d& v) {
    return std::abs(v.x) <= kMaxWorld_m && std::abs(v.y) <= kMaxWorld_m && std::abs(v.z) <= kMaxWorld_m;
}

std::optional<Vec3d> sensor_of(const PointBatch& batch, std::size_t i, SensorPath& path) {
    std::optional<Vec3d> sensor;
    if (!batch.sensor.empty())
        sensor = batch.sensor[i];
    else if (!batch.gps_time.empty())
        sensor = path.at(batch.gps_time[i]);
    if (sensor && !on_earth(*sensor)) sensor.reset();  // also when not finite
    return sensor;
}

}  // namespace

std::optional<LatticeSample> accept_point(const PointBatch& batch, std::size_t i, SensorPath& path,
                                          PointCounts& counts) {
    const double x = batch.x[i], y = batch.y[i], z = batch.z[i];
    ++counts.read;
    if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(z)) {
        ++counts.not_finite;
        return std::nullopt;
    }
    if (std::abs(x) > kMaxWorld_m || std::abs(y) > kMaxWorld_m || std::abs(z) > kMaxHeight_m) {
        ++counts.out_of_range;
        return std::nullopt;
    }
    if (!batch.withheld.empty() && batch.withheld[i] != 0) {
        ++counts.withheld;
        return std::nullopt;
    }
    const LatticePoint at{to_lattice(x), to_lattice(y), to_lattice(z)};
    LatticeSample sample{.x = at.x, .y = at.y, .point = {}};
    TilePoint& point = sample.point;
    point.z = static_cast<std::int32_t>(at.z);
    point.label = batch.label.empty() ? std::uint16_t{0} : batch.label[i];
    point.intensity = batch.intensity.empty() ? std::uint16_t{0} : batch.intensity[i];
    point.instance = batch.instance.empty() ? std::uint16_t{0} : batch.instance[i];
    point.sensor_dx = point.sensor_dy = point.sensor_dz = TilePoint::kNoSensor;
    point.slot = batch.gps_time.empty() ? TilePoint::kNoSlot : time_slot(batch.gps_time[i]);
    if (const auto sensor = sensor_of(batch, i, path))
        set_sensor(point, at, *sensor);
    else
        ++counts.without_sensor;
    return sample;
}

}  // namespace citysplat::tiling
