#include "sim/traffic/played_frames.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "learn/some_model.hpp"
#include "sim/memory_frames.hpp"
#include "sim/part_rig.hpp"
#include "sim/test_drive.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <set>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;
using namespace citysplat::test;

namespace {

constexpr double kEast = Place{}.east, kNorth = Place{}.north;
/// Beside the way of straight_drive(), so that each frame is seen.
MemoryFrames::Layout beside_way() {
    MemoryFrames::Layout layout;
    layout.first = {kEast + 12, kNorth + 2.5, 1.5};
    return layout;
}

FramePlay play_of(const std::shared_ptr<const MemoryFrames>& frames) {
    FramePlay play{frames, 0, 0, 1, {}};
    const auto objects = frames->frame(0).objects;
    for (std::size_t i = 0; i < objects.size(); ++i)
        play.instances[objects[i]] = static_cast<std::uint16_t>(7 + i);
    return play;
}

SimulationJob job_of(const MemoryCity& city, const Tracer& tracer, const SensorRun& run,
                     const Trajectory& trajectory, const FramePlay& play) {
    return {city, tracer, run, trajectory, with_budget(kPlenty), nullptr, kNoVehicle, std::span(&play, 1)};
}

Sensor wide_sensor() {
    Sensor sensor = small_sensor();
    sensor.beam.divergence_rad = 0.01;
    sensor.beam.returns = ReturnMode::dual;
    return sensor;
}

}  // namespace

TEST_CASE("a recorded frame is met in its own interval and leaves nothing behind") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    MemoryFrames::Layout layout = beside_way();
    layout.objects = {5u << 16 | 13, 9u << 16 | 13};
    const auto frames = std::make_shared<MemoryFrames>(layout);
    const FramePlay play = play_of(frames);
    const auto tracer = make_group_tracer();
    SensorRun run{small_sensor(), {}, 7};
    run.noise = false;
    // Scans begin in the middle of frames: each meets the ends of one and the beginnings of the next.
    const Trajectory trajectory = straight_drive(5, 1.01);
    SimulationJob job = job_of(city, *tracer, run, trajectory, play);
    job.options.schedule.from_s = 100.05;
    const DriveOutcome outcome = drive(job);
    std::set<std::uint16_t> instances;
    std::size_t met = 0;
    for (const Scan& scan : outcome.scans)
        for (const Return& r : scan.returns) {
            if (r.status != RayStatus::hit || r.instance == 0) continue;
            ++met;
            instances.insert(r.instance);
            CHECK(r.label == 13);
            const double time_s = scan.time_s + static_cast<double>(r.time_s);
            const auto number = static_cast<std::size_t>(std::floor((time_s - 100) / 0.1));
            // A nanosecond at the seam may belong to either.
            const Vec3d d = r.position - frames->middle_of(number);
            const bool at_seam = std::fabs(std::remainder(time_s - 100, 0.1)) < 1e-6;
            if (!at_seam) CHECK(std::max(std::fabs(d.y), std::fabs(d.z)) < 1.2);
            if (!at_seam) CHECK(std::fabs(d.x) < 0.01);
        }
    CHECK(met > 100);
    CHECK(instances == std::set<std::uint16_t>{1, 7, 8});
    CHECK(outcome.report.part_hits == met);
    CHECK(outcome.report.frames == 10);
}

TEST_CASE("scans with recorded frames are the same for memory and threads and tracers and batches") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    MemoryFrames::Layout layout = beside_way();
    layout.objects = {5u << 16 | 13};
    const auto frames = std::make_shared<MemoryFrames>(layout);
    const FramePlay play = play_of(frames);
    const auto groups = make_group_tracer();
    const auto embree = make_embree_tracer();
    const Trajectory trajectory = straight_drive(4, 0.41);
    const test::TempDir dir;
    // Hits alone, wide pulses, and a model that loses returns.
    for (const int kind : {0, 1, 2, 3}) {
        CAPTURE(kind);
        SensorRun run{kind == 2 ? wide_sensor() : small_sensor(), {}, 7};
        run.hits = kind == 0 ? 1 : 5;
        if (kind == 3) {
            FileWriter out(dir / "model.toml");
            out.text(some_model(16).text());
            out.finish();
            run.sensor.model = dir / "model.toml";
        }
        const SimulationJob job = job_of(city, *groups, run, trajectory, play);
        const DriveOutcome reference = drive(job);
        CHECK(reference.report.part_hits > 50);
        SimulationJob alone = job;
        alone.frames = {};
        CHECK(drive(alone).report.digest != reference.report.digest);
        const auto same = [&](const Tracer& tracer, std::uint64_t budget) {
            SimulationJob other{city, tracer, run, trajectory, with_budget(budget)};
            other.frames = job.frames;
            const SimulationReport report = drive(other).report;
            CHECK(report.part_hits == reference.report.part_hits);
            return report.digest == reference.report.digest;
        };
        CHECK(same(*embree, kPlenty));
        for (const std::string& set : group_instruction_sets())
            CHECK(same(*make_group_tracer({set}), kPlenty));
        const Sweep sweep{100.05, 0.1};
        const std::uint64_t of_scan = ReadyFrames(job.frames, *groups).bytes_for(std::span(&sweep, 1));
        const std::uint64_t one = largest_tile_bytes(city) + 2 * of_scan;
        for (const std::uint64_t budget : {one, 2 * one, 5 * one}) CHECK(same(*groups, budget));
        for (const std::size_t threads : {1u, 2u, 5u}) {
            const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
            CHECK(same(*groups, kPlenty));
        }
    }
}

TEST_CASE("thousands of recorded frames take the memory of those that the scans under way need") {
    const MemoryCity city(street(kEast, kNorth, 30), 16);
    MemoryFrames::Layout layout = beside_way();
    layout.count = 4000;
    layout.period_s = 0.01;
    layout.discs = 50;
    const auto frames = std::make_shared<MemoryFrames>(layout);
    const FramePlay play = play_of(frames);
    const auto tracer = make_group_tracer();
    Sensor sensor = small_sensor();
    SensorRun run{sensor, {}, 7};
    const Trajectory trajectory = straight_drive(5, 2.01);
    const std::uint64_t all = ReadyFrames(std::span(&play, 1), *tracer).bytes_of_all();
    SimulationJob job = job_of(city, *tracer, run, trajectory, play);
    job.options.cache.budget_bytes = 8 * largest_tile_bytes(city) + all / 100;
    REQUIRE(job.options.cache.budget_bytes < all);
    const SimulationReport report = drive(job).report;
    CHECK(report.frames == 4000);
    // 2 s of frames, each read once; at most an eighth of the budget at a time.
    CHECK(report.frames_loaded >= 200);
    CHECK(frames->loads < 400);
    CHECK(report.frames_resident < 200);
}

TEST_CASE("recorded frames are played later or again where the scenario says so") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const auto frames = std::make_shared<MemoryFrames>(beside_way());
    const auto tracer = make_group_tracer();
    SensorRun run{small_sensor(), {}, 7};
    run.noise = false;
    const Trajectory trajectory = straight_drive(2, 3.01);
    const auto met_in = [&](const FramePlay& play) {
        std::vector<std::size_t> met;
        for (const Scan& scan : drive(job_of(city, *tracer, run, trajectory, play)).scans)
            met.push_back(scan.part_hits);
        return met;
    };
    FramePlay play = play_of(frames);
    const auto once = met_in(play);
    REQUIRE(once.size() == 30);
    CHECK(once[0] > 10);
    CHECK(once[9] > 10);
    CHECK(once[10] == 0);
    play.time_offset_s = 1;
    const auto later = met_in(play);
    CHECK(later[9] == 0);
    CHECK(later[10] > 10);
    CHECK(later[20] == 0);
    play.repeat_s = 1.5;  // a second of frames and half a second of nothing
    const auto again = met_in(play);
    // From 1 s to 2 s, and one turn earlier and later.
    CHECK(again[0] > 10);
    CHECK(again[4] > 10);
    CHECK(again[5] == 0);
    CHECK(again[10] > 10);
    CHECK(again[20] == 0);
    CHECK(again[25] > 10);
    play.repeat_s = 0.5;
    CHECK_THROWS_WITH(met_in(play), Catch::Contains("last 1 s") && Catch::Contains("0.5"));
    play = play_of(frames);
    play.time_offset_s = -5000;
    const SimulationReport report = drive(job_of(city, *tracer, run, trajectory, play)).report;
    CHECK(report.part_hits == 0);
    const auto warnings = warnings_of(report, run.sensor);
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Catch::Contains("none of 10 recorded frames"));
}

TEST_CASE("a damaged frame ends the run by its name and frames that do not fit are told") {
    const MemoryCity city(street(kEast, kNorth, 60), 16);
    const auto frames = std::make_shared<MemoryFrames>(beside_way());
    frames->damaged.insert(6);
    const FramePlay play = play_of(frames);
    const auto tracer = make_group_tracer();
    const SensorRun run{small_sensor(), {}, 7};
    const Trajectory trajectory = straight_drive(5, 1.01);
    SimulationJob job = job_of(city, *tracer, run, trajectory, play);
    CHECK_THROWS_WITH(drive(job), Catch::Contains("frame 6 is damaged"));
    job.options.cache.allow_missing = true;
    CHECK_THROWS_AS(drive(job), CorruptionError);
    job.options.cache.budget_bytes = 1000;
    CHECK_THROWS_WITH(drive(job), Catch::Contains("recorded frames") && Catch::Contains("--resident"));
}
