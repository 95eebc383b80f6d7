#pragma once

#include "diff/epoch_voxels.hpp"
#include "diff/surface_diff.hpp"

#include <vector>

namespace citysplat::diff {

/// A voxel whose surface is not where it was.
struct ChangedVoxel {
    SurfaceChange kind = SurfaceChange::gone;
    VoxelKey key;
    Vec3d mean{0, 0, 0};
    std::uint16_t label = 0;
    std::uint32_t points = 0, looks = 0;
    double area_m2 = 0, distance_m = 0, detection_m = 0;
};

/// Joins voxels of a kind that are at most two apart; those that are too small are left out. The order of the
/// voxels does not matter.
std::vector<SurfaceCluster> find_clusters(std::vector<ChangedVoxel> voxels, double least_area_m2);

}  // namespace citysplat::diff
