#pragma once

#include "splat/levels/level_pyramid.hpp"
#include "view/scans/scan_folder.hpp"
#include "view/server/exchange.hpp"

#include <cstdint>

namespace citysplat::view {

/// A cube as it travels to the page (docs/formats.md). Little-endian, in 32-bit words:
///
///   0  "CSLV"           4  corner: x y z, whole metres (i32)     10  least corner of all discs (3 × i32)
///   1  version, level   7  discs                                 13  largest (3 × i32)
///   2  unit shift       8  pieces
///   3  children, flags  9  words before the columns
///
/// then ten words for each piece: first, count, place, 0, least corner, largest corner; zeros to a multiple
/// of 64 bytes; and the columns of SplatTile as they stand in memory, which go into a texture unchanged.
inline constexpr std::uint32_t kCubeMagic = 0x564c5343, kCubeVersion = 1;
inline constexpr std::size_t kCubeHeaderWords = 16, kPieceWords = 10;

/// The columns are sent from the cube, which the response keeps alive.
Response cube_response(splat::LevelCubePtr cube);

/// A scan as a cube of one piece, in the order of its file; incomplete when points were too far away.
splat::LevelCubePtr cube_of_points(PlayedScan scan);

}  // namespace citysplat::view
