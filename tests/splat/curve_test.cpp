#include "splat/search/curve.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

using namespace citysplat::splat;

TEST_CASE("the Hilbert curve visits every cell once and steps to a neighbour each time") {
    constexpr std::uint32_t kSide = 16;
    struct Visit {
        std::uint64_t key;
        std::array<int, 3> cell;
    };
    std::vector<Visit> visits;
    for (std::uint32_t z = 0; z < kSide; ++z)
        for (std::uint32_t y = 0; y < kSide; ++y)
            for (std::uint32_t x = 0; x < kSide; ++x)
                visits.push_back({hilbert_key(x, y, z, 4),
                                  {static_cast<int>(x), static_cast<int>(y), static_cast<int>(z)}});
    std::sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) { return a.key < b.key; });
    for (std::size_t i = 0; i < visits.size(); ++i) {
        REQUIRE(visits[i].key == i);
        if (i == 0) continue;
        int steps = 0;
        for (std::size_t a = 0; a < 3; ++a) steps += std::abs(visits[i].cell[a] - visits[i - 1].cell[a]);
        REQUIRE(steps == 1);
    }
}

TEST_CASE("sorting by key is stable and uses all the bits it is told to") {
    std::vector<KeyedIndex> entries;
    for (std::uint32_t i = 0; i < 5000; ++i) entries.push_back({(i * 2654435761ull % 97) << 40 | i % 3, i});
    auto expected = entries;
    std::stable_sort(expected.begin(), expected.end(),
                     [](const KeyedIndex& a, const KeyedIndex& b) { return a.key < b.key; });
    sort_by_key(entries, 63);
    for (std::size_t i = 0; i < entries.size(); ++i) REQUIRE(entries[i].index == expected[i].index);
}
