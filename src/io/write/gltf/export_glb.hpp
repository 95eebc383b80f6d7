#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"

#include <cstdint>
#include <filesystem>

namespace citysplat::io {

/// Of a city of splats, their number is that of the vertices.
struct GlbCounts {
    std::uint64_t vertices = 0, triangles = 0;
};

/// Writes a city into one GLB file, a mesh for each tile, that appears when it is whole: the centres of all
/// splats as points, or the triangles. The tiles of a mesh meet in the same places but are not welded.
GlbCounts export_glb(const TileSource& city, const std::filesystem::path& path, const CancelToken& cancel,
                     Progress& progress);

}  // namespace citysplat::io
