#include "citysplat/uav.hpp"
#include "cli/small_city.hpp"

#include <cmath>
#include <cstring>

namespace api = citysplat::api;
namespace test = citysplat::test;
using Catch::Contains;

namespace {

const char* const kTwo = CITYSPLAT_EXAMPLES "/two_uavs.toml";

api::Pose looking(const api::Vec3& place, double yaw_rad) {
    return {place, 0, 0, std::sin(yaw_rad / 2), std::cos(yaw_rad / 2)};
}

/// A point in the frame of a pose.
api::Vec3 local(const api::Pose& pose, const api::Vec3& p) {
    // v' = v + 2 w (v × q) + 2 ((v × q) × q), which turns by the conjugate.
    const auto cross = [](api::Vec3 a, api::Vec3 b) {
        return api::Vec3{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
    };
    const api::Vec3 v{p.x - pose.position.x, p.y - pose.position.y, p.z - pose.position.z};
    const api::Vec3 q{pose.qx, pose.qy, pose.qz}, once = cross(v, q), twice = cross(once, q);
    return {v.x + 2 * (pose.qw * once.x + twice.x), v.y + 2 * (pose.qw * once.y + twice.y),
            v.z + 2 * (pose.qw * once.z + twice.z)};
}

api::Vec3 middle_of(const test::SmallCity& small) {
    const auto drive = api::Trajectory::read(small.trajectory);
    return drive.at((drive.begin_s() + drive.end_s()) / 2)->position;
}

}  // namespace

TEST_CASE("two UAVs in one session see each other where they are, and neither itself") {
    const test::SmallCity small;
    const api::City city(small.city);
    api::Session session(city, kTwo);
    REQUIRE(session.names() == std::vector<std::string>{"first", "second"});
    const api::Vec3 here = middle_of(small);
    api::Vec3 there = here;
    there.x += 7;
    std::vector<api::Uav> uavs;
    uavs.emplace_back("quadrotor", looking(here, 0), 0, 1);
    uavs.emplace_back("quadrotor", looking(there, 3.14159265358979), 0, 2);
    uavs[0].fly_with({0, 0.4, 0.2}, 0);
    uavs[1].go_to({there.x + 0.5, there.y - 1, there.z + 0.5}, 3.14159265358979);
    std::size_t met[2] = {}, of_the_city[2] = {};
    for (int k = 0; k < 10; ++k) {
        std::vector<std::vector<api::Trajectory::Stamped>> poses;
        for (std::size_t i : {0u, 1u}) {
            uavs[i].advance_to(0.1 * (k + 1));
            poses.push_back(uavs[i].take_poses());
            session.advance(i ? "second" : "first", poses[i]);
        }
        for (std::size_t i : {0u, 1u}) {
            const std::vector<api::Trajectory::Stamped>& other = poses[1 - i];
            for (const api::Return& r : session.scan(i, 0.1 * k).returns) {
                if (r.status != api::Status::hit) continue;
                if (r.instance == 0) {
                    ++of_the_city[i];
                    continue;
                }
                REQUIRE(r.instance == 2 - i);  // the other one
                ++met[i];
                // Where it was at the time of the ray, up to a millisecond; and the noise of the sensor.
                const auto n = std::min(other.size() - 1, static_cast<std::size_t>(1000 * r.time_s));
                const api::Vec3 p = local(other[n].pose, r.position);
                REQUIRE(std::abs(p.x) < 0.25 + 0.12);
                REQUIRE(std::abs(p.y) < 0.25 + 0.12);
                REQUIRE(std::abs(p.z) < 0.10 + 0.12);
            }
        }
        // Each is in the way of the other one, and not in its own.
        api::ClearanceQuestion question{uavs[0].body(), uavs[0].pose(), uavs[0].time_s(), "first", 20};
        const api::Clearance near = session.clearance(question);
        CHECK_FALSE(near.touches);
        question.pose = uavs[1].pose();
        CHECK(session.clearance(question).touches);
        CHECK(session.clearance(question).actor == "second");
    }
    for (const std::size_t i : {0u, 1u}) {
        INFO("UAV " << i << ": " << met[i] << " returns of the other one");
        CHECK(met[i] > 100);
        CHECK(of_the_city[i] > 1000);
    }
    // Once it has left, nobody meets it.
    session.leave("second", 1.0);
    for (const int k : {10, 11}) {
        uavs[0].advance_to(0.1 * (k + 1));
        session.advance("first", uavs[0].take_poses());
        for (const api::Return& r : session.scan(0, 0.1 * k).returns) REQUIRE(r.instance == 0);
    }
}

TEST_CASE("a UAV of the library flies as it is told, and refuses what cannot be flown") {
    const api::Pose start = looking({651000, 6861000, 40}, 0.3);
    api::Uav uav("quadrotor", start, 100), again("quadrotor", start, 100);
    CHECK(api::Uav::shipped() == std::vector<std::string>{"quadrotor"});
    CHECK(uav.body().max.x == 0.25);
    CHECK(uav.body().min.z == -0.1);
    const api::Vec3 goal{651003, 6861001, 41};
    for (api::Uav* one : {&uav, &again}) one->go_to(goal, 0);
    uav.advance_to(110);
    CHECK(uav.time_s() == 110);
    CHECK(uav.pose().position.x == Approx(goal.x).margin(0.01));
    CHECK(uav.pose().position.y == Approx(goal.y).margin(0.01));
    CHECK(std::abs(uav.velocity_m_s().x) < 0.01);

    // Batches follow each other without a gap or a pose twice, whatever their size.
    const auto whole = uav.take_poses();
    REQUIRE(whole.size() == 10'001);
    CHECK(whole.front().time_s == 100);
    std::vector<api::Trajectory::Stamped> pieces;
    for (int k = 1; k <= 100; ++k) {
        again.advance_to(100 + 0.1 * k);
        for (const auto& pose : again.take_poses()) pieces.push_back(pose);
    }
    REQUIRE(pieces.size() == whole.size());
    CHECK(std::memcmp(pieces.data(), whole.data(), whole.size() * sizeof whole[0]) == 0);
    CHECK(uav.take_poses().empty());
    const auto imu = uav.take_imu();
    REQUIRE(imu.size() == 2000);
    CHECK(imu.back().force_m_s2.z == Approx(9.80665).margin(0.2));

    CHECK_THROWS_WITH(uav.advance_to(109), Contains("times go on"));
    CHECK_THROWS_WITH(uav.advance_to(1e9), Contains("times go on"));
    CHECK_THROWS_WITH(uav.advance_to(std::nan("")), Contains("times go on"));
    CHECK_THROWS_WITH(uav.go_to({std::nan(""), 0, 0}, 0), Contains("not a number"));
    CHECK_THROWS_WITH(uav.fly_with({0, 0, 0}, INFINITY), Contains("not a number"));
    CHECK_THROWS_WITH(uav.push({0, std::nan(""), 0}), Contains("not a number"));
    CHECK_THROWS_WITH(api::Uav("zeppelin", start, 0), Contains("zeppelin"));
    CHECK_THROWS_AS(api::Uav("quadrotor", api::Pose{{0, 0, 0}, 0, 0, 0, 0}, 0), api::Error);
    CHECK_THROWS_AS(api::Uav("quadrotor", start, std::nan("")), api::Error);
}

TEST_CASE("the example flies two UAVs through a street without a collision, and reports those of blind ones",
          "[examples]") {
    const test::TempDir dir;
    const std::string drive = dir / "drive", trajectory = drive + "/trajectory.tum", city = dir / "city";
    test::run_json({"synth", drive, "--length", "60", "--points-per-metre", "6000", "--seed", "1"});
    test::run_json({"build", city, drive, "--trajectory", trajectory, "--classes", "synthetic"});
    const auto fly = [&](const std::string& how) {
        return test::run_program({CITYSPLAT_FLY, city, trajectory, kTwo, "40", how});
    };
    const test::Outcome careful = fly("careful"), blind = fly("blind");
    INFO(careful.out << careful.err << blind.out << blind.err);
    CHECK(careful.exit_code == 0);
    CHECK_THAT(careful.out, Contains("first: ") && Contains("second: ") && !Contains("touches"));
    CHECK(blind.exit_code == 1);
    CHECK_THAT(blind.out, Contains("touches"));
}
