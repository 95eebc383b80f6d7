#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"

#include <cstdint>
#include <filesystem>

/// Cities as 3D Tiles 1.1, for viewers in browsers.
namespace citysplat::view {

struct WrittenTileset {
    std::uint64_t points = 0;    ///< of the finest level: the splats of the city
    std::uint64_t contents = 0;  ///< files beside tileset.json
};

/// Writes the centres of the splats of a city and of its levels of detail (splat/levels) as points into
/// `directory`: a GLB file for each cube that is not empty, and `tileset.json`, which names them, last. The
/// name of a content says what is in it, so that a tileset that was there before stays whole until the new
/// one takes its place; contents that nothing names any more stay. Files of others are left alone.
///
/// The tree is that of the cubes. A tile's geometric error is the width of its voxels, 0 for splats. Throws
/// CorruptionError naming the first tile that could not be read.
WrittenTileset write_splat_tileset(const TileSource& city, const std::filesystem::path& directory,
                                   const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::view
