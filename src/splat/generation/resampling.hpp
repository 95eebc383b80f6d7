#pragma once

#include "splat/generation/generation.hpp"

#include <vector>

/// Density-driven resampling (§3.4): the centres of the first splats are the new cloud, and where there are
/// fewer of them than usual, points half-way to far neighbours of the same class are added, unless a splat
/// covers them already.
namespace citysplat::splat {

/// Points of the second generation with the groups they inherit, sorted by position, positions unique.
struct ResampledPoints {
    std::vector<TilePoint> points;
    std::vector<SplatGroup> groups;
    std::vector<FirstDisc> discs;  ///< that they are centres of; for midpoints one end's
};

/// Centres of splats of the groups that are resampled, as points that carry what their splats know. Sorted by
/// position; of several splats with
/// the same centre the first in canonical order stays.
class SplatCentres {
  public:
    SplatCentres(const Generation& generation, const PointCloud& cloud, const GenerationSettings& settings);

    std::size_t size() const { return centres_.size(); }
    /// The centres inside `box` (world steps) and the midpoints there, whose ends are within `to_midpoint` of
    /// it. Requires that all splats are here whose centre is within R̄ of such ends.
    ResampledPoints resample(const LatticeBox& box, std::int64_t to_midpoint, double mean_density,
                             const CancelToken& cancel) const;

  private:
    struct Centre {
        TilePoint point;
        Vec3f normal;
        SplatGroup group;
        bool oriented;
        std::uint16_t radius, least_radius;  ///< as in FirstDisc
    };
    struct Neighbour {
        std::uint32_t distance2, centre;
    };
    double rounding_of(const TilePoint& point) const;  ///< in [0, 1), by place in the world
    bool may_join(const Centre& a, const Centre& b) const;
    void add_midpoints(std::size_t centre, std::vector<Neighbour>& neighbours, double mean_density,
                       std::vector<Centre>& out) const;
    template <class Visit>
    void visit_neighbourhoods(const LatticeBox& box, std::int32_t enough, const CancelToken& cancel,
                              const Visit& visit) const;
    static void make_unique(std::vector<Centre>& centres);

    TileFrame frame_;
    const GenerationSettings& settings_;
    std::vector<Centre> centres_;
};

}  // namespace citysplat::splat
