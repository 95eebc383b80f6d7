#pragma once

#include "sim/sensor.hpp"

#include <filesystem>

namespace citysplat::sim {

/// CSV with a header naming the columns time_s, azimuth_deg, elevation_deg and optionally beam, in any order;
/// times ascend from 0. The period is the last time plus the mean step. Throws InputError with the line.
RayTable read_ray_table(const std::filesystem::path& path);

}  // namespace citysplat::sim
