#include "view/server/ground_message.hpp"

#include "core/math/lattice.hpp"
#include "model/tile_grid.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <vector>

namespace citysplat::view {

namespace {

constexpr std::uint32_t kMagic = 0x52475343, kVersion = 1;  // "CSGR"
constexpr int kAcross = Provenance::kCellsAcross;
constexpr std::int64_t kCell = 4 * kLatticePerMetre, kSquare = kAcross * kCell;

/// Input in the low, generation in the high half of each word.
using Cells = std::array<std::uint32_t, std::size_t{kAcross} * kAcross>;
using Ground = std::map<std::pair<std::int32_t, std::int32_t>, Cells>;

Cells& square_at(Ground& ground, std::int64_t x, std::int64_t y) {
    const auto [at, is_new] =
        ground.try_emplace({static_cast<std::int32_t>(x), static_cast<std::int32_t>(y)});
    if (is_new) at->second.fill(0xffffffffu);
    return at->second;
}

/// Every cell whose middle lies in the core of a tile has the generation of that tile, as its place among
/// those that made tiles.
void add_generations(const ShownCity& city, Ground& ground) {
    std::vector<std::int64_t> numbers;
    for (const TileFacts& tile : city.facts.tiles) numbers.push_back(tile.built_in);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (city.facts.tile_size_m <= 0) return;
    const TileGrid grid(static_cast<double>(city.facts.tile_size_m));
    const std::size_t tiles = std::min(city.facts.tiles.size(), city.tiles.tiles().size());
    for (std::size_t i = 0; i < tiles; ++i) {
        const LatticeBox core = grid.core(city.tiles.tiles()[i].key);
        const auto rank =
            std::lower_bound(numbers.begin(), numbers.end(), city.facts.tiles[i].built_in) - numbers.begin();
        const auto first = [](std::int64_t edge) { return floor_div(edge + kCell / 2 - 1, kCell); };
        for (std::int64_t x = first(core.min_x); x < first(core.max_x); ++x)
            for (std::int64_t y = first(core.min_y); y < first(core.max_y); ++y) {
                const std::int64_t across = floor_div(x, kAcross), up = floor_div(y, kAcross);
                std::uint32_t& cell = square_at(
                    ground, across,
                    up)[static_cast<std::size_t>((y - up * kAcross) * kAcross + x - across * kAcross)];
                cell = (cell & 0xffffu) | static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(rank, 0xfffe))
                                              << 16;
            }
    }
}

void append(std::string& out, std::span<const std::uint32_t> words) {
    out.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
}

}  // namespace

Response ground_response(const ShownCity& city) {
    Ground ground;
    if (city.provenance)
        for (const Provenance::Square& square : city.provenance->squares()) {
            Cells& cells = square_at(ground, square.x, square.y);
            for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = 0xffff0000u | square.inputs[i];
        }
    add_generations(city, ground);
    Response response;
    response.headers = {{"Content-Type", "application/octet-stream"}, {"Cache-Control", "no-store"}};
    append(response.body, std::array{kMagic, kVersion, static_cast<std::uint32_t>(ground.size()), 0u});
    for (const auto& [place, cells] : ground)
        append(response.body,
               std::array{static_cast<std::uint32_t>(place.first), static_cast<std::uint32_t>(place.second)});
    for (const auto& [place, cells] : ground) append(response.body, cells);
    return response;
}

}  // namespace citysplat::view
