#pragma once

#include "compare/distance_statistics.hpp"
#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "io/point_file.hpp"
#include "model/region/region.hpp"

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

/// A simulated point and how far it is from the reference.
struct PointDistance {
    Vec3d at;
    double distance_m;
    std::uint16_t label;
};
/// Gets every point once, in an order that depends on the points alone: by columns of 32 m, sorted in each.
using TakeDistances = std::function<void(std::span<const PointDistance>)>;

struct ComparedClouds {
    std::span<const OpenCloud> simulated, reference;
    const Region* region = nullptr;  ///< of simulated points only those in it are compared
};

/// Cloud-to-cloud distance (AdaSplats eq. 15): from every point of `simulated` to its nearest neighbour in
/// `reference`, by the class of the simulated point. Exact up to kFarthestNeighbour_m.
///
/// Both clouds are scattered to columns of 32 m in a temporary file below `temp`, and compared column by
/// column, so memory depends on the density of the clouds, not on their extent.
DistancesByClass cloud_to_cloud(const ComparedClouds& clouds, const std::filesystem::path& temp,
                                const CancelToken& cancel, Progress& progress,
                                const TakeDistances& take = {});

}  // namespace citysplat::compare
