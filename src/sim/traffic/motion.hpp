#pragma once

#include "model/track.hpp"
#include "trace/motion_hd.hpp"

#include <vector>

namespace citysplat::sim {

/// A time of the scenario, and how long a scan takes from there.
struct Sweep {
    double begin_s, seconds;
};

/// The keys of a motion during a scan.
struct MotionKeys {
    std::vector<trace::PoseKey> keys;
    std::vector<float> times_s;

    /// Valid as long as this is, and not moved.
    trace::MotionView view() const;
};

trace::PoseKey key_of(const Pose& pose);

/// No point of a shape is farther than this from where its track says, because of the keys. It is that small
/// because the error of a range is this much divided by the cosine of the incidence.
inline constexpr double kMotionError_m = 1e-6;

/// world_from_shape along a track. The poses of the track are keys: between them a track moves in a straight
/// line, and turns at one speed. By ω rad/s in steps of h seconds, linear keys err by (ωh)²/8 of the distance
/// from the origin of the object, so that each leg gets as many keys as make this kMotionError_m at the
/// distance `reach_m`, which is that of the shape's farthest point. What does not turn has one key for each
/// pose of the track, what does not move has one.
MotionKeys motion_during(const Track& track, const Pose& object_from_shape, double reach_m,
                         const Sweep& sweep);

}  // namespace citysplat::sim
