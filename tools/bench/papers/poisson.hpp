#pragma once

#include "model/splat_tile.hpp"
#include "model/triangle_mesh.hpp"

#include <cstdint>
#include <string>

namespace citysplat::bench {

/// Screened Poisson reconstruction by a program of others, pcl_poisson_reconstruction of PCL (Debian:
/// pcl-tools).
struct PoissonOptions {
    std::string program = "pcl_poisson_reconstruction";
    std::uint64_t depth = 10;    ///< of its octree, which is as wide as the drive
    std::uint64_t most_s = 600;  ///< it is ended when it takes longer
    double farthest_m = 0.15;    ///< triangles farther from every given point are trimmed
};

struct PoissonMesh {
    TriangleMesh mesh;  ///< with one material for each class
    Vec3d origin_m{0, 0, 0};
    double cpu_s = 0;     ///< of the program alone
    std::string missing;  ///< why there is no mesh; empty: there is one
};

/// From the centres and normals of these discs, which have the density that the program can work with; each
/// triangle has the class of the nearest.
PoissonMesh reconstruct(const SplatTile& discs, const PoissonOptions& options);

}  // namespace citysplat::bench
