#include "datasets/synth/drive.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using namespace citysplat;
using namespace citysplat::synth;

namespace {

DriveParams params(double length_m, double localisation_m = 0) {
    DriveParams p;
    p.seed = 3;
    p.length_m = length_m;
    p.localisation_m = localisation_m;
    return p;
}

double heading_of(const Pose& pose) {
    const Vec3d x = rotate(pose.rotation, {1, 0, 0});
    return std::atan2(x.y, x.x);
}

}  // namespace

TEST_CASE("the route is one unbroken line without corners") {
    const auto route = plan_route(3, 3000);
    const Drive drive(params(3000));
    for (std::size_t i = 1; i < route.size(); ++i) {
        CHECK(route[i].begin_m == Approx(route[i - 1].begin_m + route[i - 1].length_m));
        const PathPoint before = drive.path_at(route[i].begin_m - 1e-9),
                        after = drive.path_at(route[i].begin_m);
        CHECK(std::hypot(before.x - after.x, before.y - after.y) < 1e-6);
        CHECK(std::fabs(before.heading_rad - after.heading_rad) < 1e-6);
    }
    CHECK(route.back().begin_m + route.back().length_m >= 3000);
}

TEST_CASE("the vehicle stays on the road") {
    const Drive drive(params(2000));
    for (double s = 0; s < 2000; s += 0.5) {
        const PathPoint p = drive.path_at(s);
        const auto from_line = [](double v) {
            return std::fabs(v - plan::kPitch * std::round(v / plan::kPitch));
        };
        CHECK(std::min(from_line(p.x), from_line(p.y)) < plan::kRoadHalf);
    }
}

TEST_CASE("the drive turns, changes speed, stands still once and ends where its length says") {
    const double length_m = 400;
    const Drive drive(params(length_m));
    CHECK(drive.travelled_m(0) == 0);
    CHECK(drive.travelled_m(drive.duration_s()) == Approx(length_m).epsilon(1e-9));
    double fastest = 0, still_s = 0, turned = 0;
    double last = 0, heading = drive.path_at(0).heading_rad;
    int stops = 0;
    bool standing = false;
    const double dt = 0.01;
    for (double t = dt; t < drive.duration_s(); t += dt) {
        const double s = drive.travelled_m(t), speed = (s - last) / dt;
        REQUIRE(speed >= -1e-9);
        fastest = std::max(fastest, speed);
        if (speed < 1e-6) still_s += dt;
        if (speed < 1e-6 && !standing) ++stops;
        standing = speed < 1e-6;
        const double h = drive.path_at(s).heading_rad;
        turned += std::fabs(h - heading);
        heading = h;
        last = s;
    }
    CHECK(fastest > 6);
    CHECK(fastest < 10);
    CHECK(stops == 1);
    CHECK(still_s == Approx(drive.standstill_s()).margin(0.05));
    CHECK(turned > 2 * exact::kPi);  // the turn about with its swings, and a right turn
}

TEST_CASE("the drive passes the same street twice, on both lanes") {
    const Drive drive(params(200));
    // The first street runs along x at y = 0.
    int out = 0, back = 0;
    for (double s = 0; s < 200; s += 1) {
        const PathPoint p = drive.path_at(s);
        if (std::fabs(p.y + plan::kLaneOffset) < 1e-6 && std::cos(p.heading_rad) > 0.999) ++out;
        if (std::fabs(p.y - plan::kLaneOffset) < 1e-6 && std::cos(p.heading_rad) < -0.999) ++back;
    }
    CHECK(out > 40);
    CHECK(back > 40);
}

TEST_CASE("poses follow each other smoothly, at the scanner's height over the ground") {
    const Drive drive(params(300));
    Ground ground(3);
    Pose last = drive.true_pose(0);
    for (std::int64_t k = 1; k + 1 < drive.pose_count(); ++k) {
        const Pose pose = drive.true_pose(k);
        const double step = length(pose.translation - last.translation);
        CHECK(step * Drive::kPosesPerSecond < 10.5);
        CHECK(std::fabs(std::remainder(heading_of(pose) - heading_of(last), 2 * exact::kPi)) < 0.02);
        const double above = pose.translation.z - ground.height(pose.translation.x, pose.translation.y);
        CHECK(above == Approx(drive.params().sensor_height_m).margin(0.12));
        last = pose;
    }
}

TEST_CASE("the recorded pose drifts by centimetres around the true one, with the stated deviation") {
    const double sigma = 0.012;
    const Drive drive(params(3000, sigma));
    double sum_square = 0, largest = 0;
    std::int64_t n = 0;
    for (std::int64_t k = 0; k < drive.pose_count(); k += 16, ++n) {
        const Vec3d error = drive.recorded_pose(k).translation - drive.true_pose(k).translation;
        sum_square += dot(error, error) / 3;
        largest = std::max(largest, length(error));
    }
    CHECK(std::sqrt(sum_square / static_cast<double>(n)) == Approx(sigma).epsilon(0.25));
    CHECK(largest < 4 * sigma);
    const Drive perfect(params(100, 0));
    CHECK(length(perfect.recorded_pose(77).translation - perfect.true_pose(77).translation) == 0);
}
