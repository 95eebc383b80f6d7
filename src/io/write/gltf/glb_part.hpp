#pragma once

#include "model/mesh_tile.hpp"
#include "model/splat_tile.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace citysplat::io {

/// Points or triangles of one piece of a city, as they go into a GLB file. Every column is as long as
/// `positions` or empty.
struct GlbPart {
    std::string name{};
    Vec3d origin_m{0, 0, 0};         ///< of the positions, in the world
    std::vector<Vec3f> positions{};  ///< metres, z up, finite
    std::vector<Vec3f> normals{};    ///< unit
    std::vector<std::uint16_t> intensity{};
    std::vector<std::uint16_t> label{};
    std::vector<float> radius_m{};  ///< of discs
    /// Numbers of vertices. Empty: the vertices are points.
    std::vector<std::array<std::uint32_t, 3>> triangles{};

    bool empty() const { return positions.empty(); }
    void clear();
    /// Becomes the centres of a tile's splats, or a tile's triangles, from the tile's own origin; it has no
    /// name then.
    void take(const SplatTile& tile);
    void take(const MeshTile& tile);
};

/// How a piece of a file is described: where it stands and what the file is about.
struct GlbLabel {
    Vec3d origin_m{0, 0, 0};  ///< world coordinates of the file's origin
    std::string crs{};        ///< "EPSG:n" or WKT; may be empty
};

}  // namespace citysplat::io
