#include "trace/groups/tile_memory.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

using citysplat::trace::TileMemory;

namespace {

struct alignas(64) Line {
    std::uint32_t words[16];
};

std::size_t resident_bytes() {
    std::size_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * 4096;
}

}  // namespace

TEST_CASE("the arrays of a tile lie one behind the other, aligned, whatever the size of the tile") {
    for (const std::size_t lines : {1u, 37u, 4'000u, 40'000u, 300'000u}) {
        const std::size_t odd = 2 * lines + 1;
        TileMemory memory(TileMemory::room<Line>(lines) + TileMemory::room<std::uint16_t>(odd) +
                          TileMemory::room<Line>(1));
        const auto first = memory.cut<Line>(lines);
        const auto second = memory.cut<std::uint16_t>(odd);
        const auto third = memory.cut<Line>(1);
        CHECK(memory.cut<Line>(0).data() == nullptr);
        CHECK(reinterpret_cast<std::uintptr_t>(first.data()) % alignof(Line) == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(second.data()) % alignof(Line) == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(third.data()) % alignof(Line) == 0);
        std::fill(first.begin(), first.end(), Line{{1, 2, 3}});
        std::fill(second.begin(), second.end(), std::uint16_t{4});
        third[0] = Line{{5}};
        // Moving the memory leaves the arrays where they are.
        const TileMemory moved = std::move(memory);
        CHECK(std::all_of(first.begin(), first.end(), [](const Line& l) { return l.words[2] == 3; }));
        CHECK(std::all_of(second.begin(), second.end(), [](std::uint16_t n) { return n == 4; }));
        CHECK(third[0].words[0] == 5);
        CHECK(reinterpret_cast<const std::byte*>(third.data() + 1) -
                  reinterpret_cast<const std::byte*>(first.data()) <=
              static_cast<std::ptrdiff_t>(moved.bytes()));
    }
    CHECK(TileMemory(0).bytes() == 0);
}

TEST_CASE("a tile that goes gives back what it took, also between tiles that stay") {
    constexpr std::size_t kTiles = 64, kBytes = (std::size_t{3} << 20) + 5000;
    std::vector<TileMemory> tiles;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < kTiles; ++i) {
        tiles.emplace_back(kBytes);
        CHECK(tiles.back().bytes() == TileMemory::taken(kBytes));
        taken += tiles.back().bytes();
        const auto bytes = tiles.back().cut<std::uint8_t>(kBytes);
        std::fill(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(i));
    }
    const std::size_t with_all = resident_bytes();
    for (std::size_t i = 0; i < kTiles; i += 2) tiles[i] = TileMemory();
    CHECK(resident_bytes() + taken / 2 <= with_all + taken / 20);
}
