#pragma once

#include "core/math/host_device.hpp"
#include "core/math/vec_hd.hpp"
#include "sim/scan/return_hd.hpp"
#include "sim/sensor/firing_hd.hpp"
#include "trace/motion_hd.hpp"
#include "trace/ray_disc_hd.hpp"

#include <cstdint>

/// One scan as plain data, and its rays one by one. Poses are taken at kPoseKeys + 1 moments of the sweep and
/// interpolated linearly in between (0.4 ms at 10 Hz: a turn of 1 rad/s errs by 2·10⁻⁸ rad), so every ray has
/// its own time, origin and direction.
namespace citysplat::sim {

inline constexpr std::uint32_t kPoseKeys = 256;

using trace::PoseKey;  ///< of the sensor in the world, at one moment

/// Everything that decides the returns of a scan, besides the city.
struct ScanView {
    FiringPlan firings;
    const PoseKey* keys;    ///< kPoseKeys + 1
    float keys_per_second;  ///< 0: all rays are fired at once
    float t_min, t_max;
    std::uint32_t reserved;
    std::uint64_t key;  ///< scan_key()
    ReturnModel model;
};
static_assert(sizeof(ScanView) == 272);

/// Of kPoseKeys + 1 keys.
CITYSPLAT_HD inline PoseKey pose_at(const PoseKey* keys, float keys_per_second, float time_s) {
    const float place = time_s * keys_per_second;
    auto k = static_cast<std::uint32_t>(place);
    if (k >= kPoseKeys) k = kPoseKeys - 1;
    const double s = static_cast<double>(place - static_cast<float>(k));
    return trace::pose_between(keys[k], keys[k + 1], s);
}
CITYSPLAT_HD inline PoseKey pose_at(const ScanView& scan, float time_s) {
    return pose_at(scan.keys, scan.keys_per_second, time_s);
}

/// `at` is the pose when the pulse is fired.
CITYSPLAT_HD inline trace::Ray ray_of(const ScanView& scan, const Firing& firing, const PoseKey& at) {
    const Vec3d d = vec_cast<double>(firing.direction);
    return {at.t,
            {static_cast<float>(at.r[0] * d.x + at.r[1] * d.y + at.r[2] * d.z),
             static_cast<float>(at.r[3] * d.x + at.r[4] * d.y + at.r[5] * d.z),
             static_cast<float>(at.r[6] * d.x + at.r[7] * d.y + at.r[8] * d.z)},
            scan.t_min,
            scan.t_max,
            firing.time_s};
}
CITYSPLAT_HD inline trace::Ray ray_of(const ScanView& scan, const Firing& firing) {
    return ray_of(scan, firing, pose_at(scan, firing.time_s));
}

}  // namespace citysplat::sim
