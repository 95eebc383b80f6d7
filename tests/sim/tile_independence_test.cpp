#include "core/math/math_hd.hpp"
#include "sim/test_drive.hpp"
#include "trace/ray_disc_hd.hpp"
#include "trace/tracer.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>

/// What a ray meets does not depend on how the city is cut into tiles.
using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;
using test::MemoryCity;
using test::Place;
using test::Splits;
using test::WorldDisc;

namespace {

constexpr Place kNearZero{3.25, -7.5}, kUtm{651000.25, 6861000.5};

struct Cut {
    double tile_m;
    Splits splits;
};
constexpr Cut kCuts[] = {{16, Splits::none},  {16, Splits::mixed}, {32, Splits::none},  {64, Splits::none},
                         {64, Splits::mixed}, {128, Splits::none}, {128, Splits::mixed}};

struct Results {
    std::vector<Hit> closest;
    std::vector<HitList> nearest;
};

/// All tiles at once, or one after the other in passes.
Results trace(const MemoryCity& city, std::span<const Ray> rays, bool in_passes) {
    const auto tracer = make_group_tracer();
    std::vector<TracerTilePtr> tiles;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(tracer->load(city.load(i)));
    Results results{std::vector<Hit>(rays.size()), std::vector<HitList>(rays.size())};
    const std::size_t step = in_passes ? 1 : tiles.size();
    for (std::size_t i = 0; i < tiles.size(); i += step) {
        const TileSetPtr set = tracer->bind(std::span(tiles).subspan(i, step));
        tracer->closest(*set, rays, results.closest);
        tracer->nearest(*set, rays, 5, 0.2f, results.nearest);
    }
    return results;
}

/// Rays that differ in a byte of what they met.
std::size_t differences(const Results& a, const Results& b) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.closest.size(); ++i) {
        const HitList &x = a.nearest[i], &y = b.nearest[i];
        n += std::memcmp(&a.closest[i], &b.closest[i], sizeof(Hit)) != 0 || x.count != y.count ||
             std::memcmp(x.hits, y.hits, x.count * sizeof(Hit)) != 0;
    }
    return n;
}

/// Traces the same rays through every cut; all must give what the first gives.
Results require_same_in_all_cuts(const std::vector<WorldDisc>& discs, std::span<const Ray> rays) {
    const Results reference = trace(MemoryCity(discs, kCuts[0].tile_m), rays, false);
    for (const Cut& cut : kCuts)
        for (const bool in_passes : {false, true}) {
            const MemoryCity city(discs, cut.tile_m, cut.splits);
            CAPTURE(cut.tile_m, cut.splits == Splits::mixed, in_passes);
            CHECK(differences(trace(city, rays, in_passes), reference) == 0);
        }
    return reference;
}

Ray ray_towards(Vec3d origin, Vec3d target, float t_max) {
    return {origin, vec_cast<float>(normalized(target - origin)), 0.1f, t_max};
}

/// Rays at the rims of discs, where a rounding error decides.
std::vector<Ray> rays_at_rims(const std::vector<WorldDisc>& discs, Vec3d from, std::size_t count,
                              float t_max) {
    std::vector<Ray> rays;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto u = [&](std::uint64_t n, double low, double high) {
            return rng::uniform(41, 8 * i + n, low, high);
        };
        const WorldDisc& disc = discs[rng::bits(42, i) % discs.size()];
        // The disc as it is stored: on the lattice.
        const Vec3d centre{to_metres(to_lattice(disc.centre.x)), to_metres(to_lattice(disc.centre.y)),
                           to_metres(to_lattice(disc.centre.z))};
        const Vec3d normal = vec_cast<double>(unpack_normal(pack_normal(disc.normal)));
        const Vec3d side = normalized(cross(normal, Vec3d{u(0, -1, 1), u(1, -1, 1), u(2, -1, 1)}));
        const Vec3d origin = from + Vec3d{u(3, -20, 20), u(4, -2, 2), u(5, 0, 3)};
        rays.push_back(ray_towards(origin, centre + side * to_metres(to_lattice(disc.radius_m)), t_max));
    }
    return rays;
}

}  // namespace

TEST_CASE("what a ray meets does not depend on tiles, not even at the rims of discs") {
    for (const Place place : {kNearZero, kUtm}) {
        const auto discs = test::street(place.east, place.north, 60, 0.5);
        const auto rays = rays_at_rims(discs, {place.east + 30, place.north, 1.2}, 8000, 100);
        const Results results = require_same_in_all_cuts(discs, rays);
        CHECK(std::count_if(results.closest.begin(), results.closest.end(),
                            [](const Hit& hit) { return hit.exists(); }) > 6000);
    }
}

TEST_CASE("rays of kilometres do not depend on tiles either") {
    for (const Place place : {kNearZero, kUtm}) {
        std::vector<WorldDisc> discs;
        for (int far_m : {1200, 3000, 9500})
            for (int i = 0; i < 400; ++i)
                discs.push_back(
                    {{place.east + far_m + rng::uniform(51, i, -60, 60),
                      place.north + rng::uniform(52, i, -60, 60), rng::uniform(53, i, 0, 30)},
                     normalized(Vec3d{-1, rng::uniform(54, i, -1, 1), rng::uniform(55, i, -1, 1)}),
                     rng::uniform(56, i, 0.1, 4)});
        const auto rays = rays_at_rims(discs, {place.east, place.north, 15}, 6000, 10000);
        const Results results = require_same_in_all_cuts(discs, rays);
        CHECK(std::count_if(results.closest.begin(), results.closest.end(),
                            [](const Hit& hit) { return hit.exists() && hit.range_m > 1000; }) > 3000);
    }
}

TEST_CASE("where discs are equally far the id decides, across tile borders too") {
    // Overlapping discs in exact planes: a floor and a wall, some of them twice. Every ray meets several of
    // them at the same distance.
    for (const Place place : {kNearZero, kUtm}) {
        std::vector<WorldDisc> discs;
        for (int i = 0; i < 80; ++i)
            for (int j = 0; j < 40; ++j) {
                const double along = place.east + i * 0.5;
                discs.push_back({{along, place.north + j * 0.5, 0.5}, {0, 0, 1}, 1.4, 7});
                discs.push_back({{along, place.north + 20, j * 0.25}, {0, -1, 0}, 1.1, 1});
                if ((i + j) % 7 == 0) discs.push_back(discs[discs.size() - 2]);
            }
        std::vector<Ray> rays;
        for (std::uint64_t i = 0; i < 3000; ++i)
            rays.push_back(ray_towards(
                {place.east + 20, place.north + 8, 4.25},
                {place.east + rng::uniform(61, 3 * i, 0, 40),
                 place.north + rng::uniform(61, 3 * i + 1, 0, 20.5), rng::uniform(61, 3 * i + 2, 0, 8)},
                100));
        const Results results = require_same_in_all_cuts(discs, rays);
        std::size_t ties = 0, twins = 0;
        for (std::size_t i = 0; i < rays.size(); ++i) {
            const HitList& list = results.nearest[i];
            if (list.count == 0) continue;
            CHECK(list.hits[0].splat_id == results.closest[i].splat_id);
            for (std::uint32_t k = 1; k < list.count; ++k) {
                CHECK_FALSE(comes_before(list.hits[k], list.hits[k - 1]));
                ties += list.hits[k].t == list.hits[k - 1].t;
                twins += list.hits[k].splat_id == list.hits[k - 1].splat_id;
            }
        }
        CHECK(ties > rays.size());
        CHECK(twins > rays.size() / 20);
    }
}

TEST_CASE("scans do not depend on tile size, splits or the memory for tiles") {
    for (const Place place : {kNearZero, kUtm}) {
        const auto discs = test::street(place.east, place.north, 60, 0.4);
        const Trajectory trajectory = test::straight_drive(30, 0.41, place);
        SensorRun run{test::small_sensor(), {}, 7};
        for (const std::uint32_t hits : {1u, 5u}) {
            run.hits = hits;
            const MemoryCity first(discs, 32);
            const auto reference =
                test::drive(first, run, test::with_budget(std::uint64_t{1} << 30), trajectory).report;
            REQUIRE(reference.scans == 4);
            REQUIRE(reference.hits > reference.rays / 2);
            for (const Cut& cut : kCuts) {
                const MemoryCity city(discs, cut.tile_m, cut.splits);
                for (const std::uint64_t budget :
                     {std::uint64_t{1} << 30, test::largest_tile_bytes(city) * 5 / 4}) {
                    const auto report = test::drive(city, run, test::with_budget(budget), trajectory).report;
                    CAPTURE(place.east, hits, cut.tile_m, cut.splits == Splits::mixed, budget);
                    CHECK(report.digest == reference.digest);
                    if (budget < 1 << 30 && city.tiles().size() > 4) CHECK(report.passes > report.scans);
                }
            }
        }
    }
}

TEST_CASE("what only a part of a slow sweep can reach is met, whatever the tiles") {
    // Two arcs in one sweep: at its beginning, middle and end the car is on a line, in between 15 m beside
    // it. The wall is within range from there alone.
    std::vector<StampedPose> poses;
    for (int i = 0; i <= 100; ++i) {
        const double s = i / 100.0;
        const double aside = 15 * std::fabs(exact::sin(2 * exact::kPi * s));
        poses.push_back({2 * s, {{kUtm.east + 20 * s, kUtm.north + aside, 2}, {}}});
    }
    std::vector<WorldDisc> wall;
    for (int i = 0; i < 200; ++i)
        for (int k = 0; k < 40; ++k)
            wall.push_back({{kUtm.east - 40 + 0.5 * i, kUtm.north + 50, 0.25 * k}, {0, -1, 0}, 0.5});
    SensorRun run{test::small_sensor(), {}, 7};
    std::get<SpinningHead>(run.sensor.rays).pattern.column_time_s *= 20;
    const auto report = [&](double tile_m) {
        return test::drive(MemoryCity(wall, tile_m), run, test::with_budget(1 << 30), Trajectory(poses))
            .report;
    };
    const auto reference = report(512);
    REQUIRE(reference.scans == 1);
    CHECK(reference.hits > 20);
    for (const double tile_m : {8.0, 16.0, 64.0}) CHECK(report(tile_m).digest == reference.digest);
}

TEST_CASE("a ray starts on the lattice, within half a step, and a shorter one starts there too") {
    for (const float t_max : {80.0f, 1000.0f, 1000.5f, 10000.0f}) {
        const double step = t_max > 1000 ? 1.0 / 1024 : 1.0 / 8192;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            const Ray ray{{rng::uniform(71, 3 * i, -9e5, 9e5), rng::uniform(71, 3 * i + 1, -7e6, 7e6),
                           rng::uniform(71, 3 * i + 2, -500, 5000)},
                          {1, 0, 0},
                          0,
                          t_max};
            const Vec3d origin = lattice_origin(ray);
            for (const double v : {origin.x, origin.y, origin.z}) REQUIRE(v / step == std::floor(v / step));
            const Vec3d off = origin - ray.origin;
            REQUIRE(std::max({std::fabs(off.x), std::fabs(off.y), std::fabs(off.z)}) <= step / 2);
            for (const float bound : {0.5f, 999.0f, 1000.2f, 20000.0f}) {
                const Ray shorter = shortened(ray, bound);
                const Vec3d same = lattice_origin(shorter);
                REQUIRE((same.x == origin.x && same.y == origin.y && same.z == origin.z));
                REQUIRE(shorter.t_max <= ray.t_max);
                REQUIRE(shorter.t_max >= std::min(bound, ray.t_max));
            }
        }
    }
}

TEST_CASE("an id tells apart whatever differs, and nothing else") {
    const Splat splat{100, -200, 300, 77, 900, 5, 4000, 9, SplatGroup::linear, 20, 30, 0};
    const LatticePoint origin{8192 * std::int64_t{651000}, 8192 * std::int64_t{6861000}, 0};
    const std::uint64_t id = splat_id(identity(splat, origin));
    // Another frame, the same place in the world.
    Splat elsewhere = splat;
    elsewhere.x -= 3 * 8192;
    CHECK(splat_id(identity(elsewhere, {origin.x + 3 * 8192, origin.y, origin.z})) == id);

    std::map<std::uint64_t, int> ids{{id, 0}};
    const auto add = [&](auto change) {
        for (int k = 1; k < 200; ++k) {
            Splat other = splat;
            change(other, k);
            ++ids[splat_id(identity(other, origin))];
        }
    };
    add([](Splat& s, int k) { s.x += k; });
    add([](Splat& s, int k) { s.y -= k; });
    add([](Splat& s, int k) { s.z += k; });
    add([](Splat& s, int k) { s.normal += static_cast<std::uint32_t>(k); });
    add([](Splat& s, int k) { s.radius = static_cast<std::uint16_t>(s.radius + k); });
    add([](Splat& s, int k) { s.label = static_cast<std::uint16_t>(s.label + k); });
    add([](Splat& s, int k) { s.intensity = static_cast<std::uint16_t>(s.intensity + k); });
    add([](Splat& s, int k) { s.range = static_cast<std::uint8_t>(s.range + k); });
    add([](Splat& s, int k) { s.incidence = static_cast<std::uint8_t>(s.incidence + k); });
    CHECK(ids.size() == 1 + 9 * 199);
    CHECK(!ids.contains(0));
}
