#pragma once

#include "core/hash.hpp"
#include "trace/tile_cache.hpp"

#include <cstdint>
#include <limits>

namespace citysplat::sim {

/// What became of the scans of one sensor.
struct SimulationReport {
    std::uint64_t scans = 0, rays = 0, hits = 0, dropped = 0, missing = 0;
    std::uint64_t tiles_in_reach = 0;   ///< different tiles that some ray could have met
    std::uint64_t parts_in_reach = 0;   ///< actors that rays could have met, in all scans together
    std::uint64_t part_hits = 0;        ///< of `hits`, those on actors
    std::uint64_t frames = 0;           ///< recorded ones that could be played
    std::uint64_t frames_loaded = 0;    ///< those that scans needed, each time it was read
    std::uint64_t frames_resident = 0;  ///< of them at most at a time
    std::uint64_t passes = 0;           ///< more than one per scan: its surroundings exceeded the budget
    std::uint64_t scans_outside = 0;    ///< farther from every tile than the sensor sees
    double nearest_tile_m = std::numeric_limits<double>::infinity();  ///< from any scan to any tile
    double seconds = 0;
    trace::CacheStatistics cache;
    Hash128 digest;  ///< of all returns, in order of scans and rays
};

}  // namespace citysplat::sim
