#pragma once

#include "core/cancel.hpp"
#include "sim/recorded/recorded_drive.hpp"

#include <string>

namespace citysplat::sim {

/// The sensor of a drive as a sensor file (docs/sensors.md), from what its scans show: beams, columns of a
/// turn, rate, sense of turning, nearest and farthest return. What scans do not show (noise, divergence) is
/// left out. So a model can be learned without knowing which device it was.
///
/// Requires that find_beams() was called. Throws InputError when the scans show no beams.
std::string seen_sensor_text(const RecordedDrive& drive, const CancelToken& cancel);

}  // namespace citysplat::sim
