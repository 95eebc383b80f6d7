#pragma once

#include "model/point.hpp"
#include "tiling/points/ray.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Compression of the sorted points of one cell: byte planes of small numbers, then zstd. Coordinates are
/// kept relative to the cell (x as the difference to the point before), so that most planes are nearly
/// constant.
namespace citysplat::tiling {

/// How the points of a segment are written and hashed. Numbers are in archives: never change them.
enum class PointLayout : std::uint32_t {
    without_time = 0,  ///< archives of version 1: 20 planes; hashes are of 24 bytes a point, all but the slot
    with_time = 1,     ///< 24 planes; hashes are of the whole TilePoint
    with_rays = 2,     ///< the same, and the segment has spans of rays (point_archive.hpp)
};

/// Appends the encoded points. Requires one cell's points in canonical order.
void encode_points(std::span<const TilePoint> points, std::vector<std::byte>& out);

/// A cell as it was written.
struct EncodedCell {
    std::span<const std::byte> bytes;
    std::size_t points;
    int cell;  ///< its number in the sector
    PointLayout layout;
};
/// Appends the points of a cell. False when the bytes are damaged; the caller checks the checksum of what it
/// got.
bool decode_points(const EncodedCell& cell, std::vector<TilePoint>& out);

/// The same for rays of one sector: 22 planes, sensors as places that hardly differ from ray to ray.
void encode_rays(std::span<const Ray> rays, std::vector<std::byte>& out);
bool decode_rays(std::span<const std::byte> bytes, std::size_t count, std::vector<Ray>& out);

/// Checksum of decoded points in the layout in which they were written.
std::uint64_t checksum_points(std::span<const TilePoint> points, PointLayout layout);

}  // namespace citysplat::tiling
