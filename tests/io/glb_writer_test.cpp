#include "io/write/gltf/glb_writer.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "io/mesh/mesh_file.hpp"
#include "io/write/gltf/tileset.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace citysplat;
using namespace citysplat::io;

namespace {

/// Two triangles that share an edge, 2 km from zero.
GlbPart roof() {
    return {.name = "roof",
            .origin_m = {2010, 1020, 30},
            .positions = {{0, 0, 1}, {4, 0, 2.5f}, {4, 3, 2.5f}, {0, 3, 1}},
            .normals = std::vector<Vec3f>(4, {0, 0, 1}),
            .intensity = {0, 1000, 65535, 7},
            .label = {1, 1, 2, 2},
            .triangles = {{0, 1, 2}, {0, 2, 3}}};
}

void write(const std::filesystem::path& path, std::span<const GlbPart> parts) {
    FileWriter out(path);
    GlbWriter writer(out, {.origin_m = {2000, 1000, 20}, .crs = "EPSG:2154"}, parts.size());
    for (const GlbPart& part : parts) writer.add(part);
    writer.finish();
    out.finish();
}

nlohmann::json json_of(const std::filesystem::path& path) {
    const std::string text = read_text_file(path);
    std::uint32_t length = 0;
    std::memcpy(&length, text.data() + 12, 4);
    return nlohmann::json::parse(text.substr(20, length));
}

}  // namespace

TEST_CASE("triangles written as GLB are read back where they are, metres and z up") {
    const test::TempDir dir;
    GlbPart floor = roof();
    floor.origin_m.z = 20;
    write(dir / "a.glb", std::array{roof(), GlbPart{}, floor});
    const MeshFile mesh = read_mesh((dir / "a.glb").string());
    REQUIRE(mesh.faces.size() == 4);
    REQUIRE(mesh.vertices.size() == 8);
    // The reader makes GLB's z its x, x its y and y its z: for our file that is a turn about the vertical.
    const auto world = [](Vec3d v) { return Vec3d{v.y + 2000, -v.x + 1000, v.z + 20}; };
    const GlbPart part = roof();
    for (std::size_t i = 0; i < 8; ++i) {
        const Vec3d origin = i < 4 ? part.origin_m : floor.origin_m;
        const Vec3d off = world(mesh.vertices[i]) - (origin + vec_cast<double>(part.positions[i % 4]));
        CAPTURE(i, mesh.vertices[i].x, mesh.vertices[i].y, mesh.vertices[i].z);
        CHECK(length(off) < 1e-9);
    }
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t k = 0; k < 3; ++k)
            CHECK(mesh.faces[i].corners[k] == part.triangles[i % 2][k] + (i < 2 ? 0 : 4));
    const auto json = json_of(dir / "a.glb");
    CHECK(json["asset"]["extras"]["origin_m"] == nlohmann::json({2000.0, 1000.0, 20.0}));
    CHECK(json["asset"]["extras"]["crs"] == "EPSG:2154");
    CHECK(json["meshes"].size() == 2);
    CHECK(json["meshes"][0]["primitives"][0]["mode"] == 4);
    CHECK(json["accessors"][0]["min"] == nlohmann::json({0.0, 0.0, 1.0}));
    CHECK(json["accessors"][0]["max"] == nlohmann::json({4.0, 3.0, 2.5}));
}

TEST_CASE("a GLB file without parts is one, and a part too many is a mistake of the program") {
    const test::TempDir dir;
    write(dir / "none.glb", {});
    const auto json = json_of(dir / "none.glb");
    CHECK(json["nodes"].size() == 1);
    CHECK_FALSE(json.contains("buffers"));
    FileWriter out(dir / "more.glb");
    GlbWriter writer(out, {}, 1);
    writer.add(roof());
    CHECK_THROWS_AS(writer.add(roof()), std::logic_error);
}

TEST_CASE("a tileset places its tiles by differences of their origins") {
    TilesetTile root{
        .origin_m = {640, 128, 0}, .box = {{650, 130, 1}, {690, 190, 9}}, .error_m = 2, .content = "a.glb"};
    root.children.push_back(
        {.origin_m = {640, 192, 0}, .box = {{650, 192, 1}, {660, 199, 3}}, .content = "b.glb"});
    const auto json = nlohmann::json::parse(tileset_text(root, {.crs = "EPSG:25832"}));
    CHECK(json["asset"]["version"] == "1.1");
    CHECK(json["asset"]["extras"]["origin_m"] == nlohmann::json({640.0, 128.0, 0.0}));
    CHECK(json["root"]["geometricError"] == 2);
    CHECK(json["geometricError"] > 60);
    const auto& child = json["root"]["children"][0];
    CHECK(child["transform"][13] == 64);
    CHECK(child["transform"][12] == 0);
    CHECK(child["boundingVolume"]["box"] ==
          nlohmann::json({15.0, 3.5, 2.0, 5.0, 0, 0, 0, 3.5, 0, 0, 0, 1.0}));
    CHECK(child["geometricError"] == 0);
}
