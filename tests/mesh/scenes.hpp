#pragma once

#include "core/math/vec_hd.hpp"
#include "mesh/corner_field.hpp"
#include "mesh/mesh_params.hpp"
#include "model/assembled/welded_mesh.hpp"
#include "model/mesh_tile.hpp"
#include "splat/memory_city.hpp"

#include <cstdint>
#include <functional>
#include <vector>

/// Clouds whose surface is known, and meshes made of them.
namespace citysplat::test {

/// Far from zero, as cities are.
inline constexpr Vec3d kScene{432100, 5412300, 300};

/// As a sensor at this place sees it.
WorldPoint seen_point(Vec3d at, Vec3d sensor, std::uint16_t label = 1, std::uint16_t intensity = 1000);

/// Points at random on the parallelogram corner + a·u + b·v, seen from a sensor.
struct Patch {
    Vec3d corner, u, v, sensor;
    int points;
    std::uint64_t seed;
    double noise_m = 0;  ///< evenly along the normal, either way
    std::uint16_t label = 1;
};
void add_patch(std::vector<WorldPoint>& cloud, const Patch& patch);
/// Evenly on a sphere, seen from outside: each from its own side.
std::vector<WorldPoint> sphere_cloud(Vec3d centre, double radius, int points, double noise_m);

/// At kScene: a road from (0, −4) to (20, 5) that rises by 0.2 m, a façade at an angle to all axes from (0,
/// 4) to (20, 7), and a sign at (12, 2) with two faces 3 cm apart.
MemoryCity street_city();

/// The mesh of a cloud in tiles of this size, each read with the halo it asks for.
std::vector<MeshTile> mesh_tiles(const MemoryCity& city, const mesh::MeshParams& params, double tile_size_m);
std::vector<MeshTile> mesh_tiles(const MemoryCity& city, const mesh::CornerField& field,
                                 std::int64_t voxel_steps, double tile_size_m);
Hash128 digest(const std::vector<MeshTile>& tiles);
WeldedMesh weld(const std::vector<MeshTile>& tiles);

Vec3d place_m(const WeldedMesh::Vertex& v);
/// Edges that have not one triangle on each side, running opposite ways; `is_open` of a place may excuse
/// those whose both ends are there.
std::size_t count_open_edges(const WeldedMesh& mesh, const std::function<bool(Vec3d)>& is_open);
double area_m2(const WeldedMesh& mesh);

}  // namespace citysplat::test
