#include "diff/epoch_voxels.hpp"

#include "tiling/carve/carved_points.hpp"

#include <algorithm>
#include <map>

namespace citysplat::diff {

namespace {

using tiling::FreeSpace;
using tiling::Region;

std::vector<FreeSpace::Looks> looks_of(const Region& region, const tiling::CityPoints& rays,
                                       const CancelToken& cancel) {
    FreeSpace space(region, cancel);
    rays.visit_rays(region.covered, [&](const tiling::Sector& sector, std::span<const tiling::Ray> some) {
        cancel.check();
        space.add_rays(sector, some);
    });
    return space.count_looks();
}

/// A point of the region, by its voxel.
struct Placed {
    VoxelKey key;
    std::uint32_t point;
    friend auto operator<=>(const Placed&, const Placed&) = default;
};

}  // namespace

EpochVoxels::EpochVoxels(const tiling::CityPoints& own, const tiling::CityPoints& others,
                         const LatticeBox& box, std::int64_t margin_steps, const CancelToken& cancel) {
    const Region region = tiling::CarvedPoints(own, cancel).read(box, margin_steps);
    const auto seen = looks_of(region, own, cancel), passed = looks_of(region, others, cancel);
    const LatticePoint origin = region.frame.origin();
    std::vector<Placed> placed;
    placed.reserve(region.points.size());
    for (std::uint32_t i = 0; i < region.points.size(); ++i) {
        const TilePoint& p = region.points[i];
        placed.push_back(
            {{floor_div(origin.x + p.x, tiling::kVoxelSteps), floor_div(origin.y + p.y, tiling::kVoxelSteps),
              floor_div(origin.z + p.z, tiling::kVoxelSteps)},
             i});
    }
    std::sort(placed.begin(), placed.end());
    points_.reserve(placed.size());
    for (std::size_t i = 0; i < placed.size();) {
        EpochVoxel voxel{.key = placed[i].key, .first = static_cast<std::uint32_t>(points_.size())};
        const std::uint32_t sample = placed[i].point;
        voxel.others_passed = passed[sample].passed;
        voxel.solid = seen[sample].free <= seen[sample].hit;
        std::map<std::uint16_t, int> labels;
        Vec3d sum{0, 0, 0};
        for (; i < placed.size() && placed[i].key == voxel.key; ++i) {
            const TilePoint& p = region.points[placed[i].point];
            points_.push_back(
                {to_metres(origin.x + p.x), to_metres(origin.y + p.y), to_metres(origin.z + p.z)});
            sum = sum + (points_.back() - points_[voxel.first]);
            ++labels[p.label];
            ++voxel.count;
        }
        voxel.mean = points_[voxel.first] + sum * (1.0 / voxel.count);
        voxel.label = std::max_element(labels.begin(), labels.end(), [](const auto& a, const auto& b) {
                          return a.second < b.second;
                      })->first;
        places_.emplace(voxel.key, static_cast<std::uint32_t>(voxels_.size()));
        voxels_.push_back(voxel);
    }
}

}  // namespace citysplat::diff
