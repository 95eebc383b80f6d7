#include "core/math/math_hd.hpp"
#include "model/spline/pose_spline.hpp"
#include "uav/strapdown.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;

namespace {

/// A car on a winding road near UTM coordinates, one pose each 1/128 s, rounded as TUM files are.
Trajectory winding_road(double seconds) {
    std::vector<StampedPose> poses;
    for (int i = 0; i <= static_cast<int>(seconds * 128); ++i) {
        const double t = i / 128.0;
        const auto slow = exact::sin_cos(0.3 * t), quick = exact::sin_cos(1.1 * t);
        const Vec3d place{651000 + 10 * t + 2 * slow.sin, 6861000 + 8 * slow.cos, 40 + 0.2 * quick.sin};
        const double yaw = exact::atan2(-2.4 * slow.sin, 10 + 0.6 * slow.cos);
        const auto micro = [](double v) { return std::floor(v * 1e6 + 0.5) / 1e6; };
        poses.push_back({302400 + t,
                         {{micro(place.x), micro(place.y), micro(place.z)},
                          from_yaw_pitch_roll(yaw, 0.02 * quick.cos, 0.03 * quick.sin)}});
    }
    return Trajectory(poses);
}

}  // namespace

TEST_CASE("a smooth path stays near the poses, and its derivatives are those of its motion") {
    const Trajectory given = winding_road(20);
    const PoseSpline spline(given, 0.1);
    CHECK(spline.begin_s() == given.begin_s());
    CHECK(spline.end_s() == Approx(given.end_s()).epsilon(1e-14));
    for (const StampedPose& pose : given.poses()) {
        const PoseSpline::State s = spline.at(pose.time_s);
        REQUIRE(length(s.pose.translation - pose.world_from_body.translation) < 1e-3);
        REQUIRE(length(quaternion_log(conjugate(s.pose.rotation) * pose.world_from_body.rotation)) < 1e-3);
    }
    constexpr double h = 1e-4;
    for (double t = given.begin_s() + 0.05; t < given.end_s() - 0.05; t += 0.037) {
        const auto a = spline.at(t - h), b = spline.at(t), c = spline.at(t + h);
        REQUIRE(length((c.pose.translation - a.pose.translation) * (0.5 / h) - b.velocity_m_s) < 2e-4);
        REQUIRE(length((c.velocity_m_s - a.velocity_m_s) * (0.5 / h) - b.acceleration_m_s2) < 2e-3);
        REQUIRE(length(quaternion_log(conjugate(a.pose.rotation) * c.pose.rotation) * (0.5 / h) -
                       b.turn_rad_s) < 1e-6);
    }
}

TEST_CASE("a path whose clock jumps is not smoothed through the years between") {
    const Trajectory road = winding_road(1);
    std::vector<StampedPose> poses(road.poses().begin(), road.poses().end());
    poses.back().time_s = 1.7e9;
    CHECK_THROWS_WITH(PoseSpline(Trajectory(poses), 0.1), Catch::Contains("clock"));
}

TEST_CASE("acceleration and turn of a smooth path have no jumps at its knots") {
    const PoseSpline spline(winding_road(10), 0.1);
    for (double knot = spline.begin_s() + 0.1; knot < spline.end_s() - 0.05; knot += 0.1) {
        const auto before = spline.at(knot - 1e-6), after = spline.at(knot + 1e-6);
        REQUIRE(length(after.acceleration_m_s2 - before.acceleration_m_s2) < 1e-3);
        REQUIRE(length(after.turn_rad_s - before.turn_rad_s) < 1e-4);
    }
}

TEST_CASE("the samples of a smooth path are the path to 10 µm") {
    const PoseSpline spline(winding_road(20), 0.1);
    const Trajectory sampled = spline.sampled();
    for (double t = spline.begin_s(); t < spline.end_s(); t += 0.00123) {
        const PoseSpline::State s = spline.at(t);
        const Pose p = *sampled.at(t);
        REQUIRE(length(p.translation - s.pose.translation) < 1.1e-5);
        REQUIRE(length(quaternion_log(conjugate(p.rotation) * s.pose.rotation)) < 1.5e-6);
    }
}

TEST_CASE("an IMU on a smooth path, integrated for a minute, comes back to it") {
    const PoseSpline spline(winding_road(61), 0.1);
    constexpr double kRate = 200;
    const double begin = spline.begin_s();
    const auto reading = [&](int i) {
        const PoseSpline::State s = spline.at(begin + i / kRate);
        return sim::ideal_imu(s.pose.rotation, s.acceleration_m_s2, s.turn_rad_s);
    };
    const PoseSpline::State first = spline.at(begin);
    test::Strapdown filter{first.pose, first.velocity_m_s};
    double worst_m = 0, worst_deg = 0;
    for (int i = 0; i < 60 * kRate; i += 2) {
        filter.move({reading(i), reading(i + 1), reading(i + 2)}, 2 / kRate);
        const PoseSpline::State truth = spline.at(begin + (i + 2) / kRate);
        worst_m = std::max(worst_m, length(filter.pose.translation - truth.pose.translation));
        worst_deg = std::max(worst_deg, filter.turned_from_deg(truth.pose.rotation));
    }
    INFO("farthest " << worst_m << " m, " << worst_deg << " degrees");
    CHECK(worst_m < 0.01);
    CHECK(worst_deg < 0.01);
    CHECK(length(sim::ideal_imu({}, {0, 0, 0}, {0, 0, 0}).force_m_s2) == 9.80665);
}
