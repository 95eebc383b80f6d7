#include "trace/part.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::trace {

TimeSpan times_of(std::span<const Ray> rays) {
    TimeSpan times{std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
    for (const Ray& ray : rays) {
        times.begin_s = std::min(times.begin_s, ray.time_s);
        times.end_s = std::max(times.end_s, ray.time_s);
    }
    return times;
}

namespace {

/// Around a box in one pose.
Box3d box_at(const PoseKey& at, Vec3d middle, Vec3d half) {
    const Vec3d centre = at.t + turned_to_world(at, middle);
    const auto reach = [&](int row) {
        return std::fabs(at.r[row]) * half.x + std::fabs(at.r[row + 1]) * half.y +
               std::fabs(at.r[row + 2]) * half.z;
    };
    const Vec3d r{reach(0), reach(3), reach(6)};
    return {centre - r, centre + r};
}

}  // namespace

Box3d box_during(const MotionView& motion, const Box3d& box, TimeSpan times) {
    const Vec3d middle = (box.min + box.max) * 0.5, half = (box.max - box.min) * 0.5;
    Box3d all = box_at(pose_at(motion, times.begin_s), middle, half);
    if (motion.segments == 0) return all;
    all.grow(box_at(pose_at(motion, times.end_s), middle, half));
    const float* last = motion.times_s + motion.segments + 1;
    for (const float* key = std::upper_bound(motion.times_s, last, times.begin_s);
         key < last && *key < times.end_s; ++key)
        all.grow(box_at(motion.keys[key - motion.times_s], middle, half));
    return all;
}

}  // namespace citysplat::trace
