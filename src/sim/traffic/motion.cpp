#include "sim/traffic/motion.hpp"

#include "core/math/math_hd.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace citysplat::sim {

trace::PoseKey key_of(const Pose& pose) {
    const Vec3d x = rotate(pose.rotation, {1, 0, 0}), y = rotate(pose.rotation, {0, 1, 0}),
                z = rotate(pose.rotation, {0, 0, 1});
    return {{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}, pose.translation};
}

trace::MotionView MotionKeys::view() const {
    return {keys.data(), times_s.data(), static_cast<std::uint32_t>(keys.size() - 1)};
}

namespace {

double angle_between(const Quaternion& a, const Quaternion& b) {
    const double sign = a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w < 0 ? -1 : 1;
    const auto norm = [&](double s) {
        const double x = a.x + s * b.x, y = a.y + s * b.y, z = a.z + s * b.z, w = a.w + s * b.w;
        return std::sqrt(x * x + y * y + z * z + w * w);
    };
    return 4 * exact::atan2(norm(-sign), norm(sign));
}

/// How many keys the turn of a leg needs.
int steps_for(double angle_rad, double reach_m) {
    const double wanted = angle_rad * std::sqrt(reach_m / (8 * kMotionError_m));
    return std::max(1, static_cast<int>(std::ceil(wanted)));
}

bool is_same(const trace::PoseKey& a, const trace::PoseKey& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Makes the keys of one scan.
class KeyMaker {
  public:
    KeyMaker(const Track& track, const Pose& object_from_shape, const Sweep& sweep)
        : track_(track), object_from_shape_(object_from_shape), sweep_(sweep) {}

    Pose object_at(double time_s) const { return track_.pose_at(time_s); }

    /// Poses belong to the times that rays have, which are floats.
    void add(double time_s) {
        const auto place_s = static_cast<float>(time_s - sweep_.begin_s);
        if (!motion_.times_s.empty() && !(place_s > motion_.times_s.back())) return;
        motion_.times_s.push_back(place_s);
        motion_.keys.push_back(
            key_of(object_at(sweep_.begin_s + static_cast<double>(place_s)) * object_from_shape_));
    }

    MotionKeys finish() {
        const auto& keys = motion_.keys;
        if (std::all_of(keys.begin(), keys.end(), [&](const auto& key) { return is_same(key, keys[0]); })) {
            motion_.keys.resize(1);
            motion_.times_s.resize(1);
        }
        return std::move(motion_);
    }

  private:
    const Track& track_;
    const Pose& object_from_shape_;
    const Sweep& sweep_;
    MotionKeys motion_;
};

}  // namespace

MotionKeys motion_during(const Track& track, const Pose& object_from_shape, double reach_m,
                         const Sweep& sweep) {
    KeyMaker maker(track, object_from_shape, sweep);
    const double from_origin_m = reach_m + length(object_from_shape.translation);
    const double end_s = sweep.begin_s + sweep.seconds;
    const auto poses = track.path.poses();
    auto next = std::upper_bound(poses.begin(), poses.end(), sweep.begin_s,
                                 [](double t, const StampedPose& pose) { return t < pose.time_s; });
    maker.add(sweep.begin_s);
    for (double from_s = sweep.begin_s; from_s < end_s;) {
        const double to_s = next != poses.end() ? std::min(end_s, next->time_s) : end_s;
        const int steps = steps_for(
            angle_between(maker.object_at(from_s).rotation, maker.object_at(to_s).rotation), from_origin_m);
        for (int i = 1; i < steps; ++i) maker.add(from_s + (to_s - from_s) * i / steps);
        maker.add(to_s);
        from_s = to_s;
        if (next != poses.end()) ++next;
    }
    return maker.finish();
}

}  // namespace citysplat::sim
