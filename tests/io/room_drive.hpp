#pragma once

#include "core/math/math_hd.hpp"
#include "model/trajectory.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

/// A car that drives a bend through a walled yard, with a scanner that turns while it does: every ray has its
/// own true time, origin and end. What readers of drives give back is held against this.
namespace citysplat::test {

struct TrueRay {
    Vec3d world, sensor;
    double time_s;
    std::uint16_t beam;
    bool empty;    ///< met nothing
    bool own_car;  ///< met the bonnet
};

class RoomDrive {
  public:
    struct Sensor {
        int beams = 16, columns = 180;
        double lowest_deg = -22, highest_deg = 6;
        double period_s = 0.1034;
        double start_azimuth_rad = exact::kPi;
        bool clockwise = true;
    };
    explicit RoomDrive(const Sensor& sensor) : sensor_(sensor) {}

    double speed_m_s = 9;
    bool has_bonnet = false;
    const Sensor& sensor() const { return sensor_; }

    /// World from body: forward x, z up, 0.9 m above the ground; in a bend, and nodding a little.
    Pose body_at(double t) const {
        const double yaw = kYaw0 + kTurn_rad_s * t, r = speed_m_s / kTurn_rad_s;
        return {
            {-12 + r * (std::sin(yaw) - std::sin(kYaw0)), -4 - r * (std::cos(yaw) - std::cos(kYaw0)), 0.9},
            from_yaw_pitch_roll(yaw, 0.01 * std::sin(3 * t), 0)};
    }
    Vec3d velocity_at(double t) const {
        const double yaw = kYaw0 + kTurn_rad_s * t;
        return {speed_m_s * std::cos(yaw), speed_m_s * std::sin(yaw), 0};
    }
    static Pose body_from_sensor() { return {{0.8, -0.3, 0.9}, from_yaw_pitch_roll(0.02, 0.01, 0)}; }
    Pose sensor_at(double t) const { return body_at(t) * body_from_sensor(); }

    /// One turn from begin_s on, in the order of firing.
    std::vector<TrueRay> turn(double begin_s) const {
        std::vector<TrueRay> rays;
        for (int column = 0; column < sensor_.columns; ++column) {
            const double share = (column + 0.5) / sensor_.columns,
                         time_s = begin_s + share * sensor_.period_s;
            const double azimuth =
                sensor_.start_azimuth_rad + (sensor_.clockwise ? -1 : 1) * 2 * exact::kPi * share;
            const Pose pose = sensor_at(time_s);
            for (int beam = 0; beam < sensor_.beams; ++beam) {
                const double up = elevation_rad(beam);
                const Vec3d local{std::cos(up) * std::cos(azimuth), std::cos(up) * std::sin(azimuth),
                                  std::sin(up)};
                rays.push_back(cast(pose, local, time_s, beam));
            }
        }
        return rays;
    }
    double elevation_rad(int beam) const {
        return (sensor_.lowest_deg +
                (sensor_.highest_deg - sensor_.lowest_deg) * beam / (sensor_.beams - 1)) *
               exact::kRadPerDegree;
    }

  private:
    static constexpr double kYaw0 = 0.3, kTurn_rad_s = 0.25;
    static constexpr double kWallX_m = 45, kWallY_m = 40, kWallHeight_m = 5;

    TrueRay cast(const Pose& pose, Vec3d local, double time_s, int beam) const {
        const Vec3d d = rotate(pose.rotation, local), o = pose.translation;
        double range = 1e9;
        const auto consider = [&range](double r) {
            if (r > 0 && r < range) range = r;
        };
        consider(-o.z / d.z);
        for (const double side : {-1.0, 1.0}) {
            consider((side * kWallX_m - o.x) / d.x);
            consider((side * kWallY_m - o.y) / d.y);
        }
        const double bonnet = -0.9 / local.z;  // a plate below the sensor, ahead of it
        const Vec3d on_bonnet = bonnet * local;
        const bool own_car = has_bonnet && bonnet > 0 && on_bonnet.x > 1.2 && on_bonnet.x < 2.5 &&
                             std::fabs(on_bonnet.y) < 0.8;
        if (own_car) range = bonnet;
        const Vec3d end = o + range * d;
        const bool empty = end.z > kWallHeight_m;
        return {empty ? o : end, o, time_s, static_cast<std::uint16_t>(beam), empty, own_car};
    }

    Sensor sensor_;
};

}  // namespace citysplat::test
