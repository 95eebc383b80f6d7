#include "view/tiles3d/mesh_cube.hpp"

#include "model/splat_hd.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace citysplat::view {

namespace {

constexpr double kNormalUnits = 1024;

/// Sorts and adds up what is of the same class in the same voxel.
std::vector<VoxelVertices> added_up(std::vector<VoxelVertices> parts) {
    const auto key = [](const VoxelVertices& v) { return std::tie(v.voxel, v.label); };
    std::sort(parts.begin(), parts.end(),
              [&](const VoxelVertices& a, const VoxelVertices& b) { return key(a) < key(b); });
    std::size_t last = 0;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        if (key(parts[last]) != key(parts[i])) {
            parts[++last] = parts[i];
            continue;
        }
        VoxelVertices& sum = parts[last];
        sum.count += parts[i].count;
        sum.intensity += parts[i].intensity;
        for (std::size_t a = 0; a < 3; ++a) sum.at[a] += parts[i].at[a], sum.normal[a] += parts[i].normal[a];
    }
    if (!parts.empty()) parts.resize(last + 1);
    return parts;
}

/// Leaves out what is no triangle any more, and all but one of those that have become the same.
std::vector<VoxelTriangle> in_order(std::vector<VoxelTriangle> faces) {
    std::erase_if(faces, [](const VoxelTriangle& f) { return f[0] == f[1] || f[1] == f[2] || f[2] == f[0]; });
    for (VoxelTriangle& f : faces) std::rotate(f.begin(), std::min_element(f.begin(), f.end()), f.end());
    std::sort(faces.begin(), faces.end());
    faces.erase(std::unique(faces.begin(), faces.end()), faces.end());
    return faces;
}

}  // namespace

VoxelPlace voxel_of(const LatticePoint& point, int level) {
    const int shift = splat::voxel_shift(level);
    const auto number = [shift](std::int64_t steps) { return static_cast<std::int32_t>(steps >> shift); };
    return {number(point.x), number(point.y), number(point.z)};
}

std::vector<VoxelVertices> first_voxels(std::span<const MeshPoint> vertices) {
    constexpr int kLevel = 1;
    const std::int64_t within = (std::int64_t{1} << splat::voxel_shift(kLevel)) - 1;
    std::vector<VoxelVertices> parts;
    parts.reserve(vertices.size());
    for (const MeshPoint& v : vertices) {
        const Vec3f n = unpack_normal(v.normal);
        const auto units = [](float c) {
            return static_cast<std::int64_t>(std::floor(static_cast<double>(c) * kNormalUnits + 0.5));
        };
        parts.push_back({.voxel = voxel_of(v.at, kLevel),
                         .label = v.label,
                         .count = 1,
                         .intensity = v.intensity,
                         .at = {v.at.x & within, v.at.y & within, v.at.z & within},
                         .normal = {units(n.x), units(n.y), units(n.z)}});
    }
    return added_up(std::move(parts));
}

std::vector<VoxelTriangle> first_faces(const MeshCube& cube) {
    std::vector<VoxelTriangle> faces;
    faces.reserve(cube.triangles.size());
    for (const auto& [a, b, c] : cube.triangles)
        faces.push_back({voxel_of(cube.vertices[a].at, 1), voxel_of(cube.vertices[b].at, 1),
                         voxel_of(cube.vertices[c].at, 1)});
    return in_order(std::move(faces));
}

std::vector<VoxelVertices> coarser(std::span<const VoxelVertices> voxels, int level) {
    const std::int64_t side = std::int64_t{1} << splat::voxel_shift(level);
    std::vector<VoxelVertices> parts(voxels.begin(), voxels.end());
    for (VoxelVertices& v : parts)
        for (std::size_t a = 0; a < 3; ++a) {
            v.at[a] += v.count * side * (v.voxel[a] & 1);
            v.voxel[a] >>= 1;
        }
    return added_up(std::move(parts));
}

std::vector<VoxelTriangle> coarser(std::span<const VoxelTriangle> faces) {
    std::vector<VoxelTriangle> above(faces.begin(), faces.end());
    for (VoxelTriangle& face : above)
        for (VoxelPlace& voxel : face)
            for (std::int32_t& number : voxel) number >>= 1;
    return in_order(std::move(above));
}

MeshPoint vertex_of(std::span<const VoxelVertices> voxel, int level) {
    VoxelVertices sum = voxel[0];
    const VoxelVertices* most = &voxel[0];  // of two classes with as many, the smaller number
    for (const VoxelVertices& part : voxel.subspan(1)) {
        if (part.count > most->count) most = &part;
        sum.count += part.count;
        sum.intensity += part.intensity;
        for (std::size_t a = 0; a < 3; ++a) sum.at[a] += part.at[a], sum.normal[a] += part.normal[a];
    }
    const int shift = splat::voxel_shift(level);
    const auto place = [&](std::size_t a) {
        return (std::int64_t{voxel[0].voxel[a]} << shift) + (2 * sum.at[a] + sum.count) / (2 * sum.count);
    };
    const Vec3d n{static_cast<double>(sum.normal[0]), static_cast<double>(sum.normal[1]),
                  static_cast<double>(sum.normal[2])};
    return {.at = {place(0), place(1), place(2)},
            .normal = pack_normal(dot(n, n) > 0 ? normalized(n) : Vec3d{0, 0, 1}),
            .label = most->label,
            .intensity = static_cast<std::uint16_t>(sum.intensity / sum.count)};
}

}  // namespace citysplat::view
