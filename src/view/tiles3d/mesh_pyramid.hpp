#pragma once

#include "core/cancel.hpp"
#include "io/write/gltf/glb_part.hpp"
#include "splat/levels/city_cubes.hpp"
#include "splat/levels/cube_cache.hpp"
#include "splat/levels/tile_shelf.hpp"
#include "view/tiles3d/mesh_cube.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace citysplat::view {

using MeshCubePtr = std::shared_ptr<const MeshCube>;

/// The levels of detail of a city's mesh, made when they are asked for, under a budget of memory. For one
/// thread.
class MeshPyramid {
  public:
    /// Requires a city of triangles that outlives it.
    explicit MeshPyramid(const TileSource& city);

    const splat::CityCubes& cubes() const { return cubes_; }
    /// Throws Interrupted, and what TileSource::load_mesh() throws.
    MeshCubePtr cube(const splat::CubeId& id, const CancelToken& cancel);
    /// The triangles of a cube with their vertices, some of which may be in other cubes; metres from its
    /// corner.
    io::GlbPart part(const splat::CubeId& id, const CancelToken& cancel);

  private:
    using Column = splat::CityCubes::Column;

    /// Makes all cells of a column, of levels 0 to 3, and returns them.
    std::map<splat::CubeId, MeshCubePtr> make_column(const Column& column, const CancelToken& cancel);
    MeshCubePtr cell(const splat::CubeId& id, const CancelToken& cancel);
    MeshCubePtr from_octants(const splat::CubeId& id, const CancelToken& cancel);
    MeshPoint vertex_at(const VoxelPlace& voxel, int level, const CancelToken& cancel);

    splat::CityCubes cubes_;
    splat::TileShelf<MeshTile> tiles_;
    splat::CubeCache<MeshCube> cache_;
    std::map<Column, std::set<std::int32_t>> heights_;  ///< of cells with something in them
};

}  // namespace citysplat::view
