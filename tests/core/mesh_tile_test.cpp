#include "model/mesh_tile.hpp"

#include "core/error.hpp"
#include "model/splat_hd.hpp"
#include "model/welded_mesh.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace citysplat;

namespace {

/// A square of two triangles at (x, y, 0) in lattice steps of the world, as a tile of this frame.
MeshTile square(TileFrame frame, std::int64_t x, std::int64_t y) {
    const LatticePoint origin = frame.origin();
    const auto vertex = [&](std::int64_t dx, std::int64_t dy) {
        return MeshVertex{.x = static_cast<std::int32_t>(x + dx - origin.x),
                          .y = static_cast<std::int32_t>(y + dy - origin.y),
                          .z = static_cast<std::int32_t>(-origin.z),
                          .normal = pack_normal({0, 0, 1}),
                          .label = 7,
                          .intensity = static_cast<std::uint16_t>(100 + dx),
                          .range = 12,
                          .incidence = kUnknownByte};
    };
    const std::vector<MeshVertex> vertices{vertex(0, 0), vertex(10, 0), vertex(10, 10), vertex(0, 10)};
    const std::vector<MeshTriangle> triangles{{0, 1, 2}, {0, 2, 3}};
    return {frame, vertices, triangles};
}

}  // namespace

TEST_CASE("a mesh tile gives back what it was made of") {
    const TileFrame frame{100, -300, 20};
    const std::vector<MeshVertex> vertices{{-5, 4, 3, 0x80017fffu, 65535, 1, 254, 255},
                                           {MeshTile::kMaxSteps, -MeshTile::kMaxSteps, 0, 5, 2, 3, 0, 7},
                                           {1, 2, 3, 4, 5, 6, 7, 8}};
    const std::vector<MeshTriangle> triangles{{0, 1, 2}, {2, 1, 0}};
    const MeshTile tile(frame, vertices, triangles);
    REQUIRE(tile.vertex_count() == 3);
    REQUIRE(tile.triangle_count() == 2);
    for (std::size_t i = 0; i < 3; ++i) CHECK(tile.vertex(i) == vertices[i]);
    for (std::size_t i = 0; i < 2; ++i) CHECK(tile.triangle(i) == triangles[i]);
    CHECK(tile.world(tile.vertex(0)) ==
          LatticePoint{100 * kLatticePerMetre - 5, -300 * kLatticePerMetre + 4, 20 * kLatticePerMetre + 3});
    CHECK(tile.bytes().size() == MeshTile::body_bytes(3, 2));
    CHECK(tile.bytes().size() % 64 == 0);
}

TEST_CASE("the digest of triangles does not see tiles, numbers of vertices, or which corner is first") {
    const TileFrame here{0, 0, 0}, there{-40, 300, 5};
    CHECK(square(here, 3, 4).digest() == square(there, 3, 4).digest());
    CHECK(square(here, 3, 4).digest() != square(here, 3, 5).digest());

    const MeshTile tile = square(here, 3, 4);
    std::vector<MeshVertex> vertices;
    for (const std::size_t i : {2, 0, 3, 1}) vertices.push_back(tile.vertex(i));
    // 0 → 1, 1 → 3, 2 → 0, 3 → 2
    const std::vector<MeshTriangle> turned{{0, 2, 1}, {3, 0, 1}};
    CHECK(MeshTile(here, vertices, turned).digest() == tile.digest());
    const std::vector<MeshTriangle> flipped{{2, 0, 1}, {3, 0, 1}};
    CHECK(MeshTile(here, vertices, flipped).digest() != tile.digest());
    vertices[0].intensity += 1;
    CHECK(MeshTile(here, vertices, turned).digest() != tile.digest());
}

TEST_CASE("a triangle that names a vertex that is not there is found out") {
    MeshTile tile = square({0, 0, 0}, 0, 0);
    CHECK_NOTHROW(tile.check("tile 0/0/0"));
    const std::size_t at = MeshTile::body_bytes(4, 0);
    const std::uint32_t wrong = 4;
    std::memcpy(tile.mutable_bytes().data() + at + 4, &wrong, sizeof wrong);
    CHECK_THROWS_AS(tile.check("tile 0/0/0"), CorruptionError);
}

TEST_CASE("tiles are welded where vertices are equal in the world") {
    WeldedMesh mesh;
    mesh.add(square({0, 0, 0}, 0, 0));
    CHECK(mesh.vertices().size() == 4);
    mesh.add(square({8, 1, -3}, 0, 10));  // its lower edge is the upper one of the first
    CHECK(mesh.vertices().size() == 6);
    REQUIRE(mesh.triangles().size() == 4);
    CHECK(mesh.triangles()[2] == MeshTriangle{3, 2, 4});
    CHECK(mesh.vertices()[4].at == LatticePoint{10, 20, 0});
}

TEST_CASE("a triangle has the class of most of its corners and the normal of its own plane") {
    std::array<MeshVertex, 3> corners{
        {{0, 0, 0, 1, 4, 10, 20, 255}, {9, 0, 9, 2, 8, 20, 255, 255}, {0, 9, 0, 3, 8, 31, 31, 255}}};
    const TriangleFacts facts = facts_of(corners);
    CHECK(facts.label == 8);
    CHECK(facts.intensity == 20);
    CHECK(facts.range == 25);
    CHECK(facts.incidence == kUnknownByte);
    const Vec3f n = unpack_normal(facts.normal);
    CHECK(n.x == Approx(-std::sqrt(0.5f)).margin(1e-4));
    CHECK(n.z == Approx(std::sqrt(0.5f)).margin(1e-4));
    corners[2].label = 6;
    CHECK(facts_of(corners).label == 4);
}
