#include "core/error.hpp"
#include "core/file.hpp"
#include "learn/some_model.hpp"
#include "model/object_box.hpp"
#include "sim/part_rig.hpp"
#include "sim/street_traffic.hpp"
#include "sim/test_drive.hpp"
#include "sim/traffic/scan_parts.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <algorithm>
#include <map>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;
using namespace citysplat::test;

namespace {

/// Ground and two walls, without a function of the C library in them.
std::vector<WorldDisc> plain_street() {
    std::vector<WorldDisc> discs;
    std::uint64_t n = 0;
    const auto jitter = [&](double amount) { return rng::uniform(17, n++, -amount, amount); };
    constexpr double kStep_m = 0.25, kRadius_m = kStep_m * 0.9;
    for (double x = 0; x < 40; x += kStep_m) {
        for (double y = -8; y <= 8; y += kStep_m)
            discs.push_back({{kEast + x + jitter(0.05), kNorth + y + jitter(0.05), jitter(0.01)},
                             normalized(Vec3d{jitter(0.02), jitter(0.02), 1}),
                             kRadius_m,
                             7,
                             20000});
        for (double z = 0; z <= 10; z += kStep_m)
            for (const double side : {-8.0, 8.0})
                discs.push_back({{kEast + x, kNorth + side + jitter(0.01), z},
                                 normalized(Vec3d{jitter(0.02), -side, jitter(0.02)}),
                                 kRadius_m,
                                 1,
                                 40000});
    }
    return discs;
}

}  // namespace

TEST_CASE("scans without anything that moves have the digests they had before anything could") {
    struct Known {
        const char* sensor;
        std::uint32_t hits;
        const char* digest;
    };
    // Of the last version without parts. Left out: the URG-04LX, which sees nothing here, and the D455, which
    // takes long.
    const Known known[]{
        {"avia", 1, "e7c1ff875151c5b6421af3bced736403"},
        {"avia", 5, "7a1c0c5118b798075e87021139a10a85"},
        {"hdl-32e", 1, "eb62605792e5c4d7e7b44a700051c723"},
        {"hdl-64e", 1, "c69eb10007ff9ebb6f5c6b66204907bd"},
        {"hdl-64e", 5, "2d4a37115d7e08a9273ed6e0e7047d77"},
        {"hdl-64e-s2", 1, "6b8035ca7256bc78bff8c7bb75d465ca"},
        {"mid-360", 1, "49e31490a6374a89adf208857f865a64"},
        {"os1-128", 1, "1a2cc4ef42edec025275d88e992440bf"},
        {"os1-128", 5, "5dd2399a231899276b70dcd60ea693c8"},
        {"os1-32", 1, "d433fa02f133789bfd56b5960ce7e8ec"},
        {"os1-64", 1, "d4e2f26735e8f3ced2dac24d398a787c"},
        {"pandar40p", 1, "37b46b7e5197022cf270f33d7e8a83c8"},
        {"pandar64", 1, "9c4fbed6d0d07e0d85b3036093d2ea48"},
        {"vlp-16", 1, "4fafc5fb5f70ce3d970590d4797ca757"},
        {"vlp-16", 5, "b8991d9d10d100ac5ebdc33a31fe66da"},
        {"vlp-32c", 1, "e65f8a4473eb74cd476109e875a4c03f"},
    };
    const MemoryCity city(plain_street(), 64);
    const auto tracer = make_group_tracer();
    const Traffic nobody;
    for (const Known& k : known) {
        CAPTURE(k.sensor, k.hits);
        SensorRun run{Sensor::load(k.sensor), {}, 7};
        run.hits = k.hits;
        const DriveOutcome outcome =
            drive({city, *tracer, run, straight_drive(20, 0.21), with_budget(kPlenty), &nobody});
        CHECK(outcome.report.hits > 10'000);
        CHECK(outcome.report.digest.hex() == k.digest);
    }
}

TEST_CASE("scans with traffic are the same for threads and memory and tracers and actors far away") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const Traffic traffic(shapes(), some_actors());
    std::vector<Actor> crowd = some_actors();
    for (std::uint32_t i = 0; i < 50; ++i)
        crowd.push_back(actor(8 + i, 0, along_street(5000 + 10.0 * i, 0, 10, 0.1)));
    const Traffic crowded(shapes(), std::move(crowd));
    const auto groups = make_group_tracer();
    const auto embree = make_embree_tracer();
    const Trajectory trajectory = straight_drive(20, 1.01);
    SensorRun run{small_sensor(), {}, 7};
    for (const std::uint32_t hits : {1u, 5u}) {
        run.hits = hits;
        const SimulationOptions plenty = with_budget(kPlenty);
        const DriveOutcome reference = drive({city, *groups, run, trajectory, plenty, &traffic});
        CHECK(reference.report.part_hits > 1000);
        CHECK(reference.report.hits > 2 * reference.report.part_hits);
        CHECK(reference.report.parts_in_reach > 50);
        const auto same = [&](const Tracer& tracer, const SimulationOptions& options, const Traffic& t) {
            return drive({city, tracer, run, trajectory, options, &t}).report.digest ==
                   reference.report.digest;
        };
        CHECK(same(*embree, plenty, traffic));
        CHECK(same(*groups, plenty, crowded));
        for (const std::string& set : group_instruction_sets())
            CHECK(same(*make_group_tracer({set}), plenty, traffic));
        const std::uint64_t one = largest_tile_bytes(city) + ReadyTraffic(traffic, *groups).bytes();
        for (const std::uint64_t budget : {one, 2 * one, 5 * one})
            CHECK(same(*groups, with_budget(budget), traffic));
        for (const std::size_t threads : {1u, 2u, 5u}) {
            const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
            CHECK(same(*groups, plenty, traffic));
        }
        const DriveOutcome alone = drive({city, *groups, run, trajectory, plenty});
        CHECK(alone.report.digest != reference.report.digest);
        const Traffic nobody;
        CHECK(drive({city, *groups, run, trajectory, plenty, &nobody}).report.digest == alone.report.digest);
    }
}

TEST_CASE("wide pulses and learned models meet what moves alike for threads and memory and tracers") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const Traffic traffic(shapes(), some_actors());
    const auto groups = make_group_tracer();
    const auto embree = make_embree_tracer();
    const Trajectory trajectory = straight_drive(10, 0.41);
    const TempDir dir;
    FileWriter model(dir / "model.toml");
    model.text(some_model(16).text());
    model.finish();
    for (const bool wide : {true, false}) {
        SensorRun run{small_sensor(), {}, 7};
        if (wide) {
            run.sensor.beam.divergence_rad = 0.01;
            run.sensor.beam.returns = ReturnMode::dual;
        } else {
            run.sensor.model = dir / "model.toml";
        }
        const DriveOutcome reference =
            drive({city, *groups, run, trajectory, with_budget(kPlenty), &traffic});
        CHECK(reference.report.part_hits > 200);
        CHECK((reference.report.dropped > 0) == !wide);
        const auto same = [&](const Tracer& tracer, std::uint64_t budget) {
            return drive({city, tracer, run, trajectory, with_budget(budget), &traffic}).report.digest ==
                   reference.report.digest;
        };
        CHECK(same(*embree, kPlenty));
        CHECK(same(*groups, largest_tile_bytes(city) + ReadyTraffic(traffic, *groups).bytes()));
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 1);
        CHECK(same(*groups, kPlenty));
    }
}

TEST_CASE("the returns of an actor lie in its box at the time of their rays") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const Traffic traffic(shapes(), some_actors());
    const auto tracer = make_group_tracer();
    SensorRun run{small_sensor(), {}, 7};
    run.noise = false;
    std::vector<Box3d> boxes;
    for (const Shape& shape : traffic.shapes()) {
        boxes.push_back(kEmptyBox);
        for (const Vec3f v : std::get<TriangleMesh>(shape.form).vertices)
            boxes.back().grow(vec_cast<double>(v));
    }
    for (const std::uint32_t hits : {1u, 5u}) {
        run.hits = hits;
        const DriveOutcome outcome =
            drive({city, *tracer, run, straight_drive(20, 1.01), with_budget(kPlenty), &traffic});
        std::size_t all = 0, outside = 0, absent = 0;
        std::map<std::uint16_t, std::size_t> seen;
        for (const Scan& scan : outcome.scans)
            for (const Return& r : scan.returns) {
                if (r.status != RayStatus::hit || r.instance == 0) continue;
                const Actor& a = traffic.actors()[r.instance - 1u];
                const double time_s = scan.time_s + static_cast<double>(r.time_s);
                ++all;
                ++seen[r.instance];
                absent += !a.track.exists(time_s);
                REQUIRE(r.splat_id >> 32 == kFirstPart + r.instance - 1u);
                const Vec3d at = inverse(a.track.pose_at(time_s)).apply(r.position);
                outside += !is_inside(boxes[a.shape].widened(0.01), at);
            }
        CHECK(all == outcome.report.part_hits);
        CHECK(all > 1000);
        CHECK(seen.size() >= 6);
        CHECK(outside == 0);
        CHECK(absent == 0);
    }
}

TEST_CASE("vehicles do not see themselves and see each other") {
    const MemoryCity nothing({}, 16);
    const auto tracer = make_group_tracer();
    std::vector<Trajectory> ways;
    std::vector<Actor> actors;
    for (std::uint32_t i = 0; i < 2; ++i) {
        std::vector<StampedPose> poses;
        for (int k = 0; k <= 10; ++k)
            poses.push_back({100 + 0.1 * k,
                             {{kEast + 15.0 * i + k * (i ? -0.4 : 0.6), kNorth + 2.5 * i, 0},
                              from_yaw_pitch_roll(i ? exact::kPi + 0.05 * k : 0.02 * k, 0, 0)}});
        ways.emplace_back(poses);
        actors.push_back(actor(i, 0, Track::along("vehicle", ways.back())));
        actors.back().vehicle = i;
    }
    const Traffic traffic(shapes(), actors);
    // The sensor is inside of the car's box.
    SensorRun run{small_sensor(), {{0, 0, 1}, {}}, 7};
    for (std::uint32_t i = 0; i < 2; ++i) {
        const SimulationOptions options = with_budget(kPlenty);
        const DriveOutcome outcome = drive({nothing, *tracer, run, ways[i], options, &traffic, i});
        std::size_t other = 0;
        for (const Scan& scan : outcome.scans)
            for (const Return& r : scan.returns) {
                CHECK(r.instance != i + 1);
                other += r.instance == 2 - i;
            }
        CHECK(other > 500);
        CHECK(warnings_of(outcome.report, run.sensor).empty());
        run.sensor.min_range_m = 0.1;
        const DriveOutcome asked = drive({nothing, *tracer, run, ways[i], options, &traffic});
        CHECK(asked.report.part_hits + asked.report.dropped == asked.report.rays);
    }
}

TEST_CASE("the shapes of actors are taken off the memory of tiles") {
    const MemoryCity city(street(kEast, kNorth, 30), 16);
    const Traffic traffic(shapes(), some_actors());
    const auto tracer = make_group_tracer();
    const std::uint64_t bytes = ReadyTraffic(traffic, *tracer).bytes();
    CHECK(bytes > 10000);
    const SensorRun run{small_sensor(), {}, 7};
    const Trajectory trajectory = straight_drive(20, 0.31);
    CHECK_THROWS_WITH(drive({city, *tracer, run, trajectory, with_budget(bytes), &traffic}),
                      Catch::Contains("raise --resident"));
    const std::uint64_t budget = bytes + 3 * largest_tile_bytes(city);
    CHECK(drive({city, *tracer, run, trajectory, with_budget(budget), &traffic}).report.cache.peak_bytes <=
          budget);
}

TEST_CASE("who can be met during a scan is found as by looking at everybody") {
    std::vector<Actor> actors;
    for (std::uint32_t i = 0; i < 400; ++i) {
        std::vector<StampedPose> poses;
        const double x = rng::uniform(1, 5 * i, -500, 500), y = rng::uniform(1, 5 * i + 1, -500, 500);
        for (std::uint32_t k = 0; k <= i % 37; ++k)
            poses.push_back(
                {rng::uniform(1, 5 * i + 2, 0, 50) + 0.37 * k, {{x + k * 4.0, y - k * 2.0, 0}, {}}});
        actors.push_back(actor(i, i % 2, Track::along("t", Trajectory(poses))));
        if (i % 5 == 0 && i % 37 != 0) actors.back().track.end_s = actors.back().track.begin_s + 3;
        if (i % 7 == 0) actors.back().track.begin_s -= 4;
    }
    const Traffic traffic(shapes(), actors);
    const auto tracer = make_group_tracer();
    const ReadyTraffic ready(traffic, *tracer);
    std::size_t met = 0;
    for (std::uint64_t n = 0; n < 60; ++n) {
        const Sweep sweep{rng::uniform(2, 3 * n, -5, 70), n % 2 ? 0.1 : 1.0};
        const Vec3d here{rng::uniform(2, 3 * n + 1, -400, 400), rng::uniform(2, 3 * n + 2, -400, 400), 1};
        const ScanParts found = ready.during(sweep, {{here, here}, 60, kNoVehicle});
        std::vector<bool> listed(actors.size());
        for (const Part& part : found.parts()) listed[part.facts.id - kFirstPart] = true;
        met += found.parts().size();
        CHECK(found.parts().size() < actors.size() / 4);
        for (std::uint32_t i = 0; i < actors.size(); ++i)
            for (int k = 0; k <= 20; ++k) {
                const double t = sweep.begin_s + sweep.seconds * k / 20;
                if (!actors[i].track.exists(t)) continue;
                if (length(actors[i].track.pose_at(t).translation - here) < 60) CHECK(listed[i]);
            }
    }
    CHECK(met > 40);
}
