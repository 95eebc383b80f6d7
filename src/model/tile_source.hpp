#pragma once

#include "core/math/lattice.hpp"
#include "model/class_map.hpp"
#include "model/mesh_tile.hpp"
#include "model/splat_tile.hpp"
#include "model/tile_grid.hpp"

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace citysplat {

/// One tile of a city as readers see it.
struct TileEntry {
    TileKey key;
    std::uint64_t splats = 0;  ///< of a mesh: triangles
    std::uint64_t payload_bytes = 0;
    Vec3d min{0, 0, 0}, max{0, 0, 0};  ///< world box around all discs, radius included, or triangles
};

/// The tiles of one generation of a city, for the simulator, renderer and exporters. Entries are sorted by
/// key and do not change during the life of the source. `load` is safe to call from several threads.
class TileSource {
  public:
    virtual ~TileSource() = default;
    virtual std::span<const TileEntry> tiles() const = 0;
    /// What all its tiles are.
    virtual ProductKind kind() const { return ProductKind::splats; }
    /// Reads and verifies a tile of splats, or of triangles, as kind() says. Throws CorruptionError naming
    /// the tile when it is missing or damaged.
    virtual SplatTile load(std::size_t tile) const = 0;
    virtual MeshTile load_mesh(std::size_t) const { throw std::logic_error("this city has no meshes"); }
    virtual const ClassMap& classes() const = 0;
    virtual std::string crs() const { return {}; }
};

}  // namespace citysplat
