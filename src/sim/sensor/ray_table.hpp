#pragma once

#include "sim/sensor/sensor.hpp"

#include <filesystem>

namespace citysplat::sim {

/// CSV with a header naming the columns time_s, azimuth_deg, elevation_deg and optionally beam, in any order;
/// times ascend from 0. A ray belongs to the scan of 1/scan_hz in which its time lies. Throws InputError with
/// the line.
RayTable read_ray_table(const std::filesystem::path& path, double scan_hz);

}  // namespace citysplat::sim
