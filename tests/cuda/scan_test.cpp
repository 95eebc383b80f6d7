// Scans that a device makes alone, from poses and firings to returns, against the same scans on the CPU.
#include "core/error.hpp"
#include "cuda/on_cpu/programs.hpp"
#include "cuda/rig.hpp"
#include "learn/some_model.hpp"
#include "sim/drive/simulation.hpp"
#include "sim/memory_city.hpp"
#include "sim/scan/scan_tracer.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;
using test::MemoryCity;
using test::Rig;

namespace {

constexpr double kEast = 652000.25, kNorth = 6861000.5;

Trajectory drive() {
    std::vector<StampedPose> poses;
    for (int i = 0; i <= 10; ++i) {
        const double s = i / 10.0;
        poses.push_back({100 + 0.4 * s,
                         {{kEast + 4 + 12 * s, kNorth + 0.3 * s, 1.9},
                          from_yaw_pitch_roll(0.3 * s, 0.02 * s, -0.03 * s)}});
    }
    return Trajectory(poses);
}

/// Every kind of firing pattern, small. All have noise, drops and an intensity model.
std::vector<Sensor> sensors() {
    const std::string models = R"(
[range]
min_m = 0.5
max_m = 30
[error]
sigma_m = 0.02
bias_m = [0.01, 0.001, 0]
[intensity]
incidence_power = 1
range_power = 2
[drop]
probability = 0.1
max_incidence_deg = 80
)";
    const std::string spinning = R"(
kind = "spinning"
[spin]
rate_hz = 10
columns_per_turn = 101
[beams]
count = 7
first_deg = 10
last_deg = -25
)";
    const std::string rosette = R"(
kind = "rosette"
scan_hz = 10
[rosette]
pulses_per_second = 8000
lines = 3
line_spacing_deg = 0.3
first_hz = 121.5
second_hz = -77.7
horizontal_deg = 70
vertical_deg = 77
)";
    const std::string nodding = R"(
kind = "nodding"
scan_hz = 10
[nodding]
pulses_per_second = 8000
lines = 4
line_spacing_deg = 90
turn_hz = 25.4
nod_hz = 237.1
low_deg = -30
high_deg = 20
)";
    const std::string pinhole = R"(
kind = "pinhole"
scan_hz = 10
[pinhole]
columns = 31
rows = 23
horizontal_deg = 80
vertical_deg = 60
)";
    std::vector<Sensor> all;
    for (const std::string& kind : {spinning, rosette, nodding, pinhole})
        all.push_back(Sensor::parse("name = \"test\"\n" + kind + models, "test.toml"));
    Sensor table = all[1];  // the rosette's first scans, listed and repeated
    RayTable list;
    fire(table, 0, list.firings);
    list.scan_ends = {list.firings.size()};
    table.rays = list;
    all.push_back(table);
    return all;
}

class Collector : public ScanSink {
  public:
    void consume(const Scan&) override {}
    void conclude(const Scan& scan) override { scans.push_back(scan); }
    std::vector<Scan> scans;
};

SimulationReport simulate_with(const Tracer& tracer, const MemoryCity& city, const SensorRun& run,
                               ScanSink& sink, std::uint64_t budget_bytes = std::uint64_t{1} << 30) {
    SimulationOptions options;
    options.cache.budget_bytes = budget_bytes;
    options.cache.allow_missing = true;
    CancelToken cancel;
    Progress progress;
    const Trajectory trajectory = drive();
    return simulate({city, tracer, run, trajectory, options}, sink, cancel, progress);
}

SensorRun run_of(const Sensor& sensor, std::uint32_t hits, bool noise) {
    SensorRun run{sensor, {{0.3, -0.2, 0.1}, from_yaw_pitch_roll(0.2, 0.1, 0)}, 7};
    run.hits = hits;
    run.noise = noise;
    return run;
}

bool same(const Ray& a, const Ray& b) {
    return a.origin.x == b.origin.x && a.origin.y == b.origin.y && a.origin.z == b.origin.z &&
           a.direction.x == b.direction.x && a.direction.y == b.direction.y &&
           a.direction.z == b.direction.z && a.t_min == b.t_min && a.t_max == b.t_max;
}

/// Hits as they come back from a traversal: none, one or several of a surface, some of another behind.
std::vector<Hit> some_hits(std::size_t rays, std::uint32_t depth) {
    std::vector<Hit> hits(rays * depth);
    for (std::size_t i = 0; i < rays; ++i) {
        const std::uint64_t key = rng::key(99, i);
        const auto count = static_cast<std::uint32_t>(rng::bits(key, 0) % (depth + 1));
        double range_m = rng::uniform(key, 1, 0.05, 28);
        for (std::uint32_t k = 0; k < count; ++k) {
            Hit& hit = hits[i * depth + k];
            range_m += rng::uniform(key, 10 + k, 0, 0.12);
            hit.t = static_cast<float>(range_m);
            hit.range_m = range_m;
            hit.splat_id = rng::bits(key, 20 + k);
            hit.normal = pack_normal(
                normalized(Vec3d{rng::uniform(key, 30, -1, 1), rng::uniform(key, 31, -1, 1), 0.3}));
            hit.label = static_cast<std::uint16_t>(rng::bits(key, 40 + k) % 8 == 0 ? 2 : 1);
            hit.intensity = static_cast<std::uint16_t>(rng::bits(key, 50));
            hit.acquired_range_m = static_cast<std::uint8_t>(rng::bits(key, 60) % 4 ? 12 : 255);
            hit.acquired_incidence = static_cast<std::uint8_t>(rng::bits(key, 61) % 4 ? 100 : 255);
        }
    }
    return hits;
}

}  // namespace

TEST_CASE("the scan kernels make the rays and returns that the CPU makes", "[gpu]") {
    for (const Sensor& sensor : sensors())
        for (const std::uint32_t depth : {1u, 5u})
            for (const bool noise : {true, false}) {
                const SensorRun run = run_of(sensor, depth, noise);
                std::vector<Firing> list;
                const ScanRays scan(run, drive(), 2, 100.2, plan_firings(sensor, 2, list));
                const ScanView view = scan.view();
                const std::size_t first = 37, count = scan.size() - first;

                std::vector<Ray> rays(count + 1);
                const std::vector<Hit> hits = some_hits(count, depth);
                std::vector<Return> returns(count + 1);
                const auto rubbish = std::as_writable_bytes(std::span(returns));
                std::fill(rubbish.begin(), rubbish.end(), std::byte{0x5a});
                const Return untouched = returns.back();
                const gpu::ScanLaunch launch{view,        first,       static_cast<std::uint32_t>(count),
                                             rays.data(), hits.data(), returns.data()};
                on_cpu::run_generate_rays(launch);
                on_cpu::run_make_returns(launch);

                RayBatch batch;
                batch.generate(view, first, count);
                std::vector<HitList> lists(depth > 1 ? count : 0);
                for (std::size_t i = 0; i < lists.size(); ++i)
                    for (std::uint32_t k = 0; k < depth && hits[i * depth + k].exists(); ++k)
                        lists[i].hits[lists[i].count++] = hits[i * depth + k];
                std::vector<Return> expected(scan.size());
                batch.make_returns(view, hits, lists, expected);

                std::size_t wrong = 0, seen[4] = {};
                for (std::size_t i = 0; i < count; ++i) {
                    const auto number = ray_number(view.firings, static_cast<std::uint32_t>(first + i));
                    wrong += !same(rays[i], batch.rays()[i]);
                    wrong += std::memcmp(&returns[i], &expected[number], sizeof(Return)) != 0;
                    wrong += number != batch.firings()[i].ray;
                    ++seen[static_cast<unsigned>(returns[i].status)];
                }
                CHECK(wrong == 0);
                CHECK(seen[0] > 0);
                CHECK(seen[1] > 0);
                CHECK((seen[2] > 0) == noise);
                // Threads beyond the count do nothing.
                CHECK(rays.back().t_max == 0);
                CHECK(std::memcmp(&returns.back(), &untouched, sizeof untouched) == 0);
            }
}

TEST_CASE("the rarest noise is the same on the device", "[gpu]") {
    const SensorRun run = run_of(sensors()[0], 1, true);
    std::vector<Firing> list;
    const ScanRays scan(run, drive(), 0, 100.1, plan_firings(run.sensor, 0, list));
    ScanView view = scan.view();
    // mix(0) is 0: with this key the noise of ray `rare` draws the smallest number there is, 8.3 sigma out.
    const std::uint64_t rare = 17, draw = rare * 8 + static_cast<std::uint64_t>(Purpose::range);
    view.key = 0 - (draw + 1) * 0x9e3779b97f4a7c15ull;
    REQUIRE(uniform_of(view.key, rare, Purpose::range) == 0);

    Hit hit;
    hit.splat_id = 3;
    hit.t = 10;
    hit.range_m = 10;
    hit.normal = pack_normal({0, 0, 1});
    const std::vector<Hit> hits(scan.size(), hit);
    std::vector<Ray> rays(scan.size());
    std::vector<Return> returns(scan.size()), expected(scan.size());
    const gpu::ScanLaunch launch{view, 0, view.firings.count, rays.data(), hits.data(), returns.data()};
    on_cpu::run_generate_rays(launch);
    on_cpu::run_make_returns(launch);
    RayBatch batch;
    batch.generate(view, 0, scan.size());
    batch.make_returns(view, hits, {}, expected);
    for (std::uint32_t i = 0; i < view.firings.count; ++i) {
        const Return& other = expected[ray_number(view.firings, i)];
        CHECK(std::memcmp(&returns[i], &other, sizeof other) == 0);
    }
    CHECK(expected[rare].range_m == Approx(10 + 0.01 + 0.001 * 10 - 8.29 * 0.02).margin(1e-3));
}

TEST_CASE("a pulse at the end of the sweep is fired from the last pose", "[gpu]") {
    const SensorRun run = run_of(sensors()[0], 1, true);
    const Firing last{{1, 0, 0}, 0.1f, 0, 0};
    const ScanRays scan(run, drive(), 0, 100.1, plan_of(std::span(&last, 1)));
    const ScanView view = scan.view();
    Ray ray{};
    on_cpu::run_generate_rays({view, 0, 1, &ray, nullptr, nullptr});
    const Pose end = *drive().at(100.2) * run.body_from_sensor;
    CHECK(length(ray.origin - end.translation) < 1e-6);
    CHECK(length(vec_cast<double>(ray.direction) - rotate(end.rotation, {1, 0, 0})) < 1e-6);
    RayBatch batch;
    batch.generate(view, 0, 1);
    CHECK(same(ray, batch.rays()[0]));
}

TEST_CASE("a formula gives the firings of the list, ray by ray", "[gpu]") {
    for (const Sensor& sensor : sensors())
        for (const std::uint64_t scan : {0u, 1u, 1000u}) {
            std::vector<Firing> list, kept;
            fire(sensor, scan, list);
            const FiringPlan plan = plan_firings(sensor, scan, kept);
            REQUIRE(plan.count == list.size());
            std::size_t wrong = 0;
            for (std::uint32_t i = 0; i < plan.count; ++i) {
                const Firing firing = firing_at(plan, i);
                wrong += std::memcmp(&firing, &list[i], sizeof firing) != 0;
            }
            CHECK(wrong == 0);
        }
}

TEST_CASE("a simulation on the device has the digest of one on the CPU", "[gpu]") {
    const MemoryCity city(test::street(kEast, kNorth, 30, 0.4), 16);
    const auto groups = make_group_tracer();
    for (const Sensor& sensor : sensors())
        for (const std::uint32_t hits : {1u, 5u})
            for (const bool noise : {true, false}) {
                const SensorRun run = run_of(sensor, hits, noise);
                Collector cpu, gpu;
                const SimulationReport expected = simulate_with(*groups, city, run, cpu);
                Rig rig;
                const SimulationReport report = simulate_with(*rig.tracer, city, run, gpu);
                CAPTURE(sensor.rays.index(), hits, noise);
                CHECK(report.digest == expected.digest);
                CHECK(report.hits > report.rays / 4);
                CHECK(report.hits < report.rays);
                CHECK((report.dropped > 0) == noise);
                CHECK(report.dropped == expected.dropped);
                REQUIRE(cpu.scans.size() == gpu.scans.size());

                // Rays are made there: only returns come back, and the sizes of compacted tiles.
                CHECK(rig.script->rays == report.rays);
                CHECK(rig.script->downloaded_bytes ==
                      report.rays * sizeof(Return) + report.cache.tiles_loaded * sizeof(std::uint64_t));
            }
}

TEST_CASE("pulses with a width have the same returns on the device and on the CPU", "[gpu]") {
    const MemoryCity city(test::street(kEast, kNorth, 30, 0.4), 16);
    const auto groups = make_group_tracer();
    for (const Sensor& sensor : sensors())
        for (const std::uint32_t hits : {1u, 5u}) {
            SensorRun run = run_of(sensor, hits, true);
            run.sensor.beam = {0.01, ReturnMode::dual, 7, 0.5};
            Collector cpu, gpu;
            const SimulationReport expected = simulate_with(*groups, city, run, cpu);
            Rig rig;
            const SimulationReport report = simulate_with(*rig.tracer, city, run, gpu);
            CAPTURE(sensor.rays.index(), hits);
            CHECK(report.digest == expected.digest);
            CHECK(rig.script->rays == 7 * report.rays);
        }
}

TEST_CASE("a learned model sees on scans of the device what it sees on those of the CPU", "[gpu]") {
    const test::TempDir dir;
    const MemoryCity city(test::street(kEast, kNorth, 30, 0.4), 16);
    const auto embree = make_embree_tracer();
    SensorRun run = run_of(sensors()[0], 5, true);
    run.sensor.intensity = {};
    Collector plain, cpu, gpu;
    const auto without = simulate_with(*embree, city, run, plain);
    run.sensor.model = dir / "model.toml";
    std::ofstream(run.sensor.model) << test::some_model(7).text();
    const SimulationReport expected = simulate_with(*embree, city, run, cpu);
    Rig rig;
    CHECK(simulate_with(*rig.tracer, city, run, gpu).digest == expected.digest);
    CHECK(expected.dropped > without.dropped + 50);
}

TEST_CASE("a tile that is missing marks the same rays on the device and on the CPU", "[gpu]") {
    MemoryCity city(test::street(kEast, kNorth, 30, 0.4), 16);
    city.damaged = {city.tiles().size() / 2};
    const auto groups = make_group_tracer();
    for (const std::uint32_t hits : {1u, 5u}) {
        const SensorRun run = run_of(sensors()[0], hits, true);
        Rig rig;
        Collector cpu, gpu;
        const SimulationReport report = simulate_with(*rig.tracer, city, run, gpu);
        CHECK(report.missing > 0);
        CHECK(report.digest == simulate_with(*groups, city, run, cpu).digest);
    }
}

TEST_CASE("a budget that takes several passes gives the digest of one that takes one", "[gpu]") {
    const MemoryCity city(test::street(kEast, kNorth, 60, 0.4), 8);
    const auto groups = make_group_tracer();
    for (const std::uint32_t hits : {1u, 5u}) {
        const SensorRun run = run_of(sensors()[0], hits, true);
        Rig rig;
        std::uint64_t largest = 0;
        for (const auto& entry : city.tiles())
            largest = std::max<std::uint64_t>(largest, rig.tracer->estimated_bytes(entry.splats));
        Collector cpu, gpu;
        const auto expected = simulate_with(*groups, city, run, cpu).digest;
        const SimulationReport tight = simulate_with(*rig.tracer, city, run, gpu, 4 * largest);
        CHECK(tight.passes > tight.scans);
        CHECK(tight.cache.tiles_evicted > 0);
        CHECK(tight.cache.peak_bytes <= 4 * largest);
        CHECK(tight.digest == expected);
        CHECK(rig.tracer->resident_bytes() == 0);
    }
}

TEST_CASE("a scan of no tiles has no returns", "[gpu]") {
    Rig rig;
    const auto nothing = rig.tracer->bind({});
    for (const std::uint32_t depth : {1u, 5u}) {
        const SensorRun run = run_of(sensors()[0], depth, true);
        std::vector<Firing> list;
        const ScanRays scan(run, drive(), 0, 100.1, plan_firings(run.sensor, 0, list));
        const ScanView view = scan.view();
        std::vector<Return> returns(scan.size());
        RayBatch scratch;
        trace_scan(*rig.tracer, *nothing, {view, 0, scan.size()}, scratch, returns);
        CHECK(std::all_of(returns.begin(), returns.end(), [](const Return& r) {
            return r.status == RayStatus::none && r.splat_id == 0 && r.range_m == 30.0f;
        }));
    }
}

TEST_CASE("threads fire scans at once without disturbing each other", "[gpu]") {
    const MemoryCity city(test::street(kEast, kNorth, 20, 0.6), 16);
    Rig rig;
    std::vector<TracerTilePtr> tiles;
    for (std::uint32_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(rig.tracer->load(city.load(i)));
    const TileSetPtr set = rig.tracer->bind(tiles);
    const std::vector<Sensor> all = sensors();
    const auto scan = [&](std::size_t which) {
        const SensorRun run = run_of(all[which], which % 2 ? 5 : 1, true);
        std::vector<Firing> list;
        const ScanRays rays(run, drive(), which, 100.1, plan_firings(run.sensor, which, list));
        const ScanView view = rays.view();
        std::vector<Return> returns(rays.size());
        RayBatch scratch;
        trace_scan(*rig.tracer, *set, {view, 0, rays.size()}, scratch, returns);
        return returns;
    };
    std::vector<std::vector<Return>> expected;
    for (std::size_t which = 0; which < all.size(); ++which) expected.push_back(scan(which));
    std::atomic<std::size_t> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t round = 0; round < 2 * all.size(); ++round) {
                const std::size_t which = (t + round) % all.size();
                const auto returns = scan(which);
                wrong +=
                    returns.size() != expected[which].size() ||
                    std::memcmp(returns.data(), expected[which].data(), returns.size() * sizeof(Return)) != 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("whichever call to the device fails in a simulation, the error is told and nothing leaks",
          "[gpu]") {
    const MemoryCity city(test::street(kEast, kNorth, 12, 0.8), 16);
    SensorRun run = run_of(sensors()[0], 2, true);
    run.sensor.scan_hz = 2.5;  // one scan
    const auto options = Rig::small();
    Collector sink;
    Rig sound;
    const auto expected = simulate_with(*sound.tracer, city, run, sink).digest;
    const std::uint64_t calls = sound.script->calls;
    REQUIRE(calls > 30);
    for (const bool lazy : {true, false})
        for (std::uint64_t n = 0; n < calls; ++n) {
            auto script = std::make_shared<on_cpu::Script>();
            script->lazy = lazy;
            script->fail_at = n;
            std::string message;
            std::unique_ptr<Tracer> tracer;
            try {
                tracer = gpu::make_optix_tracer(std::make_unique<on_cpu::CpuDevice>(script), options);
                simulate_with(*tracer, city, run, sink);
            } catch (const Error& e) {
                message = e.what();
            }
            INFO("call " << n << " (" << script->failed << ")");
            CHECK_THAT(message, Catch::Contains("device") || Catch::Contains("memory"));
            if (tracer) {
                CHECK(tracer->resident_bytes() == 0);
                CHECK(simulate_with(*tracer, city, run, sink).digest == expected);
            }
            tracer.reset();
            CHECK(script->live_bytes == 0);
            CHECK(script->live_pinned == 0);
        }
}
