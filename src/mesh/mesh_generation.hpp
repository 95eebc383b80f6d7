#pragma once

#include "core/cancel.hpp"
#include "mesh/corner_field.hpp"
#include "model/mesh_tile.hpp"
#include "tiling/tile_processor.hpp"

namespace citysplat::mesh {

/// The triangles of a region's core: of the cells whose low corner lies in it. Crossings are on the lattice,
/// strictly between the corners of their edge, so that neighbours in other tiles make the same vertices. What
/// a vertex says (class, intensity, …) is that of the voxels around it. Takes the points of the region.
/// Throws InputError when the triangles lie more than 2 km apart in height.
MeshTile make_mesh(tiling::Region region, std::int64_t voxel_steps, const CornerField& field,
                   const CancelToken& cancel);

/// Points farther than this from the core have no say in make_mesh().
std::int64_t reach_steps(std::int64_t voxel_steps, const CornerField& field);

}  // namespace citysplat::mesh
