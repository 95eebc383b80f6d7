#pragma once

#include "core/math/math_hd.hpp"
#include "sim/uav/imu.hpp"

#include <array>
#include <cmath>

namespace citysplat::test {

/// What a navigation filter does with the readings of an IMU: integrates them, three at a time, as if they
/// were on a parabola.
struct Strapdown {
    Pose pose;
    Vec3d velocity_m_s;

    /// Readings at the beginning, the middle and the end of that many seconds.
    void move(const std::array<sim::ImuSample, 3>& r, double seconds) {
        const Vec3d &w0 = r[0].turn_rad_s, &w1 = r[1].turn_rad_s, &w2 = r[2].turn_rad_s;
        // The axis turns meanwhile: the usual correction for coning.
        const Vec3d coning = cross(w0, w2) * (seconds * seconds / 12);
        const Quaternion middle =
            pose.rotation * quaternion_exp((w0 * 5.0 + w1 * 8.0 - w2) * (seconds / 24) + coning * 0.25);
        const Quaternion end = pose.rotation * quaternion_exp((w0 + w1 * 4.0 + w2) * (seconds / 6) + coning);
        const Vec3d gravity{0, 0, -sim::kGravity_m_s2};
        const Vec3d a = rotate(pose.rotation, r[0].force_m_s2) + gravity,
                    b = rotate(middle, r[1].force_m_s2) + gravity, c = rotate(end, r[2].force_m_s2) + gravity;
        pose.translation =
            pose.translation + velocity_m_s * seconds + (a + 2.0 * b) * (seconds * seconds / 6);
        velocity_m_s = velocity_m_s + (a + 4.0 * b + c) * (seconds / 6);
        const double n = std::sqrt(end.x * end.x + end.y * end.y + end.z * end.z + end.w * end.w);
        pose.rotation = {end.x / n, end.y / n, end.z / n, end.w / n};
    }
    double turned_from_deg(const Quaternion& q) const {
        return length(quaternion_log(conjugate(pose.rotation) * q)) * exact::kDegreesPerRad;
    }
};

}  // namespace citysplat::test
