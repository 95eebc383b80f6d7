#include "splat/generation/surfels.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "splat/generation/observed_bytes.hpp"
#include "splat/generation/selection.hpp"
#include "splat/generation/surface.hpp"
#include "splat/params/class_table.hpp"
#include "splat/search/curve.hpp"
#include "splat/search/plane_fit.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace citysplat::splat {
namespace {

constexpr std::size_t kChunk = 4096;

std::int64_t steps_of(double metres) { return std::max<std::int64_t>(1, to_lattice(metres)); }

/// The points that stayed, in canonical order, and how many there were in the cube of each.
struct Sampled {
    std::vector<TilePoint> points;
    std::vector<std::uint8_t> count;  ///< saturates at 255
};

struct Cube {
    std::int64_t x, y, z;
};

/// Numbers of the cubes of the points that are not of dynamic classes: 21 bits an axis, from the lowest one.
std::vector<KeyedIndex> cubes_of(const tiling::Region& region, const ClassTable& table, std::int64_t width,
                                 const CancelToken& cancel) {
    constexpr int kBits = 21;
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const LatticePoint o = region.frame.origin();
    const auto cube = [&](const TilePoint& p) -> Cube {
        return {floor_div(o.x + p.x, width), floor_div(o.y + p.y, width), floor_div(o.z + p.z, width)};
    };
    Cube low{kMost, kMost, kMost}, high{-kMost, -kMost, -kMost};
    for (std::size_t i = 0; i < region.points.size(); ++i) {
        if (i % kChunk == 0) cancel.check();
        const Cube c = cube(region.points[i]);
        low = {std::min(low.x, c.x), std::min(low.y, c.y), std::min(low.z, c.z)};
        high = {std::max(high.x, c.x), std::max(high.y, c.y), std::max(high.z, c.z)};
    }
    if (!region.points.empty() && std::max({high.x - low.x, high.y - low.y, high.z - low.z}) >> kBits != 0)
        throw InputError("points of one tile lie " + std::to_string(width * (1 << kBits) / kLatticePerMetre) +
                         " m or more apart; remove outliers of the input");
    std::vector<KeyedIndex> keyed;
    keyed.reserve(region.points.size());
    for (std::size_t i = 0; i < region.points.size(); ++i) {
        if (i % kChunk == 0) cancel.check();
        const TilePoint& p = region.points[i];
        if (table.dynamic(p.label)) continue;
        const Cube c = cube(p);
        const auto number = (c.x - low.x) << (2 * kBits) | (c.y - low.y) << kBits | (c.z - low.z);
        keyed.push_back({static_cast<std::uint64_t>(number), static_cast<std::uint32_t>(i)});
    }
    sort_by_key(keyed, 3 * kBits);
    return keyed;
}

Sampled sample_cubes(const tiling::Region& region, const ClassMap& classes, std::int64_t width,
                     const CancelToken& cancel) {
    const std::vector<KeyedIndex> keyed = cubes_of(region, ClassTable(classes), width, cancel);
    const LatticePoint o = region.frame.origin();
    struct Stayed {
        std::uint32_t index;
        std::uint8_t count;
    };
    std::vector<Stayed> stayed;
    for (std::size_t begin = 0, end = 0; begin < keyed.size(); begin = end) {
        std::uint64_t least = ~std::uint64_t{0};
        std::uint32_t chosen = keyed[begin].index;
        for (end = begin; end < keyed.size() && keyed[end].key == keyed[begin].key; ++end) {
            if (end % kChunk == 0) cancel.check();
            const TilePoint& p = region.points[keyed[end].index];
            const std::uint64_t priority = priority_of({o.x + p.x, o.y + p.y, o.z + p.z});
            if (priority < least) least = priority, chosen = keyed[end].index;
        }
        stayed.push_back({chosen, static_cast<std::uint8_t>(std::min<std::size_t>(end - begin, 255))});
    }
    std::sort(stayed.begin(), stayed.end(),
              [](const Stayed& a, const Stayed& b) { return a.index < b.index; });
    Sampled sampled;
    sampled.points.reserve(stayed.size()), sampled.count.reserve(stayed.size());
    for (const Stayed& s : stayed) {
        sampled.points.push_back(region.points[s.index]);
        sampled.count.push_back(s.count);
    }
    return sampled;
}

/// The disc of point i of the cloud.
Splat surfel(const PointCloud& cloud, std::size_t i, const PlaneFit& fit, double radius_m) {
    const PointAttributes& a = cloud.attributes[i];
    const Oriented o = orient(fit, a);
    Splat s{};
    s.x = cloud.x[i], s.y = cloud.y[i], s.z = cloud.z[i];
    s.normal = pack_normal(o.normal);
    s.radius = static_cast<std::uint16_t>(std::min<std::int64_t>(steps_of(radius_m), 65535));
    s.label = a.label;
    s.intensity = a.intensity;
    s.group = cloud.group[i];
    s.range = s.incidence = kUnknownByte;
    if (const Vec3d ray = a.to_sensor(); a.has_sensor() && dot(ray, ray) > 0) {
        s.range = range_byte(static_cast<double>(a.range) / TilePoint::kSensorStepsPerMetre);
        s.incidence = incidence_byte(std::fabs(dot(o.normal, normalized(ray))));
    }
    return s;
}

struct Worker {
    SearchScratch scratch;
    std::vector<std::uint32_t> points;
    std::vector<Moments> moments;
    std::vector<PlaneFit> fits;
};

}  // namespace

std::int64_t surfel_halo(const SplatParams& params) {
    // Who stayed is known of whole cubes, and the neighbours of a point lie in reach of it.
    return steps_of(params.surfel_reach_m) + steps_of(params.surfel_voxel_m) + 1;
}

TileSplats make_surfels(tiling::Region& region, const ClassMap& classes, const SplatParams& params,
                        const CancelToken& cancel) {
    constexpr std::int32_t kFewest = 3;
    const LatticeBox needed = region.core.widened(surfel_halo(params));
    const LatticeBox& read = region.covered;
    if (needed.min_x < read.min_x || needed.min_y < read.min_y || needed.max_x > read.max_x ||
        needed.max_y > read.max_y)
        return {surfel_halo(params), {}};
    Sampled sampled = sample_cubes(region, classes, steps_of(params.surfel_voxel_m), cancel);
    std::vector<TilePoint>().swap(region.points);
    const PointCloud cloud = make_point_cloud(region.frame, sampled.points, {}, classes, cancel);
    const NeighbourIndex index(cloud.x, cloud.y, cloud.z, cloud.rank);
    const std::vector<std::uint8_t> reach_class(cloud.size(), 0);
    const Reach reach{params.surfel_neighbours, static_cast<std::int32_t>(steps_of(params.surfel_reach_m))};
    const std::size_t n = cloud.size();
    std::vector<std::vector<Splat>> made((n + kChunk - 1) / kChunk);
    tbb::enumerable_thread_specific<Worker> workers;
    for_each_chunk(n, kChunk, cancel, [&](std::size_t begin, std::size_t end) {
        Worker& w = workers.local();
        w.points.clear();
        for (std::size_t i = begin; i < end; ++i)
            if (const LatticePoint p = cloud.world(i); region.core.contains(p.x, p.y))
                w.points.push_back(static_cast<std::uint32_t>(i));
        w.moments.resize(w.points.size()), w.fits.resize(w.points.size());
        find_moments(index, {w.points, reach_class, std::span(&reach, 1)}, w.moments, w.scratch);
        fit_planes(w.moments, w.fits);
        for (std::size_t q = 0; q < w.points.size(); ++q) {
            if (w.moments[q].count < kFewest) continue;
            Splat s = surfel(cloud, w.points[q], w.fits[q], params.surfel_radius_m);
            s.point_count = sampled.count[cloud.rank[w.points[q]]];
            made[begin / kChunk].push_back(s);
        }
    });
    TileSplats result;
    for (const std::vector<Splat>& part : made)
        result.splats.insert(result.splats.end(), part.begin(), part.end());
    return result;
}

}  // namespace citysplat::splat
