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

/// Grows splats. One per thread: it keeps buffers.
class Grower {
  public:
    Grower(const PointCloud& cloud, const Surface& surface, const CoveredEdge& edge,
           const GenerationSettings& settings, bool observe)
        : cloud_(cloud), surface_(surface), edge_(edge), settings_(settings), observe_(observe) {}

    /// Appends to `suppressed` the points that the splat — or any splat that might grow, when unknown — would
    /// keep from being seeds, the seed itself included.
    Growth grow(std::uint32_t seed, const Neighbourhood& neighbourhood,
                std::vector<std::uint32_t>& suppressed);

  private:
    struct Stop {
        std::uint32_t distance2, rank;
    };
    Stop first_stop(std::uint32_t seed, const Neighbourhood& n) const;
    bool is_known(std::uint32_t seed, const Neighbourhood& n, std::uint32_t reach2) const;
    std::uint32_t find_members(std::uint32_t seed, const Neighbourhood& n, const Stop& stop, Vec3d& sum);
    void add_observations(SeededSplat& s);

    const PointCloud& cloud_;
    const Surface& surface_;
    const CoveredEdge& edge_;
    const GenerationSettings& settings_;
    const bool observe_;
    std::vector<std::uint32_t> members_;  ///< of the splat being grown
    std::vector<std::uint16_t> intensities_;
};

}  // namespace citysplat::splat
