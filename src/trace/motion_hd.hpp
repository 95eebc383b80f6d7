#pragma once

#include "core/math/host_device.hpp"
#include "core/math/vec_hd.hpp"

#include <cstdint>

/// How something moves while a scan is taken, and how rays are moved into its frame.
namespace citysplat::trace {

/// A pose at one moment: world = r · own + t.
struct PoseKey {
    double r[9];  ///< rotation by rows
    Vec3d t;
};
static_assert(sizeof(PoseKey) == 96);

/// r and t are linear between two keys: each point of what moves goes along a straight line, so that a box
/// around two of its poses holds all poses between them. In the middle between two keys the matrix is by
/// (angle between them)²/8 too small.
CITYSPLAT_HD inline PoseKey pose_between(const PoseKey& a, const PoseKey& b, double s) {
    PoseKey at;
    for (int j = 0; j < 9; ++j) at.r[j] = a.r[j] + s * (b.r[j] - a.r[j]);
    at.t = a.t + s * (b.t - a.t);
    return at;
}

/// A motion by keys. Times are those of rays: seconds since the scan began. Before the first key and after
/// the last one it stands still.
struct MotionView {
    const PoseKey* keys = nullptr;   ///< segments + 1
    const float* times_s = nullptr;  ///< of the keys, increasing; not looked at when there is only one
    std::uint32_t segments = 0;      ///< 0: it stands still
    std::uint32_t reserved = 0;
};
static_assert(sizeof(MotionView) == 24);

CITYSPLAT_HD inline PoseKey pose_at(const MotionView& motion, float time_s) {
    if (motion.segments == 0 || !(time_s > motion.times_s[0])) return motion.keys[0];
    if (!(time_s < motion.times_s[motion.segments])) return motion.keys[motion.segments];
    // The last key that is not after `time_s`.
    std::uint32_t k = 0, end = motion.segments;
    while (end - k > 1) {
        const std::uint32_t middle = (k + end) / 2;
        if (motion.times_s[middle] <= time_s)
            k = middle;
        else
            end = middle;
    }
    const double begin_s = static_cast<double>(motion.times_s[k]);
    const double s =
        (static_cast<double>(time_s) - begin_s) / (static_cast<double>(motion.times_s[k + 1]) - begin_s);
    return pose_between(motion.keys[k], motion.keys[k + 1], s);
}

/// A direction of the part in the world.
CITYSPLAT_HD inline Vec3d turned_to_world(const PoseKey& at, Vec3d v) {
    return {at.r[0] * v.x + at.r[1] * v.y + at.r[2] * v.z, at.r[3] * v.x + at.r[4] * v.y + at.r[5] * v.z,
            at.r[6] * v.x + at.r[7] * v.y + at.r[8] * v.z};
}
/// A direction of the world in the part. Requires what pose_between() gives: close to a rotation.
CITYSPLAT_HD inline Vec3d turned_to_part(const PoseKey& at, Vec3d v) {
    return {at.r[0] * v.x + at.r[3] * v.y + at.r[6] * v.z, at.r[1] * v.x + at.r[4] * v.y + at.r[7] * v.z,
            at.r[2] * v.x + at.r[5] * v.y + at.r[8] * v.z};
}
CITYSPLAT_HD inline bool is_unturned(const PoseKey& at) {
    bool unturned = true;
    for (int j = 0; j < 9; ++j) unturned = unturned && at.r[j] == (j % 4 == 0 ? 1.0 : 0.0);
    return unturned;
}

/// A ray in the frame of a part. Distances along it are those of the ray in the world.
struct LocalRay {
    Vec3f origin, direction;
};

/// In double precision, and then rounded once: the origin to 2⁻²⁴ of its distance from the part.
CITYSPLAT_HD inline LocalRay local_ray(const PoseKey& world_from_part, Vec3d origin, Vec3f direction) {
    return {vec_cast<float>(turned_to_part(world_from_part, origin - world_from_part.t)),
            vec_cast<float>(turned_to_part(world_from_part, vec_cast<double>(direction)))};
}

}  // namespace citysplat::trace
