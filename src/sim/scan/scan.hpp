#pragma once

#include "model/trajectory.hpp"
#include "sim/scan/return_hd.hpp"
#include "trace/motion_hd.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::sim {

/// One sweep of one sensor.
struct Scan {
    std::uint64_t index = 0;
    double time_s = 0;       ///< when it began
    Pose world_from_sensor;  ///< at that time
    /// Poses of the sensor during the sweep, as its rays had them (ScanView); empty: it stood still.
    std::vector<trace::PoseKey> keys;
    float keys_per_second = 0;
    /// One for each pulse, in firing order; then, of a sensor that reports two, the second ones of all
    /// pulses.
    std::vector<Return> returns;
    std::uint32_t returns_per_pulse = 1;
    std::uint64_t hits = 0, dropped = 0, missing = 0;
    std::uint64_t part_hits = 0;  ///< of `hits`, those on what is not the city

    std::size_t pulses() const { return returns.size() / returns_per_pulse; }
};

}  // namespace citysplat::sim
