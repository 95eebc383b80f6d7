#include "mesh/marching_cubes.hpp"

#include <cstddef>
#include <vector>

namespace citysplat::mesh {

namespace {

constexpr std::array<CellEdge, kCellEdges> make_edges() {
    std::array<CellEdge, kCellEdges> edges{};
    std::size_t next = 0;
    for (std::uint8_t axis = 0; axis < 3; ++axis)
        for (std::uint8_t corner = 0; corner < kCellCorners; ++corner)
            if ((corner >> axis & 1) == 0)
                edges[next++] = {corner, static_cast<std::uint8_t>(corner | 1 << axis), axis};
    return edges;
}

std::uint8_t edge_between(std::uint8_t a, std::uint8_t b) {
    for (std::uint8_t e = 0; e < kCellEdges; ++e)
        if ((kCellEdge[e].low == a && kCellEdge[e].high == b) ||
            (kCellEdge[e].low == b && kCellEdge[e].high == a))
            return e;
    return kCellEdges;
}

/// The corners of the face where coordinate `axis` is `side`, counter-clockwise from outside.
std::array<std::uint8_t, 4> face_corners(unsigned axis, unsigned side) {
    const unsigned u = (axis + 1) % 3, v = (axis + 2) % 3, base = side << axis;
    const auto corner = [&](unsigned a, unsigned b) {
        return static_cast<std::uint8_t>(base | a << u | b << v);
    };
    if (side == 1) return {corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)};
    return {corner(0, 0), corner(0, 1), corner(1, 1), corner(1, 0)};
}

constexpr std::uint8_t kNone = kCellEdges;

/// For each edge that the surface crosses, the next one around it, with the front of the surface outside.
std::array<std::uint8_t, kCellEdges> contour(std::uint8_t behind) {
    std::array<std::uint8_t, kCellEdges> next;
    next.fill(kNone);
    const auto is_behind = [behind](std::uint8_t corner) { return (behind >> corner & 1) != 0; };
    for (unsigned face = 0; face < 6; ++face) {
        const auto ring = face_corners(face / 2, face % 2);
        for (std::size_t i = 0; i < 4; ++i) {
            // A run of corners behind begins after corner i and ends before corner j.
            if (is_behind(ring[i]) || !is_behind(ring[(i + 1) % 4])) continue;
            std::size_t j = (i + 1) % 4;
            while (is_behind(ring[j])) j = (j + 1) % 4;
            const std::uint8_t entering = edge_between(ring[i], ring[(i + 1) % 4]);
            const std::uint8_t leaving = edge_between(ring[(j + 3) % 4], ring[j]);
            next[entering] = leaving;
        }
    }
    return next;
}

std::vector<CellTriangle> make_cell(std::uint8_t behind) {
    std::vector<CellTriangle> triangles;
    auto next = contour(behind);
    for (std::uint8_t first = 0; first < kCellEdges; ++first) {
        if (next[first] == kNone) continue;
        std::vector<std::uint8_t> loop;
        for (std::uint8_t e = first; next[e] != kNone;) {
            loop.push_back(e);
            const std::uint8_t following = next[e];
            next[e] = kNone;
            e = following;
        }
        for (std::size_t i = 2; i < loop.size(); ++i) triangles.push_back({loop[0], loop[i - 1], loop[i]});
    }
    return triangles;
}

}  // namespace

const std::array<CellEdge, kCellEdges> kCellEdge = make_edges();

std::span<const CellTriangle> triangles_of_cell(std::uint8_t behind) {
    static const auto table = [] {
        std::array<std::vector<CellTriangle>, 256> cells;
        for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = make_cell(static_cast<std::uint8_t>(i));
        return cells;
    }();
    return table[behind];
}

}  // namespace citysplat::mesh
