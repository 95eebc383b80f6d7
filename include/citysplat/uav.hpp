#pragma once

#include "citysplat/session.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace citysplat::api {
inline namespace v1 {

/// What an IMU measures, in the frame of the body: turn rate, and force per mass, which is what it feels of
/// acceleration and gravity.
struct ImuReading {
    double time_s = 0;
    Vec3 turn_rad_s, force_m_s2;
};

/// A quadrotor that is told where to fly, and flies there as its motors and controllers can (docs/uav.md).
/// Its poses are what a session is told (Session::advance). The same commands at the same times give the same
/// flight, bit for bit, on every machine.
class Uav {
  public:
    /// Hovers at a pose, of which place and yaw count. A shipped one by name ("quadrotor") or a TOML file;
    /// `seed` is that of the errors of its IMU.
    Uav(const std::string& name_or_file, const Pose& start, double time_s, std::uint64_t seed = 1);
    ~Uav();
    Uav(Uav&&) noexcept;
    Uav& operator=(Uav&&) noexcept;
    static std::vector<std::string> shipped();

    /// Fly to a place and stay there. Commands hold until the next one.
    void go_to(const Vec3& place, double yaw_rad);
    /// Fly with a velocity in the world, turning as told.
    void fly_with(const Vec3& velocity_m_s, double yaw_rate_rad_s);
    /// A force from outside, in the world, until the next one: wind.
    void push(const Vec3& force_n);

    /// Flies on to that time, in steps of a millisecond. Not backwards, and at most an hour at once.
    void advance_to(double time_s);

    double time_s() const;
    Pose pose() const;  ///< of the centre of mass; x forward, y left, z up
    Vec3 velocity_m_s() const;
    Box body() const;  ///< what collides, in the frame of the pose

    /// Poses since the last call, one for each millisecond; the first call begins with the start. Whoever
    /// flies for hours takes them from time to time.
    std::vector<Trajectory::Stamped> take_poses();
    /// Readings of the IMU since the last call.
    std::vector<ImuReading> take_imu();

    struct Parts;

  private:
    std::unique_ptr<Parts> parts_;
};

}  // namespace v1
}  // namespace citysplat::api
