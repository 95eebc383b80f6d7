#pragma once

#include "core/math/lattice.hpp"
#include "io/point_file.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

/// The simplest point file there is, for tests of the tiling: an array of records, read back in small blocks.
namespace citysplat::test {

struct CloudPoint {
    double x = 0, y = 0, z = 0, gps_time = 0;
    std::uint16_t label = 0, intensity = 0;
    std::uint32_t withheld = 0;
};
static_assert(sizeof(CloudPoint) == 40);

void write_cloud(const std::filesystem::path& path, const std::vector<CloudPoint>& points);
std::unique_ptr<PointFile> open_cloud(const std::filesystem::path& path);

/// A street through the box [x, x + length) × [y, y + 40): ground, two walls and some clutter, with `per_m2`
/// points per square metre. A function of the arguments alone.
std::vector<CloudPoint> street(std::uint64_t seed, double x, double y, double length, double per_m2);

}  // namespace citysplat::test
