#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"
#include "view/tiles3d/tileset_directory.hpp"

#include <filesystem>

namespace citysplat::view {

/// Writes the mesh of a city and its levels of detail (mesh_cube.hpp) as 3D Tiles 1.1 into `directory`: a GLB
/// file for each cube that has triangles, on the pyramid of the splats' levels. A tile's geometric error is
/// the width of its voxels, 0 for the triangles themselves. A level that would have more than half the
/// triangles of what it stands for is passed over. Throws CorruptionError naming the first tile that could
/// not be read.
WrittenTileset write_mesh_tileset(const TileSource& city, const std::filesystem::path& directory,
                                  const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::view
