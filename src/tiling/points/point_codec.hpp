#pragma once

#include "model/point.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// Compression of the sorted points of one cell: byte planes of small numbers, then zstd. Coordinates are
/// kept relative to the cell (x as the difference to the point before), so that most planes are nearly
/// constant.
namespace citysplat::tiling {

/// Appends the encoded points. Requires one cell's points in canonical order.
void encode_points(std::span<const TilePoint> points, std::vector<std::byte>& out);

/// Appends `count` points for the given cell. False when the bytes are damaged; the caller checks the
/// checksum of what it got.
bool decode_points(std::span<const std::byte> bytes, std::size_t count, int cell,
                   std::vector<TilePoint>& out);

}  // namespace citysplat::tiling
