#include "sim/memory_city.hpp"
#include "view/server/generation_diff.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::view;

namespace {

const CancelToken kGoOn;

/// A city with the facts that a difference needs.
struct Generation {
    test::MemoryCity city;
    CityFacts facts;

    Generation(const std::vector<test::WorldDisc>& discs, double tile_m,
               test::Splits splits = test::Splits::none)
        : city(discs, tile_m, splits) {
        facts.tile_size_m = static_cast<std::int64_t>(tile_m);
        facts.tiles.resize(city.tiles().size());
    }
    ShownCity shown() const { return {city, facts}; }
};

struct Totals {
    std::uint64_t before = 0, after = 0;
};
Totals totals(const std::vector<TileChange>& changes) {
    Totals sum;
    for (const TileChange& c : changes) sum.before += c.only_before, sum.after += c.only_after;
    return sum;
}

}  // namespace

TEST_CASE("splats cancel whatever tiles they lie in") {
    const auto discs = test::street(651000, 6861000, 60);
    const Generation a(discs, 32);
    for (const double tile_m : {16.0, 32.0, 64.0})
        for (const test::Splits splits : {test::Splits::none, test::Splits::mixed}) {
            INFO(tile_m);
            const Generation b(discs, tile_m, splits);
            CHECK(GenerationDiff(a.shown(), b.shown()).changes(kGoOn).empty());
            CHECK(GenerationDiff(b.shown(), a.shown()).changes(kGoOn).empty());
        }
}

TEST_CASE("one attribute that differs is a difference, and two equal splats cancel one of three") {
    std::vector<test::WorldDisc> discs{
        {{1, 2, 0}, {0, 0, 1}, 0.5}, {{40, 2, 1}, {0, 1, 0}, 0.5}, {{70, 2, 1}, {0, 1, 0}, 0.5}};
    const Generation a(discs, 32);
    discs[1].label = 9;
    discs[2].centre.x += 1.0 / 8192;
    const Generation b(discs, 32);
    const auto changes = GenerationDiff(a.shown(), b.shown()).changes(kGoOn);
    REQUIRE(changes.size() == 2);
    for (const TileChange& c : changes) {
        CHECK(c.kind == TileChange::Kind::changed);
        CHECK(c.only_before == 1);
        CHECK(c.only_after == 1);
    }
    const test::WorldDisc one{{1, 2, 0}, {0, 0, 1}, 0.5};
    const Generation three({one, one, one}, 32), two({one, one}, 32);
    CHECK(totals(GenerationDiff(three.shown(), two.shown()).changes(kGoOn)).before == 1);
    CHECK(totals(GenerationDiff(three.shown(), two.shown()).changes(kGoOn)).after == 0);
}

TEST_CASE("tiles are added and removed, and equal objects are not read") {
    const test::WorldDisc near{{1, 2, 0}, {0, 0, 1}, 0.5}, middle{{40, 2, 0}, {0, 0, 1}, 0.5},
        far{{100, 2, 0}, {0, 0, 1}, 0.5};
    Generation a({near, middle}, 32), b({near, far}, 32);
    for (Generation* g : {&a, &b}) g->facts.tiles[0].object = "same";
    const GenerationDiff diff(a.shown(), b.shown());
    CHECK(diff.only_before.tiles().size() == 1);
    const auto changes = diff.changes(kGoOn);
    REQUIRE(changes.size() == 2);
    CHECK(changes[0].kind == TileChange::Kind::removed);
    CHECK(changes[1].kind == TileChange::Kind::added);
    CHECK(totals(changes).before == 1);
    CHECK(totals(changes).after == 1);
}
