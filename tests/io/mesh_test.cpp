#include "core/error.hpp"
#include "core/file.hpp"
#include "io/glb_image.hpp"
#include "io/mesh/mesh_formats.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace citysplat;
using io::MeshFile;

namespace {

using Corners = std::array<std::array<double, 3>, 3>;

/// Triangles as corners, in an order of their own: what a mesh is, however it is numbered.
std::multiset<Corners> triangles_of(const MeshFile& mesh) {
    std::multiset<Corners> all;
    for (const io::MeshFace& face : mesh.faces) {
        Corners c;
        for (std::size_t i = 0; i < 3; ++i) {
            const Vec3d v = mesh.vertices[face.corners[i]];
            c[i] = {v.x, v.y, v.z};
        }
        std::rotate(c.begin(), std::min_element(c.begin(), c.end()), c.end());
        all.insert(c);
    }
    return all;
}

double area_of(const MeshFile& mesh) {
    double sum = 0;
    for (const io::MeshFace& f : mesh.faces)
        sum += length(cross(mesh.vertices[f.corners[1]] - mesh.vertices[f.corners[0]],
                            mesh.vertices[f.corners[2]] - mesh.vertices[f.corners[0]])) /
               2;
    return sum;
}

MeshFile obj(const std::string& text, const std::string& library = "") {
    return io::parse_obj(text, "a.obj", [&](const std::string& name) -> std::optional<std::string> {
        if (library.empty() || name != "a.mtl") return std::nullopt;
        return library;
    });
}

MeshFile glb(test::GlbImage image) { return io::parse_glb(image.bytes(), "a.glb"); }

void write(const std::filesystem::path& path, std::string_view content) {
    FileWriter out(path);
    out.text(content);
    out.finish();
}

/// What the reader says about a bad file.
template <class Read>
std::string message_of(Read&& read) {
    try {
        read();
    } catch (const InputError& e) {
        return e.what();
    }
    return "no error";
}

/// A box of 4 × 2 × 1 m, bottom at z = 0, as quads; the vertices of kTextPly are the same.
constexpr const char* kBoxObj =
    "mtllib a.mtl\n"
    "v -2 -1 0\nv 2 -1 0\nv 2 1 0\nv -2 1 0\nv -2 -1 1\nv 2 -1 1\nv 2 1 1\nv -2 1 1\n"
    "usemtl body\nf 4 3 2 1\nf 5 6 7 8\nusemtl glass\nf 1 2 6 5\nf 2/1 3/1 7/1 6/1\nf 3//2 4//2 8//2 7//2\n"
    "f -5/1/1 -8/1/1 -4/1/1 -1/1/1\n";
constexpr int kQuads[6][4]{{3, 2, 1, 0}, {4, 5, 6, 7}, {0, 1, 5, 4},
                           {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}};
constexpr float kBox[8][3]{{-2, -1, 0}, {2, -1, 0}, {2, 1, 0}, {-2, 1, 0},
                           {-2, -1, 1}, {2, -1, 1}, {2, 1, 1}, {-2, 1, 1}};

template <class T>
void put(std::string& out, T value, bool big_endian) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    std::string word(bytes, sizeof value);
    if (big_endian) std::reverse(word.begin(), word.end());
    out += word;
}

std::string box_ply(const std::string& format) {
    std::string file = "ply\nformat " + format +
                       " 1.0\nelement vertex 8\nproperty float x\nproperty uchar red\nproperty float y\n"
                       "property float z\nelement face 6\nproperty list uchar float weight\n"
                       "property list uchar int vertex_indices\nproperty short group\nend_header\n";
    const bool text = format == "ascii", big = format == "binary_big_endian";
    const auto number = [&](auto value) {
        if (text)
            file += std::to_string(value) + " ";
        else
            put(file, value, big);
    };
    const auto end = [&] { file += text ? "\n" : ""; };
    for (const auto& v : kBox) number(v[0]), number(std::uint8_t{7}), number(v[1]), number(v[2]), end();
    for (const auto& q : kQuads) {
        number(std::uint8_t{2}), number(0.5f), number(1.5f), number(std::uint8_t{4});
        for (const int i : q) number(i);
        number(std::int16_t{-3}), end();
    }
    return file;
}

}  // namespace

TEST_CASE("a box is the same mesh in OBJ and in all kinds of PLY and in GLB") {
    const test::TempDir dir;
    const auto want = triangles_of(obj(kBoxObj, "newmtl body\nnewmtl glass\n"));
    REQUIRE(want.size() == 12);
    for (const char* format : {"ascii", "binary_little_endian", "binary_big_endian"}) {
        write(dir / "box.ply", box_ply(format));
        CHECK(triangles_of(io::read_mesh(dir / "box.ply")) == want);
    }
    // y up and z forward: our (x, y, z) is (y, z, x) there.
    test::GlbImage image;
    std::vector<float> places;
    std::vector<std::uint32_t> corners;
    for (const auto& v : kBox) places.insert(places.end(), {v[1], v[2], v[0]});
    for (const auto& q : kQuads)
        for (const int i : {0, 1, 2, 0, 2, 3}) corners.push_back(static_cast<std::uint32_t>(q[i]));
    const std::size_t p = image.add(places, "VEC3", 5126), c = image.add(corners, "SCALAR", 5125);
    image.json["meshes"].push_back({{"primitives", {{{"attributes", {{"POSITION", p}}}, {"indices", c}}}}});
    image.json["nodes"].push_back({{"mesh", 0}});
    CHECK(triangles_of(glb(image)) == want);
    write(dir / "up.obj",
          "v 0 0 0\nv 1 0 0\nv 0 2 0\nf 1 2 3\n");  // y up: the second vertex is left, the third above
    const MeshFile up = io::read_mesh(dir / "up.obj", io::MeshAxes::y_up);
    CHECK(up.vertices[1].y == 1);
    CHECK(up.vertices[2].z == 2);
}

TEST_CASE("materials have names and the luminance of their colour") {
    const MeshFile mesh = obj(kBoxObj, "newmtl body\nKd 1 0 0\nnewmtl glass\nKd 0.5 0.5 0.5\n");
    REQUIRE(mesh.materials.size() == 2);
    CHECK(mesh.materials[0].name == "body");
    CHECK(*mesh.materials[0].reflectance == Approx(0.2126));
    CHECK(*mesh.materials[1].reflectance == Approx(0.5));
    CHECK(mesh.faces[0].material == 0);
    CHECK(mesh.faces[11].material == 1);
    const MeshFile without = obj(kBoxObj);
    REQUIRE(without.notes.size() == 1);
    CHECK_THAT(without.notes[0], Catch::Contains("a.mtl") && Catch::Contains("not beside"));
    CHECK(without.materials[0].name == "body");
    CHECK_FALSE(without.materials[0].reflectance);
    const MeshFile paint = glb(test::glb_triangle());
    CHECK(paint.materials[0].name == "paint");
    CHECK(*paint.materials[0].reflectance == Approx(0.5));
}

TEST_CASE("polygons that are not convex keep their area") {
    // A U of area 5, a comb of area 8, and the U upright: as one face each, turning either way.
    for (const char* text :
         {"v 0 0 0\nv 3 0 0\nv 3 2 0\nv 2 2 0\nv 2 1 0\nv 1 1 0\nv 1 2 0\nv 0 2 0\nf 1 2 3 4 5 6 7 8\n",
          "v 0 0 0\nv 3 0 0\nv 3 2 0\nv 2 2 0\nv 2 1 0\nv 1 1 0\nv 1 2 0\nv 0 2 0\nf 8 7 6 5 4 3 2 1\n",
          "v 5 0 0\nv 5 3 0\nv 5 3 2\nv 5 2 2\nv 5 2 1\nv 5 1 1\nv 5 1 2\nv 5 0 2\nf 6 7 8 1 2 3 4 5\n"}) {
        const MeshFile mesh = obj(text);
        CHECK(mesh.faces.size() == 6);
        CHECK(area_of(mesh) == Approx(5));
    }
    const MeshFile quad = obj("v 0 0 0\nv 2 0 0\nv 0.5 0.5 0\nv 0 2 0\nf 1 2 3 4\n");
    CHECK(area_of(quad) == Approx(1));
}

TEST_CASE("strips and fans and nested nodes of GLB become the triangles they stand for") {
    test::GlbImage image;
    const std::size_t strip = image.add<float>({0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 2, 0}, "VEC3", 5126);
    const std::size_t fan = image.add<float>({0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0}, "VEC3", 5126);
    const std::size_t order = image.add<std::uint8_t>({0, 1, 2, 3}, "SCALAR", 5121);
    image.json["meshes"] = {{{"primitives",
                              {{{"attributes", {{"POSITION", strip}}}, {"mode", 5}},
                               {{"attributes", {{"POSITION", fan}}}, {"indices", order}, {"mode", 6}}}}}};
    image.json["scenes"] = {{{"nodes", {0}}}};
    // A parent that moves by 10 to the left and turns the model half around the upward axis; the child scales
    // by two; a node outside the scene is not there.
    image.json["nodes"] = {{{"children", {1}}, {"translation", {10, 0, 0}}, {"rotation", {0, 1, 0, 0}}},
                           {{"mesh", 0}, {"matrix", {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 3, 1}}},
                           {{"mesh", 0}}};
    const MeshFile mesh = glb(image);
    REQUIRE(mesh.faces.size() == 5);
    CHECK(area_of(mesh) == Approx(4 * (1.5 + 1)));
    // (0, 0, 0) → scaled, moved to (0, 0, 3), turned to (0, 0, −3), moved to (10, 0, −3): x = −3, y = 10.
    CHECK(mesh.vertices[0].x == Approx(-3));
    CHECK(mesh.vertices[0].y == Approx(10));
    CHECK(mesh.vertices[4].z == Approx(4));
    // The triangles of a strip all turn the same way.
    for (const io::MeshFace& f : mesh.faces)
        CHECK(cross(mesh.vertices[f.corners[1]] - mesh.vertices[f.corners[0]],
                    mesh.vertices[f.corners[2]] - mesh.vertices[f.corners[0]])
                  .x < 0);
}

TEST_CASE("faces without area are left out and counted") {
    const MeshFile mesh = obj("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 2 0 0\nf 1 2 3\nf 1 2 4\nf 1 1 2\n");
    CHECK(mesh.faces.size() == 1);
    REQUIRE(mesh.notes.size() == 1);
    CHECK_THAT(mesh.notes[0], Catch::Contains("2 faces"));
}

TEST_CASE("broken OBJ files are refused by file and line") {
    const std::pair<const char*, const char*> cases[]{
        {"v 0 0\n", "line 1: a vertex with 2 numbers"},
        {"v 0 0 x\n", "line 1: \"x\" is not a number"},
        {"v 0 0 nan\n", "line 1: the coordinate nan is not finite"},
        {"v 0 0 1e9\n", "not on Earth"},
        {"v 0 0 0\nf 1 2 3\n", "line 2: \"2\" is not one of the 1 vertices"},
        {"v 0 0 0\nf -1 -2 -3\n", "line 2: \"-2\" is not one of the 1 vertices"},
        {"v 0 0 0\nf 0 1 1\n", "line 2: \"0\""},
        {"v 0 0 0\nf 1 1\n", "line 2: a face with 2 corners"},
        {"vertex 1 2 3\n", "\"vertex\" is not a keyword"},
        {"cstype bezier\n", "curves and surfaces"},
        {"v 0 0 0\n", "no face"},
        {"", "no face"},
        {"v 0 0 0 0.5\n", "weight"},
        {"v 0 0 0 \\\n", "middle of a line"},
    };
    for (const auto& [text, words] : cases) {
        INFO(text);
        CHECK_THAT(message_of([&] { obj(text); }), Catch::StartsWith("a.obj: ") && Catch::Contains(words));
    }
    // Without any library a material has a name; one that the library does not have is a mistake.
    const std::string unknown = "v 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl nix\nf 1 2 3\n";
    CHECK(obj(unknown).materials[0].name == "nix");
    CHECK_THAT(message_of([&] { obj("mtllib a.mtl\n" + unknown, "newmtl body\n"); }),
               Catch::Contains("line 6: no library of materials before it has the material \"nix\""));
    CHECK_THAT(message_of([&] { obj("mtllib a.mtl\n", "Kd 1 2 3\n"); }),
               Catch::Contains("a.mtl (of a.obj): line 1"));
}

TEST_CASE("broken GLB files are refused by the place in the file") {
    const auto message = [](const auto& change) {
        test::GlbImage image = test::glb_triangle();
        change(image.json);
        return message_of([&] { glb(image); });
    };
    using nlohmann::json;
    CHECK_THAT(message([](json& j) {
                   j["accessors"][0]["sparse"] = {{"count", 1}};
               }),
               Catch::Contains("accessors[0]: sparse accessors are not supported"));
    CHECK_THAT(message([](json& j) { j["extensionsRequired"] = {"KHR_draco_mesh_compression"}; }),
               Catch::Contains("the extension KHR_draco_mesh_compression is not supported"));
    CHECK_THAT(message([](json& j) {
                   j["extensionsUsed"] = {"KHR_draco_mesh_compression"};
                   j["accessors"][0].erase("bufferView");
               }),
               Catch::Contains("KHR_draco_mesh_compression"));
    CHECK_THAT(message([](json& j) { j["nodes"][0]["skin"] = 0; }), Catch::Contains("nodes[0].skin: skins"));
    CHECK_THAT(message([](json& j) { j["nodes"][0]["children"] = {0}; }), Catch::Contains("below itself"));
    CHECK_THAT(message([](json& j) { j["nodes"][0]["mesh"] = 7; }),
               Catch::Contains("meshes: has no number 7"));
    CHECK_THAT(message([](json& j) { j["nodes"][0]["mesh"] = -1; }), Catch::Contains("whole number"));
    CHECK_THAT(message([](json& j) { j["accessors"][0]["count"] = 4; }),
               Catch::Contains("4 elements do not fit"));
    CHECK_THAT(message([](json& j) { j["bufferViews"][0]["byteLength"] = 1000; }),
               Catch::Contains("of a binary chunk of 44"));
    CHECK_THAT(message([](json& j) { j["accessors"][1]["byteOffset"] = 1000; }),
               Catch::Contains("do not fit"));
    CHECK_THAT(message([](json& j) { j["accessors"][1]["count"] = 2; }),
               Catch::Contains("2 corners do not make triangles"));
    CHECK_THAT(message([](json& j) {
                   j["nodes"][0]["rotation"] = {0, 0, 0, 0};
               }),
               Catch::Contains("quaternion of length 1"));
    CHECK_THAT(message([](json& j) {
                   j["nodes"][0]["scale"] = {1e300, 1e300, 1e300};
               }),
               Catch::Contains("POSITION: vertex"));
    CHECK_THAT(message([](json& j) { j["buffers"][0]["uri"] = "a.bin"; }),
               Catch::Contains("outside the file"));
    CHECK_THAT(message([](json& j) { j["meshes"][0]["primitives"][0]["targets"] = json::array(); }),
               Catch::Contains("morph targets"));
    CHECK(message([](json&) {}) == "no error");

    test::GlbImage wild = test::glb_triangle();
    wild.binary[36] = 3;  // the first index
    CHECK_THAT(message_of([&] { glb(wild); }), Catch::Contains("corner 0: vertex 3 of 3"));
    std::string bytes = test::glb_triangle().bytes();
    CHECK_THAT(message_of([&] { io::parse_glb(bytes.substr(0, bytes.size() - 1), "a.glb"); }),
               Catch::Contains("byte 8: the file claims"));
    bytes[4] = 1;
    CHECK_THAT(message_of([&] { io::parse_glb(bytes, "a.glb"); }), Catch::Contains("byte 4: version 1"));
    CHECK_THAT(message_of([&] { io::parse_glb("ply", "a.glb"); }), Catch::Contains("not a GLB file"));
}

TEST_CASE("broken PLY meshes are refused by file and face") {
    const test::TempDir dir;
    const std::string good = box_ply("ascii");
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t at = text.rfind(from);
        REQUIRE(at != std::string::npos);
        text.replace(at, from.size(), to);
        write(dir / "a.ply", text);
        return message_of([&] { io::read_mesh(dir / "a.ply"); });
    };
    CHECK_THAT(with("4 3 0 4 7", "4 3 0 4 8"), Catch::Contains("face 5: 8 is not one of the 8 vertices"));
    CHECK_THAT(with("4 3 0 4 7", "4 3 0 4 1.5"), Catch::Contains("face 5: 1.5"));
    CHECK_THAT(with("4 3 0 4 7", "4 3 0 4"), Catch::Contains("face 5"));
    CHECK_THAT(with("element face 6", "element face 7"), Catch::Contains("face 6: the line ends"));
    CHECK_THAT(with("vertex_indices", "corners"), Catch::Contains("no list \"vertex_indices\""));
    CHECK_THAT(with("property float z", "property float w"), Catch::Contains("0 properties \"z\""));
    CHECK_THAT(with("element face", "element facet"), Catch::Contains("no element \"face\""));
    std::string binary = box_ply("binary_little_endian");
    binary.resize(binary.size() - 3);
    write(dir / "b.ply", binary);
    CHECK_THAT(message_of([&] { io::read_mesh(dir / "b.ply"); }),
               Catch::Contains("b.ply: face 5: the file ends"));
    CHECK_THAT(message_of([&] { io::read_mesh(dir / "b.gltf"); }), Catch::Contains("one .glb"));
}

TEST_CASE("files that name endless libraries, or the same faces again and again, are refused in time") {
    const test::TempDir dir;
    std::string text;
    for (int i = 0; i < 1001; ++i) text += "mtllib none" + std::to_string(i) + "\n";
    write(dir / "a.obj", text + "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    CHECK_THAT(message_of([&] { io::read_mesh(dir / "a.obj"); }),
               Catch::Contains("a.obj: line 1001: more than 1 000 libraries"));

    // A hundred nodes with one mesh of 300 000 triangles without area.
    test::GlbImage glb = test::glb_triangle();
    glb.json["meshes"][0]["primitives"][0]["indices"] =
        glb.add(std::vector<std::uint8_t>(900'000, 0), "SCALAR", 5121);
    glb.json["nodes"] = nlohmann::json::array();
    for (int i = 0; i < 100; ++i) glb.json["nodes"].push_back({{"mesh", 0}});
    CHECK_THAT(message_of([&] { io::parse_glb(glb.bytes(), "a.glb"); }),
               Catch::Contains("a.glb.meshes[0].primitives[0]: corner ") &&
                   Catch::Contains("more than 20 000 000 triangles"));
}
