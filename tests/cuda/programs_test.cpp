#include "cuda/on_cpu/programs.hpp"

#include "cuda/splat_columns_hd.hpp"
#include "cuda/street.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace citysplat;
using namespace citysplat::gpu;

TEST_CASE("the decode kernel makes of the columns what the CPU makes of them", "[gpu]") {
    const test::Street street(30, 1, 1, 777);
    const SplatTile& tile = street.tiles[0];
    std::vector<trace::TraceDisc> discs(tile.size() + 1);
    std::vector<trace::SplatFacts> facts(tile.size() + 1);
    std::vector<DiscBox> boxes(tile.size() + 1);
    discs.back().label = 0x1234567;
    const SplatColumns columns{tile.x().data(),         tile.y().data(),         tile.z().data(),
                               tile.normal().data(),    tile.radius().data(),    tile.label().data(),
                               tile.intensity().data(), tile.incidence().data(), tile.frame().origin()};
    on_cpu::run_decode_splats(columns, static_cast<std::uint32_t>(tile.size()),
                              {discs.data(), facts.data(), boxes.data()});
    CHECK(discs.back().label == 0x1234567);  // threads beyond the count do nothing
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Disc disc = tile.disc(i);
        const Splat splat = tile.splat(i);
        CHECK(discs[i].centre.x == disc.centre.x);
        CHECK(discs[i].normal.z == disc.normal.z);
        CHECK(discs[i].radius_squared == disc.radius * disc.radius);
        CHECK(discs[i].label == splat.label);
        CHECK(facts[i].id == splat_id(identity(splat, tile.frame().origin())));
        CHECK(facts[i].normal == splat.normal);
        CHECK(facts[i].intensity == splat.intensity);
        CHECK(facts[i].acquired_range_m == splat.range);
        CHECK(facts[i].acquired_incidence == splat.incidence);
        const Vec3f reach = disc_reach(disc.normal, disc.radius);
        CHECK(boxes[i].min_x < disc.centre.x - reach.x);
        CHECK(boxes[i].max_y > disc.centre.y + reach.y);
        CHECK(boxes[i].max_z - boxes[i].min_z < 2 * reach.z + 3 * kBoxSlack_m);
    }
}

namespace {

/// Three tiles of which only the ids of splats are known: splats 2k and 2k + 1 are alike.
struct Names {
    std::vector<trace::SplatFacts> facts[3];
    trace::TileView tiles[3];
    SceneTables tables{tiles, nullptr};

    Names() {
        for (std::uint32_t slot = 0; slot < 3; ++slot) {
            for (std::uint32_t i = 0; i < 12; ++i) facts[slot].push_back({rng::bits(77, i / 2), 0, 0, 0, 0});
            tiles[slot] = {nullptr, facts[slot].data(), {0, 0, 0}};
        }
    }
};

}  // namespace

TEST_CASE("the nearest hits are kept in order, once each, however they come", "[gpu]") {
    const Names names;
    // Three and three are equally far, and among those are twins, in one tile and in two.
    std::vector<Candidate> all;
    for (std::uint32_t i = 0; i < 12; ++i)
        all.push_back({1.0f + 0.05f * static_cast<float>(i / 3), {i % 2, i}});
    auto sorted = all;
    std::sort(sorted.begin(), sorted.end(),
              [&](auto& a, auto& b) { return comes_before(a, b, names.tables); });
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        auto order = all;
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng::bits(seed, i) % i]);
        Nearest nearest{};
        float bound = 0;
        for (const Candidate& c : order) {
            bound = offer(nearest, c, {5, 10.0f}, names.tables);
            CHECK(offer(nearest, c, {5, 10.0f}, names.tables) == bound);
        }
        REQUIRE(nearest.count == 5);
        for (std::uint32_t k = 0; k < 5; ++k) {
            CHECK(nearest.hits[k].t == sorted[k].t);
            CHECK(id_of(names.tiles, nearest.hits[k].place) == id_of(names.tiles, sorted[k].place));
        }
        CHECK(bound == sorted[4].t);
    }
}

TEST_CASE("hits out of reach of the first are not told", "[gpu]") {
    const Names names;
    const Wanted wanted{4, 0.3f};
    Nearest nearest{};
    CHECK(offer(nearest, {30, {0, 1}}, wanted, names.tables) == 30.0f + 0.3f);
    CHECK(offer(nearest, {10, {0, 2}}, wanted, names.tables) == 10.0f + 0.3f);
    offer(nearest, {10.2f, {0, 3}}, wanted, names.tables);
    CHECK(nearest.count == 3);
    CHECK(count_within_reach(nearest, 0.3f) == 2);
    CHECK(count_within_reach(Nearest{}, 0.3f) == 0);
}

TEST_CASE("the double of OptiX refuses what OptiX would not do", "[gpu]") {
    CHECK_THROWS_AS(on_cpu::current().in_intersection(), std::logic_error);
    CHECK_THROWS_AS(on_cpu::accel_at(12345), std::logic_error);
    on_cpu::RayState ray{};
    ray.t_min = 1;
    ray.t_max = 5;
    CHECK_FALSE(ray.report(0.5f, 0));
    CHECK_FALSE(ray.report(5.5f, 0));
    CHECK(ray.report(3, 0));
    CHECK(ray.t_max == 3);
    CHECK_THROWS_AS(ray.report(INFINITY, 0), std::logic_error);
    CHECK_THROWS_AS(ray.report(2, 200), std::logic_error);
}
