#pragma once

#include "model/trajectory.hpp"
#include "sim/uav/uav_parameters.hpp"

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

namespace citysplat::sim {

/// Fly to a place and stay there.
struct GoTo {
    Vec3d position_m;
    double yaw_rad = 0;
};
/// Fly with a velocity in the world, turning as told.
struct FlyWith {
    Vec3d velocity_m_s;
    double yaw_rate_rad_s = 0;
};
using UavCommand = std::variant<GoTo, FlyWith>;

/// Everything that moves in a quadrotor.
struct UavState {
    Vec3d position_m{0, 0, 0}, velocity_m_s{0, 0, 0};  ///< world
    Quaternion rotation;                               ///< world from body
    Vec3d turn_rad_s{0, 0, 0};                         ///< body
    std::array<double, 4> motor_rad_s{}, motor_rad_s2{};

    Pose pose() const { return {position_m, rotation}; }
};

/// A quadrotor with its controllers (MARSIM §IV-B, C): rigid body [Lee et al. 2010, eq. 2–5], motors of
/// second order, a position and an attitude controller, one within the other, whose gains follow from natural
/// frequency and damping.
///
/// A command goes through a model of the answer that was asked for (Response), within the limits of velocity
/// and acceleration; the position controller makes the body follow the model, its integral works against what
/// the model does not know (drag, wind, a wrong mass). Motion is computed by Runge and Kutta's fourth-order
/// rule at 1 kHz with core math: the same bits on every machine.
class Uav {
  public:
    static constexpr double kStep_s = 0.001;

    /// Hovers at that pose, of which the yaw counts. `seed` is that of its IMU.
    Uav(const UavParameters& parameters, const Pose& start, double time_s, std::uint64_t seed = 1);

    void command(const UavCommand& command) { command_ = command; }
    /// Moves on to that time, in whole steps: the time afterwards is at most half a step off.
    void advance_to(double time_s);

    double time_s() const { return begin_s_ + static_cast<double>(steps_) * kStep_s; }
    const UavState& state() const { return state_; }
    const UavParameters& parameters() const { return parameters_; }
    Vec3d acceleration_m_s2() const;
    /// What an IMU without errors measures at this moment.
    ImuSample ideal_imu() const;
    /// Where the model of the answer is: what the position is to be.
    Vec3d wanted_m() const { return model_m_; }
    /// A force from outside, in the world: wind.
    void push(Vec3d force_n) { push_n_ = force_n; }

    struct TimedSample {
        double time_s;
        ImuSample sample;
    };
    /// Readings of the IMU since the last call.
    std::vector<TimedSample> take_imu();
    /// Poses since the last call, one for each step, and the one before them: what a session is told.
    std::vector<StampedPose> take_poses();

  private:
    struct Rates;
    Rates rates_of(const UavState& s, const std::array<double, 4>& speed_commands) const;
    UavState moved(const UavState& s, const Rates& r, double dt) const;
    void move_model();
    std::array<double, 4> control();
    void step();

    UavParameters parameters_;
    UavCommand command_;
    double begin_s_;
    std::uint64_t steps_ = 0;
    UavState state_;
    Vec3d model_m_, model_m_s_{0, 0, 0}, model_m_s2_{0, 0, 0}, model_m_s3_{0, 0, 0};
    double yaw_rad_, yaw_rad_s_ = 0;  ///< of the model
    double most_turn_rad_s2_;
    Vec3d integral_{0, 0, 0}, push_n_{0, 0, 0};
    ImuNoise noise_;
    std::vector<TimedSample> imu_;
    std::vector<StampedPose> poses_;
};

}  // namespace citysplat::sim
