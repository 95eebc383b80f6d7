#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"
#include "view/tiles3d/tileset_directory.hpp"

#include <filesystem>

namespace citysplat::view {

/// Writes the mesh of a city as 3D Tiles 1.1 into `directory`: a GLB file for each tile that has triangles,
/// below a quadtree of squares without content. There are no coarse meshes: the geometric error of a square
/// is an eighth of its side, so that tiles appear when they are near. The tiles meet in the same places.
/// Throws CorruptionError naming the first tile that could not be read.
WrittenTileset write_mesh_tileset(const TileSource& city, const std::filesystem::path& directory,
                                  const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::view
