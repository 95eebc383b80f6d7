#include "trace/tracer.hpp"

#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "sim/memory_city.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace citysplat;
using namespace citysplat::trace;
using test::MemoryCity;
using test::WorldDisc;

namespace {

constexpr double kEast = 652000.25, kNorth = 6861000.5;

Vec3d random_direction(std::uint64_t key, std::uint64_t i) {
    const double z = rng::uniform(key, 2 * i, -1, 1), a = rng::uniform(key, 2 * i + 1, 0, 2 * exact::kPi);
    const double r = std::sqrt(1 - z * z);
    return {r * exact::cos(a), r * exact::sin(a), z};
}

/// Discs of all sizes in a box of 60 × 60 × 20 m, some of them coincident.
std::vector<WorldDisc> random_discs(std::size_t n, std::uint64_t key) {
    std::vector<WorldDisc> discs;
    for (std::uint64_t i = 0; i < n; ++i) {
        const double radius = i % 50 == 0 ? 5.0 : i % 7 == 0 ? 0.0003 : rng::uniform(key, 10 * i, 0.02, 0.6);
        discs.push_back(
            {{kEast + rng::uniform(key, 10 * i + 1, -30, 30), kNorth + rng::uniform(key, 10 * i + 2, -30, 30),
              rng::uniform(key, 10 * i + 3, 0, 20)},
             random_direction(key + 1, i),
             radius,
             static_cast<std::uint16_t>(i % 3)});
        if (i % 40 == 0) discs.push_back(discs.back());
    }
    return discs;
}

Ray make_ray(Vec3d origin, Vec3d direction, double t_max = 100) {
    return {origin, vec_cast<float>(normalized(direction)), 0.0f, static_cast<float>(t_max)};
}

/// Rays from everywhere: through the box, at disc centres and rims, in a disc's plane, along axes.
std::vector<Ray> random_rays(const std::vector<WorldDisc>& discs, std::size_t n, std::uint64_t key) {
    std::vector<Ray> rays;
    for (std::uint64_t i = 0; i < n; ++i) {
        const Vec3d origin{kEast + rng::uniform(key, 10 * i, -40, 40),
                           kNorth + rng::uniform(key, 10 * i + 1, -40, 40),
                           rng::uniform(key, 10 * i + 2, -5, 25)};
        const WorldDisc& disc = discs[rng::bits(key, 10 * i + 3) % discs.size()];
        switch (i % 5) {
            case 0:
                rays.push_back(make_ray(origin, random_direction(key + 9, i)));
                break;
            case 1:
                rays.push_back(make_ray(origin, disc.centre - origin));
                break;
            case 2: {  // the rim
                const Vec3d side = normalized(cross(disc.normal, random_direction(key + 8, i)));
                rays.push_back(make_ray(origin, disc.centre + side * disc.radius_m - origin));
                break;
            }
            case 3: {  // grazing
                const Vec3d side = normalized(cross(disc.normal, random_direction(key + 8, i)));
                rays.push_back(make_ray(
                    disc.centre - side * 7.0 + disc.normal * rng::uniform(key, 10 * i + 4, -0.01, 0.01),
                    side));
                break;
            }
            default:
                rays.push_back(make_ray(origin, {i % 2 ? 1.0 : 0.0, i % 2 ? 0.0 : -1.0, 0.0}));
        }
    }
    return rays;
}

TileSetPtr load_all(const Tracer& tracer, const MemoryCity& city) {
    std::vector<TracerTilePtr> tiles;
    for (std::uint32_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(tracer.load(city.load(i)));
    return tracer.bind(tiles);
}

/// Every disc of every tile with the shared per-item test: the definition of a hit, without a hierarchy.
std::vector<HitList> brute_force(const MemoryCity& city, std::span<const Ray> rays, std::uint32_t depth) {
    std::vector<HitList> lists(rays.size());
    for (std::size_t r = 0; r < rays.size(); ++r) {
        std::vector<Hit> all;
        for (std::uint32_t tile = 0; tile < city.tiles().size(); ++tile) {
            const SplatTile& splats = city.tile(tile);
            const Vec3f origin = local_origin(lattice_origin(rays[r]), MemoryCity::world(splats, {0, 0, 0}));
            for (std::uint32_t i = 0; i < splats.size(); ++i) {
                float t;
                if (!meets(make_trace_disc(splats.disc(i), splats.label()[i]), origin, rays[r].direction, t))
                    continue;
                if (!(t > rays[r].t_min && t <= rays[r].t_max)) continue;
                Hit hit;
                hit.t = t, hit.splat_id = MemoryCity::id(splats, i);
                all.push_back(hit);
            }
        }
        std::sort(all.begin(), all.end(), [](const Hit& a, const Hit& b) { return comes_before(a, b); });
        for (std::size_t i = 0; i < all.size() && i < depth; ++i) lists[r].hits[lists[r].count++] = all[i];
    }
    return lists;
}

std::vector<Hit> closest(const Tracer& tracer, const TileSet& set, std::span<const Ray> rays) {
    std::vector<Hit> hits(rays.size());
    tracer.closest(set, rays, hits);
    return hits;
}

void require_same(std::span<const Hit> a, std::span<const Hit> b) {
    REQUIRE(a.size() == b.size());
    REQUIRE(std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Runs the test once with each tracer of the CPU.
std::unique_ptr<Tracer> either_tracer() {
    return GENERATE(true, false) ? make_group_tracer() : make_embree_tracer();
}

}  // namespace

TEST_CASE("the closest hit is the one brute force finds, whatever the ray and the disc") {
    const auto discs = random_discs(4000, 1);
    const MemoryCity city(discs, 16);
    const auto tracer = either_tracer();
    const TileSetPtr set = load_all(*tracer, city);
    const auto rays = random_rays(discs, 5000, 2);
    const auto hits = closest(*tracer, *set, rays);
    const auto truth = brute_force(city, rays, 1);
    std::size_t found = 0;
    for (std::size_t i = 0; i < rays.size(); ++i) {
        INFO("ray " << i);
        REQUIRE(hits[i].exists() == (truth[i].count > 0));
        if (!hits[i].exists()) continue;
        ++found;
        REQUIRE(hits[i].t == truth[i].hits[0].t);
        REQUIRE(hits[i].splat_id == truth[i].hits[0].splat_id);
    }
    CHECK(found > 3000);
}

TEST_CASE("hits agree with double-precision geometry except on the rim itself") {
    const auto discs = random_discs(3000, 3);
    const MemoryCity city(discs, 32);
    const auto tracer = either_tracer();
    const TileSetPtr set = load_all(*tracer, city);
    const auto rays = random_rays(discs, 3000, 4);
    const auto hits = closest(*tracer, *set, rays);
    std::size_t on_rim = 0;
    for (std::size_t r = 0; r < rays.size(); ++r) {
        const Vec3d d = vec_cast<double>(rays[r].direction);
        double best = std::numeric_limits<double>::infinity(), surely = best;
        for (std::size_t tile = 0; tile < city.tiles().size(); ++tile)
            for (std::size_t i = 0; i < city.tile(tile).size(); ++i) {
                const Disc disc = city.tile(tile).disc(i);
                const Vec3d to = MemoryCity::world(city.tile(tile), disc.centre) - rays[r].origin,
                            n = vec_cast<double>(disc.normal);
                const double slope = dot(n, d), t = dot(n, to) / slope;
                if (!(t > 0 && t <= 100)) continue;
                // Origins on the lattice move a hit in the plane by less than this.
                const double off = length(d * t - to), slack = 1.2e-4 / std::max(std::fabs(slope), 1e-3);
                if (off < static_cast<double>(disc.radius) + slack) best = std::min(best, t);
                if (off < static_cast<double>(disc.radius) - slack) surely = std::min(surely, t);
            }
        INFO("ray " << r);
        if (!hits[r].exists()) {
            REQUIRE(surely == std::numeric_limits<double>::infinity());
            continue;
        }
        REQUIRE(hits[r].range_m >= best - 1e-3);
        REQUIRE(hits[r].range_m <= surely + 1e-3);
        on_rim += best != surely;
    }
    CHECK(on_rim < rays.size() / 4);
}

TEST_CASE("SIMD and scalar code, leaf and box sizes and Embree's instruction sets give the same bits") {
    const auto discs = random_discs(3000, 5);
    const MemoryCity city(discs, 16);
    const auto rays = random_rays(discs, 4001, 6);
    const auto reference_tracer = make_embree_tracer();
    const auto reference = closest(*reference_tracer, *load_all(*reference_tracer, city), rays);
    for (const EmbreeOptions& options :
         {EmbreeOptions{"", false, 4}, EmbreeOptions{"", true, 1}, EmbreeOptions{"", true, 9},
          EmbreeOptions{"sse2", true, 4}, EmbreeOptions{"sse4.2", true, 2}, EmbreeOptions{"avx", true, 4},
          EmbreeOptions{"", true, 1, 100}}) {
        const auto tracer = make_embree_tracer(options);
        CAPTURE(tracer->name(), options.isa, options.simd, options.splats_per_leaf);
        require_same(closest(*tracer, *load_all(*tracer, city), rays), reference);
    }
}

TEST_CASE("what a ray hits does not depend on tiling by residency: passes over single tiles add up to one") {
    const auto discs = random_discs(3000, 8);
    const MemoryCity city(discs, 16);
    const auto rays = random_rays(discs, 3000, 9);
    const auto tracer = either_tracer();
    const auto all = closest(*tracer, *load_all(*tracer, city), rays);
    std::vector<Hit> in_passes(rays.size());
    for (std::size_t i = city.tiles().size(); i-- > 0;) {
        const TracerTilePtr tile = tracer->load(city.load(i));
        tracer->closest(*tracer->bind({&tile, 1}), rays, in_passes);
    }
    require_same(in_passes, all);
}

TEST_CASE("the nearest hits are the first ones brute force finds, in one pass or tile by tile") {
    const auto discs = random_discs(4000, 10);
    const MemoryCity city(discs, 16);
    const auto rays = random_rays(discs, 2000, 11);
    const auto tracer = either_tracer();
    const float gap_m = 1.0f;
    std::vector<HitList> lists(rays.size()), in_passes(rays.size());
    tracer->nearest(*load_all(*tracer, city), rays, 5, gap_m, lists);
    for (std::uint32_t i = 0; i < city.tiles().size(); ++i) {
        const TracerTilePtr tile = tracer->load(city.load(i));
        tracer->nearest(*tracer->bind({&tile, 1}), rays, 5, gap_m, in_passes);
    }
    const auto truth = brute_force(city, rays, 5);
    std::size_t several = 0;
    for (std::size_t r = 0; r < rays.size(); ++r) {
        INFO("ray " << r);
        std::uint32_t expected = 0;
        while (expected < truth[r].count && truth[r].hits[expected].t <= truth[r].hits[0].t + 4 * gap_m)
            ++expected;
        REQUIRE(lists[r].count == expected);
        for (std::uint32_t i = 0; i < expected; ++i) {
            REQUIRE(lists[r].hits[i].t == truth[r].hits[i].t);
            REQUIRE(lists[r].hits[i].splat_id == truth[r].hits[i].splat_id);
        }
        several += expected > 1;
        require_same({in_passes[r].hits, in_passes[r].count}, {lists[r].hits, lists[r].count});
    }
    CHECK(several > 100);
}

TEST_CASE("of coincident discs the one with the smaller id is hit") {
    std::vector<WorldDisc> discs;
    for (int i = 0; i < 40; ++i)
        discs.push_back({{10.0, 10.0, 5.0}, {0, 0, 1}, 0.5, static_cast<std::uint16_t>(i)});
    const MemoryCity city(discs, 16);
    const auto tracer = either_tracer();
    const std::vector<Ray> rays(33, make_ray({10.1, 10.1, 20}, {0, 0, -1}));
    std::uint64_t smallest = ~std::uint64_t{0};
    for (std::size_t i = 0; i < discs.size(); ++i)
        smallest = std::min(smallest, MemoryCity::id(city.tile(0), i));
    for (const Hit& hit : closest(*tracer, *load_all(*tracer, city), rays)) {
        REQUIRE(hit.splat_id == smallest);
        REQUIRE(hit.range_m == 15.0);
    }
}

TEST_CASE("a disc behind the ray, beyond its range or before t_min is not hit") {
    const MemoryCity city({{{10, 10, 5}, {0, 0, 1}, 1.0}}, 16);
    const auto tracer = either_tracer();
    const TileSetPtr set = load_all(*tracer, city);
    const Vec3d up{0, 0, 1};
    Ray late = make_ray({10, 10, 0}, up);
    late.t_min = 5.5f;
    const std::vector<Ray> rays{make_ray({10, 10, 6}, up), make_ray({10, 10, 0}, up, 4.9), late,
                                make_ray({11.1, 10, 0}, up), make_ray({10, 10, 0}, up, 5.0)};
    const auto hits = closest(*tracer, *set, rays);
    for (std::size_t i = 0; i < 4; ++i) CHECK_FALSE(hits[i].exists());
    CHECK(hits[4].exists());
}

TEST_CASE("rays that are not finite or too long and splats without radius are refused") {
    const MemoryCity city({{{10, 10, 5}, {0, 0, 1}, 1.0}}, 16);
    const auto tracer = either_tracer();
    const TileSetPtr set = load_all(*tracer, city);
    std::vector<Hit> hit(1);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(tracer->closest(*set, std::vector{make_ray({nan, 0, 0}, {0, 0, 1})}, hit), InputError);
    Ray ray = make_ray({0, 0, 0}, {0, 0, 1});
    ray.direction.y = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_AS(tracer->closest(*set, std::vector{ray}, hit), InputError);
    EmbreeOptions short_range;
    short_range.max_range_m = 50;
    const auto nearby = make_embree_tracer(short_range);
    CHECK_THROWS_AS(
        closest(*nearby, *load_all(*nearby, city), std::vector{make_ray({0, 0, 0}, {0, 0, 1}, 51)}),
        InputError);
    short_range.max_range_m = 10001;
    CHECK_THROWS_AS(make_embree_tracer(short_range), UsageError);
    SplatTile empty_splat({0, 0, 0}, 1);
    CHECK_THROWS_AS(tracer->load(std::move(empty_splat)), CorruptionError);
}

TEST_CASE("planes, cylinders and spheres of splats are found within a millimetre of the analytic surface") {
    // Discs on a curved surface lie inside it by r²/2R; radii are chosen so that this is below 0.5 mm.
    std::vector<WorldDisc> discs;
    const Vec3d ball{kEast, kNorth, 10};
    for (int i = 0; i < 60000; ++i) {  // Fibonacci lattice: 4.3 cm apart
        const double z = 1 - 2 * (i + 0.5) / 60000, a = std::fmod(i * 2.399963229728653, 2 * exact::kPi);
        const double r = std::sqrt(1 - z * z);
        const Vec3d n{r * exact::cos(a), r * exact::sin(a), z};
        discs.push_back({ball + n * 3.0, n, 0.05});
    }
    for (int i = 0; i < 210; ++i)
        for (double z = 0; z < 4; z += 0.03) {
            const Vec3d n{exact::cos(2 * exact::kPi * i / 210), exact::sin(2 * exact::kPi * i / 210), 0};
            discs.push_back({Vec3d{kEast + 20, kNorth, z} + n, n, 0.03});
        }
    for (double x = -60; x < 60; x += 0.4)
        for (double y = -60; y < 60; y += 0.4) discs.push_back({{kEast + x, kNorth + y, -2}, {0, 0, 1}, 0.4});
    const MemoryCity city(discs, 25);
    const auto tracer = either_tracer();
    const TileSetPtr set = load_all(*tracer, city);

    std::vector<Ray> rays;
    for (std::uint64_t i = 0; i < 2000; ++i)
        rays.push_back(make_ray({kEast - 30, kNorth - 20, 10},
                                ball + random_direction(23, i) * 2.0 - Vec3d{kEast - 30, kNorth - 20, 10}));
    for (std::uint64_t i = 0; i < 2000; ++i)
        rays.push_back(make_ray({kEast + 35, kNorth + 3, 2}, {-15 + rng::uniform(24, 3 * i, -0.5, 0.5),
                                                              -3 + rng::uniform(24, 3 * i + 1, -0.5, 0.5),
                                                              rng::uniform(24, 3 * i + 2, -1.5, 1.5)}));
    for (std::uint64_t i = 0; i < 2000; ++i)
        rays.push_back(make_ray({kEast, kNorth - 20, -0.5}, {rng::uniform(25, 2 * i, -50, 50),
                                                             rng::uniform(25, 2 * i + 1, -30, 70), -1.5}));
    const auto hits = closest(*tracer, *set, rays);
    for (std::size_t i = 0; i < rays.size(); ++i) {
        INFO("ray " << i);
        REQUIRE(hits[i].exists());
        const Vec3d p = rays[i].origin + vec_cast<double>(rays[i].direction) * hits[i].range_m;
        const Vec3d axis = p - Vec3d{kEast + 20, kNorth, p.z};
        const double off = i < 2000 ? length(p - ball) - 3.0 : i < 4000 ? length(axis) - 1.0 : p.z + 2;
        REQUIRE(std::fabs(off) < 1e-3);
    }
}
