#include "sim/uav/uav.hpp"

#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "uav/strapdown.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

const Pose kStart{{651000.5, 6861000.25, 45}, {}};

UavParameters quadrotor() { return UavParameters::load("quadrotor"); }

/// Answer of a second-order system at rest to a step of 1.
double second_order(const Response& r, double t) {
    const double w = r.frequency_rad_s, z = r.damping;
    // By small steps: the formula has a case for each kind of damping.
    double x = 0, v = 0;
    constexpr double h = 1e-4;
    for (int i = 0; i < static_cast<int>(t / h + 0.5); ++i) {
        const double a = w * w * (1 - x) - 2 * z * w * v;
        x += v * h + a * h * h / 2;
        v += a * h;
    }
    return x;
}

/// Allan deviation at a time of `per_cluster` samples, from all overlapping clusters.
double allan(const std::vector<double>& samples, std::size_t per_cluster) {
    std::vector<double> sums{0};
    for (const double s : samples) sums.push_back(sums.back() + s);
    const std::size_t n = samples.size() + 1 - 2 * per_cluster;
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double d = (sums[i + 2 * per_cluster] - 2 * sums[i + per_cluster] + sums[i]) /
                         static_cast<double>(per_cluster);
        squares += d * d;
    }
    return std::sqrt(squares / (2 * static_cast<double>(n)));
}

}  // namespace

TEST_CASE("a UAV that is left alone hovers where it is") {
    Uav uav(quadrotor(), kStart, 0);
    double farthest = 0;
    for (int i = 1; i <= 600; ++i) {
        uav.advance_to(0.1 * i);
        farthest = std::max(farthest, length(uav.state().position_m - kStart.translation));
    }
    INFO("farthest " << farthest << " m");
    CHECK(farthest <= 1e-3);
    CHECK(uav.ideal_imu().force_m_s2.z == Approx(kGravity_m_s2).epsilon(1e-6));
}

TEST_CASE("the answer to a step is that of the second-order design") {
    for (const double step : {0.2, 1.0})
        for (const Vec3d direction : {Vec3d{1, 0, 0}, Vec3d{0, -1, 0}, Vec3d{0, 0, 1}, Vec3d{0.6, 0.8, 0}}) {
            CAPTURE(step, direction.x, direction.y, direction.z);
            Uav uav(quadrotor(), kStart, 0);
            uav.command(GoTo{kStart.translation + direction * step, 0});
            double worst = 0;
            for (int i = 1; i <= 80; ++i) {
                uav.advance_to(0.05 * i);
                const double went = dot(uav.state().position_m - kStart.translation, direction) / step;
                worst = std::max(worst, std::abs(went - second_order(quadrotor().position, 0.05 * i)));
            }
            INFO("largest difference " << worst << " of the step");
            CHECK(worst <= 0.05);
        }
}

TEST_CASE("a steady wind moves a UAV for a while only") {
    Uav uav(quadrotor(), kStart, 0);
    uav.push({0.5, 0, 0});
    uav.advance_to(1);
    CHECK(uav.state().position_m.x - kStart.translation.x > 0.01);
    uav.advance_to(60);
    CHECK(length(uav.state().position_m - kStart.translation) < 0.001);
}

TEST_CASE("a velocity that is asked for is flown, within the limit, with the turn") {
    Uav uav(quadrotor(), kStart, 0);
    uav.command(FlyWith{{2, -1, 0.5}, 0.3});
    uav.advance_to(5);
    CHECK(length(uav.state().velocity_m_s - Vec3d{2, -1, 0.5}) < 0.02);
    CHECK(uav.state().turn_rad_s.z == Approx(0.3).margin(0.03));
    uav.command(FlyWith{{30, 0, 0}});
    uav.advance_to(15);
    CHECK(uav.state().velocity_m_s.x == Approx(quadrotor().most_velocity_m_s).epsilon(0.01));
    uav.command(GoTo{{651200, 6861000, 60}, 1});
    uav.advance_to(90);
    CHECK(length(uav.state().position_m - Vec3d{651200, 6861000, 60}) < 0.01);
}

TEST_CASE("commands that change all the time do not tumble a UAV") {
    const UavParameters p = quadrotor();
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        std::uint64_t n = 0;
        const auto draw = [&](double most) { return rng::uniform(seed, n++, -most, most); };
        Uav uav(p, kStart, 0);
        double fastest = 0, most_tilt = 0;
        for (int i = 1; i <= 200; ++i) {
            // Turns are what motors have the least power for.
            if (i % 5 == 0)
                uav.command(GoTo{kStart.translation + Vec3d{draw(20), draw(20), draw(20)}, draw(3)});
            else
                uav.command(FlyWith{{draw(5), draw(5), draw(2)}, draw(4)});
            uav.advance_to(0.1 * i);
            fastest = std::max(fastest, length(uav.state().velocity_m_s));
            const Vec3d up = rotate(uav.state().rotation, {0, 0, 1});
            most_tilt = std::max(most_tilt, exact::acos(std::clamp(up.z, -1.0, 1.0)));
        }
        CHECK(fastest < 2 * p.most_velocity_m_s);
        CHECK(most_tilt < exact::kPi / 2);
        uav.command(GoTo{kStart.translation, 0});
        uav.advance_to(60);
        CHECK(length(uav.state().position_m - kStart.translation) < 0.01);
    }
}

TEST_CASE("the IMU of a flight, without errors, integrated for a minute, comes back to it") {
    UavParameters parameters = quadrotor();
    Uav uav(parameters, kStart, 0);
    test::Strapdown filter{uav.state().pose(), uav.state().velocity_m_s};
    std::array<ImuSample, 3> readings{uav.ideal_imu()};
    double worst_m = 0, worst_deg = 0;
    for (int i = 1; i <= 60'000; ++i) {
        if (i % 6000 == 1) {
            const double k = i / 6000;
            uav.command(
                GoTo{kStart.translation + Vec3d{8 * exact::sin(k), 6 * exact::cos(2 * k), k / 3}, 0.7 * k});
        }
        uav.advance_to(i * Uav::kStep_s);
        readings[1 + static_cast<std::size_t>(i + 1) % 2] = uav.ideal_imu();
        if (i % 2 != 0) continue;
        filter.move(readings, 2 * Uav::kStep_s);
        readings[0] = readings[2];
        worst_m = std::max(worst_m, length(filter.pose.translation - uav.state().position_m));
        worst_deg = std::max(worst_deg, filter.turned_from_deg(uav.state().rotation));
    }
    INFO("farthest " << worst_m << " m, " << worst_deg << " degrees");
    CHECK(worst_m <= 0.01);
    CHECK(worst_deg <= 0.01);
}

TEST_CASE("the Allan deviations of an IMU are those of its file") {
    constexpr double kRate = 200;
    const ImuErrors errors = quadrotor().imu;
    const auto still = [&](const ImuErrors& e, std::size_t count) {
        ImuNoise noise(e, kRate, 7);
        std::array<std::vector<double>, 2> x;
        for (std::size_t i = 0; i < count; ++i) {
            const ImuSample s = noise.measured({});
            x[0].push_back(s.turn_rad_s.x);
            x[1].push_back(s.force_m_s2.z);
        }
        return x;
    };
    // Both kinds of error by themselves, where each is seen best: noise at 1 s, the walk of the bias at 10 s.
    const auto noise = still({errors.turn_density, 0, errors.force_density, 0}, 1'000'000);
    CHECK(allan(noise[0], 200) == Approx(errors.turn_density).epsilon(0.05));
    CHECK(allan(noise[1], 200) == Approx(errors.force_density).epsilon(0.05));
    const auto walk = still({0, errors.turn_walk, 0, errors.force_walk}, 2'000'000);
    CHECK(allan(walk[0], 2000) == Approx(errors.turn_walk * std::sqrt(10.0 / 3)).epsilon(0.05));
    CHECK(allan(walk[1], 2000) == Approx(errors.force_walk * std::sqrt(10.0 / 3)).epsilon(0.05));
}

TEST_CASE("a flight is the same for any times at which it is looked at") {
    Uav once(quadrotor(), kStart, 100, 3), often(quadrotor(), kStart, 100, 3);
    for (Uav* uav : {&once, &often}) uav->command(GoTo{{651003, 6861001, 47}, 0.5});
    once.advance_to(104);
    for (int i = 1; i <= 400; ++i) often.advance_to(100 + 0.01 * i);
    CHECK(std::memcmp(&once.state(), &often.state(), sizeof once.state()) == 0);
    const auto a = once.take_imu(), b = often.take_imu();
    REQUIRE(a.size() == 800);
    REQUIRE(b.size() == 800);
    CHECK(a.back().sample.force_m_s2.x == b.back().sample.force_m_s2.x);
    CHECK(once.take_poses().size() == 4001);
    CHECK(once.take_poses().size() == 1);
}

TEST_CASE("files of UAVs that cannot fly are refused by key") {
    CHECK_THROWS_WITH(UavParameters::load("zeppelin"), Catch::Contains("zeppelin"));
    CHECK_THROWS_WITH(UavParameters::parse("[body]\nmass_kg = 1\n", "x.toml"),
                      Catch::Contains("inertia_kg_m2"));
    CHECK_THROWS_WITH(UavParameters::parse("[body]\nmass_kg = nan\n", "x.toml"), Catch::Contains("mass_kg"));
    CHECK_THROWS_WITH(UavParameters::parse("wings = 2\n", "x.toml"), Catch::Contains("x.toml"));
}
