#include "sim/drive/simulation.hpp"

#include "core/error.hpp"
#include "sim/session/session.hpp"
#include "sim/test_drive.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <chrono>
#include <limits>
#include <mutex>
#include <thread>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;
using test::Collector;
using test::largest_tile_bytes;
using test::MemoryCity;
using test::small_sensor;
using test::straight_drive;
using test::with_budget;
using Outcome = test::DriveOutcome;

namespace {

constexpr double kEast = test::Place{}.east, kNorth = test::Place{}.north;

Outcome drive(const MemoryCity& city, const SensorRun& run, const SimulationOptions& options,
              double length_m = 40, double seconds = 2.01) {
    return test::drive(city, run, options, straight_drive(length_m, seconds));
}

/// Asks for the end as soon as the first rays are cast, and counts how often rays are.
class StoppingTracer final : public Tracer {
  public:
    explicit StoppingTracer(CancelToken& cancel) : cancel_(cancel) {}
    using Tracer::load;
    std::string name() const override { return inner_->name(); }
    TracerTilePtr load(const SplatTile& tile) const override { return inner_->load(tile); }
    TracerTilePtr load(const TriangleMesh& mesh) const override { return inner_->load(mesh); }
    std::size_t estimated_bytes(std::uint64_t splats) const override {
        return inner_->estimated_bytes(splats);
    }
    TileSetPtr bind(std::span<const TracerTilePtr> tiles) const override { return inner_->bind(tiles); }
    std::size_t resident_bytes() const override { return inner_->resident_bytes(); }
    std::size_t batch_rays(std::span<const Ray>) const override { return 64; }
    void closest(const Scene& scene, std::span<const Ray> rays, std::span<Hit> hits) const override {
        ++calls;
        cancel_.request();
        inner_->closest(scene, rays, hits);
    }
    void nearest(const Scene& scene, std::span<const Ray> rays, std::uint32_t depth, float gap_m,
                 std::span<HitList> lists) const override {
        ++calls;
        cancel_.request();
        inner_->nearest(scene, rays, depth, gap_m, lists);
    }

    mutable std::atomic<int> calls{0};

  private:
    std::unique_ptr<Tracer> inner_ = make_group_tracer();
    CancelToken& cancel_;
};

/// A city whose tiles take long: until somebody has enough of waiting, but not for ever.
class SlowCity final : public TileSource {
  public:
    SlowCity(const MemoryCity& city, CancelToken& cancel) : city_(city), cancel_(cancel) {}
    std::span<const TileEntry> tiles() const override { return city_.tiles(); }
    SplatTile load(std::size_t tile) const override {
        cancel_.request();
        for (int patience = 0; !given_up && patience < 5000; ++patience)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return city_.load(tile);
    }
    const ClassMap& classes() const override { return city_.classes(); }

    std::atomic<bool> given_up{false};

  private:
    const MemoryCity& city_;
    CancelToken& cancel_;
};

}  // namespace

TEST_CASE("scans are the same for any threads, memory budget and prefetching") {
    const auto discs = test::street(kEast, kNorth, 60);
    const MemoryCity city(discs, 16);
    SensorRun run{small_sensor(), {}, 7};
    for (const std::uint32_t hits : {1u, 5u}) {
        run.hits = hits;
        const Outcome reference = drive(city, run, with_budget(std::uint64_t{1} << 30));
        REQUIRE(reference.report.scans == 20);
        REQUIRE(reference.report.rays == 20 * 16 * 360);
        CHECK(reference.report.hits > reference.report.rays / 2);
        REQUIRE(reference.report.passes == 20);

        const std::uint64_t one = largest_tile_bytes(city);
        for (const std::uint64_t budget : {one, 2 * one, 3 * one + one / 2, 8 * one})
            for (const bool prefetch : {true, false}) {
                CAPTURE(hits, budget, prefetch);
                const Outcome outcome = drive(city, run, with_budget(budget, prefetch));
                CHECK(outcome.report.digest == reference.report.digest);
                if (budget == one) CHECK(outcome.report.passes > outcome.report.scans);
            }
        for (const std::size_t threads : {1u, 2u, 5u}) {
            const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
            CHECK(drive(city, run, with_budget(4 * one)).report.digest == reference.report.digest);
        }
    }
}

TEST_CASE("the budget holds while tiles come and go") {
    const MemoryCity city(test::street(kEast, kNorth, 300, 0.5), 10);
    const SensorRun run{small_sensor(), {}, 7};
    const std::uint64_t budget = 24 * largest_tile_bytes(city);
    const Outcome outcome = drive(city, run, with_budget(budget), 290, 4);
    CHECK(outcome.report.cache.peak_bytes <= budget);
    CHECK(outcome.report.cache.tiles_evicted > 0);
    CHECK(outcome.report.passes == outcome.report.scans);
    // Every tile in reach is loaded once: the drive never comes back.
    CHECK(outcome.report.cache.tiles_loaded == outcome.report.tiles_in_reach);
}

TEST_CASE("what was planned and is behind makes room for what is ahead") {
    constexpr std::uint32_t kTiles = 12;
    std::vector<test::WorldDisc> discs;
    for (std::uint32_t i = 0; i < kTiles; ++i) discs.push_back({{16.0 * i + 8, 8, 0}, {0, 0, 1}, 0.5});
    const test::MemoryCity city(discs, 16);
    const auto tracer = make_group_tracer();
    CacheOptions options;
    options.budget_bytes = 3 * tracer->estimated_bytes(1);
    TileCache cache(city, *tracer, options);
    for (std::uint32_t i = 0; i + 1 < kTiles; ++i) {
        const std::vector<std::uint32_t> here{i};
        cache.acquire(here);
        cache.plan({i + 1});
        // The next tile comes without being asked for.
        for (int patience = 0; cache.statistics().tiles_loaded < i + 2 && patience < 600'000; ++patience)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        REQUIRE(cache.statistics().tiles_loaded == i + 2);
    }
}

TEST_CASE("who stops a simulation waits neither for the rest of a scan nor for tiles") {
    const MemoryCity city(test::street(kEast, kNorth, 60), 16);
    SensorRun run{small_sensor(), {}, 7};
    const Trajectory trajectory = straight_drive(20, 2.01);
    for (const std::uint32_t hits : {1u, 5u}) {
        run.hits = hits;
        for (const std::uint64_t budget : {std::uint64_t{1} << 30, largest_tile_bytes(city)}) {
            CancelToken cancel;
            const StoppingTracer tracer(cancel);
            Collector sink;
            Progress progress;
            const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 2);
            CHECK_THROWS_AS(
                simulate({city, tracer, run, trajectory, with_budget(budget)}, sink, cancel, progress),
                Interrupted);
            // A scan has ninety batches; each thread may have begun one.
            CHECK(tracer.calls < 20);
            CHECK(sink.scans.empty());
        }
    }
    CancelToken cancel;
    SlowCity slow(city, cancel);
    const auto tracer = make_group_tracer();
    TileCache cache(slow, *tracer, {});
    const std::vector<std::uint32_t> tiles{0, 1, 2};
    CHECK_THROWS_AS(cache.acquire(tiles, cancel), Interrupted);
    slow.given_up = true;
}

TEST_CASE("a damaged tile that was only planned fails those who need it and nobody else") {
    std::vector<test::WorldDisc> discs;
    for (const double x : {8.0, 24.0, 40.0}) discs.push_back({{x, 8, 0}, {0, 0, 1}, 0.5});
    MemoryCity city(discs, 16);
    REQUIRE(city.tiles().size() == 3);
    city.damaged = {1};
    const auto tracer = make_group_tracer();
    TileCache cache(city, *tracer, {});
    cache.plan({1, 2});
    // There is one loader: when the second tile is there, the first one has failed.
    for (int patience = 0; cache.statistics().tiles_loaded < 1 && patience < 5000; ++patience)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(cache.statistics().tiles_loaded == 1);
    const std::vector<std::uint32_t> first{0}, second{1};
    CHECK(cache.acquire(first).tiles.size() == 1);
    CHECK_THROWS_AS(cache.acquire(second), CorruptionError);
}

TEST_CASE("few scans of many rays are in memory at a time") {
    const MemoryCity city({{{kEast, kNorth, 0}, {0, 0, 1}, 1}}, 16);
    const auto tracer = make_group_tracer();
    const SensorRun few{small_sensor(), {}, 1};
    SensorRun many{small_sensor(), {}, 1};
    many.sensor.rays = PinholePattern{4000, 4000, 1, 1};  // 1.2 GB of returns
    const Trajectory way = straight_drive(10, 2);
    Session session({city, *tracer});
    const std::size_t small = session.add({few, way}), large = session.add({many, way});
    const std::vector<Sweep> sweeps(100, Sweep{100, 0.1});
    CHECK(session.scans_at_once(small, sweeps) >= 4);
    CHECK(session.scans_at_once(large, sweeps) == 1);
}

TEST_CASE("a budget below one tile is refused with the tile and the way out") {
    const MemoryCity city(test::street(kEast, kNorth, 60), 16);
    const SensorRun run{small_sensor(), {}, 7};
    CHECK_THROWS_WITH(drive(city, run, with_budget(1000)),
                      Catch::Contains("--resident") && Catch::Contains("tile"));
}

TEST_CASE("a damaged tile stops the run with its key, or marks the rays it concerns") {
    MemoryCity city(test::street(kEast, kNorth, 60), 16);
    SensorRun run{small_sensor(), {}, 7};
    run.noise = false;
    const Outcome whole = drive(city, run, with_budget(1 << 30));
    const std::size_t victim = city.tiles().size() / 2;
    city.damaged = {victim};
    CHECK_THROWS_WITH(drive(city, run, with_budget(1 << 30)),
                      Catch::Contains(city.tiles()[victim].key.text()));
    std::set<std::uint64_t> lost;
    for (std::size_t i = 0; i < city.tile(victim).size(); ++i)
        lost.insert(MemoryCity::id(city.tile(victim), i));

    SimulationOptions options = with_budget(1 << 30);
    options.cache.allow_missing = true;
    const Outcome partial = drive(city, run, options);
    REQUIRE(partial.report.missing > 0);
    std::uint64_t marked = 0;
    for (std::size_t s = 0; s < whole.scans.size(); ++s)
        for (std::size_t i = 0; i < whole.scans[s].returns.size(); ++i) {
            const Return &a = whole.scans[s].returns[i], &b = partial.scans[s].returns[i];
            marked += b.status == RayStatus::missing;
            // What is not marked is what it was; what was hit in the tile is marked.
            if (b.status != RayStatus::missing) REQUIRE((a.status == b.status && a.range_m == b.range_m));
            if (lost.contains(a.splat_id)) REQUIRE(b.status == RayStatus::missing);
        }
    CHECK(marked == partial.report.missing);
}

TEST_CASE("every ray of a sweep has its own origin: a moving sensor sees a wall from where it is") {
    // A wall at right angles to the drive, dead ahead; ranges must shrink within a sweep as the car moves.
    std::vector<test::WorldDisc> wall;
    for (double y = -20; y < 20; y += 0.2)
        for (double z = -5; z < 10; z += 0.2) wall.push_back({{kEast + 60, kNorth + y, z}, {-1, 0, 0}, 0.3});
    const MemoryCity city(wall, 16);
    SensorRun run{small_sensor(), {}, 1};
    run.noise = false;
    run.sensor.max_range_m = 100;
    const std::vector<StampedPose> poses{{0, {{kEast, kNorth, 2}, {}}}, {1, {{kEast + 20, kNorth, 2}, {}}}};
    const Trajectory trajectory(poses);
    const auto tracer = make_group_tracer();
    Collector sink;
    CancelToken cancel;
    Progress progress;
    simulate({city, *tracer, run, trajectory, with_budget(1 << 30)}, sink, cancel, progress);
    std::size_t checked = 0;
    for (const Scan& scan : sink.scans)
        for (const Return& r : scan.returns) {
            if (r.status != RayStatus::hit) continue;
            ++checked;
            const double t = scan.time_s + static_cast<double>(r.time_s);
            const Vec3d origin{kEast + 20 * t, kNorth, 2};
            REQUIRE(std::fabs(r.position.x - (kEast + 60)) < 1e-3);
            REQUIRE(std::fabs(length(r.position - origin) - static_cast<double>(r.range_m)) < 1e-3);
        }
    CHECK(checked > 1000);
}

TEST_CASE("noise has the sigma and bias of the sensor file and is absent when switched off") {
    std::vector<test::WorldDisc> floor{{{kEast, kNorth, 0}, {0, 0, 1}, 7.9}};
    const MemoryCity city(floor, 16);
    SensorRun run{small_sensor(), {}, 3};
    run.sensor.error = {{0.01, 0.002, -0.0001}, {0.02, 0.001, 0}};
    const auto collect = [&](bool noise) {
        run.noise = noise;
        return drive(city, run, with_budget(1 << 30), 0.01, 4.01);
    };
    const Outcome clean = collect(false), noisy = collect(true);
    double sum = 0, squares = 0, n = 0;
    for (std::size_t s = 0; s < clean.scans.size(); ++s)
        for (std::size_t i = 0; i < clean.scans[s].returns.size(); ++i) {
            const Return &a = clean.scans[s].returns[i], &b = noisy.scans[s].returns[i];
            if (a.status != RayStatus::hit) continue;
            const double d = static_cast<double>(a.range_m);
            const double z = (static_cast<double>(b.range_m) - d - (0.01 + 0.002 * d - 0.0001 * d * d)) /
                             (0.02 + 0.001 * d);
            sum += z, squares += z * z, ++n;
        }
    REQUIRE(n > 20000);
    CHECK(std::fabs(sum / n) < 4 / std::sqrt(n));
    CHECK(std::fabs(squares / n - 1) < 4 * std::sqrt(2 / n));
    CHECK(collect(false).report.digest == clean.report.digest);
    run.seed = 4;
    CHECK(collect(false).report.digest == clean.report.digest);
    CHECK(collect(true).report.digest != noisy.report.digest);
}

TEST_CASE("the drop model loses the share of returns it says") {
    const MemoryCity city(test::street(kEast, kNorth, 30), 16);
    SensorRun run{small_sensor(), {}, 3};
    run.sensor.drop.probability = 0.25;
    const Outcome outcome = drive(city, run, with_budget(1 << 30), 10, 2.01);
    const double all = static_cast<double>(outcome.report.hits + outcome.report.dropped);
    CHECK(std::fabs(static_cast<double>(outcome.report.dropped) / all - 0.25) <
          4 * std::sqrt(0.25 * 0.75 / all));
    run.sensor.drop = {0, 45};
    for (const Scan& scan : drive(city, run, with_budget(1 << 30), 10, 0.51).scans)
        for (const Return& r : scan.returns)
            if (r.status != RayStatus::none)
                REQUIRE((r.status == RayStatus::hit) == (r.cosine >= 0.70710678f));
}

TEST_CASE("scans begin at the rate asked for, within the times asked for") {
    const Trajectory trajectory = straight_drive(10, 2);
    const SensorRun run{small_sensor(), {}, 1};
    CHECK(scan_times(run, trajectory, {}).size() == 20);
    CHECK(scan_times(run, trajectory, {100.5, 101.05, 0}).size() == 6);
    const auto slow = scan_times(run, trajectory, {100, 200, 2});
    REQUIRE(slow.size() == 4);
    CHECK(slow[1] == 100.5);
    CHECK_THROWS_AS(scan_times(run, trajectory, {101.95, 200, 0}), UsageError);
}

TEST_CASE("a drive of an epoch in seconds does not lose its last scan to rounding") {
    SensorRun run{small_sensor(), {}, 1};
    std::get<SpinningHead>(run.sensor.rays).pattern.column_time_s /= 2;
    run.sensor.scan_hz = 20;
    // 0.05 s before its end a scan begins whose own end is rounded to 2.4e-7 s behind the last pose.
    const Trajectory trajectory({{1700000000.4, Pose{}}, {1700000000.6, Pose{}}});
    CHECK(scan_times(run, trajectory, {}).size() == 4);
}

TEST_CASE("times of scans that nobody can mean are refused before they are listed") {
    const Trajectory trajectory = straight_drive(10, 2);
    const SensorRun run{small_sensor(), {}, 1};
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(scan_times(run, trajectory, {nan, 1e9, 10}), UsageError);
    CHECK_THROWS_AS(scan_times(run, trajectory, {0, nan, 10}), UsageError);
    CHECK_THROWS_WITH(scan_times(run, trajectory, {0, 1e9, 1e12}), Catch::Contains("10 000 000 scans"));
}

TEST_CASE("weights of several hits are those of the paper") {
    HitList list;
    for (std::uint32_t n = 1; n <= kMaxHits; ++n) {
        for (std::uint32_t one = 0; one < n; ++one) {
            // The average of an indicator is that hit's weight over the sum.
            double sum = 0;
            for (std::uint32_t i = 1; i <= n; ++i) sum += std::exp(-std::fabs(i - n / 2.0) / (n / 2.0));
            for (std::uint32_t i = 0; i < n; ++i) list.hits[i].range_m = i == one;
            const double weight = std::exp(-std::fabs(one + 1 - n / 2.0) / (n / 2.0)) / sum;
            REQUIRE(weighted_range(list, n) == Approx(weight).epsilon(1e-14));
        }
    }
}

TEST_CASE("a surface ends at another class, at a gap, and at the depth asked for") {
    HitList list;
    list.count = 5;
    const float t[] = {10, 10.05f, 10.12f, 10.4f, 10.45f};
    for (int i = 0; i < 5; ++i) list.hits[i].t = t[i], list.hits[i].label = 1;
    CHECK(surface_depth(list, 5, 0.1f) == 3);
    CHECK(surface_depth(list, 2, 0.1f) == 2);
    CHECK(surface_depth(list, 5, 0.5f) == 5);
    list.hits[1].label = 2;
    CHECK(surface_depth(list, 5, 0.5f) == 1);
    CHECK(surface_depth(HitList{}, 5, 0.5f) == 0);
}

TEST_CASE("the normal quantile inverts the normal distribution") {
    for (double z = -7; z <= 7; z += 0.01) {
        const double p = 0.5 * std::erfc(-z / std::sqrt(2.0));
        if (p >= 1) continue;
        // Near 1 the probability itself has no digits left.
        CHECK(normal_quantile(p) == Approx(z).margin(2e-6 + (z > 5 ? 1e-3 * std::exp(z - 5) : 0)));
    }
}
