#pragma once

#include "sim/uav/imu.hpp"

namespace citysplat::test {

/// What a navigation filter does with the readings of an IMU: integrates them, with the mean of two readings
/// over the time between them.
struct Strapdown {
    Pose pose;
    Vec3d velocity_m_s;

    void move(const sim::ImuSample& from, const sim::ImuSample& to, double seconds) {
        const Quaternion half =
            pose.rotation * quaternion_exp((from.turn_rad_s * 3.0 + to.turn_rad_s) * (seconds / 8));
        // The axis turns meanwhile: the usual correction for coning.
        const Vec3d coning = cross(from.turn_rad_s, to.turn_rad_s) * (seconds * seconds / 12);
        const Quaternion next =
            pose.rotation * quaternion_exp((from.turn_rad_s + to.turn_rad_s) * (seconds / 2) + coning);
        const Vec3d gravity{0, 0, -sim::kGravity_m_s2};
        const Vec3d a = rotate(pose.rotation, from.force_m_s2) + gravity,
                    c = rotate(next, to.force_m_s2) + gravity,
                    b = rotate(half, (from.force_m_s2 + to.force_m_s2) * 0.5) + gravity;
        // Simpson's rule for the velocity; for the place, that the acceleration is a parabola.
        pose.translation =
            pose.translation + velocity_m_s * seconds + (a + 2.0 * b) * (seconds * seconds / 6);
        velocity_m_s = velocity_m_s + (a + 4.0 * b + c) * (seconds / 6);
        const double n = std::sqrt(next.x * next.x + next.y * next.y + next.z * next.z + next.w * next.w);
        pose.rotation = {next.x / n, next.y / n, next.z / n, next.w / n};
    }
    double turned_from_deg(const Quaternion& q) const {
        return length(quaternion_log(conjugate(pose.rotation) * q)) * exact::kDegreesPerRad;
    }
};

}  // namespace citysplat::test
