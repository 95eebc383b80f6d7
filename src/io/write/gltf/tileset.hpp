#pragma once

#include "core/math/box.hpp"

#include <array>
#include <string>
#include <vector>

namespace citysplat::io {

/// A tile of a tileset and those that replace it when one comes nearer. Coordinates are metres of the world,
/// z up.
struct TilesetTile {
    Vec3d origin_m{0, 0, 0};  ///< of its content
    Box3d box{};              ///< around its content and all below it
    /// How far what is shown may be from what is meant; children are shown when that is too much on the
    /// screen.
    double error_m = 0;
    std::string content{};  ///< name relative to the tileset; empty: nothing to show
    std::vector<TilesetTile> children{};
};

/// Where a tileset stands on Earth. Its coordinates are those of the city less the origin of its root.
struct TilesetPlace {
    std::string crs{};  ///< "EPSG:n" or WKT; may be empty
    /// From these coordinates to ECEF, by columns; where the system of the city is not known, a frame of its
    /// own.
    std::array<double, 16> transform{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
};

/// The whole metres below a box, for what has no origin of its own.
Vec3d origin_for(const Box3d& box);

/// `tileset.json` of 3D Tiles 1.1 with an explicit tree of tiles that replace one another. The error of a
/// root without content is the size of the city.
std::string tileset_text(const TilesetTile& root, const TilesetPlace& place);

}  // namespace citysplat::io
