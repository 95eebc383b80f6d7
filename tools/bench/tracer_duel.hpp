#pragma once

#include "bench/bench_report.hpp"
#include "model/tile_source.hpp"
#include "model/trajectory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace citysplat::bench {

struct DuelOptions {
    std::vector<std::string> sensors;  ///< empty: all that are shipped
    std::uint64_t scans = 6;           ///< of each sensor, spread over the drive
    std::uint64_t rounds = 3;
    std::string instruction_set;  ///< of the group tracer; empty: the best
};

/// The group tracer and Embree on the same rays, in turns, scan by scan, in one run: for each sensor, with
/// the closest hit and with five, on one thread and on two. Also what it takes to load the tiles. Throws
/// CorruptionError when a hit differs in a single byte.
void compare_tracers(const TileSource& city, const Trajectory& trajectory, const DuelOptions& options,
                     Report& report);

}  // namespace citysplat::bench
