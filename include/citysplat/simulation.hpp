#pragma once

#include "citysplat/city.hpp"

#include <functional>
#include <limits>

namespace citysplat::api {
inline namespace v1 {

/// Where a vehicle was, by time.
class Trajectory {
  public:
    /// TUM, KITTI or CSV; see docs/inputs.md.
    static Trajectory read(const std::filesystem::path& file);
    struct Stamped {
        double time_s;
        Pose pose;  ///< of the body, x forward, y left, z up, in the world
    };
    /// In strictly increasing time.
    static Trajectory of(std::span<const Stamped> poses);

    double begin_s() const;
    double end_s() const;
    std::optional<Pose> at(double time_s) const;

    struct Parts;
    const Parts& parts() const { return *parts_; }  ///< for the library itself

  private:
    std::shared_ptr<const Parts> parts_;
};

/// A LiDAR or depth camera.
class Sensor {
  public:
    /// A shipped one by name ("hdl-64e"), or a TOML file (docs/sensors.md).
    static Sensor load(const std::string& name_or_file);
    static std::vector<std::string> shipped();

    std::string name() const;
    double scans_per_second() const;
    std::uint32_t rays_per_scan() const;
    double max_range_m() const;

    struct Parts;
    const Parts& parts() const { return *parts_; }  ///< for the library itself

  private:
    std::shared_ptr<const Parts> parts_;
};

enum class Status : std::uint8_t { none, hit, dropped, missing };

struct Return {
    Vec3 position;  ///< world
    float range_m = 0;
    float time_s = 0;  ///< since the scan began
    Vec3f normal;
    float cosine = 0;  ///< of the incidence angle
    std::uint64_t splat = 0;
    std::uint16_t beam = 0, label = 0, intensity = 0;
    std::uint8_t hits = 0;
    Status status = Status::none;
    std::uint16_t instance = 0;  ///< of what is not the city; 0: the city
};

struct Scan {
    std::uint64_t index = 0;
    double time_s = 0;
    Pose sensor;  ///< in the world, when the scan begins
    /// Every ray, in firing order; of a sensor that reports two returns of a pulse, then the second ones.
    std::vector<Return> returns;
};

struct SimulationOptions {
    Pose mount;  ///< of the sensor on the body
    double from_s = -std::numeric_limits<double>::infinity(), to_s = std::numeric_limits<double>::infinity();
    double scans_per_second = 0;  ///< 0: the sensor's own
    std::uint64_t seed = 1;
    bool noise = true;
    /// Up to so many hits of one surface are averaged; 1: the closest alone, which lies in front of a noisy
    /// one.
    std::uint32_t hits_per_return = 5;
    std::uint64_t memory_bytes = std::uint64_t{2} << 30;
};

struct SimulationResult {
    std::uint64_t scans = 0, rays = 0, hits = 0;
    std::string digest;  ///< of all returns: the same on every machine, with any memory and number of threads
    std::vector<std::string> warnings;
};

/// Drives a sensor along a trajectory through a city and hands over the scans in order. Return false to stop;
/// that throws Error with code 130.
SimulationResult simulate(const City& city, const Sensor& sensor, const Trajectory& trajectory,
                          const SimulationOptions& options, const std::function<bool(const Scan&)>& take);

}  // namespace v1
}  // namespace citysplat::api
