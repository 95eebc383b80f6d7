#pragma once

#include "mesh/box_sums.hpp"
#include "model/mesh_tile.hpp"

namespace citysplat::mesh {

/// An edge of the grid, by its low corner in a block.
struct GridEdge {
    Voxel corner;
    int axis;
};

/// What the points around say about a vertex on this edge: class (that of most of them; of two that are as
/// many, the smaller number), intensity, range and incidence (against this normal). Asked are the four voxels
/// around the edge; if they are empty, growing neighbourhoods of the corner that is nearer to the vertex.
/// Sets all of `vertex` but place and normal.
void describe_vertex(const VoxelPoints& points, const BoxSums& sums, const GridEdge& edge,
                     bool nearer_to_high, Vec3d normal, MeshVertex& vertex);

}  // namespace citysplat::mesh
