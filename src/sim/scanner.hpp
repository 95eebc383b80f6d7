#pragma once

#include "core/trajectory.hpp"
#include "sim/scan.hpp"
#include "sim/sensor.hpp"
#include "sim/tile_frustum.hpp"
#include "sim/tracer.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace citysplat::sim {

/// A sensor on a vehicle on a trajectory: everything that decides what its scans contain, besides the city.
struct SensorRun {
    Sensor sensor;
    Pose body_from_sensor;  ///< mount
    std::uint64_t seed = 1;
    std::uint64_t stream = 0;  ///< tells the sensors of one scenario apart in the random numbers
    bool noise = true;         ///< error model and drop model
    std::uint32_t hits = 1;    ///< D of AdaSplats §6.3.4; 1: the closest hit
    float gap_m = 0.1f;        ///< greatest distance between consecutive hits of one surface
};

/// The rays of one scan, ready to be cast batch by batch. Poses are taken at kKeys + 1 moments of the sweep
/// and interpolated linearly in between (0.4 ms at 10 Hz: a turn of 1 rad/s errs by 2·10⁻⁸ rad), so every ray
/// has its own time, origin and direction.
class ScanRays {
  public:
    static constexpr int kKeys = 256;

    /// Requires that the trajectory covers the sweep.
    ScanRays(const SensorRun& run, const Trajectory& trajectory, std::uint64_t index, double time_s,
             std::span<const Firing> firings);

    std::uint64_t index() const { return index_; }
    double time_s() const { return time_s_; }
    const Pose& world_from_sensor() const { return first_pose_; }
    std::size_t size() const { return firings_.size(); }
    std::span<const Firing> firings() const { return firings_; }
    /// Box around all origins.
    const TileBox& origins() const { return origins_; }

    void generate(std::size_t first, std::span<Ray> rays) const;

  private:
    /// Rotation by rows and translation.
    struct Key {
        double r[9];
        Vec3d t;
    };

    std::uint64_t index_;
    double time_s_;
    Pose first_pose_;
    std::span<const Firing> firings_;
    float keys_per_second_, t_min_, t_max_;
    std::vector<Key> keys_;
    TileBox origins_;
};

/// Turns hits into returns: multi-hit average, error model, intensity, drops. Pure, per ray.
class ReturnMaker {
  public:
    explicit ReturnMaker(const SensorRun& run);

    Return make(const Ray& ray, const Firing& firing, const HitList& list, std::uint64_t scan) const;
    Return make(const Ray& ray, const Firing& firing, const Hit& hit, std::uint64_t scan) const;

  private:
    Return finish(const Ray& ray, const Firing& firing, const Hit& hit, double range_m, std::uint32_t hits,
                  std::uint64_t scan) const;

    const SensorRun& run_;
    double min_cosine_;
};

/// Length of a sweep in seconds.
double sweep_seconds(const Sensor& sensor);

}  // namespace citysplat::sim
