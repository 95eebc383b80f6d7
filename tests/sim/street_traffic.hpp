#pragma once

#include "sim/part_rig.hpp"
#include "sim/test_drive.hpp"

#include <string>
#include <vector>

/// Cars and balls in the street of the tests.
namespace citysplat::test {

inline constexpr double kEast = Place{}.east, kNorth = Place{}.north;
inline const Vec3d kCarSize{4.4, 1.8, 1.5};

inline std::vector<sim::Shape> shapes() {
    std::vector<sim::Shape> all;
    all.push_back({"car", box_mesh(kCarSize)});
    all.push_back({"ball", bumpy_sphere(12, 16, 0.8, 3)});
    return all;
}

inline sim::Actor actor(std::uint32_t number, std::uint32_t shape, Track track) {
    sim::Actor a;
    a.name = "actor " + std::to_string(number);
    a.shape = shape;
    a.track = std::move(track);
    a.instance = static_cast<std::uint16_t>(number + 1);
    return a;
}

/// Drives along the street of the tests, or against it, with a curve.
inline Track along_street(double from_x, double y, double speed_mps, double turn_rad) {
    std::vector<StampedPose> poses;
    for (int i = 0; i <= 24; ++i) {
        const double t = i * 0.1;
        poses.push_back({99.95 + t,
                         {{kEast + from_x + speed_mps * t, kNorth + y + 0.3 * exact::sin(3 * t), 0.02},
                          from_yaw_pitch_roll((speed_mps < 0 ? exact::kPi : 0) + turn_rad * t, 0, 0)}});
    }
    return Track::along("along", Trajectory(poses));
}

inline std::vector<sim::Actor> some_actors() {
    std::vector<sim::Actor> actors;
    for (std::uint32_t i = 0; i < 8; ++i)
        actors.push_back(
            actor(i, i % 3 == 2, along_street(6.0 * i, i % 2 ? -3 : 3.5, i % 2 ? 14 : -9, 0.4 * i)));
    actors[3].track.begin_s = 100.55;
    actors[4].track.end_s = 100.97;
    return actors;
}

}  // namespace citysplat::test
