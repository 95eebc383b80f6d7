#include "view/tiles3d/mesh_pyramid.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace citysplat::view {

namespace {

using splat::CubeId;
using Column = splat::CityCubes::Column;

constexpr std::uint64_t kCacheBytes = std::uint64_t{256} << 20, kTileBytes = std::uint64_t{64} << 20;

Column column_of(const LatticePoint& point) {
    const CubeId cell = splat::cube_of(point, 0);
    return {cell.x, cell.y};
}

MeshCubePtr empty_cube(const CubeId& id) {
    MeshCube cube;
    cube.id = id;
    return std::make_shared<const MeshCube>(std::move(cube));
}

/// A triangle by its vertices, the smallest first.
using Corners = std::array<MeshPoint, 3>;

/// What of a city is in one column.
struct Stock {
    std::vector<MeshPoint> vertices;  ///< in it
    std::vector<Corners> triangles;   ///< whose smallest vertex is in it

    void take(const MeshTile& tile, const Column& column) {
        std::vector<MeshPoint> points;
        for (std::size_t i = 0; i < tile.vertex_count(); ++i) {
            const MeshVertex v = tile.vertex(i);
            points.push_back({tile.world(v), v.normal, v.label, v.intensity});
            if (column_of(points.back().at) == column) vertices.push_back(points.back());
        }
        for (std::size_t i = 0; i < tile.triangle_count(); ++i) {
            const MeshTriangle t = tile.triangle(i);
            Corners corners{points[t[0]], points[t[1]], points[t[2]]};
            std::rotate(corners.begin(), std::min_element(corners.begin(), corners.end()), corners.end());
            if (column_of(corners[0].at) == column) triangles.push_back(corners);
        }
    }
    /// A vertex on the border of tiles came more than once.
    void finish() {
        std::sort(vertices.begin(), vertices.end());
        vertices.erase(std::unique(vertices.begin(), vertices.end()), vertices.end());
        std::sort(triangles.begin(), triangles.end());
    }
};

MeshCube leaf_of(const CubeId& id, const std::vector<Corners>& triangles) {
    MeshCube leaf;
    leaf.id = id;
    for (const Corners& corners : triangles)
        leaf.vertices.insert(leaf.vertices.end(), corners.begin(), corners.end());
    std::sort(leaf.vertices.begin(), leaf.vertices.end());
    leaf.vertices.erase(std::unique(leaf.vertices.begin(), leaf.vertices.end()), leaf.vertices.end());
    const auto number = [&leaf](const MeshPoint& p) {
        return static_cast<std::uint32_t>(std::lower_bound(leaf.vertices.begin(), leaf.vertices.end(), p) -
                                          leaf.vertices.begin());
    };
    for (const auto& [a, b, c] : triangles) leaf.triangles.push_back({number(a), number(b), number(c)});
    return leaf;
}

}  // namespace

MeshPyramid::MeshPyramid(const TileSource& city)
    : cubes_(city), tiles_(city, &TileSource::load_mesh, kTileBytes), cache_(kCacheBytes) {}

std::map<CubeId, MeshCubePtr> MeshPyramid::make_column(const Column& column, const CancelToken& cancel) {
    Stock stock;
    for (const std::uint32_t tile : cubes_.tiles_at(column)) {
        cancel.check();
        stock.take(*tiles_.load(tile), column);
    }
    stock.finish();
    std::map<std::int32_t, std::pair<std::vector<MeshPoint>, std::vector<Corners>>> cells;
    for (const MeshPoint& v : stock.vertices) cells[splat::cube_of(v.at, 0).z].first.push_back(v);
    for (const Corners& t : stock.triangles) cells[splat::cube_of(t[0].at, 0).z].second.push_back(t);
    std::map<CubeId, MeshCubePtr> made;
    std::set<std::int32_t>& heights = heights_[column];
    for (const auto& [z, content] : cells) {
        cancel.check();
        heights.insert(z);
        const auto keep = [&](MeshCube cube) {
            made[cube.id] = cache_.keep(std::make_shared<const MeshCube>(std::move(cube)));
        };
        MeshCube leaf = leaf_of({0, column.first, column.second, z}, content.second);
        MeshCube level{.id = {1, column.first, column.second, z},
                       .vertices = {},
                       .triangles = {},
                       .voxels = first_voxels(content.first),
                       .faces = first_faces(leaf)};
        keep(std::move(leaf));
        for (; level.id.level < splat::kLastCellLevel; ++level.id.level) {
            keep(level);
            level.voxels = coarser(level.voxels, level.id.level);
            level.faces = coarser(level.faces);
        }
        keep(std::move(level));
    }
    return made;
}

MeshCubePtr MeshPyramid::cell(const CubeId& id, const CancelToken& cancel) {
    if (auto kept = cache_.find(id)) return kept;
    const Column column{id.x, id.y};
    if (const auto known = heights_.find(column); known != heights_.end() && !known->second.contains(id.z))
        return empty_cube(id);
    const auto made = make_column(column, cancel);
    const auto found = made.find(id);
    return found == made.end() ? empty_cube(id) : found->second;
}

MeshCubePtr MeshPyramid::from_octants(const CubeId& id, const CancelToken& cancel) {
    if (auto kept = cache_.find(id)) return kept;
    MeshCube below;
    for (const CubeId& child : id.children()) {
        const MeshCubePtr part = cube(child, cancel);
        below.voxels.insert(below.voxels.end(), part->voxels.begin(), part->voxels.end());
        below.faces.insert(below.faces.end(), part->faces.begin(), part->faces.end());
    }
    MeshCube made;
    made.id = id;
    made.voxels = coarser(below.voxels, id.level - 1);
    made.faces = coarser(below.faces);
    return cache_.keep(std::make_shared<const MeshCube>(std::move(made)));
}

MeshCubePtr MeshPyramid::cube(const CubeId& id, const CancelToken& cancel) {
    cancel.check();
    if (!cubes_.may_exist(id)) return empty_cube(id);
    return id.level <= splat::kLastCellLevel ? cell(id, cancel) : from_octants(id, cancel);
}

MeshPoint MeshPyramid::vertex_at(const VoxelPlace& voxel, int level, const CancelToken& cancel) {
    const int shift = splat::voxel_shift(level);
    const LatticePoint corner{std::int64_t{voxel[0]} << shift, std::int64_t{voxel[1]} << shift,
                              std::int64_t{voxel[2]} << shift};
    const MeshCubePtr home = cube(splat::cube_of(corner, level), cancel);
    const auto [first, last] =
        std::equal_range(home->voxels.begin(), home->voxels.end(), VoxelVertices{.voxel = voxel},
                         [](const VoxelVertices& a, const VoxelVertices& b) { return a.voxel < b.voxel; });
    if (first == last) throw std::logic_error("a triangle has a vertex in a voxel that has none");
    return vertex_of({first, last}, level);
}

io::GlbPart MeshPyramid::part(const CubeId& id, const CancelToken& cancel) {
    const MeshCubePtr made = cube(id, cancel);
    const LatticePoint o = id.corner();
    io::GlbPart part{.origin_m = {to_metres(o.x), to_metres(o.y), to_metres(o.z)}};
    const auto add = [&](const MeshPoint& v) {
        part.positions.push_back(vec_cast<float>(
            Vec3d{to_metres(v.at.x - o.x), to_metres(v.at.y - o.y), to_metres(v.at.z - o.z)}));
        part.normals.push_back(unpack_normal(v.normal));
        part.label.push_back(v.label);
        part.intensity.push_back(v.intensity);
    };
    if (id.level == 0) {
        for (const MeshPoint& v : made->vertices) add(v);
        part.triangles = made->triangles;
        return part;
    }
    std::vector<VoxelPlace> used;
    for (const VoxelTriangle& face : made->faces) used.insert(used.end(), face.begin(), face.end());
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (const VoxelPlace& voxel : used) add(vertex_at(voxel, id.level, cancel));
    const auto number = [&used](const VoxelPlace& voxel) {
        return static_cast<std::uint32_t>(std::lower_bound(used.begin(), used.end(), voxel) - used.begin());
    };
    for (const auto& [a, b, c] : made->faces) part.triangles.push_back({number(a), number(b), number(c)});
    return part;
}

}  // namespace citysplat::view
