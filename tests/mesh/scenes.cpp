#include "mesh/scenes.hpp"

#include "mesh/mesh_generation.hpp"
#include "mesh/tsdf_field.hpp"

#include <map>
#include <set>

namespace citysplat::test {

WorldPoint seen_point(Vec3d at, Vec3d sensor, std::uint16_t label, std::uint16_t intensity) {
    const auto to_sensor = [](double d) {
        return static_cast<std::int16_t>(std::floor(d * TilePoint::kSensorStepsPerMetre + 0.5));
    };
    return {.place = {to_lattice(at.x), to_lattice(at.y), to_lattice(at.z)},
            .label = label,
            .intensity = intensity,
            .sensor_dx = to_sensor(sensor.x - at.x),
            .sensor_dy = to_sensor(sensor.y - at.y),
            .sensor_dz = to_sensor(sensor.z - at.z)};
}

namespace {

/// Even in [0, 1).
double even(std::uint64_t seed, std::uint64_t i) {
    return static_cast<double>(rng::mix(rng::mix(seed) + i) >> 11) * 0x1p-53;
}

}  // namespace

void add_patch(std::vector<WorldPoint>& cloud, const Patch& p) {
    const Vec3d normal = normalized(cross(p.u, p.v));
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(p.points); ++i) {
        const double off = (2 * even(p.seed, 3 * i + 2) - 1) * p.noise_m;
        cloud.push_back(
            seen_point(p.corner + p.u * even(p.seed, 3 * i) + p.v * even(p.seed, 3 * i + 1) + normal * off,
                       p.sensor, p.label));
    }
}

std::vector<WorldPoint> sphere_cloud(Vec3d centre, double radius, int points, double noise_m) {
    std::vector<WorldPoint> cloud;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(points); ++i) {
        const double z = 2 * even(5, 3 * i) - 1, turn = 6.283185307179586 * even(5, 3 * i + 1);
        const double r = std::sqrt(1 - z * z);
        const Vec3d out{r * std::cos(turn), r * std::sin(turn), z};
        const double off = (2 * even(5, 3 * i + 2) - 1) * noise_m;
        cloud.push_back(seen_point(centre + out * (radius + off), centre + out * (radius + 10)));
    }
    return cloud;
}

MemoryCity street_city() {
    std::vector<WorldPoint> cloud;
    const Vec3d sensor = kScene + Vec3d{10, 0, 2};
    add_patch(cloud, {kScene + Vec3d{0, -4, 0}, {20, 0, 0.2}, {0, 9, 0}, sensor, 60000, 1, 0.01, 1});
    add_patch(cloud, {kScene + Vec3d{0, 4, 0}, {20, 3, 0}, {0, 0.2, 6}, sensor, 50000, 2, 0.01, 2});
    add_patch(cloud, {kScene + Vec3d{12, 2, 2}, {0.02, 0.8, 0}, {0, 0, 0.8}, kScene, 3000, 3, 0.005, 3});
    add_patch(cloud, {kScene + Vec3d{12.03, 2, 2},
                      {0.02, 0.8, 0},
                      {0, 0, 0.8},
                      kScene + Vec3d{20, 0, 2},
                      3000,
                      4,
                      0.005,
                      3});
    return MemoryCity(std::move(cloud));
}

std::vector<MeshTile> mesh_tiles(const MemoryCity& city, const mesh::MeshParams& params, double tile_size_m) {
    return mesh_tiles(city, mesh::TsdfField(params), params.voxel_steps(), tile_size_m);
}

std::vector<MeshTile> mesh_tiles(const MemoryCity& city, const mesh::CornerField& field,
                                 std::int64_t voxel_steps, double tile_size_m) {
    const TileGrid grid(tile_size_m);
    const std::int64_t halo = mesh::reach_steps(voxel_steps, field);
    const LatticeBox bounds = city.bounds().widened(halo);
    const TileKey low = grid.base_tile_of(bounds.min_x, bounds.min_y),
                  high = grid.base_tile_of(bounds.max_x, bounds.max_y);
    std::vector<MeshTile> tiles;
    for (std::int32_t x = low.ix; x <= high.ix; ++x)
        for (std::int32_t y = low.iy; y <= high.iy; ++y)
            tiles.push_back(
                mesh::make_mesh(city.read(grid.core({0, x, y}), halo), voxel_steps, field, CancelToken{}));
    return tiles;
}

Hash128 digest(const std::vector<MeshTile>& tiles) {
    Hash128 sum;
    for (const MeshTile& tile : tiles) sum += tile.digest();
    return sum;
}

WeldedMesh weld(const std::vector<MeshTile>& tiles) {
    WeldedMesh mesh;
    for (const MeshTile& tile : tiles) mesh.add(tile);
    return mesh;
}

Vec3d place_m(const WeldedMesh::Vertex& v) {
    return {to_metres(v.at.x), to_metres(v.at.y), to_metres(v.at.z)};
}

std::size_t count_open_edges(const WeldedMesh& mesh, const std::function<bool(Vec3d)>& is_open) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> edges;
    for (const MeshTriangle& t : mesh.triangles())
        for (std::size_t i = 0; i < 3; ++i) {
            const std::uint32_t a = t[i], b = t[(i + 1) % 3];
            if (a < b)
                ++edges[{a, b}];
            else
                --edges[{b, a}];
        }
    std::size_t open = 0;
    for (const auto& [edge, balance] : edges)
        if (balance != 0 && !(is_open(place_m(mesh.vertices()[edge.first])) &&
                              is_open(place_m(mesh.vertices()[edge.second]))))
            ++open;
    return open;
}

double area_m2(const WeldedMesh& mesh) {
    double area = 0;
    for (const auto& [a, b, c] : mesh.triangles()) {
        const Vec3d p = place_m(mesh.vertices()[a]);
        area += 0.5 * length(cross(place_m(mesh.vertices()[b]) - p, place_m(mesh.vertices()[c]) - p));
    }
    return area;
}

}  // namespace citysplat::test
