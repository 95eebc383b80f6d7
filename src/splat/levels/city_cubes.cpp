#include "splat/levels/city_cubes.hpp"

#include "core/error.hpp"

#include <cmath>
#include <span>

namespace citysplat::splat {

namespace {

/// Splats and vertices lie within 1 km of the frame of their tile, which lies at its corner; tiles are 512 m
/// at most.
constexpr std::int64_t kMostColumnsAcross = 48;
struct ColumnRange {
    std::int64_t min_x, min_y, max_x, max_y;
};

std::int64_t column_at(double metres) {
    return static_cast<std::int64_t>(std::floor(metres)) >> (side_shift(0) - kLatticeBits);
}

ColumnRange columns_of(const TileEntry& tile) {
    const ColumnRange range{column_at(tile.min.x), column_at(tile.min.y), column_at(tile.max.x),
                            column_at(tile.max.y)};
    if (range.max_x - range.min_x >= kMostColumnsAcross || range.max_y - range.min_y >= kMostColumnsAcross)
        throw CorruptionError("tile " + tile.key.text() + ": its box in the catalog is larger than any tile");
    return range;
}

/// The coarsest cubes: of the first level at which eight or fewer hold the whole city. The box around all
/// of it is the same in every tiling.
std::vector<CubeId> roots_of(std::span<const TileEntry> tiles) {
    if (tiles.empty()) return {};
    Vec3d min = tiles[0].min, max = tiles[0].max;
    for (const TileEntry& tile : tiles) {
        min = {std::min(min.x, tile.min.x), std::min(min.y, tile.min.y), std::min(min.z, tile.min.z)};
        max = {std::max(max.x, tile.max.x), std::max(max.y, tile.max.y), std::max(max.z, tile.max.z)};
    }
    const auto point = [](Vec3d v) {
        return LatticePoint{to_lattice(v.x), to_lattice(v.y), to_lattice(v.z)};
    };
    for (int level = kLastCellLevel + 1;; ++level) {
        const CubeId a = cube_of(point(min), level), b = cube_of(point(max), level);
        const bool fits = b.x - a.x <= 1 && b.y - a.y <= 1 && b.z - a.z <= 1;
        if (!fits && level < kTopLevel) continue;
        std::vector<CubeId> roots;
        for (std::int32_t x = a.x; x <= b.x; ++x)
            for (std::int32_t y = a.y; y <= b.y; ++y)
                for (std::int32_t z = a.z; z <= b.z; ++z) roots.push_back({level, x, y, z});
        return roots;
    }
}

}  // namespace

CityCubes::CityCubes(const TileSource& city) : roots_(roots_of(city.tiles())) {
    for (std::uint32_t tile = 0; tile < city.tiles().size(); ++tile) {
        const TileEntry& entry = city.tiles()[tile];
        const ColumnRange range = columns_of(entry);
        lowest_ = tile == 0 ? column_at(entry.min.z) : std::min(lowest_, column_at(entry.min.z));
        highest_ = tile == 0 ? column_at(entry.max.z) : std::max(highest_, column_at(entry.max.z));
        for (std::int64_t x = range.min_x; x <= range.max_x; ++x)
            for (std::int64_t y = range.min_y; y <= range.max_y; ++y)
                tiles_[{static_cast<std::int32_t>(x), static_cast<std::int32_t>(y)}].push_back(tile);
    }
    for (const auto& [column, tiles] : tiles_)
        for (int level = kLastCellLevel + 1; !roots_.empty() && level <= roots_[0].level; ++level) {
            const int halvings = level - kLastCellLevel;
            footprints_[level].insert({column.first >> halvings, column.second >> halvings});
        }
}

bool CityCubes::may_exist(const CubeId& id) const {
    if (roots_.empty() || id.level < 0 || id.level > roots_[0].level) return false;
    // A pyramid is as high as the city is wide, and nearly all of it is air.
    const int above_cells = std::max(0, id.level - kLastCellLevel);
    if (id.z < lowest_ >> above_cells || id.z > highest_ >> above_cells) return false;
    if (id.level <= kLastCellLevel) return has_column({id.x, id.y});
    return footprints_.at(id.level).contains({id.x, id.y});
}

}  // namespace citysplat::splat
