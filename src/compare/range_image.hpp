#pragma once

#include "io/write/picture.hpp"
#include "model/recorded_scan.hpp"
#include "sim/scan/return_hd.hpp"

#include <span>

namespace citysplat::compare {

/// Three range images of a sweep, one below the other: real, simulated, difference. A row is a beam, from the
/// top; a column an azimuth step. Requires a scan with beams.
///
/// Ranges: white at the sensor, over yellow, red and violet to dark blue at 80 m; black: no return.
/// Difference: dark grey where the ranges agree within 5 cm; blue where the simulation is nearer, red where
/// it is farther, full at 1 m; magenta: a hole; yellow: a return too many; black: no return in both.
Picture range_images(const RecordedScan& scan, std::span<const sim::Return> simulated);

}  // namespace citysplat::compare
