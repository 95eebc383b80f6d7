#pragma once

#include "core/math/lattice.hpp"
#include "fuzz.hpp"
#include "io/mesh/mesh_formats.hpp"

#include <cmath>

namespace citysplat::fuzz {

/// What read_mesh() promises of every mesh that it delivers.
inline void check(const io::MeshFile& mesh) {
    if (mesh.faces.empty() || mesh.faces.size() > io::kMostFaces) std::abort();
    for (const Vec3d v : mesh.vertices)
        for (const double c : {v.x, v.y, v.z})
            if (!(std::fabs(c) <= kMaxWorld_m)) std::abort();
    for (const io::MeshFace& face : mesh.faces) {
        for (const std::uint32_t corner : face.corners)
            if (corner >= mesh.vertices.size()) std::abort();
        if (face.material >= mesh.materials.size()) std::abort();
    }
    for (const io::MeshFileMaterial& material : mesh.materials)
        if (material.reflectance && !(*material.reflectance >= 0 && *material.reflectance <= 1.001))
            std::abort();
}

}  // namespace citysplat::fuzz
