#include "model/triangle_mesh.hpp"

#include "core/error.hpp"

#include <cmath>

namespace citysplat {

namespace {

[[noreturn]] void refuse(std::string_view origin, const std::string& what) {
    throw InputError(std::string(origin) + ": " + what);
}

bool is_near(Vec3f v) {
    const auto fits = [](float c) { return std::fabs(c) <= TriangleMesh::kMaxCoordinate_m; };
    return fits(v.x) && fits(v.y) && fits(v.z);
}

}  // namespace

void TriangleMesh::check(std::string_view origin) const {
    if (triangles.empty()) refuse(origin, "the mesh has no triangles");
    if (materials.empty()) refuse(origin, "the mesh has no material");
    for (std::size_t i = 0; i < vertices.size(); ++i)
        if (!is_near(vertices[i]))
            refuse(origin, "vertex " + std::to_string(i) +
                               " is not finite or more than 1000 m from the origin of its mesh; is the unit "
                               "metres?");
    for (std::size_t i = 0; i < triangles.size(); ++i)
        for (const std::uint32_t v : triangles[i])
            if (v >= vertices.size())
                refuse(origin, "triangle " + std::to_string(i) + " has the vertex " + std::to_string(v) +
                                   ", but there are " + std::to_string(vertices.size()));
    if (!material_of.empty() && material_of.size() != triangles.size())
        refuse(origin, "there are " + std::to_string(triangles.size()) + " triangles and materials for " +
                           std::to_string(material_of.size()));
    for (std::size_t i = 0; i < material_of.size(); ++i)
        if (material_of[i] >= materials.size())
            refuse(origin, "triangle " + std::to_string(i) + " has the material " +
                               std::to_string(material_of[i]) + ", but there are " +
                               std::to_string(materials.size()));
    for (const MeshMaterial& material : materials)
        if (!(material.reflectance >= 0 && material.reflectance <= 1))
            refuse(origin, "the reflectance of material \"" + material.name + "\" is not from 0 to 1");
}

Box3d TriangleMesh::box() const {
    Box3d box = kEmptyBox;
    for (const Vec3f v : vertices) box.grow(vec_cast<double>(v));
    return box;
}

}  // namespace citysplat
