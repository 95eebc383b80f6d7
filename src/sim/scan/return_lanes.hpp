#pragma once

#include "sim/scan/return_hd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

/// measurement_of() and angles for many returns at a time: most of the time of a return is arithmetic. Every
/// instruction set gives the bits of the functions for one, operation by operation.
namespace citysplat::sim {

/// Some rays that met something, as columns.
struct EchoColumns {
    static constexpr std::size_t kMost = 64;  ///< a multiple of all vectors

    alignas(64) float direction_x[kMost] = {}, direction_y[kMost] = {}, direction_z[kMost] = {};
    alignas(64) std::uint32_t packed_normal[kMost] = {};
    alignas(64) std::uint64_t ray[kMost] = {};  ///< Firing::ray
    /// Measurement, by columns; before it is made, range_m is that of the echo.
    alignas(64) double range_m[kMost] = {};
    alignas(64) float normal_x[kMost] = {}, normal_y[kMost] = {}, normal_z[kMost] = {}, cosine[kMost] = {};

    Measurement measurement(std::size_t i) const {
        return {{normal_x[i], normal_y[i], normal_z[i]}, cosine[i], range_m[i]};
    }
};

struct ReturnLanes {
    /// The measurements of the first `count` echoes. `scan` is the scan's scan_key().
    void (*measure)(const ReturnModel& model, std::uint64_t scan, std::size_t count, EchoColumns& echoes);
    /// incidence_deg() of each cosine, in place.
    void (*incidences)(std::span<float> cosines);
};

/// For the instruction set of this machine.
ReturnLanes return_lanes();

}  // namespace citysplat::sim
