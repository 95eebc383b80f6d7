#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"

#include <cstdint>
#include <filesystem>

namespace citysplat::io {

/// Writes the centres of all splats of a city as points into one GLB file, a mesh for each tile, that appears
/// when it is whole. Returns their number.
std::uint64_t export_glb(const TileSource& city, const std::filesystem::path& path, const CancelToken& cancel,
                         Progress& progress);

}  // namespace citysplat::io
