#pragma once

#include "model/mesh_tile.hpp"
#include "splat/levels/level_cube.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Levels of detail of a mesh, on the pyramid of cubes of splat/levels. Level 0 has the triangles themselves;
/// above, the vertices in a voxel become one, whose sums are those of the eight voxels below. All sums are of
/// integers: which tiles the triangles lie in, and in which order they come, changes no byte.
namespace citysplat::view {

/// A vertex in the world.
struct MeshPoint {
    LatticePoint at;
    std::uint32_t normal = 0;  ///< pack_normal()
    std::uint16_t label = 0, intensity = 0;
    friend auto operator<=>(const MeshPoint&, const MeshPoint&) = default;
};

/// Number of a voxel of some level in the world.
using VoxelPlace = std::array<std::int32_t, 3>;
VoxelPlace voxel_of(const LatticePoint& point, int level);

/// Sums over the vertices of one class in a voxel.
struct VoxelVertices {
    VoxelPlace voxel{};
    std::uint16_t label = 0;
    std::int64_t count = 0, intensity = 0;
    std::array<std::int64_t, 3> at{};      ///< steps from the low corner of the voxel
    std::array<std::int64_t, 3> normal{};  ///< units of 2⁻¹⁰
};

/// By their voxels, the smallest first.
using VoxelTriangle = std::array<VoxelPlace, 3>;

struct MeshCube {
    splat::CubeId id;
    // Level 0.
    std::vector<MeshPoint> vertices;  ///< sorted
    std::vector<MeshTriangle> triangles;
    // Levels above. A triangle belongs to the cube of its smallest vertex, so that some of its voxels may lie
    // in other cubes.
    std::vector<VoxelVertices> voxels;  ///< of this cube, by voxel and class
    std::vector<VoxelTriangle> faces;   ///< sorted, each once

    std::size_t bytes() const {
        return sizeof *this + vertices.size() * sizeof(MeshPoint) + triangles.size() * sizeof(MeshTriangle) +
               voxels.size() * sizeof(VoxelVertices) + faces.size() * sizeof(VoxelTriangle);
    }
};

/// Level 1 of these vertices, each given once, and of triangles of level 0.
std::vector<VoxelVertices> first_voxels(std::span<const MeshPoint> vertices);
std::vector<VoxelTriangle> first_faces(const MeshCube& cube);
/// The level above `level`.
std::vector<VoxelVertices> coarser(std::span<const VoxelVertices> voxels, int level);
std::vector<VoxelTriangle> coarser(std::span<const VoxelTriangle> faces);

/// The one vertex of a voxel of this level, from all that is known of it; nothing known: no call.
MeshPoint vertex_of(std::span<const VoxelVertices> voxel, int level);

}  // namespace citysplat::view
