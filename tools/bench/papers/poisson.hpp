#pragma once

#include "model/splat_tile.hpp"
#include "model/triangle_mesh.hpp"

#include <optional>
#include <string>

namespace citysplat::bench {

/// A mesh by somebody else's program: pcl_poisson_reconstruction (Debian pcl-tools), in a frame of its own.
struct PoissonMesh {
    TriangleMesh mesh;
    Vec3d origin_m;
};

/// Why pcl_poisson_reconstruction cannot be run; nothing when it can.
std::optional<std::string> why_no_poisson();

/// Meshes the centres of discs with their normals, in an octree of this depth. The reconstruction closes
/// every surface; triangles that have a corner farther than `trim_m` from all centres are left out, which
/// stands for the SurfaceTrimmer of the paper. The class of a triangle is that of the centre nearest to it.
/// Throws IoError when the program fails.
PoissonMesh make_poisson(const SplatTile& discs, int depth, double trim_m);

}  // namespace citysplat::bench
