#include "core/error.hpp"
#include "mesh/mesh_generation.hpp"
#include "mesh/scenes.hpp"
#include "mesh/tsdf_field.hpp"
#include "model/splat_hd.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::mesh;
using namespace citysplat::test;

namespace {

struct Distances {
    double mean = 0, most = 0;
};
template <class Distance>
Distances distances(const WeldedMesh& mesh, const Distance& distance) {
    Distances d;
    for (const auto& v : mesh.vertices()) {
        const double off = std::fabs(distance(place_m(v)));
        d.mean += off / static_cast<double>(mesh.vertices().size());
        d.most = std::max(d.most, off);
    }
    return d;
}

}  // namespace

TEST_CASE("the mesh of a plane is the plane, one sheet that faces the sensor and ends where the points do") {
    std::vector<WorldPoint> cloud;
    const Vec3d corner = kScene, u{6, 1, 0.5}, v{-1.5, 5, 0.3};
    const Vec3d normal = normalized(cross(u, v));
    add_patch(cloud, {corner, u, v, kScene + Vec3d{2, 2, 3}, 30000, 1, 0.01});
    const WeldedMesh mesh = weld(mesh_tiles(MemoryCity(cloud), {}, 64));
    REQUIRE(mesh.triangles().size() > 1000);
    const auto off = [&](Vec3d p) { return dot(p - corner, normal); };
    const Distances d = distances(mesh, off);
    CHECK(d.mean < 0.001);
    CHECK(d.most < 0.006);
    for (const auto& vertex : mesh.vertices()) {
        CHECK(dot(vec_cast<double>(unpack_normal(vertex.facts.normal)), normal) > 0.999);
        CHECK(vertex.facts.label == 1);
        CHECK(vertex.facts.intensity == 1000);
        CHECK(vertex.facts.range <= 6);
    }
    std::size_t facing_away = 0;
    for (const auto& [a, b, c] : mesh.triangles()) {
        const Vec3d p = place_m(mesh.vertices()[a]);
        const Vec3d across = cross(place_m(mesh.vertices()[b]) - p, place_m(mesh.vertices()[c]) - p);
        if (!(dot(across, normal) > 0)) ++facing_away;
    }
    CHECK(facing_away == 0);
    // Eq. 3 ends the surface within a voxel or two of its points.
    const double true_area = length(cross(u, v));
    CHECK(std::fabs(area_m2(mesh) - true_area) < 0.1 * 2 * (length(u) + length(v)));
    // Inside there is no hole.
    const auto near_the_end = [&](Vec3d p) {
        const Vec3d d2 = p - corner;
        const double a = dot(cross(d2, v), normal) / true_area, b = dot(cross(u, d2), normal) / true_area;
        return a < 0.05 || a > 0.95 || b < 0.05 || b > 0.95;
    };
    CHECK(count_open_edges(mesh, near_the_end) == 0);
    CHECK(count_open_edges(mesh, [](Vec3d) { return false; }) > 0);
}

TEST_CASE("the mesh of a sphere is closed, and as near to it as planes in voxels are") {
    const Vec3d centre = kScene + Vec3d{0.3, 0.1, 0.4};
    const MemoryCity city(sphere_cloud(centre, 2, 40000, 0.01));
    const WeldedMesh mesh = weld(mesh_tiles(city, {}, 64));
    REQUIRE(mesh.triangles().size() > 1000);
    CHECK(count_open_edges(mesh, [](Vec3d) { return false; }) == 0);
    const Distances d = distances(mesh, [&](Vec3d p) { return length(p - centre) - 2; });
    // A plane through a cap of the sphere of width 2ω lies ω²/(2r) = 1 cm below its top at most.
    CHECK(d.mean < 0.01);
    CHECK(d.most < 0.03);
    CHECK(area_m2(mesh) == Approx(4 * 3.14159 * 4).epsilon(0.02));
    // Closed and in one piece: Euler's number of a sphere.
    const auto vertices = static_cast<long>(mesh.vertices().size()),
               triangles = static_cast<long>(mesh.triangles().size());
    CHECK(vertices - triangles / 2 == 2);
    for (const auto& v : mesh.vertices())
        CHECK(dot(vec_cast<double>(unpack_normal(v.facts.normal)), normalized(place_m(v) - centre)) > 0.98);
}

TEST_CASE("the triangles of a street are the same for any tile size, and weld without open borders") {
    const MemoryCity city = street_city();
    for (const bool two_sided : {true, false}) {
        MeshParams params;
        params.two_sided = two_sided;
        const auto whole = mesh_tiles(city, params, 512);
        const Hash128 truth = digest(whole);
        const WeldedMesh one = weld(whole);
        REQUIRE(one.triangles().size() > 5000);
        const std::size_t open = count_open_edges(one, [](Vec3d) { return false; });
        for (const double size : {1.0, 5.0, 16.0, 33.0, 128.0}) {
            const auto tiles = mesh_tiles(city, params, size);
            CHECK(digest(tiles) == truth);
            const WeldedMesh welded = weld(tiles);
            CHECK(welded.vertices().size() == one.vertices().size());
            CHECK(welded.triangles().size() == one.triangles().size());
            CHECK(count_open_edges(welded, [](Vec3d) { return false; }) == open);
        }
    }
}

TEST_CASE("the halo is not one step too small") {
    const MemoryCity city = street_city();
    const MeshParams params;
    const TsdfField field(params);
    const std::int64_t halo = reach_steps(params.voxel_steps(), field);
    const TileGrid grid(5);
    // Points that are further away than the reach, for a fact, change nothing.
    for (int i = 0; i < 5; ++i) {
        const LatticePoint at{to_lattice(kScene.x + 4 * i), to_lattice(kScene.y + 1), 0};
        const LatticeBox core = grid.core(grid.base_tile_of(at.x, at.y));
        const auto make = [&](std::int64_t steps) {
            return make_mesh(city.read(core, steps), params.voxel_steps(), field, CancelToken{}).digest();
        };
        CHECK(make(halo) == make(halo + 10 * kLatticePerMetre));
    }
}

TEST_CASE("both faces of a sign that is thinner than a voxel are there, each facing its side") {
    const Vec3d corner = kScene + Vec3d{0.11, 0.07, 0.13};
    const Vec3d u{0.05, 1.2, 0}, v{0, 0, 1};
    const Vec3d front = normalized(cross(u, v));
    constexpr double kThick = 0.03;
    std::vector<WorldPoint> cloud;
    add_patch(cloud, {corner, u, v, corner + front * 8.0, 4000, 1, 0.003});
    add_patch(cloud, {corner - front * kThick, u, v, corner - front * 8.0, 4000, 2, 0.003});
    const auto off = [&](Vec3d p) { return dot(p - corner, front); };
    const MemoryCity city(std::move(cloud));

    std::size_t faces[2] = {0, 0};
    const WeldedMesh mesh = weld(mesh_tiles(city, {}, 64));
    for (const auto& vertex : mesh.vertices()) {
        const bool is_front = dot(vec_cast<double>(unpack_normal(vertex.facts.normal)), front) > 0;
        ++faces[is_front ? 0 : 1];
        CHECK(std::fabs(off(place_m(vertex)) + (is_front ? 0 : kThick)) < 0.004);
    }
    CHECK(faces[0] > 30);
    CHECK(faces[1] > 30);
    CHECK(area_m2(mesh) > 2 * 1.2);

    // With one set of statistics both sides outvote each other at random.
    MeshParams one_sided;
    one_sided.two_sided = false;
    const WeldedMesh mixed = weld(mesh_tiles(city, one_sided, 64));
    CHECK(distances(mixed, [&](Vec3d p) { return off(p) + kThick / 2; }).most > 0.05);
}

TEST_CASE("a neighbourhood grows until it has enough points, and no farther than it may") {
    // Lines 0.5 m apart, as of a spinning sensor.
    std::vector<WorldPoint> cloud;
    for (int line = 0; line < 12; ++line)
        for (int i = 0; i < 200; ++i)
            cloud.push_back(
                seen_point(kScene + Vec3d{0.03 * i, 0.5 * line, 0}, kScene + Vec3d{0, 3, 4}, 1, 500));
    const MemoryCity city(std::move(cloud));
    MeshParams params;
    const auto area = [&] { return area_m2(weld(mesh_tiles(city, params, 64))); };
    const double grown = area();
    CHECK(grown > 0.95 * 6 * 5.5);
    params.most_level = 1;
    CHECK(area() < 0.5 * grown);
    params.most_level = 5;
    params.adaptive = false;
    const double constant = area();
    CHECK(constant > 0.9 * grown);
    params.confidence = 0;  // and now beyond its ends
    CHECK(area() > 1.2 * constant);
}

TEST_CASE("sparse points that fill a volume are no plane") {
    // A hedge: everywhere between 0 and 2 m, half a point in a voxel.
    std::vector<WorldPoint> cloud;
    for (int layer = 0; layer < 40; ++layer)
        add_patch(cloud, {kScene + Vec3d{0, 0, 0.05 * layer},
                          {2, 0, 0},
                          {0, 2, 0},
                          kScene + Vec3d{1, -8, 3},
                          100,
                          static_cast<std::uint64_t>(layer),
                          0.025});
    const MemoryCity hedge(std::move(cloud));
    MeshParams params;
    params.voxel_m = 0.1;
    const auto inside = [&] {
        const WeldedMesh mesh = weld(mesh_tiles(hedge, params, 64));
        std::size_t vertices = 0;
        for (const auto& v : mesh.vertices()) {
            const Vec3d p = place_m(v) - kScene;
            const auto deep = [](double c) { return c > 0.3 && c < 1.7; };
            if (deep(p.x) && deep(p.y) && deep(p.z)) ++vertices;
        }
        return vertices;
    };
    CHECK(inside() == 0);
    params.most_thickness = 0;
    CHECK(inside() > 1000);
}

TEST_CASE("points that nobody knows the sensor of make no surface") {
    std::vector<WorldPoint> cloud;
    add_patch(cloud, {kScene, {4, 0, 0}, {0, 4, 0}, kScene + Vec3d{2, 2, 3}, 10000, 1, 0.01});
    for (WorldPoint& p : cloud) p.sensor_dx = p.sensor_dy = p.sensor_dz = TilePoint::kNoSensor;
    CHECK(weld(mesh_tiles(MemoryCity(cloud), {}, 64)).triangles().empty());
}

TEST_CASE("a mesh parameter out of range is refused by name") {
    MeshParams params;
    params.voxel_m = 0.001;
    CHECK_THROWS_WITH(params.validate(), Catch::Contains("voxel_m"));
    params = {};
    params.least_points = 2;
    CHECK_THROWS_WITH(params.validate(), Catch::Contains("least_points"));
    params.least_points = 3;
    CHECK_NOTHROW(params.validate());
}
