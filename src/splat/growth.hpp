#pragma once

#include "splat/generation.hpp"
#include "splat/surface.hpp"

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
        open,     ///< nothing stopped it among the nearest: ask again with the whole neighbourhood
    };
    Fate fate;
    SeededSplat splat;
};

/// Neighbours of a seed: unordered, with squared distances. Growth mostly ends after a few points, so the
/// nearest few are tried first (`whole` is false).
struct Neighbourhood {
    std::span<const std::uint32_t> point, distance2;
    std::uint32_t reach2;
    bool whole;
};

/// What splats grow from.
struct GrowthInput {
    const PointCloud& cloud;
    const Surface& surface;
    const CoveredEdge& edge;
    const GenerationSettings& settings;
    bool observe;
    std::span<const FirstDisc> discs;  ///< as in GenerationTask
};

/// Grows splats. One per thread: it keeps buffers.
class Grower {
  public:
    explicit Grower(const GrowthInput& input)
        : cloud_(input.cloud),
          surface_(input.surface),
          edge_(input.edge),
          settings_(input.settings),
          observe_(input.observe),
          discs_(input.discs) {}

    /// Appends to `suppressed` the points that the splat — or any splat that might grow, when unknown — would
    /// keep from being seeds, the seed itself included.
    Growth grow(std::uint32_t seed, const Neighbourhood& neighbourhood,
                std::vector<std::uint32_t>& suppressed);
    /// Members of the last splat that was grown, if it carries observations.
    std::span<const std::uint32_t> observed_members(const SeededSplat& s) const {
        if (!observe_ && !settings_.first_stands(s.splat.group)) return {};
        return members_;
    }
    /// Fills in what the members of a splat saw: median intensity, mean range and incidence, number of
    /// points.
    void add_observations(std::span<const std::uint32_t> members, Splat& splat, Vec3f normal);

  private:
    struct Stop {
        std::uint32_t distance2, rank;
    };
    /// Sums over the members of d = member − seed, and of the squares of their extents: whole numbers, exact.
    struct MemberSums {
        Vec3d d{0, 0, 0};
        double xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0;
        double extent2 = 0;
        std::uint32_t last = 0;  ///< the farthest member

        void add(Vec3d difference, double extent);
        double spread(Vec3d a, Vec3d b) const;  ///< sum of (d·a)(d·b)
    };
    /// A disc relative to its seed.
    struct Disc {
        Vec3d centre;
        double radius;
        double grown;  ///< how far its points reach from the seed
    };
    Stop first_stop(std::uint32_t seed, const Neighbourhood& n);
    bool is_known(std::uint32_t seed, const Neighbourhood& n, std::uint32_t reach2) const;
    MemberSums find_members(std::uint32_t seed, const Neighbourhood& n, const Stop& stop);
    Disc fit_disc(std::uint32_t seed, Vec3d normal, const MemberSums& sums) const;
    Disc centred_disc(Vec3d normal, Vec3d mean, double radius, double grown) const;
    std::uint32_t find_nearest(std::uint32_t seed, const Neighbourhood& n, std::size_t most);
    Growth::Fate grow_at_crease(std::uint32_t seed, const Neighbourhood& n, Vec3d& normal, Disc& disc);
    Growth::Fate fate_of_few(std::uint32_t seed, const Neighbourhood& n) const;
    Disc sparse_disc(std::uint32_t seed, double grown, Vec3d& normal) const;
    double narrow_radius(std::uint32_t seed, Vec3d normal, const MemberSums& sums) const;
    bool is_behind(std::uint32_t seed, Vec3d centre, Vec3d normal) const;
    double extent_of(std::uint32_t point) const {
        return discs_.empty() ? 0.0 : static_cast<double>(discs_[cloud_.rank[point]].radius);
    }
    std::size_t group_of(std::uint32_t point) const { return static_cast<std::size_t>(cloud_.group[point]); }
    void suppress(std::uint32_t seed, Vec3d normal, const Neighbourhood& n, const Stop& stop,
                  const Disc& disc, std::vector<std::uint32_t>& suppressed) const;
    void suppress_all(std::uint32_t seed, const Neighbourhood& n,
                      std::vector<std::uint32_t>& suppressed) const;

    const PointCloud& cloud_;
    const Surface& surface_;
    const CoveredEdge& edge_;
    const GenerationSettings& settings_;
    const bool observe_;
    const std::span<const FirstDisc> discs_;
    std::vector<std::uint32_t> members_;  ///< of the splat being grown
    std::vector<std::uint64_t> order_;  ///< (distance², rank) of each neighbour, out of the way for outliers
    std::vector<std::pair<std::uint64_t, std::uint32_t>> near_;  ///< order and point, at creases
    std::vector<std::uint16_t> intensities_;
};

}  // namespace citysplat::splat
