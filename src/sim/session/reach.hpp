#pragma once

#include "model/tile_source.hpp"
#include "model/trajectory.hpp"
#include "sim/scan/scanner.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace citysplat::sim {

/// What a sensor can meet.
struct Reach {
    std::vector<std::uint32_t> tiles;  ///< within its range, by index
    /// From its path to any tile with splats.
    double nearest_m = std::numeric_limits<double>::infinity();
};
Reach reach_from(const TileSource& city, const Box3d& path, double range_m);

/// Around the origins of all rays of the scan that begins at this time. Requires that the trajectory covers
/// the sweep.
Box3d path_during(const SensorRun& run, const Trajectory& trajectory, double time_s);

}  // namespace citysplat::sim
