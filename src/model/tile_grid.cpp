#include "model/tile_grid.hpp"

#include "core/error.hpp"

#include <cmath>

namespace citysplat {

TileKey TileKey::parent() const {
    return {level - 1, static_cast<std::int32_t>(floor_div(ix, 2)),
            static_cast<std::int32_t>(floor_div(iy, 2)), kind};
}

std::string TileKey::text() const {
    std::string text = std::to_string(level) + "/" + std::to_string(ix) + "/" + std::to_string(iy);
    if (kind != ProductKind::splats) text += std::string(" (") + kProductKinds.of(kind) + ")";
    return text;
}

TileGrid::TileGrid(double tile_size_m) {
    if (!(tile_size_m >= 1 && tile_size_m <= static_cast<double>(kMaxTileSize_m)) ||
        tile_size_m != std::floor(tile_size_m))
        throw UsageError("tile size " + std::to_string(tile_size_m) +
                         " m: must be a whole number of metres from 1 to " + std::to_string(kMaxTileSize_m));
    base_steps_ = static_cast<std::int64_t>(tile_size_m) * kLatticePerMetre;
}

std::int64_t TileGrid::size_steps(int level) const { return base_steps_ >> level; }

TileKey TileGrid::tile_of(std::int64_t x, std::int64_t y, int level) const {
    const std::int64_t size = size_steps(level);
    return {level, static_cast<std::int32_t>(floor_div(x, size)),
            static_cast<std::int32_t>(floor_div(y, size))};
}

TileKey TileGrid::base_tile_of(std::int64_t x, std::int64_t y) const { return tile_of(x, y, 0); }

LatticeBox TileGrid::core(const TileKey& key) const {
    const std::int64_t size = size_steps(key.level);
    return {key.ix * size, key.iy * size, (key.ix + 1) * size, (key.iy + 1) * size};
}

TileFrame TileGrid::frame(const TileKey& key, std::int64_t z_m) const {
    const LatticeBox box = core(key);
    return {floor_div(box.min_x, kLatticePerMetre), floor_div(box.min_y, kLatticePerMetre), z_m};
}

}  // namespace citysplat
