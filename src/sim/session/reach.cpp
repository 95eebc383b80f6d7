#include "sim/session/reach.hpp"

#include "sim/traffic/scan_parts.hpp"

#include <algorithm>

namespace citysplat::sim {

Box3d path_during(const SensorRun& run, const Trajectory& trajectory, double time_s) {
    Box3d path = kEmptyBox;
    for (std::uint32_t k = 0; k <= kPoseKeys; ++k)
        path.grow(pose_of_key(run, trajectory, time_s, k).translation);
    return path;
}

Reach reach_from(const TileSource& city, const Box3d& path, double range_m) {
    // Origins lie between the poses that rays are interpolated from; the metre to spare is for rounding.
    const double range = range_m + 1;
    Reach reach;
    const auto entries = city.tiles();
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
        if (entries[i].splats == 0) continue;
        const double distance = distance_between(path, {entries[i].min, entries[i].max});
        reach.nearest_m = std::min(reach.nearest_m, distance);
        if (distance <= range) reach.tiles.push_back(i);
    }
    return reach;
}

}  // namespace citysplat::sim
