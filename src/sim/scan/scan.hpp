#pragma once

#include "model/trajectory.hpp"
#include "sim/scan/return_hd.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::sim {

/// One sweep of one sensor.
struct Scan {
    std::uint64_t index = 0;
    double time_s = 0;            ///< when it began
    Pose world_from_sensor;       ///< at that time
    std::vector<Return> returns;  ///< every ray, in firing order
    std::uint64_t hits = 0, dropped = 0, missing = 0;
};

}  // namespace citysplat::sim
