#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/parallel.hpp"
#include "sim/memory_city.hpp"
#include "sim/scan/ray_batch.hpp"
#include "sim/scan/scanner.hpp"
#include "sim/test_drive.hpp"
#include "trace/groups/ray_order.hpp"
#include "trace/tracer.hpp"

#include <catch2/catch.hpp>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

using namespace citysplat;
using namespace citysplat::trace;
using test::MemoryCity;
using test::WorldDisc;

namespace {

constexpr double kEast = 652000.25, kNorth = 6861000.5;

/// The hits of a batch in both ways of asking.
struct Found {
    std::vector<Hit> closest;
    std::vector<HitList> nearest;

    explicit Found(std::size_t rays) : closest(rays), nearest(rays) {}
    std::size_t hits() const {
        return static_cast<std::size_t>(
            std::count_if(closest.begin(), closest.end(), [](const Hit& hit) { return hit.exists(); }));
    }
};

struct Question {
    std::span<const Ray> rays;
    std::uint32_t depth = 5;
    float gap_m = 0.1f;
};

void ask(const Tracer& tracer, const TileSet& tiles, const Question& q, Found& found) {
    tracer.closest(tiles, q.rays, found.closest);
    tracer.nearest(tiles, q.rays, q.depth, q.gap_m, found.nearest);
}

std::vector<TracerTilePtr> load_all(const Tracer& tracer, const MemoryCity& city) {
    std::vector<TracerTilePtr> tiles;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(tracer.load(city.load(i)));
    return tiles;
}

Found found_by(const Tracer& tracer, const MemoryCity& city, const Question& q) {
    Found found(q.rays.size());
    ask(tracer, *tracer.bind(load_all(tracer, city)), q, found);
    return found;
}

/// Rays whose hits are not the same bytes.
std::size_t differences(const Found& a, const Found& b) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.closest.size(); ++i) {
        const HitList &list = a.nearest[i], &other = b.nearest[i];
        n += std::memcmp(&a.closest[i], &b.closest[i], sizeof(Hit)) != 0 || list.count != other.count ||
             std::memcmp(list.hits, other.hits, list.count * sizeof(Hit)) != 0;
    }
    return n;
}

/// The hits of Embree, and that every instruction set of this machine finds the same ones.
Found require_same_as_embree(const MemoryCity& city, const Question& q, float max_range_m = kMaxRange_m) {
    const Found expected = found_by(*make_embree_tracer(), city, q);
    for (const std::string& set : group_instruction_sets()) {
        CAPTURE(set);
        REQUIRE(differences(found_by(*make_group_tracer({set, max_range_m}), city, q), expected) == 0);
    }
    return expected;
}

Vec3d random_direction(std::uint64_t key, std::uint64_t i) {
    const double z = rng::uniform(key, 2 * i, -1, 1), a = rng::uniform(key, 2 * i + 1, 0, 2 * exact::kPi);
    const double r = std::sqrt(1 - z * z);
    return {r * exact::cos(a), r * exact::sin(a), z};
}

/// Discs of all sizes around a place, some of them coincident.
std::vector<WorldDisc> random_discs(std::size_t n, std::uint64_t key, Vec3d at = {kEast, kNorth, 10}) {
    std::vector<WorldDisc> discs;
    for (std::uint64_t i = 0; i < n; ++i) {
        const double radius = i % 50 == 0 ? 5.0 : i % 7 == 0 ? 0.0003 : rng::uniform(key, 10 * i, 0.02, 0.6);
        const Vec3d off{rng::uniform(key, 10 * i + 1, -30, 30), rng::uniform(key, 10 * i + 2, -30, 30),
                        rng::uniform(key, 10 * i + 3, -10, 10)};
        discs.push_back({at + off, random_direction(key + 1, i), radius, static_cast<std::uint16_t>(i % 3)});
        if (i % 40 == 0) discs.push_back(discs.back());
    }
    return discs;
}

/// From anywhere near the discs at one of them, at its rim, or anywhere.
std::vector<Ray> random_rays(const std::vector<WorldDisc>& discs, std::size_t n, std::uint64_t key,
                             double away_m = 0) {
    std::vector<Ray> rays;
    for (std::uint64_t i = 0; i < n; ++i) {
        const WorldDisc& disc = discs[rng::bits(key, 8 * i) % discs.size()];
        const Vec3d from =
            disc.centre + random_direction(key + 1, i) * (away_m + rng::uniform(key, 8 * i + 1, 0, 40));
        const Vec3d side = normalized(cross(disc.normal, random_direction(key + 2, i)));
        const Vec3d to = i % 3 == 0   ? from + random_direction(key + 3, i)
                         : i % 3 == 1 ? disc.centre
                                      : disc.centre + side * disc.radius_m;
        rays.push_back({from, vec_cast<float>(normalized(to - from)), 0.0f,
                        static_cast<float>(away_m + rng::uniform(key, 8 * i + 2, 1, 100))});
    }
    return rays;
}

std::vector<std::string> shipped_sensors() {
    std::vector<std::string> names;
    for (const auto& file :
         std::filesystem::directory_iterator(std::string(CITYSPLAT_SOURCE_DIR) + "/datasets/sensors"))
        names.push_back(file.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// At most `most` rays from the middle of a scan that is made while the sensor moves and turns.
std::vector<Ray> scan_rays(const std::string& sensor, std::size_t most) {
    const sim::SensorRun run{sim::Sensor::load(sensor), {}, 1};
    std::vector<sim::Firing> firings;
    const Trajectory trajectory = test::straight_drive(20, 2);
    const sim::ScanRays scan(run, trajectory, 3, trajectory.begin_s() + 0.5,
                             sim::plan_firings(run.sensor, 3, firings));
    sim::RayBatch batch;
    const std::size_t count = std::min(most, scan.size());
    batch.generate(scan.view(), (scan.size() - count) / 2, count);
    return {batch.rays().begin(), batch.rays().end()};
}

}  // namespace

TEST_CASE("every shipped sensor finds what Embree finds, byte for byte, with every instruction set") {
    const MemoryCity city(test::street(kEast, kNorth, 60), 16);
    for (const std::string& sensor : shipped_sensors()) {
        CAPTURE(sensor);
        const auto rays = scan_rays(sensor, 8'000);
        const Found found = require_same_as_embree(city, {rays});
        if (sensor != "urg-04lx") CHECK(found.hits() > 100);
    }
}

TEST_CASE("every ray of every shipped sensor finds what Embree finds, in threads and in passes", "[slow]") {
    const MemoryCity city(test::street(kEast, kNorth, 60, 0.15), 16);
    for (const std::string& sensor : shipped_sensors()) {
        CAPTURE(sensor);
        const auto rays = scan_rays(sensor, 1'000'000);
        const Question q{rays};
        const auto embree = make_embree_tracer(), groups = make_group_tracer();
        const Found expected = found_by(*embree, city, q);
        const auto tiles = load_all(*groups, city);
        const std::size_t batch =
            groups->batch_rays(q.rays.first(std::min(rays.size(), Tracer::kSampleRays)));
        for (const int threads : {1, 2}) {
            Found found(rays.size());
            tbb::task_arena arena(threads);
            for (std::size_t pass = 0; pass < 3; ++pass) {
                std::vector<TracerTilePtr> some;
                for (std::size_t i = tiles.size(); i-- > 0;)
                    if (i % 3 == pass) some.push_back(tiles[i]);
                const TileSetPtr set = groups->bind(some);
                arena.execute([&] {
                    parallel_for((rays.size() + batch - 1) / batch, [&](std::size_t i) {
                        const std::size_t first = i * batch, count = std::min(batch, rays.size() - first);
                        groups->closest(*set, q.rays.subspan(first, count),
                                        std::span(found.closest).subspan(first, count));
                        groups->nearest(*set, q.rays.subspan(first, count), q.depth, q.gap_m,
                                        std::span(found.nearest).subspan(first, count));
                    });
                });
            }
            REQUIRE(differences(found, expected) == 0);
        }
    }
}

TEST_CASE("rays without any order find what Embree finds, however many hits are asked for") {
    const auto discs = random_discs(4000, 1);
    const MemoryCity city(discs, 16);
    const auto rays = random_rays(discs, 3'001, 2);
    for (const std::uint32_t depth : {1u, 2u, 5u, 8u}) {
        CAPTURE(depth);
        const Found found = require_same_as_embree(city, {rays, depth, 1.0f});
        CHECK(found.hits() > rays.size() / 4);
    }
}

TEST_CASE("a few rays at a time find what many at once find") {
    const auto discs = random_discs(3000, 3);
    const MemoryCity city(discs, 16);
    const auto rays = random_rays(discs, 600, 4);
    const auto tracer = make_group_tracer();
    const TileSetPtr set = tracer->bind(load_all(*tracer, city));
    const Found all = found_by(*tracer, city, {rays});
    for (const std::size_t step : {1u, 7u, 16u, 17u, 511u, 513u}) {
        Found found(rays.size());
        for (std::size_t first = 0; first < rays.size(); first += step) {
            const std::size_t count = std::min<std::size_t>(step, rays.size() - first);
            const auto part = std::span(rays).subspan(first, count);
            tracer->closest(*set, part, std::span(found.closest).subspan(first, count));
            tracer->nearest(*set, part, 5, 0.1f, std::span(found.nearest).subspan(first, count));
        }
        CHECK(differences(found, all) == 0);
    }
}

TEST_CASE("equal distances are decided by the id, in one tile, between tiles and between passes") {
    // Each disc thrice: twice with other labels. Rays along axes and from lattice points meet planes at
    // exactly the same distance, also those of neighbouring discs.
    std::vector<WorldDisc> discs;
    for (int x = 0; x < 40; ++x)
        for (int y = 0; y < 12; ++y)
            for (int copy = 0; copy < 3; ++copy)
                discs.push_back({{kEast + 0.5 * x, kNorth + 0.5 * y, 3},
                                 {0, 0, 1},
                                 0.75,
                                 static_cast<std::uint16_t>((x + 5 * y + 7 * copy) % 11)});
    const MemoryCity city(discs, 4);
    std::vector<Ray> rays;
    for (int i = 0; i < 1500; ++i)
        rays.push_back(
            {{kEast + 20 * rng::uniform(5, 2 * i, 0, 1), kNorth + 6 * rng::uniform(5, 2 * i + 1, 0, 1), 9},
             {0, 0, -1},
             0,
             i % 2 ? 6.0f : 50.0f});
    const Question q{rays, 5, 0.1f};
    const Found expected = require_same_as_embree(city, q);
    REQUIRE(expected.hits() == rays.size());
    REQUIRE(expected.nearest[0].hits[0].t == expected.nearest[0].hits[4].t);

    const auto tracer = make_group_tracer();
    const auto tiles = load_all(*tracer, city);
    Found forwards(rays.size()), backwards(rays.size());
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        ask(*tracer, *tracer->bind({&tiles[i], 1}), q, forwards);
        ask(*tracer, *tracer->bind({&tiles[tiles.size() - 1 - i], 1}), q, backwards);
    }
    CHECK(differences(forwards, expected) == 0);
    CHECK(differences(backwards, expected) == 0);
}

TEST_CASE("boxes lose no hit far from the frame, at grazing rays and at any range") {
    // The frame of a tile is at its corner: splats of a tile of 512 m lie up to 512 m from it.
    const auto discs = random_discs(2500, 6, {kEast + 480, kNorth + 470, 900});
    const MemoryCity city(discs, 512);
    for (const double away_m : {0.0, 60.0, 850.0, 1500.0, 9800.0}) {
        CAPTURE(away_m);
        const auto rays = random_rays(discs, 2'000, 7, away_m);
        const auto range_m = static_cast<float>(away_m + 100);
        const Found found = require_same_as_embree(city, {rays, 5, 1.0f}, range_m);
        CHECK(found.hits() > rays.size() / 4);
        std::vector<Ray> from_afar;  // neighbours, so that they go as groups
        const Vec3d at = discs[0].centre + Vec3d{away_m + 20, 30, 12};
        for (int i = 0; i < 1500; ++i)
            from_afar.push_back({at,
                                 vec_cast<float>(normalized(discs[static_cast<std::size_t>(i)].centre - at)),
                                 0.5f, range_m});
        require_same_as_embree(city, {from_afar}, range_m);
    }
}

TEST_CASE("a tile takes what was estimated, at most 54 bytes a splat, until its last owner lets go") {
    const MemoryCity city(random_discs(30'000, 8), 64);
    auto tracer = make_group_tracer();
    std::vector<TracerTilePtr> tiles = load_all(*tracer, city);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        CHECK(tiles[i]->bytes() == tracer->estimated_bytes(city.tiles()[i].splats));
        sum += tiles[i]->bytes();
    }
    CHECK(tracer->resident_bytes() == sum);
    CHECK(tracer->estimated_bytes(1'000'000) <= 54'000'000);
    CHECK(tracer->estimated_bytes(0) == 0);
    const TileSetPtr set = tracer->bind(tiles);
    tiles.clear();
    CHECK(tracer->resident_bytes() == sum);
    const TracerTilePtr survivor = tracer->load(city.load(0));
    tracer.reset();
    CHECK(survivor->bytes() > 0);
}

TEST_CASE("an empty tile, an empty set and no ray at all are traced like others") {
    const MemoryCity city({{{10, 10, 5}, {0, 0, 1}, 1.0}}, 16);
    const auto tracer = make_group_tracer();
    const TracerTilePtr empty = tracer->load(SplatTile({0, 0, 0}, std::span<const Splat>{}));
    const std::vector<Ray> ray{{{10, 10, 9}, {0, 0, -1}, 0, 50}};
    std::vector<Hit> hit(1);
    tracer->closest(*tracer->bind({}), ray, hit);
    tracer->closest(*tracer->bind({&empty, 1}), ray, hit);
    CHECK_FALSE(hit[0].exists());
    std::vector<TracerTilePtr> both = load_all(*tracer, city);
    both.insert(both.begin(), empty);
    tracer->closest(*tracer->bind(both), {}, {});
    tracer->closest(*tracer->bind(both), ray, hit);
    CHECK(hit[0].exists());
    // A direction without length meets nothing, whatever is next to it.
    const std::vector<Ray> rays{{{10, 10, 9}, {0, 0, 0}, 0, 50}, ray[0]};
    std::vector<Hit> hits(2);
    tracer->closest(*tracer->bind(both), rays, hits);
    CHECK_FALSE(hits[0].exists());
    CHECK(hits[1].exists());
}

TEST_CASE("an instruction set that is not there is refused with those that are") {
    const auto sets = group_instruction_sets();
    REQUIRE_FALSE(sets.empty());
    CHECK_THROWS_AS(make_group_tracer({"mmx"}), UnavailableError);
    CHECK_THROWS_WITH(make_group_tracer({"mmx"}), Catch::Contains(sets[0]));
}

TEST_CASE("rays that come in order keep it, others are arranged by direction, each once") {
    RayOrder order;
    for (const std::string& sensor : shipped_sensors()) {
        CAPTURE(sensor);
        const auto rays = scan_rays(sensor, 4'000);
        CHECK((order.arrange(rays) == nullptr) == (sensor != "mid-360"));
    }
    std::vector<Ray> rays;
    for (std::uint64_t i = 0; i < 20'000; ++i)
        rays.push_back({{0, 0, 0}, vec_cast<float>(random_direction(9, i)), 0, 9});
    REQUIRE_FALSE(is_ordered(rays));
    const std::uint32_t* arranged = order.arrange(rays);
    REQUIRE(arranged);
    std::vector<Ray> sorted;
    std::vector<bool> seen(rays.size(), false);
    for (std::size_t i = 0; i < rays.size(); ++i) {
        REQUIRE(arranged[i] < rays.size());
        REQUIRE_FALSE(seen[arranged[i]]);
        seen[arranged[i]] = true;
        sorted.push_back(rays[arranged[i]]);
    }
    CHECK(is_ordered(sorted));
    CHECK(order.arrange({}) == nullptr);
    const auto tracer = make_group_tracer();
    CHECK(tracer->batch_rays(rays) > tracer->batch_rays(sorted));
}
