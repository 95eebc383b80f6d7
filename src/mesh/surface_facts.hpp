#pragma once

#include "mesh/box_sums.hpp"
#include "model/mesh_tile.hpp"

namespace citysplat::mesh {

/// An edge of the grid, by its low corner in a block.
struct GridEdge {
    Voxel corner;
    int axis;
};

/// Where a vertex is, and how the surface lies there.
struct SurfacePlace {
    GridEdge edge;
    bool nearer_to_high;  ///< than to the low end of the edge
    Vec3d normal;
};

/// What the points around say about a vertex: class (that of most of them; of two that are as
/// many, the smaller number), intensity, range and incidence (against this normal). Asked are the four voxels
/// around the edge; if they are empty, growing neighbourhoods of the corner that is nearer to the vertex.
/// Sets all of `vertex` but place and normal.
void describe_vertex(const VoxelPoints& points, const BoxSums& sums, const SurfacePlace& place,
                     MeshVertex& vertex);

}  // namespace citysplat::mesh
