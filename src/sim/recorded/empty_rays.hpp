#pragma once

#include "model/recorded_scan.hpp"
#include "sim/recorded/beams.hpp"

#include <functional>

namespace citysplat::sim {

/// Rotation of the sensor in the world at a time.
using SensorRotation = std::function<Quaternion(double time_s)>;

/// Gaps between neighbouring returns of a beam that are wider than so many azimuth steps hold empty rays.
inline constexpr double kWidestStep = 1.5;

/// Makes a range image of a sweep whose returns have beams: sets `columns`, `azimuth_step_rad` and the column
/// of every ray. Where the file does not say which rays did not come back, they are added: evenly between
/// neighbouring returns of a beam that are more than kWidestStep azimuth steps apart, over the azimuths that
/// the sweep covers. The step is measured in the sweep. An empty ray has the time of its azimuth, and origin
/// and elevation between those of its neighbours.
void add_empty_rays(const BeamTable& table, const SensorRotation& rotation, RecordedScan& scan);

}  // namespace citysplat::sim
