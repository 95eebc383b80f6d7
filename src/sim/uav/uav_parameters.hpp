#pragma once

#include "core/math/box.hpp"
#include "sim/uav/imu.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace citysplat::sim {

/// How a second-order system answers: x'' = ω² (command − x) − 2 ζ ω x'.
struct Response {
    double frequency_rad_s;  ///< natural, ω
    double damping;          ///< ζ
};

/// A quadrotor, as its TOML file says (docs/uav.md).
struct UavParameters {
    std::string name;
    double mass_kg;
    Vec3d inertia_kg_m2;  ///< about its own axes, which are x forward, y left, z up
    Vec3d size_m;         ///< the box that collides, around the centre of mass
    double arm_m;         ///< from the centre of mass to each motor, which are at 45°
    double thrust_n_s2;   ///< of a motor: thrust = this · speed², speed in rad/s
    double torque_nm_s2;  ///< about the axis of a motor, likewise
    double most_speed_rad_s, least_speed_rad_s;
    double drag_n_s_m;  ///< force against the velocity
    Response motor;
    Response position, attitude;  ///< what the controllers are to achieve
    double position_integral;     ///< of the controller, as a share of its ω³; 0: none
    double most_tilt_rad, most_velocity_m_s, most_acceleration_m_s2;
    double imu_rate_hz;
    ImuErrors imu;

    double hover_speed_rad_s() const;
    /// Turns of a body that hovers are begun and ended so quickly: with half of what its motors can do.
    double most_turn_rad_s2() const;

    /// A shipped one by name, or the TOML file at that path. Throws ConfigError that names file and key.
    static UavParameters load(std::string_view name_or_path);
    static UavParameters parse(std::string_view toml, std::string_view origin);
    static std::vector<std::string> builtin_names();
};

}  // namespace citysplat::sim
