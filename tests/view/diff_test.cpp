#include "sim/memory_city.hpp"
#include "view/server/generation_diff.hpp"
#include "view/server/shown_set.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

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

TEST_CASE("an equal splat in a neighbouring tile is no difference, however many tiles have it") {
    // A disc whose centre lies just beyond the edge belongs to the tile of the point that it grew from: which
    // of two tiles that is may differ between generations.
    const test::WorldDisc at_edge{{31.9, 2, 0}, {0, 0, 1}, 0.5}, left{{1, 2, 0}, {0, 0, 1}, 0.5},
        right{{40, 2, 0}, {0, 0, 1}, 0.5}, other{{33, 5, 0}, {0, 0, 1}, 0.5};
    struct Tiles final : TileSource {
        std::vector<TileEntry> entries;
        std::vector<std::unique_ptr<test::MemoryCity>> cities;
        ClassMap map;
        /// Each list of discs becomes one tile of 32 m.
        explicit Tiles(const std::vector<std::vector<test::WorldDisc>>& lists) {
            for (std::size_t i = 0; i < lists.size(); ++i) {
                cities.push_back(std::make_unique<test::MemoryCity>(lists[i], 512));
                entries.push_back(cities[i]->tiles()[0]);
                entries.back().key = {0, static_cast<std::int32_t>(i), 0};
            }
        }
        std::span<const TileEntry> tiles() const override { return entries; }
        SplatTile load(std::size_t i) const override { return cities[i]->load(0); }
        const ClassMap& classes() const override { return map; }
    };
    CityFacts facts;
    facts.tile_size_m = 32;
    const auto compared = [&](const Tiles& a, const Tiles& b) {
        return totals(GenerationDiff({a, facts}, {b, facts}).changes(kGoOn));
    };
    const Tiles first({{left, at_edge}, {right}}), second({{left}, {right, at_edge}});
    CHECK(compared(first, second).before == 0);
    CHECK(compared(first, second).after == 0);
    // Two of them in two tiles against one: one is left, and not none.
    const Tiles twice({{left, at_edge}, {right, at_edge}});
    CHECK(compared(twice, second).before == 1);
    CHECK(compared(second, twice).after == 1);
    CHECK(compared(second, twice).before == 0);
    const Tiles thrice({{left, at_edge, other}, {right, at_edge, at_edge}}), once({{at_edge, left}, {right}});
    CHECK(compared(thrice, once).before == 3);
    CHECK(compared(once, thrice).after == 3);
    CHECK(compared(once, thrice).before == 0);
}

TEST_CASE("what is open can be shown while generations are compared") {
    struct Barrier {
        std::atomic<bool> reached{false}, open{false};
    };
    /// A city whose tiles are read when the barrier is open.
    struct Gated final : TileSource {
        const test::MemoryCity& city;
        Barrier& barrier;
        Gated(const test::MemoryCity& c, Barrier& b) : city(c), barrier(b) {}
        std::span<const TileEntry> tiles() const override { return city.tiles(); }
        SplatTile load(std::size_t i) const override {
            barrier.reached = true;
            while (!barrier.open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return city.load(i);
        }
        const ClassMap& classes() const override { return city.classes(); }
    };
    const auto facts_of = [](const Generation& of, std::int64_t number) {
        CityFacts facts = of.facts;
        facts.generation = number;
        facts.digest = std::to_string(number);
        return facts;
    };
    struct Source final : GenerationSource {
        std::function<Opened(std::int64_t)> opens;
        std::vector<GenerationFacts> list() const override { return {}; }
        Opened open(std::int64_t number) const override { return opens(number); }
    };
    const Generation earlier({{{1, 2, 0}, {0, 0, 1}, 0.5}}, 32), later({{{40, 2, 0}, {0, 0, 1}, 0.5}}, 32);
    Barrier barrier;
    Source source;
    source.opens = [&](std::int64_t number) -> GenerationSource::Opened {
        return {std::make_unique<Gated>(earlier.city, barrier), facts_of(earlier, number)};
    };
    const CityFacts facts = facts_of(later, 2);
    ShownSets sets(std::make_shared<ShownGeneration>(ShownCity{later.city, facts}, splat::PyramidOptions{},
                                                     std::uint64_t{256} << 20),
                   &source, {}, std::uint64_t{256} << 20);

    auto diff = std::async(std::launch::async, [&] { return sets.diff(1, 2, kGoOn); });
    while (!barrier.reached) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto shown = std::async(std::launch::async, [&] {
        return sets.generation(2) == sets.first() && sets.levels(sets.generation(1)->key) != nullptr;
    });
    // Only so that a test that fails ends.
    CHECK(shown.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    barrier.open = true;
    CHECK(shown.get());
    const auto compared = diff.get();
    REQUIRE(compared);
    CHECK(sets.diff(1, 2, kGoOn) == compared);
    CHECK(sets.levels(compared->key_before) != nullptr);
}
