#pragma once

#include "core/math/box.hpp"
#include "core/math/vec_hd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat {

/// What some triangles of a mesh are made of.
struct MeshMaterial {
    std::string name;         ///< as in the file; may be empty
    std::uint16_t label = 0;  ///< class; 0: none
    /// Of the light that a surface seen head-on sends back, from 0 to 1: what a sensor at 10 m reports as
    /// that part of its full scale.
    float reflectance = 0.3f;
};

/// Triangles in a frame of their own, in metres, z up. For objects and vehicles the origin is the middle of
/// the bottom face of the box around them, x points forward and y to the left; readers convert. Both sides of
/// a triangle are met by rays, so the order of its corners means nothing to them.
struct TriangleMesh {
    std::vector<Vec3f> vertices;
    std::vector<std::array<std::uint32_t, 3>> triangles;  ///< numbers of vertices
    std::vector<std::uint16_t> material_of;  ///< one for each triangle, or empty: all have the first
    std::vector<MeshMaterial> materials;     ///< at least one

    /// Coordinates are at most this large, either sign. In float they are then within 0.03 mm.
    static constexpr float kMaxCoordinate_m = 1000;

    const MeshMaterial& material(std::size_t triangle) const {
        return materials[material_of.empty() ? 0 : material_of[triangle]];
    }

    /// Throws InputError that begins with `origin` and names the vertex, triangle or material when the mesh
    /// is not what is said above: no triangles, a vertex that is not finite or too far away, a number that
    /// points nowhere, a reflectance outside 0 … 1.
    void check(std::string_view origin) const;

    /// Around all vertices. Requires one.
    Box3d box() const;
};

}  // namespace citysplat
