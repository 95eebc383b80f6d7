#include "sim/traffic/traffic.hpp"

#include "core/error.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

TriangleMesh one_triangle() {
    TriangleMesh mesh;
    mesh.vertices = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    mesh.triangles = {{0, 1, 2}};
    mesh.materials = {{"paint", 10, 0.5f}};
    return mesh;
}

Track drives_east() {
    return Track::along("lead", Trajectory({{10, {{0, 0, 0}, {}}}, {12, {{20, 0, 0}, {}}}}));
}

std::vector<Shape> one_shape(std::string name, std::variant<TriangleMesh, SplatTile> form) {
    std::vector<Shape> shapes;
    shapes.push_back({std::move(name), std::move(form)});
    return shapes;
}

Actor actor_of(Track track) {
    Actor actor;
    actor.name = "lead";
    actor.track = std::move(track);
    actor.instance = 1;
    return actor;
}

}  // namespace

TEST_CASE("a mesh that cannot be traced is refused with the place in it") {
    const auto refused = [](auto spoil, const char* what) {
        TriangleMesh mesh = one_triangle();
        mesh.check("good.obj");
        spoil(mesh);
        CHECK_THROWS_WITH(mesh.check("bad.obj"), Catch::StartsWith("bad.obj: ") && Catch::Contains(what));
    };
    refused([](TriangleMesh& m) { m.triangles.clear(); }, "no triangles");
    refused([](TriangleMesh& m) { m.materials.clear(); }, "no material");
    refused([](TriangleMesh& m) { m.vertices[1].y = NAN; }, "vertex 1");
    refused([](TriangleMesh& m) { m.vertices[2].z = 1001; }, "vertex 2");
    refused([](TriangleMesh& m) { m.triangles[0][1] = 3; }, "triangle 0 has the vertex 3");
    refused([](TriangleMesh& m) { m.material_of = {0, 0}; }, "materials for 2");
    refused([](TriangleMesh& m) { m.material_of = {1}; }, "the material 1");
    refused([](TriangleMesh& m) { m.materials[0].reflectance = 1.5f; }, "\"paint\"");
}

TEST_CASE("a track stands still outside of its poses and exists as long as it has some") {
    const Track track = drives_east();
    CHECK(track.pose_at(11).translation.x == 10);
    CHECK(track.pose_at(9).translation.x == 0);
    CHECK(track.pose_at(13).translation.x == 20);
    CHECK_FALSE(track.exists(std::nextafter(10, 0)));
    CHECK(track.exists(10));
    CHECK(track.exists(12));
    CHECK_FALSE(track.exists(12.1));
    const Track parked = Track::along("parked", Trajectory({{5, {{1, 2, 3}, {}}}}));
    CHECK(parked.exists(-1e9));
    CHECK(parked.exists(1e9));
    CHECK(parked.pose_at(1e9).translation.z == 3);
}

TEST_CASE("a track without poses or time is refused by its name") {
    Track none;
    none.name = "ghost";
    CHECK_THROWS_WITH(none.check(), Catch::Contains("\"ghost\"") && Catch::Contains("no pose"));
    Track backwards = drives_east();
    backwards.end_s = backwards.begin_s;
    CHECK_THROWS_WITH(backwards.check(), Catch::Contains("\"lead\""));
    Track negative = drives_east();
    negative.size.width_m = -1;
    CHECK_THROWS_AS(negative.check(), InputError);
}

TEST_CASE("traffic refuses actors without a shape or an instance") {
    const auto traffic = [](auto spoil) {
        Actor actor = actor_of(drives_east());
        spoil(actor);
        return Traffic(one_shape("box", one_triangle()), {actor});
    };
    CHECK(traffic([](Actor&) {}).actors().size() == 1);
    CHECK_THROWS_WITH(traffic([](Actor& a) { a.shape = 1; }), Catch::Contains("no shape 1"));
    CHECK_THROWS_WITH(traffic([](Actor& a) { a.instance = 0; }), Catch::Contains("instance is 0"));
    CHECK_THROWS_WITH(Traffic(one_shape("empty", SplatTile()), {}),
                      Catch::Contains("\"empty\" has no splats"));
}
