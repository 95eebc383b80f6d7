#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace citysplat::mesh {

/// Corner i of a cell lies at (i & 1, i >> 1 & 1, i >> 2 & 1).
inline constexpr int kCellCorners = 8;

/// An edge of a cell: its two corners, the lower first.
struct CellEdge {
    std::uint8_t low, high;
    std::uint8_t axis;
};
inline constexpr int kCellEdges = 12;
extern const std::array<CellEdge, kCellEdges> kCellEdge;

/// Edges of a triangle's corners.
using CellTriangle = std::array<std::uint8_t, 3>;

/// The triangles of a cell (Lorensen and Cline 1987), by which of its corners are behind the surface (bit i:
/// corner i). Counter-clockwise when seen from the front. On each face the corners behind are cut off one run
/// at a time, a rule that two cells which share a face apply alike: there are no holes. Not the table of the
/// paper, which has some.
std::span<const CellTriangle> triangles_of_cell(std::uint8_t behind);

}  // namespace citysplat::mesh
