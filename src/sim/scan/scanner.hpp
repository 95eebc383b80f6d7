#pragma once

#include "core/math/box.hpp"
#include "model/trajectory.hpp"
#include "sim/scan/scan_hd.hpp"
#include "sim/sensor/sensor.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::sim {

/// Hits that make a return unless something else is asked for, and the greatest distance between them.
inline constexpr std::uint32_t kUsualHits = 5;
inline constexpr float kUsualGap_m = 0.3f;

/// A sensor on a vehicle on a trajectory: everything that decides what its scans contain, besides the city.
struct SensorRun {
    Sensor sensor;
    Pose body_from_sensor;  ///< mount
    std::uint64_t seed = 1;
    std::uint64_t stream = 0;  ///< tells the sensors of one scenario apart in the random numbers
    bool noise = true;         ///< error model and drop model
    /// D of AdaSplats §6.3.4; 1: the closest hit, which lies in front of a noisy surface.
    std::uint32_t hits = kUsualHits;
    float gap_m = kUsualGap_m;  ///< greatest distance between consecutive hits of one surface
};

/// One scan of a run: its poses, and the view of it that rays and returns are made from.
class ScanRays {
  public:
    /// Requires that the trajectory covers the sweep. What `firings` refers to must stay.
    ScanRays(const SensorRun& run, const Trajectory& trajectory, std::uint64_t index, double time_s,
             const FiringPlan& firings);

    const Pose& world_from_sensor() const { return first_pose_; }  ///< when the scan begins
    std::size_t size() const { return view_.firings.count; }
    Box3d path() const;  ///< around the origins of all rays
    /// Valid as long as this is.
    ScanView view() const;

  private:
    Pose first_pose_;
    std::vector<PoseKey> keys_;
    ScanView view_;  ///< without keys: they move with this
};

/// How the sensor of a run makes returns.
ReturnModel return_model(const SensorRun& run);

/// Length of a sweep in seconds.
double sweep_seconds(const Sensor& sensor);

/// Pose of the sensor in the world at moment `key` (0 … kPoseKeys) of the scan that begins at `time_s`.
Pose pose_of_key(const SensorRun& run, const Trajectory& trajectory, double time_s, std::uint32_t key);

}  // namespace citysplat::sim
