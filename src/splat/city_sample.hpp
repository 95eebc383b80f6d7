#pragma once

#include "core/math/vec_hd.hpp"
#include "splat/params/class_table.hpp"
#include "splat/search/neighbour_search.hpp"
#include "tiling/tile_processor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// A sample of the points of a city with their neighbourhoods. It depends on the set of points alone: not on
/// tiles, threads, the order of anything, or points that were written twice.
///
/// Density differs by orders of magnitude between places, so the sample has many places and few points of
/// each. Places are squares of 8 m that hold points: all of them, or as many as are enough, at equal steps
/// along a curve through all of them, so that every part of the city has its share. In a place some points
/// are asked, chosen by a hash of their position, and stand for the others.
///
/// Where a place holds few points, all within reach of it is read as well. Of a place with many only the
/// place itself is read: a point whose neighbourhood may go on outside is left out, and those of equally wide
/// neighbourhoods that are not count for it. With a reach of r a point of a square of side w has the chance
/// (1 − 2r/w)² to be far enough from the edge (minus sampling, with the weights of Hanisch 1984).
namespace citysplat::splat {

class ThicknessSample;

/// From a sampled point to one of its neighbours, in steps. Neighbourhoods are at most 1.5 m wide
/// (SplatParams::radius_cap_m): 16 bits hold them.
struct NeighbourOffset {
    std::int16_t x, y, z;
    double distance2() const { return dot(vector(), vector()); }
    Vec3d vector() const { return {static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)}; }
};

struct SampledPoint {
    std::uint32_t first, count;  ///< its neighbours in `offsets`
    std::uint32_t reach2;        ///< as in Moments
    std::uint32_t weight;        ///< how many points of the place it stands for, in 1 / kWeightOne
    /// Angle between its ray and the nearest other one of its scan, in 1 / kAngleOne rad; 0: not known.
    std::uint32_t step;
    SplatGroup group;  ///< by the class map
};
inline constexpr std::uint32_t kWeightOne = 256, kAngleOne = 1u << 22;

/// The points of one place that told their neighbourhoods.
struct SampledPlace {
    std::span<const NeighbourOffset> neighbours(const SampledPoint& p) const {
        return std::span(offsets).subspan(p.first, p.count);
    }
    std::vector<SampledPoint> points;
    std::vector<NeighbourOffset> offsets;
};

/// Where to ask.
struct SamplePlan {
    std::vector<LatticeBox> places;
    std::size_t points_per_place = 0;  ///< at most
    std::size_t few_points = 0;        ///< so many points of a place are few
};
SamplePlan plan_sample(const tiling::RegionReader& reader);

/// How to ask.
struct SampleTask {
    const tiling::RegionReader& reader;
    const Reach& reach;
    const SamplePlan& plan;
    const ClassTable& classes;
    ThicknessSample* thickness = nullptr;  ///< shown what is read, unless there is none
};
/// Asks place number `place` of the plan.
SampledPlace sample_place(const SampleTask& task, std::size_t place);

}  // namespace citysplat::splat
