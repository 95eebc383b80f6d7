#include "adjust/correction.hpp"

#include "core/math/math_hd.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::adjust {

namespace {

constexpr double kLongestInterval_s = 2;
constexpr double kMoved_m = 0.1;
/// Sine of half of 0.1°.
constexpr double kTurnedHalfSine = 0.05 * exact::kRadPerDegree;
/// Poses of a clock that is not quite even.
constexpr double kClockTolerance = 0.9;

bool moved(const Pose& from, const Pose& to) {
    const Quaternion turn = conjugate(from.rotation) * to.rotation;
    return length(to.translation - from.translation) >= kMoved_m ||
           length(Vec3d{turn.x, turn.y, turn.z}) >= kTurnedHalfSine;
}

}  // namespace

Quaternion rotation_from(Vec3d v) {
    const double angle = length(v);
    if (angle < 1e-12) return {v.x / 2, v.y / 2, v.z / 2, 1};
    const exact::SinCos half = exact::sin_cos(angle / 2);
    const double s = half.sin / angle;
    return {s * v.x, s * v.y, s * v.z, half.cos};
}

Correction::Correction(Trajectory given, double spacing_s) : given_(std::move(given)) {
    const auto poses = given_.poses();
    const StampedPose* last = &poses.front();
    const auto add = [&](const StampedPose& pose) {
        last = &pose;
        times_s_.push_back(pose.time_s);
        positions_m_.push_back(pose.world_from_body.translation);
    };
    add(*last);
    for (std::size_t i = 1; i + 1 < poses.size(); ++i) {
        const double since_s = poses[i].time_s - last->time_s;
        if (since_s < kClockTolerance * spacing_s) continue;
        if (since_s < kLongestInterval_s && !moved(last->world_from_body, poses[i].world_from_body)) continue;
        add(poses[i]);
    }
    if (poses.size() > 1) add(poses.back());
    knots_.resize(times_s_.size());
}

std::size_t Correction::interval_of(double time_s, std::size_t& hint) const {
    const std::size_t last = intervals() - 1;
    const auto inside = [&](std::size_t i) {
        return (i == 0 || time_s >= times_s_[i]) && (i >= last || time_s < times_s_[i + 1]);
    };
    if (hint <= last && inside(hint)) return hint;
    const auto after = std::upper_bound(times_s_.begin(), times_s_.end(), time_s);
    const auto before = static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, after - times_s_.begin())) - 1;
    return hint = std::min(before, last);
}

Correction::Place Correction::place_of(std::size_t interval, double time_s) const {
    if (times_s_.size() == 1) return {0, 0};
    const double begin = times_s_[interval], end = times_s_[interval + 1];
    return {interval, std::clamp((time_s - begin) / (end - begin), 0.0, 1.0)};
}

Correction::Place Correction::middle_of(std::size_t interval) const {
    return {interval, times_s_.size() == 1 ? 0 : 0.5};
}

Vec3d Correction::given_position_m(const Place& place) const {
    const Vec3d a = positions_m_[place.knot];
    return place.share == 0 ? a : a + place.share * (positions_m_[place.knot + 1] - a);
}

KnotCorrection Correction::at(const Place& place) const {
    const KnotCorrection& a = knots_[place.knot];
    if (place.share == 0) return a;
    const KnotCorrection& b = knots_[place.knot + 1];
    return {a.shift_m + place.share * (b.shift_m - a.shift_m),
            a.turn_rad + place.share * (b.turn_rad - a.turn_rad)};
}

Trajectory Correction::corrected() const {
    std::vector<StampedPose> poses(given_.poses().begin(), given_.poses().end());
    std::size_t hint = 0;
    for (StampedPose& pose : poses) {
        const KnotCorrection c = at(place_of(interval_of(pose.time_s, hint), pose.time_s));
        pose.world_from_body.translation = pose.world_from_body.translation + c.shift_m;
        pose.world_from_body.rotation = rotation_from(c.turn_rad) * pose.world_from_body.rotation;
    }
    return Trajectory(std::move(poses), "the adjusted trajectory");
}

}  // namespace citysplat::adjust
