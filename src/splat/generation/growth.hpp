#pragma once

#include "splat/generation/generation.hpp"
#include "splat/generation/growth_lanes.hpp"
#include "splat/generation/surface.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::splat {

/// The splat that would grow from one point, whatever becomes of the others.
struct Growth {
    enum class Fate : std::uint8_t {
        splat,    ///< it would be `splat`
        none,     ///< too few points: no splat, nothing suppressed
        unknown,  ///< points that were not read may matter
    };
    Fate fate;
    SeededSplat splat;
};

/// What splats grow from.
struct GrowthInput {
    const PointCloud& cloud;
    const Surface& surface;
    const CoveredEdge& edge;
    const GenerationSettings& settings;
    bool observe;
    std::span<const FirstDisc> discs;  ///< as in GenerationTask
    const GrowthLanes& lanes;
};

/// Grows splats. One per thread: it keeps buffers.
class Grower {
  public:
    explicit Grower(const GrowthInput& input);

    /// Appends to `suppressed` the points that the splat — or any splat that might grow, when unknown — would
    /// keep from being seeds, the seed itself included; and to `members` those it is made of, if it carries
    /// observations.
    Growth grow(std::uint32_t seed, const Neighbours& neighbours, PointList& suppressed, PointList& members);
    /// Fills in what the members of a splat saw: median intensity, mean range and incidence, number of
    /// points.
    void add_observations(std::span<const std::uint32_t> members, Splat& splat, Vec3f normal);

  private:
    /// A disc relative to its seed.
    struct Disc {
        Vec3d centre;
        double radius;
        double grown;  ///< how far its points reach from the seed
    };
    struct Near {
        std::uint32_t distance2, rank;
        std::size_t place;  ///< among the neighbours
        friend auto operator<=>(const Near&, const Near&) = default;
    };
    Growth grow_members(std::uint32_t seed, const Neighbours& n, PointList& suppressed, PointList& members);
    bool observes(SplatGroup group) const { return observe_ || settings_.first_stands(group); }
    StopRule rule_of(std::uint32_t seed) const;
    bool is_known(std::uint32_t seed, const Neighbours& n, std::uint32_t reach2) const;
    Disc fit_disc(std::uint32_t seed, Vec3d normal, const MemberSums& sums) const;
    Disc centred_disc(Vec3d normal, Vec3d mean, double radius, double grown) const;
    double narrow_radius(std::uint32_t seed, Vec3d normal, const Moments& m) const;
    double mean_extent2() const;
    Growth::Fate fate_of_few(std::uint32_t seed, const Neighbours& n) const;
    Disc sparse_disc(std::uint32_t seed, double grown, Vec3d& normal) const;
    void find_nearest(std::uint32_t seed, const Neighbours& n, std::size_t most);
    Growth::Fate grow_at_crease(std::uint32_t seed, const Neighbours& n, PointList& members, Vec3d& normal,
                                Disc& disc);
    bool is_behind(std::uint32_t seed, Vec3d centre, Vec3d normal) const;
    double extent_of(std::uint32_t point) const {
        return discs_.empty() ? 0.0 : static_cast<double>(discs_[cloud_.rank[point]].radius);
    }
    std::size_t group_of(std::uint32_t point) const { return static_cast<std::size_t>(cloud_.group[point]); }
    SuppressedPart suppressed_part(std::uint32_t seed, Vec3d normal, const Disc& disc) const;
    void suppress_all(std::uint32_t seed, const Neighbours& n, PointList& suppressed) const;

    const PointCloud& cloud_;
    const Surface& surface_;
    const CoveredEdge& edge_;
    const GenerationSettings& settings_;
    const bool observe_;
    const std::span<const FirstDisc> discs_;
    const GrowthLanes& lanes_;
    const GrowthSite site_;
    GrowthColumns columns_;                   ///< of the seed
    std::span<const std::uint32_t> members_;  ///< of the splat being grown
    std::vector<Near> near_;                  ///< at creases
};

}  // namespace citysplat::splat
