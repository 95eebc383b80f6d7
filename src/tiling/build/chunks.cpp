#include "tiling/build/chunks.hpp"

#include "tiling/build/build_inputs.hpp"

#include <algorithm>

namespace citysplat::tiling {

namespace {

/// A chunk is large beside the cost of taking it, and small enough that many workers find one each.
constexpr double kLeastSeconds = 1, kMostSeconds = 30;
constexpr double kWantedChunks = 32;
constexpr std::size_t kMostChunkTiles = 64;

/// Position of a tile's corner on a Z curve over the finest grid. Tiles lie within 2^31 of zero.
std::uint64_t curve_position(const TileKey& tile) {
    const auto spread = [&tile](std::int32_t index) {
        const std::int64_t finest = std::int64_t{index} << (TileGrid::kMaxLevel - tile.level);
        std::uint64_t bits = static_cast<std::uint32_t>(finest + (std::int64_t{1} << 31));
        std::uint64_t result = 0;
        for (int i = 0; i < 32; ++i) result |= (bits >> i & 1) << (2 * i);
        return result;
    };
    return spread(tile.ix) | spread(tile.iy) << 1;
}

}  // namespace

Hash128 request_of(const BuildOptions& options) {
    Hasher hasher;
    hasher.text("citysplat request").text(options.parameters).text(options.classes);
    hasher.number(options.tile_size_m).number(static_cast<std::uint32_t>(options.carve));
    hasher.number(static_cast<std::uint32_t>(options.recalibrate));
    hasher.number(static_cast<std::uint32_t>(options.measure_drift));
    hasher.number(static_cast<std::uint32_t>(options.gate != nullptr));
    if (options.exactly_but) hasher.text("exactly");
    for (const BuildInput& input : options.inputs)
        hasher.text(input_name(input.path)).text(input.trajectory.string()).text(input.reading);
    for (const auto& path : options.remove) hasher.text("remove").text(input_name(path));
    return hasher.finish();
}

void divide_into_chunks(PlanRecord& plan) {
    std::vector<PlannedTile>& tiles = plan.planned;
    std::sort(tiles.begin(), tiles.end(), [](const PlannedTile& a, const PlannedTile& b) {
        const auto at_a = curve_position(a.key), at_b = curve_position(b.key);
        return at_a != at_b ? at_a < at_b : a.key < b.key;
    });
    double total_s = 0;
    for (const PlannedTile& tile : tiles) total_s += plan.costs.seconds_of(tile.points_at_most);
    const double most_s = std::clamp(total_s / kWantedChunks, kLeastSeconds, kMostSeconds);
    struct Chunk {
        double seconds = 0;
        std::vector<PlannedTile> tiles;
    };
    std::vector<Chunk> chunks;
    for (PlannedTile& tile : tiles) {
        const double seconds = plan.costs.seconds_of(tile.points_at_most);
        if (chunks.empty() || chunks.back().seconds + seconds > most_s ||
            chunks.back().tiles.size() == kMostChunkTiles)
            chunks.emplace_back();
        chunks.back().seconds += seconds;
        chunks.back().tiles.push_back(std::move(tile));
    }
    std::stable_sort(chunks.begin(), chunks.end(),
                     [](const Chunk& a, const Chunk& b) { return a.seconds > b.seconds; });
    tiles.clear();
    plan.chunk_ends.clear();
    for (Chunk& chunk : chunks) {
        std::move(chunk.tiles.begin(), chunk.tiles.end(), std::back_inserter(tiles));
        plan.chunk_ends.push_back(static_cast<std::uint32_t>(tiles.size()));
    }
}

bool same_work(const PlanRecord& a, const PlanRecord& b) {
    const GenerationRow &x = a.draft.generation, &y = b.draft.generation;
    return a.carve == b.carve && x.id == y.id && x.parameters_key == y.parameters_key &&
           x.tile_size_m == y.tile_size_m && x.parameters == y.parameters && x.classes == y.classes &&
           x.findings_of == y.findings_of && x.findings == y.findings &&
           std::equal(a.draft.inputs.begin(), a.draft.inputs.end(), b.draft.inputs.begin(),
                      b.draft.inputs.end(),
                      [](const auto& p, const auto& q) {
                          return p.identity == q.identity && p.row.path == q.row.path;
                      }) &&
           std::equal(a.planned.begin(), a.planned.end(), b.planned.begin(), b.planned.end(),
                      [](const PlannedTile& p, const PlannedTile& q) { return p.key == q.key; });
}

}  // namespace citysplat::tiling
