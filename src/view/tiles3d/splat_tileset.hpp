#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"
#include "view/tiles3d/tileset_directory.hpp"

#include <filesystem>

/// Cities as 3D Tiles 1.1, for viewers in browsers.
namespace citysplat::view {

/// Writes the centres of the splats of a city and of its levels of detail (splat/levels) as points into
/// `directory`: a GLB file for each cube that is not empty.
///
/// The tree is that of the cubes. A tile's geometric error is the width of its voxels, 0 for splats. Throws
/// CorruptionError naming the first tile that could not be read.
WrittenTileset write_splat_tileset(const TileSource& city, const std::filesystem::path& directory,
                                   const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::view
