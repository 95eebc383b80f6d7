#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "mesh/imls_field.hpp"
#include "mesh/mesh_generation.hpp"
#include "mesh/scenes.hpp"
#include "model/splat_hd.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::mesh;
using namespace citysplat::test;

namespace {

constexpr Vec3d kPlace{432100, 5412300, 300};

std::vector<MeshTile> tiles_of(const MemoryCity& city, const ImlsParams& params, double tile_size_m) {
    return test::mesh_tiles(city, ImlsField(params), params.voxel_steps(), tile_size_m);
}

/// A piece of road and a façade, with noise.
MemoryCity corner_of_a_street(int points) {
    std::vector<WorldPoint> cloud;
    const Vec3d sensor = kPlace + Vec3d{2, 0, 2};
    add_patch(cloud, {kPlace, {4, 0, 0.1}, {0, 3, 0}, sensor, points, 1, 0.01, 7});
    add_patch(cloud, {kPlace + Vec3d{0, 3, 0}, {4, 0.5, 0}, {0, 0.1, 2}, sensor, points, 2, 0.01, 1});
    return MemoryCity(std::move(cloud));
}

}  // namespace

TEST_CASE("the weight of IMLS is the Gaussian of its paper") {
    const ImlsParams params;
    const ImlsField field(params);
    const auto steps = static_cast<double>(params.voxel_steps());
    for (double d = 0; d < 3 * steps; d += 13) {
        const auto d2 = static_cast<std::int64_t>(d * d);
        const double exact = 1048576 * std::exp(-static_cast<double>(d2) / (4 * steps * steps));
        CHECK(std::fabs(static_cast<double>(field.weight(d2)) - exact) < 80);
    }
    CHECK(field.weight(static_cast<std::int64_t>(9.1 * steps * steps)) == 0);
}

TEST_CASE("the IMLS mesh of a plane is the plane, swollen at its ends by less than the truncation") {
    std::vector<WorldPoint> cloud;
    const Vec3d u{3, 0.5, 0.3}, v{-0.7, 2.5, 0.2}, normal = normalized(cross(u, v));
    add_patch(cloud, {kPlace, u, v, kPlace + Vec3d{1, 1, 3}, 16000, 1, 0.01});
    const WeldedMesh mesh = weld(tiles_of(MemoryCity(cloud), {}, 64));
    REQUIRE(mesh.triangles().size() > 2000);
    const double true_area = length(cross(u, v));
    double most_inside = 0, most = 0;
    for (const auto& vertex : mesh.vertices()) {
        const Vec3d d = place_m(vertex) - kPlace;
        const double a = dot(cross(d, v), normal) / true_area, b = dot(cross(u, d), normal) / true_area;
        const bool inside = std::min({a, b, 1 - a, 1 - b}) > 0.05;
        const double off = std::fabs(dot(d, normal));
        most = std::max(most, off);
        if (!inside) continue;
        most_inside = std::max(most_inside, off);
        CHECK(dot(vec_cast<double>(unpack_normal(vertex.facts.normal)), normal) > 0.99);
    }
    CHECK(most_inside < 0.01);
    CHECK(most < 0.07);
    const double swollen = area_m2(mesh) - true_area, around = 2 * (length(u) + length(v));
    CHECK(swollen > 0.05 * around);  // it fills where nothing was seen, as its paper says
    CHECK(swollen < 0.25 * around);
}

TEST_CASE("an IMLS corner is the weighted mean over all points around it") {
    // Points on one plane share their normal, so the oracle needs no neighbourhoods.
    std::vector<WorldPoint> cloud;
    const Vec3d u{1.5, 0.2, 0.1}, v{-0.2, 1.4, 0.4}, normal = normalized(cross(u, v));
    add_patch(cloud, {kPlace, u, v, kPlace + Vec3d{1, 1, 3}, 6000, 3, 0});
    const ImlsParams params;
    const ImlsField field(params);
    const MemoryCity city(cloud);
    const tiling::Region region = city.read(city.bounds(), 0);
    const VoxelGrid grid(region.frame, params.voxel_steps());
    const VoxelPoints points(grid, region.points);
    BoxSums sums(field.reach_voxels());
    CancelToken never, now;
    now.request();
    int compared = 0;
    for (std::int32_t y = -16; y < 32; y += kBlockCells)
        for (std::int32_t x = -16; x < 32; x += kBlockCells) {
            const std::int64_t z_m = static_cast<std::int64_t>(kPlace.z);
            const Voxel block{x, y,
                              grid.voxel(2, static_cast<std::int32_t>(to_lattice(static_cast<double>(z_m))))};
            if (!sums.load(points, block)) continue;
            CornerBlock corners;
            field.make_worker(points, never)->fill(sums, corners);
            const int before = compared;
            for (int i = 0; i < 200; ++i) {
                const int cx = 7 * i % kBlockCorners, cy = 5 * i % kBlockCorners, cz = 3 * i % kBlockCorners;
                const Corner& corner = corners.corners[CornerBlock::at(cx, cy, cz)];
                const Vec3d at{static_cast<double>(grid.corner(0, block.x + cx)),
                               static_cast<double>(grid.corner(1, block.y + cy)),
                               static_cast<double>(grid.corner(2, block.z + cz))};
                double weighted = 0, weight = 0;
                const auto reach = static_cast<double>(3 * params.voxel_steps());
                for (const TilePoint& p : region.points) {
                    const Vec3d d = at - Vec3d{1.0 * p.x, 1.0 * p.y, 1.0 * p.z};
                    const double sigma = reach * 2 / 3;
                    if (!(length(d) < reach)) continue;
                    const double w = std::exp(-dot(d, d) / (sigma * sigma));
                    weighted += w * dot(normal, d), weight += w;
                }
                if (weight < 5) continue;
                REQUIRE(corner.sides == 1);
                CHECK(std::fabs(corner.side[0].distance / kDistanceUnits - weighted / weight) < 3);
                ++compared;
            }
            // A block may hold very many points: work on it can be interrupted.
            if (compared > before)
                CHECK_THROWS_AS(field.make_worker(points, now)->fill(sums, corners), Interrupted);
        }
    CHECK(compared > 100);
}

TEST_CASE("the triangles of IMLS are the same for any tile size, and the halo is not too small") {
    const MemoryCity city = corner_of_a_street(9000);
    const ImlsParams params;
    const auto whole = tiles_of(city, params, 512);
    const std::size_t open = count_open_edges(weld(whole), [](Vec3d) { return false; });
    REQUIRE(weld(whole).triangles().size() > 3000);
    for (const double size : {1.0, 3.0}) {
        const auto tiles = tiles_of(city, params, size);
        CHECK(digest(tiles) == digest(whole));
        CHECK(count_open_edges(weld(tiles), [](Vec3d) { return false; }) == open);
    }
}

TEST_CASE("a crowd of points in a voxel is no different from the share that counts") {
    std::vector<WorldPoint> cloud;
    add_patch(cloud, {kPlace, {0.5, 0, 0}, {0, 0.5, 0}, kPlace + Vec3d{0, 0, 3}, 2000, 1, 0.005});
    add_patch(
        cloud,
        {kPlace + Vec3d{0.2, 0.2, 0}, {0.05, 0, 0}, {0, 0.05, 0}, kPlace + Vec3d{0, 0, 3}, 60000, 2, 0.005});
    const WeldedMesh mesh = weld(tiles_of(MemoryCity(cloud), {}, 64));
    REQUIRE(mesh.triangles().size() > 50);
    for (const auto& vertex : mesh.vertices()) CHECK(std::fabs(place_m(vertex).z - kPlace.z) < 0.02);
}

TEST_CASE("wrong IMLS parameters are named") {
    ImlsParams params;
    params.sigma = std::nan("");
    CHECK_THROWS_WITH(params.validate(), Catch::Contains("sigma"));
    params = {};
    params.voxel_m = 0.5;
    CHECK_THROWS_AS(params.validate(), ConfigError);
}
