#include "io/drive/smooth_path.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

constexpr double kHole_s = 0.5;
/// At 3 m/s² a straight line over this time is 0.2 mm off.
constexpr double kStep_s = 0.025;

Pose pose_of(const double (&v)[7]) {
    const double n = std::sqrt(v[3] * v[3] + v[4] * v[4] + v[5] * v[5] + v[6] * v[6]);
    return {{v[0], v[1], v[2]}, {v[3] / n, v[4] / n, v[5] / n, v[6] / n}};
}

}  // namespace

SmoothPath::SmoothPath(const Trajectory& given) {
    for (const auto& [time_s, pose] : given.poses()) {
        const auto& [t, q] = pose;
        Knot knot{time_s, {t.x, t.y, t.z, q.x, q.y, q.z, q.w}, {}};
        double cosine = 0;  // of two quaternions for one rotation, the one near the last
        if (!knots_.empty())
            for (int k = 3; k < 7; ++k) cosine += knot.value[k] * knots_.back().value[k];
        if (cosine < 0)
            for (int k = 3; k < 7; ++k) knot.value[k] = -knot.value[k];
        knots_.push_back(knot);
    }
    for (std::size_t i = 0; i < knots_.size(); ++i) {
        const auto step = [this](std::size_t from) { return knots_[from + 1].time_s - knots_[from].time_s; };
        const auto speed = [&](std::size_t from, int k) {
            return (knots_[from + 1].value[k] - knots_[from].value[k]) / step(from);
        };
        // At an end the slope of the parabola through three poses, or of the line through two.
        const auto end_slope = [&](std::size_t at, bool backward, int k) {
            const std::size_t near = backward ? at - 1 : at;
            const bool third = backward ? near > 0 : near + 2 < knots_.size();
            const std::size_t far = !third ? near : backward ? near - 1 : near + 1;
            if (!third || step(far) > kHole_s) return speed(near, k);
            return speed(near, k) + (speed(near, k) - speed(far, k)) * step(near) / (step(near) + step(far));
        };
        const bool before = i > 0 && step(i - 1) <= kHole_s;
        const bool after = i + 1 < knots_.size() && step(i) <= kHole_s;
        for (int k = 0; k < 7; ++k) {
            double& slope = knots_[i].slope[k];
            if (before && after)
                slope = (step(i) * speed(i - 1, k) + step(i - 1) * speed(i, k)) / (step(i - 1) + step(i));
            else if (before || after)
                slope = end_slope(i, before, k);
        }
    }
}

Pose SmoothPath::between(const Knot& a, const Knot& b, double time_s) const {
    const double h = b.time_s - a.time_s, u = (time_s - a.time_s) / h;
    double v[7];
    for (int k = 0; k < 7; ++k) {
        const double line = a.value[k] + u * (b.value[k] - a.value[k]);
        const double rise = b.value[k] - a.value[k];
        const double bend = (1 - u) * (h * a.slope[k] - rise) - u * (h * b.slope[k] - rise);
        v[k] = h > kHole_s ? line : line + u * (1 - u) * bend;
    }
    return pose_of(v);
}

Pose SmoothPath::at(double time_s) const {
    const auto after = std::upper_bound(knots_.begin(), knots_.end(), time_s,
                                        [](double t, const Knot& knot) { return t < knot.time_s; });
    if (after != knots_.begin() && after != knots_.end()) return between(after[-1], *after, time_s);
    const Knot& end = after == knots_.begin() ? knots_.front() : knots_.back();
    double v[7];
    for (int k = 0; k < 7; ++k) v[k] = end.value[k] + (time_s - end.time_s) * end.slope[k];
    return pose_of(v);
}

Trajectory SmoothPath::resampled(double begin_s, double end_s) const {
    std::vector<double> times{std::min(begin_s, knots_.front().time_s)};
    const auto go_to = [&times](double until_s) {
        const double from_s = times.back(), way_s = until_s - from_s;
        if (!(way_s > 0)) return;
        const int steps = way_s > kHole_s ? 1 : static_cast<int>(std::ceil(way_s / kStep_s));
        for (int i = 1; i < steps; ++i) times.push_back(from_s + way_s * i / steps);
        times.push_back(until_s);
    };
    for (const Knot& knot : knots_) go_to(knot.time_s);
    go_to(end_s);
    std::vector<StampedPose> poses;
    for (const double time_s : times) poses.push_back({time_s, at(time_s)});
    return Trajectory(std::move(poses));
}

}  // namespace citysplat::io
