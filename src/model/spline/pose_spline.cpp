#include "model/spline/pose_spline.hpp"

#include "core/error.hpp"
#include "core/math/math_hd.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>

namespace citysplat {

namespace {

Quaternion normalized(const Quaternion& q) {
    const double n = std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    return {q.x / n, q.y / n, q.z / n, q.w / n};
}

/// Of a spline: a gigabyte of control points.
constexpr double kMostSteps = 8e6;

void check_duration(double duration_s, double step_s) {
    if (duration_s <= kMostSteps * step_s) return;
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "a path of %.0f s has too many steps of %g s to be smoothed: longer steps, or a clock "
                  "that does not jump",
                  duration_s, step_s);
    throw UsageError(text.data());
}

}  // namespace

Quaternion quaternion_exp(Vec3d v) {
    const double angle = length(v);
    // Below this the next term of the series is smaller than a rounding.
    if (angle < 1e-8) return normalized({v.x / 2, v.y / 2, v.z / 2, 1});
    const exact::SinCos half = exact::sin_cos(angle / 2);
    const Vec3d axis = v * (half.sin / angle);
    return {axis.x, axis.y, axis.z, half.cos};
}

Vec3d quaternion_log(const Quaternion& q) {
    const double sign = q.w < 0 ? -1 : 1;
    const Vec3d v = Vec3d{q.x, q.y, q.z} * sign;
    const double sine = length(v), cosine = q.w * sign;
    if (sine < 1e-8) return v * (2 / cosine);
    return v * (2 * exact::atan2(sine, cosine) / sine);
}

PoseSpline::PoseSpline(const Trajectory& trajectory, double step_s) : begin_s_(trajectory.begin_s()) {
    assert(trajectory.poses().size() >= 2);
    const double duration_s = trajectory.end_s() - begin_s_;
    check_duration(duration_s, step_s);
    const auto steps = static_cast<std::size_t>(std::max(1.0, std::floor(duration_s / step_s + 0.5)));
    step_s_ = duration_s / static_cast<double>(steps);
    const Vec3d first = trajectory.poses().front().world_from_body.translation;
    origin_m_ = {std::floor(first.x), std::floor(first.y), std::floor(first.z)};

    // Samples at the knots, two more at either end with the motion there.
    std::vector<Pose> samples;
    for (std::size_t i = 0; i <= steps; ++i) {
        const double t = begin_s_ + step_s_ * static_cast<double>(i);
        Pose pose = *trajectory.at(std::min(t, trajectory.end_s()));
        pose.translation = pose.translation - origin_m_;
        samples.push_back(pose);
    }
    const auto beyond = [](const Pose& end, const Pose& before) {
        return Pose{2.0 * end.translation - before.translation,
                    normalized(end.rotation * (conjugate(before.rotation) * end.rotation))};
    };
    for (int i = 0; i < 2; ++i) {
        samples.insert(samples.begin(), beyond(samples[0], samples[1]));
        samples.push_back(beyond(samples[samples.size() - 1], samples[samples.size() - 2]));
    }
    // Control points that make the spline pass the samples up to terms of the fourth order.
    for (std::size_t i = 1; i + 1 < samples.size(); ++i) {
        const Pose &a = samples[i - 1], &b = samples[i], &c = samples[i + 1];
        places_.push_back(b.translation - (a.translation - 2.0 * b.translation + c.translation) * (1.0 / 6));
        const Quaternion back = conjugate(b.rotation);
        const Vec3d bend = quaternion_log(back * a.rotation) + quaternion_log(back * c.rotation);
        rotations_.push_back(normalized(b.rotation * quaternion_exp(bend * (-1.0 / 6))));
    }
    for (std::size_t i = 0; i + 1 < rotations_.size(); ++i)
        turns_.push_back(quaternion_log(conjugate(rotations_[i]) * rotations_[i + 1]));
}

PoseSpline::State PoseSpline::at(double time_s) const {
    const double place = std::clamp((time_s - begin_s_) / step_s_, 0.0, static_cast<double>(segments()));
    const std::size_t k = std::min(static_cast<std::size_t>(place), segments() - 1);
    const double u = place - static_cast<double>(k), v = 1 - u, h = step_s_;
    const Vec3d* c = &places_[k];
    State state;
    state.pose.translation = origin_m_ + (c[0] * (v * v * v) + c[1] * (4 + u * u * (3 * u - 6)) +
                                          c[2] * (4 + v * v * (3 * v - 6)) + c[3] * (u * u * u)) *
                                             (1.0 / 6);
    state.velocity_m_s =
        (c[0] * (-v * v) + c[1] * (u * (3 * u - 4)) + c[2] * (v * (4 - 3 * v)) + c[3] * (u * u)) *
        (1 / (2 * h));
    state.acceleration_m_s2 = (c[0] * v + c[1] * (3 * u - 2) + c[2] * (3 * v - 2) + c[3] * u) * (1 / (h * h));

    const double share[3]{(5 + u * (3 + u * (u - 3))) / 6, (1 + u * (3 + u * (3 - 2 * u))) / 6,
                          u * u * u / 6};
    const double rate[3]{(1 - u) * (1 - u) / 2, (1 + 2 * u * (1 - u)) / 2, u * u / 2};
    Quaternion rotation = rotations_[k];
    Vec3d turn{0, 0, 0};
    for (std::size_t j = 0; j < 3; ++j) {
        const Quaternion part = quaternion_exp(turns_[k + j] * share[j]);
        rotation = rotation * part;
        turn = rotate(conjugate(part), turn) + turns_[k + j] * (rate[j] / h);
    }
    state.pose.rotation = normalized(rotation);
    state.turn_rad_s = turn;
    return state;
}

Trajectory PoseSpline::sampled() const {
    constexpr double kMostOff_m = 1e-5, kMostOff_rad = 1e-6, kMostParts = 256;
    std::vector<StampedPose> poses;
    for (std::size_t k = 0; k < segments(); ++k) {
        // A chord of a curve with the second derivative a is a·h²/8 off; within a segment that of the spline
        // is greatest at an end.
        double bend_m = 0, bend_rad = 0;
        for (std::size_t i = k; i < k + 2; ++i) {
            bend_m = std::max(bend_m, length(places_[i] - 2.0 * places_[i + 1] + places_[i + 2]));
            bend_rad = std::max(bend_rad, length(turns_[i + 1] - turns_[i]));
        }
        const double parts = std::clamp(
            std::ceil(std::sqrt(std::max(bend_m / (8 * kMostOff_m), bend_rad / (8 * kMostOff_rad)))), 1.0,
            kMostParts);
        for (double part = 0; part < parts; ++part) {
            const double t = begin_s_ + step_s_ * (static_cast<double>(k) + part / parts);
            poses.push_back({t, at(t).pose});
        }
    }
    poses.push_back({end_s(), at(end_s()).pose});
    return Trajectory(std::move(poses), "the smoothed trajectory");
}

}  // namespace citysplat
