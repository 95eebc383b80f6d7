#include "mesh/marching_cubes.hpp"

#include "core/math/rng_hd.hpp"
#include "core/math/vec_hd.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <set>

using namespace citysplat;
using namespace citysplat::mesh;

namespace {

Vec3d middle(const CellEdge& e) {
    const auto at = [](int corner, int axis) { return static_cast<double>(corner >> axis & 1); };
    return {(at(e.low, 0) + at(e.high, 0)) / 2, (at(e.low, 1) + at(e.high, 1)) / 2,
            (at(e.low, 2) + at(e.high, 2)) / 2};
}

}  // namespace

TEST_CASE("a cell has a vertex on each edge whose ends are on different sides, and on no other") {
    for (int behind = 0; behind < 256; ++behind) {
        std::set<int> crossed, used;
        for (int e = 0; e < kCellEdges; ++e)
            if ((behind >> kCellEdge[static_cast<std::size_t>(e)].low & 1) !=
                (behind >> kCellEdge[static_cast<std::size_t>(e)].high & 1))
                crossed.insert(e);
        for (const CellTriangle& t : triangles_of_cell(static_cast<std::uint8_t>(behind))) {
            used.insert(t.begin(), t.end());
            CHECK((t[0] != t[1] && t[1] != t[2] && t[0] != t[2]));
        }
        CHECK(used == crossed);
    }
}

TEST_CASE("a corner behind the surface is cut off with the triangle facing away from it") {
    for (int corner = 0; corner < kCellCorners; ++corner) {
        const auto triangles = triangles_of_cell(static_cast<std::uint8_t>(1 << corner));
        REQUIRE(triangles.size() == 1);
        const Vec3d a = middle(kCellEdge[triangles[0][0]]), b = middle(kCellEdge[triangles[0][1]]),
                    c = middle(kCellEdge[triangles[0][2]]);
        const Vec3d at{static_cast<double>(corner & 1), static_cast<double>(corner >> 1 & 1),
                       static_cast<double>(corner >> 2 & 1)};
        CHECK(dot(cross(b - a, c - a), a - at) > 0);
    }
}

TEST_CASE("cells of any signs fit together without holes") {
    constexpr int kSide = 24;
    const auto is_behind = [](int x, int y, int z) {
        // Outside of the grid all is in front, so that surfaces are closed.
        if (x == 0 || y == 0 || z == 0 || x == kSide || y == kSide || z == kSide) return false;
        return (rng::mix(static_cast<std::uint64_t>((z * 64 + y) * 64 + x)) & 3) != 0;
    };
    using Vertex = std::array<int, 4>;  // low corner and axis
    std::map<std::pair<Vertex, Vertex>, int> edges;
    for (int z = 0; z < kSide; ++z)
        for (int y = 0; y < kSide; ++y)
            for (int x = 0; x < kSide; ++x) {
                std::uint8_t behind = 0;
                for (int i = 0; i < kCellCorners; ++i)
                    if (is_behind(x + (i & 1), y + (i >> 1 & 1), z + (i >> 2 & 1)))
                        behind |= static_cast<std::uint8_t>(1 << i);
                for (const CellTriangle& t : triangles_of_cell(behind))
                    for (std::size_t i = 0; i < 3; ++i) {
                        const auto vertex = [&](std::uint8_t edge) {
                            const CellEdge& e = kCellEdge[edge];
                            return Vertex{x + (e.low & 1), y + (e.low >> 1 & 1), z + (e.low >> 2 & 1),
                                          e.axis};
                        };
                        const Vertex a = vertex(t[i]), b = vertex(t[(i + 1) % 3]);
                        if (a < b)
                            ++edges[{a, b}];
                        else
                            --edges[{b, a}];
                    }
            }
    REQUIRE(edges.size() > 10000);
    std::size_t open = 0;
    for (const auto& [edge, balance] : edges)
        if (balance != 0) ++open;
    CHECK(open == 0);
}
