#include "core/math/math_hd.hpp"
#include "sim/clearance/clearance.hpp"
#include "sim/test_drive.hpp"
#include "sim/traffic/object_shape.hpp"
#include "sim/uav/uav.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

constexpr Vec3d kOrigin{651000, 6861000, 35};

UavParameters quadrotor() { return UavParameters::load("quadrotor"); }

Box3d box_of(const UavParameters& p) { return {p.size_m * -0.5, p.size_m * 0.5}; }

/// A wall across the way, 10 m ahead, with a gap of that width in the middle; discs end at its edges.
test::MemoryCity wall_with_gap(double gap_m) {
    constexpr double kRadius = 0.05;
    std::vector<test::WorldDisc> discs;
    for (double z = 0; z < 6; z += 0.06)
        for (double y = gap_m / 2 + kRadius; y < 5; y += 0.06)
            for (const double side : {-1.0, 1.0})
                discs.push_back({kOrigin + Vec3d{10, side * y, z}, {1, 0, 0}, kRadius});
    return test::MemoryCity(discs, 32);
}

/// Flies from one side of the wall to the other, and says how near it came.
ClearanceReport fly_through(double gap_m) {
    const test::MemoryCity city = wall_with_gap(gap_m);
    Uav uav(quadrotor(), {kOrigin + Vec3d{0, 0, 3}, {}}, 0);
    uav.command(GoTo{kOrigin + Vec3d{20, 0, 3}, 0});
    uav.advance_to(12);
    REQUIRE(length(uav.state().position_m - (kOrigin + Vec3d{20, 0, 3})) < 0.1);
    const Trajectory way(uav.take_poses());
    ClearanceProbe probe(city, nullptr, {.limit_m = 1});
    return clearance_along(probe, ClearanceBody(box_of(quadrotor())), {way, 0, 12, 0.02}, CancelToken());
}

}  // namespace

TEST_CASE("a flight through a gap narrower than the UAV is a collision, through a wider one it is not") {
    const double width = quadrotor().size_m.y;
    for (const double less : {0.3, 0.05, 0.01}) {
        CAPTURE(less);
        const ClearanceReport r = fly_through(width - less);
        CHECK(r.touching > 0);
        CHECK(r.nearest.distance_m == 0);
    }
    for (const double more : {0.3, 0.05, 0.02}) {
        CAPTURE(more);
        const ClearanceReport r = fly_through(width + more);
        CHECK(r.touching == 0);
        CHECK(r.nearest.distance_m == Approx(more / 2).margin(0.005));
    }
}

TEST_CASE("two UAVs that fly at the same time see each other, and neither itself") {
    std::vector<test::WorldDisc> floor;
    for (double x = -4; x < 16; x += 0.25)
        for (double y = -8; y < 8; y += 0.25) floor.push_back({kOrigin + Vec3d{x, y, 0}, {0, 0, 1}, 0.25});
    const test::MemoryCity city(floor, 32);

    // They face each other, 8 m apart, and fly aside and up.
    std::vector<Uav> uavs;
    uavs.emplace_back(quadrotor(), Pose{kOrigin + Vec3d{0, 0, 3}, {}}, 100);
    uavs.emplace_back(quadrotor(), Pose{kOrigin + Vec3d{8, 0, 3}, from_yaw_pitch_roll(exact::kPi, 0, 0)},
                      100);
    std::vector<Shape> shapes;
    std::vector<Actor> actors;
    std::vector<Trajectory> ways;
    for (std::size_t i = 0; i < 2; ++i) {
        uavs[i].command(FlyWith{{0, i == 0 ? 0.6 : -0.6, 0.3}});
        uavs[i].advance_to(102);
        ways.emplace_back(uavs[i].take_poses());
        const Vec3d size = quadrotor().size_m;
        ObjectDescription box;
        box.name = "uav";
        box.form = ObjectDescription::Form::box;
        box.size = {size.x, size.y, size.z};
        ObjectShape shape = make_object(box, city.classes());
        shapes.push_back(std::move(shape.shape));
        // Tracks are those of the middle of the bottom face.
        std::vector<StampedPose> track(ways[i].poses().begin(), ways[i].poses().end());
        for (StampedPose& p : track) p.world_from_body = p.world_from_body * Pose{{0, 0, -size.z / 2}, {}};
        Actor actor;
        actor.name = "uav " + std::to_string(i);
        actor.shape = static_cast<std::uint32_t>(i);
        actor.track = Track::along(actor.name, Trajectory(track));
        actor.object_from_shape = shape.object_from_shape;
        actor.instance = static_cast<std::uint16_t>(i + 1);
        actor.vehicle = static_cast<std::uint32_t>(i);
        actors.push_back(std::move(actor));
    }
    const Traffic traffic(std::move(shapes), std::move(actors));
    const auto tracer = trace::make_group_tracer();
    for (std::uint32_t i = 0; i < 2; ++i) {
        SensorRun run;
        run.sensor = Sensor::load("avia");
        run.noise = false;
        const test::DriveOutcome seen = test::drive(
            {city, *tracer, run, ways[i], test::with_budget(std::uint64_t{1} << 28), &traffic, i});
        REQUIRE(seen.scans.size() >= 19);
        std::size_t met = 0;
        for (const Scan& scan : seen.scans)
            for (const Return& r : scan.returns) {
                if (r.status != RayStatus::hit || r.instance == 0) continue;
                REQUIRE(r.instance == 2 - i);  // the other one
                const Pose other = *ways[1 - i].at(scan.time_s + static_cast<double>(r.time_s));
                const Vec3d p = inverse(other).apply(r.position), half = quadrotor().size_m * 0.5;
                REQUIRE(std::max({std::abs(p.x) - half.x, std::abs(p.y) - half.y, std::abs(p.z) - half.z}) <
                        0.01);
                ++met;
            }
        INFO("UAV " << i << ": " << met << " returns of the other one");
        CHECK(met > 200);
    }
}
