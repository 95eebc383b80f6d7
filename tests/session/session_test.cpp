#include "sim/session/session.hpp"

#include "core/error.hpp"
#include "sim/session/told_path.hpp"
#include "sim/street_traffic.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <chrono>
#include <cstring>
#include <thread>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;
using namespace citysplat::test;

namespace {

bool same_returns(const Scan& a, const Scan& b) {
    return a.index == b.index && a.time_s == b.time_s && a.returns.size() == b.returns.size() &&
           std::memcmp(a.returns.data(), b.returns.data(), a.returns.size() * sizeof(Return)) == 0;
}

/// Tells poses of a trajectory up to the first one at or after a time.
class Teller {
  public:
    explicit Teller(const Trajectory& whole) : whole_(whole) {}

    std::span<const StampedPose> until(double time_s) {
        const auto poses = whole_.poses();
        const std::size_t begin = told_;
        while (told_ < poses.size() && (told_ == 0 || poses[told_ - 1].time_s < time_s)) ++told_;
        return poses.subspan(begin, told_ - begin);
    }

  private:
    const Trajectory& whole_;
    std::size_t told_ = 0;
};

}  // namespace

TEST_CASE("a session that is told poses as they become known makes the scans of the whole drive") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const auto tracer = make_group_tracer();
    const Trajectory whole = straight_drive(20, 1.01);
    SensorRun run{small_sensor(), {}, 7};
    for (const std::uint32_t hits : {1u, 5u})
        for (const bool little : {false, true}) {
            run.hits = hits;
            Traffic traffic(shapes(), some_actors());
            const std::uint64_t budget =
                little ? largest_tile_bytes(city) + ReadyTraffic(traffic, *tracer).bytes() : kPlenty;
            const DriveOutcome drive_outcome =
                drive({city, *tracer, run, whole, with_budget(budget), &traffic});
            REQUIRE(drive_outcome.scans.size() == 10);
            REQUIRE(drive_outcome.report.part_hits > 1000);

            // Three actors follow their files, the others and the vehicle are told.
            const std::vector<Actor> script = some_actors();
            std::vector<Teller> tellers;
            std::vector<ToldPath> paths;
            for (const Actor& actor : script) tellers.emplace_back(actor.track.path), paths.emplace_back("a");
            Trajectory way;
            ToldPath told("way");
            Teller teller(whole);
            Session session({city, *tracer, with_budget(budget).cache, &traffic});
            const std::size_t sensor = session.add({run, way});
            CHECK_THROWS_AS(session.scan(sensor, 100, CancelToken()), UsageError);
            for (const Scan& expected : drive_outcome.scans) {
                const double end_s = expected.time_s + 0.1;
                told.append(teller.until(end_s));
                way = told.during(expected.time_s, end_s);
                for (std::uint32_t i = 0; i < script.size(); ++i) {
                    if (i >= 3 && i <= 5) continue;
                    paths[i].append(tellers[i].until(end_s));
                    traffic.tell(i, paths[i].track_during(expected.time_s, end_s));
                }
                CHECK(same_returns(session.scan(sensor, expected.time_s, CancelToken()), expected));
            }
            const SimulationReport report = session.report(sensor);
            CHECK(report.digest == drive_outcome.report.digest);
            CHECK(report.hits == drive_outcome.report.hits);
            CHECK(report.part_hits == drive_outcome.report.part_hits);
            CHECK(report.parts_in_reach == drive_outcome.report.parts_in_reach);
            CHECK(report.scans == drive_outcome.report.scans);
        }
}

TEST_CASE("actors that are told exist from their first pose until they leave") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const auto tracer = make_group_tracer();
    std::vector<Actor> actors = some_actors();
    actors.resize(1);
    Traffic traffic(shapes(), actors);
    SensorRun run{small_sensor(), {}, 7};
    const Trajectory way = straight_drive(1, 3);
    Session session({city, *tracer, with_budget(kPlenty).cache, &traffic});
    const std::size_t sensor = session.add({run, way});
    ToldPath path("somebody");
    const auto met = [&](double time_s) {
        if (!path.empty()) traffic.tell(0, path.track_during(time_s, time_s + 0.1));
        return session.scan(sensor, time_s, CancelToken()).part_hits;
    };
    const Pose beside{{kEast + 6, kNorth + 3, 0}, {}};
    const StampedPose first{100.5, beside}, second{100.7, beside};
    path.append(std::span(&first, 1));
    CHECK(met(100.1) == 0);  // what its file said counts no more
    CHECK(met(100.6) > 20);
    CHECK(met(102) > 20);  // it stands where it was last
    path.append(std::span(&second, 1));
    CHECK_THROWS_WITH(path.append(std::span(&first, 1)), Catch::Contains("does not follow"));
    StampedPose broken{101, beside};
    broken.world_from_body.translation.x = std::nan("");
    CHECK_THROWS_AS(path.append(std::span(&broken, 1)), InputError);
    CHECK_THROWS_AS(path.leave(100.4), InputError);
    CHECK(path.end_s() == 100.7);
    path.leave(101);
    CHECK(met(100.8) > 20);
    CHECK(met(101.1) == 0);
    const StampedPose late{101.5, beside};
    CHECK_THROWS_WITH(path.append(std::span(&late, 1)), Catch::Contains("left at"));
}

TEST_CASE("a path that is told piece by piece is the whole one, and forgets what is long ago") {
    const Trajectory whole = straight_drive(20, 1.01);
    ToldPath path("way");
    for (const StampedPose& pose : whole.poses()) path.append(std::span(&pose, 1));
    const auto same = [&](double from_s, double to_s) {
        const Trajectory some = path.during(from_s, to_s);
        for (int i = 0; i <= 10; ++i) {
            const double t = std::min(from_s + (to_s - from_s) * 0.1 * i, to_s);
            const Pose a = *some.at(t), b = *whole.at(t);
            if (std::memcmp(&a, &b, sizeof a) != 0) return false;
        }
        return true;
    };
    CHECK(same(100, 101.01));
    CHECK(same(100.3, 100.3));
    CHECK(same(100.31, 100.52));
    CHECK(path.during(100.3, 100.35).poses().size() < 4);
    path.forget_before(100.1);  // less than half could go
    CHECK(path.begin_s() == 100);
    path.forget_before(100.9);
    CHECK(path.begin_s() > 100.8);
    CHECK(path.begin_s() <= 100.9);
    CHECK(path.first_s() == 100);
    CHECK(same(100.9, 101.01));
    // An actor is not put where it was later.
    CHECK(path.track_during(100.9, 101).exists(100.95));
    CHECK_THROWS_WITH(path.track_during(100.2, 100.3),
                      Catch::Contains("where way was at 100.2 s is forgotten"));
    path.forget_before(1e6);
    CHECK(path.begin_s() == path.end_s());
}

TEST_CASE("a session loads what lies ahead of the present place and speed, and lets go of what is behind") {
    const MemoryCity city(street(kEast, kNorth, 400, 0.5), 16);
    const auto tracer = make_group_tracer();
    SensorRun run{small_sensor(), {}, 7};
    run.sensor.max_range_m = 20;
    const Trajectory way(
        {{100, {{kEast + 100, kNorth, 1.9}, {}}}, {100.5, {{kEast + 115, kNorth, 1.9}, {}}}});
    Session session({city, *tracer, with_budget(kPlenty).cache});
    const std::size_t sensor = session.add({run, way});
    session.scan(sensor, 100.4, CancelToken());
    // At 30 m/s three seconds are 90 m: from 20 m behind 112 m to 20 m ahead of 205 m, in both rows of tiles.
    int expected = 0;
    for (const TileEntry& tile : city.tiles())
        expected += tile.max.x >= kEast + 112 - 21 && tile.min.x <= kEast + 205 + 21;
    REQUIRE(expected > 12);
    REQUIRE(expected < static_cast<int>(city.tiles().size()) / 2);
    for (int i = 0; i < 6000 && city.loads < expected; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(city.loads >= expected - 2);
    CHECK(city.loads <= expected + 2);
}

TEST_CASE("rays that are cast meet city and actors at their time") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const auto tracer = make_group_tracer();
    std::vector<Actor> actors = some_actors();
    actors.resize(1);
    actors[0].shape = 1;
    Traffic traffic(shapes(), actors);
    const StampedPose poses[]{{100, {{kEast + 10, kNorth, 1}, {}}}, {101, {{kEast + 20, kNorth, 1}, {}}}};
    Track ball = Track::along("ball", Trajectory({std::begin(poses), std::end(poses)}));
    traffic.tell(0, ball);
    for (const bool little : {false, true}) {
        const std::uint64_t few = largest_tile_bytes(city) + ReadyTraffic(traffic, *tracer).bytes();
        Session session({city, *tracer, with_budget(little ? few : kPlenty).cache, &traffic});
        std::vector<Ray> rays(1001, Ray{{kEast + 1, kNorth, 1.05}, {1, 0, 0}, 0.1f, 100});
        for (std::size_t i = 0; i < rays.size(); ++i) rays[i].time_s = 0.001f * static_cast<float>(i);
        rays.back().direction = {0, 1, 0};
        std::vector<Hit> hits(rays.size());
        session.cast(rays, 100, hits, CancelToken());
        for (const std::size_t i : {0u, 250u, 999u}) {
            REQUIRE(hits[i].exists());
            CHECK(hits[i].instance == 1);
            // The ball is bumpy, and rolls on with 10 m/s.
            CHECK(hits[i].range_m == Approx(9 + 0.01 * static_cast<double>(i)).margin(1.0));
        }
        CHECK(hits[999].range_m - hits[0].range_m == Approx(9.99).margin(0.001));
        CHECK(hits.back().instance == 0);
        CHECK(hits.back().range_m == Approx(8).margin(0.1));
        std::vector<Hit> later(rays.size());
        session.cast(rays, 99, later, CancelToken());  // before it was told to exist
        CHECK(later[500].instance == 0);
    }
}

TEST_CASE("a session says how near a body is to what was told a moment ago") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const auto tracer = make_group_tracer();
    std::vector<Actor> actors = some_actors();
    actors.resize(1);
    actors[0].track.begin_s = 0, actors[0].track.end_s = 1;
    Traffic traffic(shapes(), actors);
    SessionScene scene{city, *tracer, with_budget(kPlenty).cache, &traffic};
    scene.clearance_bytes = 1 << 26;
    Session session(scene);
    const ClearanceBody body(Box3d{{-0.5, -0.5, -0.5}, {0.5, 0.5, 0.5}});
    const Pose here{{kEast + 30, kNorth, 2}, {}};
    const Clearance alone = session.clearance(body, {here, 100}, 5);
    CHECK(alone.distance_m == Approx(1.5).margin(0.05));  // the road
    CHECK_FALSE(alone.actor);
    const StampedPose beside{100, {{kEast + 30 + 0.5 + 2.2 + 0.25, kNorth, 1.5}, {}}};
    traffic.tell(0, Track::along("car", Trajectory({beside})));
    const Clearance now = session.clearance(body, {here, 100}, 5);
    CHECK(now.distance_m == Approx(0.25).margin(0.001));
    CHECK(now.actor.value() == 0);
    CHECK_THROWS_AS(Session({city, *tracer}).clearance(body, {here, 100}, 1), UsageError);
}
