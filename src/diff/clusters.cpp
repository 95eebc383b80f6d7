#include "diff/clusters.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace citysplat::diff {

namespace {

/// Neighbours: a surface is not sampled in every voxel.
constexpr std::int64_t kJoined = 2;
/// Fewer voxels are a few points that happened to be somewhere else.
constexpr std::size_t kFewestVoxels = 4;

std::uint32_t root_of(std::vector<std::uint32_t>& parents, std::uint32_t i) {
    while (parents[i] != i) i = parents[i] = parents[parents[i]];
    return i;
}

/// For each voxel the first one of its cluster.
std::vector<std::uint32_t> join(const std::vector<ChangedVoxel>& voxels) {
    std::vector<std::uint32_t> parents(voxels.size());
    std::iota(parents.begin(), parents.end(), 0u);
    std::unordered_map<VoxelKey, std::vector<std::uint32_t>, VoxelKeyHash> places;
    for (std::uint32_t i = 0; i < voxels.size(); ++i) places[voxels[i].key].push_back(i);
    for (std::uint32_t i = 0; i < voxels.size(); ++i)
        for (std::int64_t dx = -kJoined; dx <= kJoined; ++dx)
            for (std::int64_t dy = -kJoined; dy <= kJoined; ++dy)
                for (std::int64_t dz = -kJoined; dz <= kJoined; ++dz) {
                    const auto found = places.find(voxels[i].key.moved(dx, dy, dz));
                    if (found == places.end()) continue;
                    for (const std::uint32_t other : found->second) {
                        if (voxels[other].kind != voxels[i].kind) continue;
                        const std::uint32_t a = root_of(parents, i), b = root_of(parents, other);
                        parents[std::max(a, b)] = std::min(a, b);
                    }
                }
    for (std::uint32_t i = 0; i < parents.size(); ++i) parents[i] = root_of(parents, i);
    return parents;
}

/// Below the top of each column, down to the lowest part of all.
double volume_of(const std::vector<const ChangedVoxel*>& voxels) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> tops;
    std::int64_t lowest = voxels[0]->key.z;
    for (const ChangedVoxel* v : voxels) {
        const auto [top, is_new] = tops.emplace(std::pair(v->key.x, v->key.y), v->key.z);
        if (!is_new) top->second = std::max(top->second, v->key.z);
        lowest = std::min(lowest, v->key.z);
    }
    std::int64_t filled = 0;
    for (const auto& [column, top] : tops) filled += top - lowest + 1;
    return static_cast<double>(filled) * kVoxel_m * kVoxel_m * kVoxel_m;
}

SurfaceCluster summary_of(const std::vector<const ChangedVoxel*>& voxels) {
    SurfaceCluster c;
    c.kind = voxels[0]->kind;
    c.min = c.max = voxels[0]->mean;
    c.voxels = voxels.size();
    std::map<std::uint16_t, std::uint64_t> labels;
    Vec3d sum{0, 0, 0};
    for (const ChangedVoxel* v : voxels) {
        labels[v->label] += v->points;
        sum = sum + (v->mean - voxels[0]->mean) * v->area_m2;
        c.area_m2 += v->area_m2;
        c.distance_m += v->distance_m * v->area_m2;
        c.significance += std::abs(v->distance_m) / v->detection_m * v->area_m2;
        c.looks += v->looks * v->area_m2;
        c.min = {std::min(c.min.x, v->mean.x), std::min(c.min.y, v->mean.y), std::min(c.min.z, v->mean.z)};
        c.max = {std::max(c.max.x, v->mean.x), std::max(c.max.y, v->mean.y), std::max(c.max.z, v->mean.z)};
    }
    c.label = std::max_element(labels.begin(), labels.end(), [](const auto& a, const auto& b) {
                  return a.second < b.second;
              })->first;
    c.centre = voxels[0]->mean + sum * (1 / c.area_m2);
    c.distance_m /= c.area_m2, c.significance /= c.area_m2, c.looks /= c.area_m2;
    c.volume_m3 = c.kind == SurfaceChange::moved ? c.area_m2 * std::abs(c.distance_m) : volume_of(voxels);
    return c;
}

}  // namespace

std::vector<SurfaceCluster> find_clusters(std::vector<ChangedVoxel> voxels, double least_area_m2) {
    std::sort(voxels.begin(), voxels.end(), [](const ChangedVoxel& a, const ChangedVoxel& b) {
        return std::tuple(a.key, a.kind) < std::tuple(b.key, b.kind);
    });
    const auto roots = join(voxels);
    std::map<std::uint32_t, std::vector<const ChangedVoxel*>> members;
    for (std::uint32_t i = 0; i < voxels.size(); ++i) members[roots[i]].push_back(&voxels[i]);
    std::vector<SurfaceCluster> clusters;
    for (const auto& [root, some] : members) {
        if (some.size() < kFewestVoxels) continue;
        SurfaceCluster cluster = summary_of(some);
        if (cluster.area_m2 >= least_area_m2) clusters.push_back(cluster);
    }
    std::stable_sort(clusters.begin(), clusters.end(),
                     [](const SurfaceCluster& a, const SurfaceCluster& b) { return a.area_m2 > b.area_m2; });
    return clusters;
}

}  // namespace citysplat::diff
