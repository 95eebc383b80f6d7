#pragma once

#include "core/math/lattice.hpp"
#include "core/words.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace citysplat {

/// What is made of the points of a cell. Numbers and words are stored: they never change.
enum class ProductKind : std::uint8_t { splats = 0, mesh = 1, imls = 2 };
inline constexpr Words<ProductKind, 3> kProductKinds{{"splats", "mesh", "imls"}};
inline constexpr std::array kEveryProductKind{ProductKind::splats, ProductKind::mesh, ProductKind::imls};
/// For values that were read from somewhere.
constexpr bool is_known(ProductKind kind) {
    return static_cast<std::size_t>(kind) < kProductKinds.words.size();
}

/// Whether its tiles are MeshTile, not SplatTile.
constexpr bool has_triangles(ProductKind kind) { return kind != ProductKind::splats; }

/// A tile: a cell of the city's grid, and what is made of it. Level 0 is the base grid; a tile that is too
/// dense splits into four tiles of the next level (quadtree), whose indices are (2·ix, 2·iy) … (2·ix+1,
/// 2·iy+1).
struct TileKey {
    std::int32_t level = 0;
    std::int32_t ix = 0, iy = 0;
    ProductKind kind = ProductKind::splats;

    TileKey parent() const;  ///< Requires level > 0.
    TileKey child(int quadrant) const {
        return {level + 1, 2 * ix + (quadrant & 1), 2 * iy + (quadrant >> 1), kind};
    }
    /// "3/-12/407": level, ix, iy; "3/-12/407 (mesh)". For people and messages, never a path.
    std::string text() const;
    friend auto operator<=>(const TileKey&, const TileKey&) = default;
};

/// The grid of a city: square half-open cells keyed by floor(x / size) in absolute coordinates, never derived
/// from the data's bounds, so that a new file moves no tile.
class TileGrid {
  public:
    static constexpr int kMaxLevel = 12;
    static constexpr std::int64_t kMaxTileSize_m = 512;

    /// Requires a whole number of metres from 1 to kMaxTileSize_m; throws UsageError otherwise.
    explicit TileGrid(double tile_size_m);

    std::int64_t size_steps(int level) const;
    TileKey base_tile_of(std::int64_t x, std::int64_t y) const;
    TileKey tile_of(std::int64_t x, std::int64_t y, int level) const;
    LatticeBox core(const TileKey& key) const;
    /// Local frame: the whole metre at or below the core's corner, z as given.
    TileFrame frame(const TileKey& key, std::int64_t z_m) const;

  private:
    std::int64_t base_steps_;
};

}  // namespace citysplat
