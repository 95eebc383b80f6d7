#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"

#include <cstdint>
#include <filesystem>

namespace citysplat::io {

struct ExportedMesh {
    std::uint64_t vertices = 0, triangles = 0;
};

/// Writes the mesh of a city as one PLY file with faces, its tiles welded, that appears when it is whole.
/// Vertices are in metres in the world, in double precision, with normal, class and intensity. The whole mesh
/// is in memory meanwhile. Requires a source of meshes.
ExportedMesh export_mesh_ply(const TileSource& city, const std::filesystem::path& path,
                             const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::io
