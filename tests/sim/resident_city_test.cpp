#include "trace/resident_city.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "sim/memory_city.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace citysplat;
using namespace citysplat::trace;
using Catch::Contains;
using test::MemoryCity;

namespace {

constexpr double kEast = 652000, kNorth = 6861000;

/// From all along a street to everywhere.
std::vector<Ray> rays_along(double length_m, std::size_t count) {
    std::vector<Ray> rays;
    for (std::size_t i = 0; i < count; ++i) {
        const double a = rng::uniform(1, 2 * i, -3.14159, 3.14159),
                     up = rng::uniform(1, 2 * i + 1, -0.4, 0.4);
        const Vec3d direction = normalized(Vec3d{std::cos(a), std::sin(a), up});
        const double x = length_m * static_cast<double>(i) / static_cast<double>(count);
        rays.push_back({{kEast + x, kNorth, 2}, vec_cast<float>(direction), 0.0f, 60.0f});
    }
    return rays;
}

CacheOptions with_budget(std::uint64_t bytes) {
    CacheOptions options;
    options.budget_bytes = bytes;
    return options;
}

}  // namespace

TEST_CASE("rays meet the same city whatever part of it is resident") {
    const MemoryCity city(test::street(kEast, kNorth, 120), 16);
    const auto tracer = make_group_tracer();
    const auto rays = rays_along(120, 4000);
    // Everything at once, without the class under test.
    const auto reference = make_group_tracer();
    std::vector<TracerTilePtr> tiles;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(reference->load(city.load(i)));
    std::vector<Hit> expected(rays.size());
    reference->closest(*reference->bind(tiles), rays, expected);
    std::uint64_t largest = 0, all = 0, found = 0;
    for (const TileEntry& e : city.tiles()) {
        largest = std::max<std::uint64_t>(largest, tracer->estimated_bytes(e.splats));
        all += tracer->estimated_bytes(e.splats);
    }
    for (const Hit& hit : expected) found += hit.exists();
    REQUIRE(found > 2000);
    for (const std::uint64_t budget : {all, all / 2, 2 * largest, largest}) {
        ResidentCity resident(city, *tracer, with_budget(budget));
        for (int turn = 0; turn < 2; ++turn) {
            std::vector<Hit> hits(rays.size());
            resident.closest(rays, hits, CancelToken());
            std::size_t different = 0;
            for (std::size_t i = 0; i < rays.size(); ++i)
                different += hits[i].splat_id != expected[i].splat_id || hits[i].t != expected[i].t;
            CHECK(different == 0);
        }
        CHECK(resident.statistics().peak_bytes <= budget);
        CHECK((resident.passes() == 2) == (budget == all));
    }
}

TEST_CASE("what cannot be resident is said") {
    MemoryCity city(test::street(kEast, kNorth, 60), 16);
    const auto tracer = make_group_tracer();
    const auto rays = rays_along(60, 200);
    std::vector<Hit> hits(rays.size());
    CHECK_THROWS_WITH(ResidentCity(city, *tracer, with_budget(1000)).closest(rays, hits, CancelToken()),
                      Contains("alone takes") && Contains("--resident"));
    city.damaged.insert(1);
    CHECK_THROWS_AS(ResidentCity(city, *tracer, with_budget(1 << 28)).closest(rays, hits, CancelToken()),
                    CorruptionError);
    CacheOptions options = with_budget(1 << 28);
    options.allow_missing = true;
    ResidentCity resident(city, *tracer, options);
    const std::vector<std::uint32_t> tiles{0, 1, 2};
    int calls = 0;
    const auto missing = resident.visit(tiles, CancelToken(), [&](const ResidentCity::Pass& pass) {
        ++calls;
        CHECK(pass.only());
        CHECK(pass.last);
    });
    CHECK(calls == 1);
    CHECK(missing == std::vector<std::uint32_t>{1});
    CancelToken stop;
    stop.request();
    CHECK_THROWS_AS(resident.visit(tiles, stop, [](const ResidentCity::Pass&) {}), Interrupted);
}
