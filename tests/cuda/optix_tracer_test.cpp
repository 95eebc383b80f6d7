#include "cuda/optix_tracer.hpp"

#include "core/error.hpp"
#include "cuda/batch_tracer.hpp"
#include "cuda/rig.hpp"
#include "cuda/street.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace citysplat;
using namespace citysplat::test;

namespace {

std::vector<trace::Hit> closest(const trace::Tracer& tracer, const trace::TileSet& set,
                                std::span<const trace::Ray> rays) {
    std::vector<trace::Hit> hits(rays.size());
    tracer.closest(set, rays, hits);
    return hits;
}

std::vector<trace::HitList> nearest(const trace::Tracer& tracer, const trace::TileSet& set,
                                    std::span<const trace::Ray> rays, std::uint32_t depth, float gap_m) {
    std::vector<trace::HitList> lists(rays.size());
    tracer.nearest(set, rays, depth, gap_m, lists);
    return lists;
}

std::size_t differences(std::span<const trace::Hit> a, std::span<const trace::Hit> b) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.size(); ++i) n += !same(a[i], b[i]);
    return n;
}

std::size_t differences(std::span<const trace::HitList> a, std::span<const trace::HitList> b) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        n += a[i].count != b[i].count ||
             differences(std::span(a[i].hits, a[i].count), std::span(b[i].hits, b[i].count));
    return n;
}

/// Rays whose hits differ between the device code on the CPU, the CPU's own tracer and Embree.
std::size_t disagreements(const Street& street, std::span<const trace::Ray> rays,
                          const on_cpu::Manners& manners) {
    on_cpu::Script script;
    script.manners = manners;
    Rig rig(script);
    const auto embree = trace::make_embree_tracer();
    const auto groups = trace::make_group_tracer();
    const auto gpu_set = rig.tracer->bind(load_all(*rig.tracer, street));
    const auto cpu_set = groups->bind(load_all(*groups, street));
    const auto embree_set = embree->bind(load_all(*embree, street));
    const auto expected = closest(*embree, *embree_set, rays);
    const auto expected_lists = nearest(*embree, *embree_set, rays, 5, 0.1f);
    REQUIRE(std::count_if(expected.begin(), expected.end(), [](auto& h) { return h.exists(); }) >
            static_cast<std::ptrdiff_t>(rays.size() / 3));
    return differences(closest(*rig.tracer, *gpu_set, rays), expected) +
           differences(closest(*groups, *cpu_set, rays), expected) +
           differences(nearest(*rig.tracer, *gpu_set, rays, 5, 0.1f), expected_lists) +
           differences(nearest(*groups, *cpu_set, rays, 5, 0.1f), expected_lists);
}

}  // namespace

TEST_CASE("the device code, the CPU's tracer and Embree find the same hits, bit for bit", "[gpu]") {
    const Street street(1, 4, 3, 4000);
    CHECK(disagreements(street, street.rays(2, 20'000), {}) == 0);
}

TEST_CASE("the order of traversal and repeated questions change nothing", "[gpu]") {
    const Street street(3, 3, 2, 4000);
    const auto rays = street.rays(4, 3'000);
    for (std::uint64_t seed = 1; seed <= 4; ++seed)
        CHECK(disagreements(street, rays, {seed, 0.5, false}) == 0);
}

TEST_CASE("millions of rays agree with Embree", "[gpu][slow]") {
    const Street street(5, 6, 6, 12'000);
    for (std::uint64_t part = 0; part < 10; ++part)
        CHECK(disagreements(street, street.rays(100 + part, 200'000), {part, 0.1, true}) == 0);
}

TEST_CASE("hits lie where double precision puts them", "[gpu]") {
    const Street street(6, 2, 2, 300);
    const auto rays = street.rays(7, 2'000);
    Rig rig;
    const auto set = rig.tracer->bind(load_all(*rig.tracer, street));
    const auto hits = closest(*rig.tracer, *set, rays);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < rays.size(); ++i) {
        double best = rays[i].t_max;
        const Vec3d d = vec_cast<double>(rays[i].direction);
        for (const SplatTile& tile : street.tiles)
            for (std::size_t k = 0; k < tile.size(); ++k) {
                const Disc disc = tile.disc(k);
                const Vec3d origin = rays[i].origin - Vec3d{static_cast<double>(tile.frame().x_m),
                                                            static_cast<double>(tile.frame().y_m),
                                                            static_cast<double>(tile.frame().z_m)};
                const Vec3d n = vec_cast<double>(disc.normal), c = vec_cast<double>(disc.centre) - origin;
                const double t = dot(n, c) / dot(n, d);
                if (t > rays[i].t_min && t < best && length(d * t - c) < static_cast<double>(disc.radius))
                    best = t;
            }
        const double found = hits[i].exists() ? hits[i].range_m : static_cast<double>(rays[i].t_max);
        wrong += std::abs(found - best) > 1e-3;
    }
    // A ray that passes a rim within a rounding error may go either way.
    CHECK(wrong <= 1);
}

TEST_CASE("tiles in several sets give what one set gives, in any order", "[gpu]") {
    const Street street(8, 3, 2, 800);
    Rig rig;
    const auto tiles = load_all(*rig.tracer, street);
    const auto whole = rig.tracer->bind(tiles);
    // A long ray that is cut at a near hit must not become a short one, which starts at another place.
    for (const float range_m : {80.0f, 1500.0f}) {
        const auto rays = street.rays(9, 3'000, range_m);
        std::vector<trace::Hit> hits(rays.size());
        std::vector<trace::HitList> lists(rays.size());
        for (std::size_t i : {4u, 0u, 5u, 2u, 1u, 3u}) {
            const auto one = rig.tracer->bind(std::span(&tiles[i], 1));
            rig.tracer->closest(*one, rays, hits);
            rig.tracer->nearest(*one, rays, 4, 0.2f, lists);
        }
        CHECK(differences(hits, closest(*rig.tracer, *whole, rays)) == 0);
        CHECK(differences(lists, nearest(*rig.tracer, *whole, rays, 4, 0.2f)) == 0);
    }
}

TEST_CASE("tiles kilometres apart are traced in scenes of their own", "[gpu]") {
    Street street(10, 2, 1, 600);
    Street far(11, 1, 1, 600);
    const auto rays = street.rays(12, 2'000);
    Rig rig;
    auto tiles = load_all(*rig.tracer, street);
    const auto expected = closest(*rig.tracer, *rig.tracer->bind(tiles), rays);
    for (std::int64_t east_m : {-70'000, -4'500, 9'000, 250'000}) {
        std::vector<Splat> splats(far.tiles[0].size());
        for (std::size_t i = 0; i < splats.size(); ++i) splats[i] = far.tiles[0].splat(i);
        const TileFrame frame{Street::kEast_m + east_m, Street::kNorth_m, Street::kUp_m};
        tiles.push_back(rig.tracer->load(SplatTile(frame, splats)));
    }
    std::reverse(tiles.begin(), tiles.end());
    CHECK(differences(closest(*rig.tracer, *rig.tracer->bind(tiles), rays), expected) == 0);

    auto there = rays;
    for (trace::Ray& ray : there) ray.origin.x += 250'000;
    const auto hits = closest(*rig.tracer, *rig.tracer->bind(tiles), there);
    CHECK(std::any_of(hits.begin(), hits.end(), [](auto& hit) { return hit.exists(); }));
}

TEST_CASE("an empty tile and an empty set are met by no ray", "[gpu]") {
    const Street street(13, 1, 1, 100);
    const auto rays = street.rays(14, 100);
    Rig rig;
    const auto empty = rig.tracer->load(SplatTile({0, 0, 0}, std::span<const Splat>{}));
    CHECK(empty->bytes() == 0);
    CHECK(rig.tracer->estimated_bytes(0) == 0);
    CHECK_THROWS_AS(rig.tracer->estimated_bytes(5'000'000'000), ResourceError);
    CHECK(rig.tracer->batch_rays(rays) == 500);
    for (const auto& set : {rig.tracer->bind({}), rig.tracer->bind(std::span(&empty, 1))}) {
        for (const trace::Hit& hit : closest(*rig.tracer, *set, rays)) CHECK_FALSE(hit.exists());
        for (const trace::HitList& list : nearest(*rig.tracer, *set, rays, 3, 0.1f)) CHECK(list.count == 0);
    }
}

TEST_CASE("a splat without a radius is refused", "[gpu]") {
    Rig rig;
    SplatTile tile({0, 0, 0}, std::size_t{3});
    CHECK_THROWS_AS(rig.tracer->load(std::move(tile)), CorruptionError);
}

TEST_CASE("what a tile takes is estimated from above and comes back when it goes", "[gpu]") {
    const Street street(15, 2, 2, 500);
    for (bool compacts : {true, false}) {
        on_cpu::Script script;
        script.compacts = compacts;
        Rig rig(script);
        const std::size_t at_rest = rig.script->live_bytes;
        {
            auto tiles = load_all(*rig.tracer, street);
            std::size_t sum = 0;
            for (const auto& tile : tiles) {
                CHECK(tile->bytes() <= rig.tracer->estimated_bytes(500));
                CHECK(tile->bytes() >= 500 * 40);
                sum += tile->bytes();
            }
            CHECK(rig.tracer->resident_bytes() == sum);
            CHECK(rig.script->live_bytes == at_rest + sum);
            const auto set = rig.tracer->bind(tiles);
            tiles.clear();
            CHECK(rig.tracer->resident_bytes() == sum);  // the set keeps them
        }
        CHECK(rig.tracer->resident_bytes() == 0);
        CHECK(rig.script->live_bytes == at_rest);
    }
}

TEST_CASE("tiles outlive the tracer that made them", "[gpu]") {
    const Street street(16, 1, 1, 50);
    auto script = std::make_shared<on_cpu::Script>();
    std::vector<trace::TracerTilePtr> tiles;
    {
        const auto tracer = gpu::make_optix_tracer(std::make_unique<on_cpu::CpuDevice>(script), Rig::small());
        tiles = load_all(*tracer, street);
    }
    CHECK(script->live_bytes > 0);
    tiles.clear();
    CHECK(script->live_bytes == 0);
    CHECK(script->live_pinned == 0);
}

TEST_CASE("a budget that is used up is told with its books, and later loads work again", "[gpu]") {
    const Street street(17, 1, 1, 2000);
    gpu::OptixOptions options = Rig::small();
    options.memory_bytes = 900'000;
    Rig rig({}, options);
    std::vector<trace::TracerTilePtr> tiles;
    std::string message;
    try {
        for (std::uint32_t i = 0; i < 100; ++i) tiles.push_back(rig.tracer->load(copy(street.tiles[0])));
    } catch (const ResourceError& e) {
        message = e.what();
    }
    CHECK_THAT(message, Catch::Contains("GPU memory is used up") && Catch::Contains("splats") &&
                            Catch::Contains("--resident"));
    CHECK(tiles.size() > 1);
    CHECK(rig.script->peak_bytes <= 900'000);
    const std::size_t before = tiles.size();
    tiles.pop_back();
    tiles.push_back(rig.tracer->load(copy(street.tiles[0])));
    CHECK(tiles.size() == before);
}

TEST_CASE("whichever call to the device fails, the error is told, nothing leaks, and it works afterwards",
          "[gpu]") {
    const Street street(18, 2, 1, 150);
    const auto rays = street.rays(19, 1'300);
    const auto work = [&](const trace::Tracer& tracer) {
        const auto set = tracer.bind(load_all(tracer, street));
        auto hits = closest(tracer, *set, rays);
        for (const auto& list : nearest(tracer, *set, rays, 2, 0.1f))
            hits.push_back(list.count ? list.hits[0] : trace::Hit{});
        return hits;
    };
    Rig sound;
    const auto expected = work(*sound.tracer);
    const std::uint64_t calls = sound.script->calls;
    REQUIRE(calls > 60);

    for (const bool lazy : {true, false})
        for (std::uint64_t n = 0; n < calls; ++n) {
            auto script = std::make_shared<on_cpu::Script>();
            script->lazy = lazy;
            script->fail_at = n;
            std::string message;
            std::unique_ptr<trace::Tracer> tracer;
            try {
                tracer = gpu::make_optix_tracer(std::make_unique<on_cpu::CpuDevice>(script), Rig::small());
                work(*tracer);
            } catch (const Error& e) {
                message = e.what();
            }
            INFO("call " << n << " (" << script->failed << ")");
            CHECK_THAT(message, Catch::Contains("device") || Catch::Contains("memory"));
            if (tracer) {
                CHECK(tracer->resident_bytes() == 0);
                CHECK(differences(work(*tracer), expected) == 0);
            }
            tracer.reset();
            CHECK(script->live_bytes == 0);
            CHECK(script->live_pinned == 0);
        }
}

TEST_CASE("threads load and trace at once without disturbing each other", "[gpu]") {
    const Street street(20, 2, 2, 400);
    const auto rays = street.rays(21, 3'000);
    Rig rig;
    const auto tiles = load_all(*rig.tracer, street);
    const auto set = rig.tracer->bind(tiles);
    const auto expected = closest(*rig.tracer, *set, rays);
    std::atomic<std::size_t> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 3; ++round) {
                if (t == 0) {
                    const auto again = load_all(*rig.tracer, street);
                    wrong += differences(closest(*rig.tracer, *rig.tracer->bind(again), rays), expected);
                } else {
                    wrong += differences(closest(*rig.tracer, *set, rays), expected);
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}
