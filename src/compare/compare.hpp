#pragma once

#include "compare/distance_statistics.hpp"
#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "io/point_file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

namespace citysplat::compare {

/// Distances beyond this are counted as this.
inline constexpr double kFarthestNeighbour_m = 32;

/// Clouds are opened one at a time, so that thousands of files do not need thousands of handles.
using OpenCloud = std::function<std::unique_ptr<PointFile>()>;

/// Cloud-to-cloud distance (AdaSplats eq. 15): from every point of `simulated` to its nearest neighbour in
/// `reference`, by the class of the simulated point. Exact up to kFarthestNeighbour_m.
///
/// Both clouds are scattered to columns of 32 m in a temporary file below `temp`, and compared column by
/// column, so memory depends on the density of the clouds, not on their extent.
DistancesByClass cloud_to_cloud(std::span<const OpenCloud> simulated, std::span<const OpenCloud> reference,
                                const std::filesystem::path& temp, const CancelToken& cancel,
                                Progress& progress);

}  // namespace citysplat::compare
