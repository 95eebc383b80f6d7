#pragma once

#include "core/math/vec_hd.hpp"
#include "model/spline/pose_spline.hpp"

#include <cstdint>

namespace citysplat::sim {

inline constexpr double kGravity_m_s2 = 9.80665;

/// What an IMU measures: the turn of its body, and the force on it per mass, which is what it feels of
/// acceleration and gravity. Both in its own frame.
struct ImuSample {
    Vec3d turn_rad_s{0, 0, 0}, force_m_s2{0, 0, 0};
};
/// Without error. World z is up.
ImuSample ideal_imu(const Quaternion& world_from_body, Vec3d acceleration_m_s2, Vec3d turn_rad_s);

/// Errors of an IMU, as data sheets and Allan deviations give them: σ(τ) = density / √τ, and walk · √(τ/3).
struct ImuErrors {
    double turn_density = 0;   ///< rad/s/√Hz
    double turn_walk = 0;      ///< of its bias, rad/s²/√Hz
    double force_density = 0;  ///< m/s²/√Hz
    double force_walk = 0;     ///< m/s³/√Hz
};

/// Adds the errors of one IMU to its samples, which come at a fixed rate. Random numbers are functions of the
/// seed and the number of the sample.
class ImuNoise {
  public:
    ImuNoise(const ImuErrors& errors, double rate_hz, std::uint64_t seed);

    /// The next sample.
    ImuSample measured(const ImuSample& truth);
    const ImuSample& bias() const { return bias_; }

  private:
    ImuErrors errors_;
    double rate_hz_;
    std::uint64_t key_, number_ = 0;
    ImuSample bias_;
};

}  // namespace citysplat::sim
