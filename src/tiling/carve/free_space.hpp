#pragma once

#include "core/cancel.hpp"
#include "core/hash.hpp"
#include "tiling/carve/voxel_set.hpp"
#include "tiling/points/ray.hpp"
#include "tiling/tile_processor.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

/// Which points of a region belong to things that moved: those that rays passed through at other times.
///
/// Each voxel has a verdict for each look, which is two tenths of a second: *hit* when a point of that look
/// lies in it or in one of the 26 voxels around it, else *free* when a ray of that look (of a witness,
/// ray.hpp) passed through it along more than half an edge, else none. Points of a voxel that holds some are
/// dynamic when, without the look of the point itself, there are at least two free looks and more free than
/// hit ones; or when it was free before the first hit and after the last one: in at least four looks
/// together, and in more than half as many as it was hit (of which 28 count at most). The second rule sees
/// what stood for a while and drove off; hedges and fences are free and hit in turn. Points without a time
/// are judged by all looks.
///
/// Rays end well before their return: 0.4 m, 3 % of the range, and the length along which they come nearer to
/// it in height than one and a half voxels (a road is seen at grazing angles).
///
/// Everything is integer arithmetic in world coordinates: sets and counts, which have no order. The verdict
/// about a point depends on the points within two voxels of it and on the rays through its voxel, whatever
/// the region.
namespace citysplat::tiling {

class FreeSpace {
  public:
    /// Requires that region and token outlive this. All that takes long looks at the token.
    FreeSpace(const Region& region, const CancelToken& cancel);

    /// Rays of witnesses that end in a sector, in any order and any number of times.
    void add_rays(const Sector& sector, std::span<const Ray> rays);

    /// For each point of the region whether it is dynamic. Points nearer than two voxels to the edge of the
    /// region may be misjudged.
    std::vector<bool> find_dynamic();

    /// What the rays say about a place.
    struct Looks {
        std::uint32_t passed = 0;  ///< in which a ray passed through the voxel
        std::uint32_t free = 0;    ///< of them: in which no point was hit there or around it
        std::uint32_t hit = 0;     ///< in which a point was hit there or around it
    };
    /// For each point of the region the looks of its voxel. Where the rays are of other times than the
    /// points, only `passed` means anything: clocks may start anew.
    std::vector<Looks> count_looks();

    /// Beyond the box of interest, so that every voxel with a point of that box has its neighbours.
    static constexpr std::int64_t kMarginSteps = 2 * kVoxelSteps;
    /// Part of what a city is made by: raised when the same points give other verdicts.
    static constexpr std::uint32_t kVersion = 1;
    /// The key of parameters that are applied to carved points.
    static Hash128 carved_key(const Hash128& parameters_key) {
        return Hasher().text("carved").number(kVersion).hash(parameters_key).finish();
    }

  private:
    struct Walk;
    /// Voxels are counted from here, that of the frame's origin.
    std::array<std::int64_t, 3> first_voxel() const;
    void walk(const Walk& ray, std::uint32_t look);
    /// A voxel that rays of several looks passed through.
    struct Candidate {
        std::uint32_t voxel;
        std::vector<std::uint64_t> free;    ///< looks, sorted; those that hit are still among them
        std::vector<std::uint32_t> around;  ///< the voxels with points among the 27
    };
    std::vector<Candidate> find_candidates(std::size_t fewest_looks) const;
    /// The looks in which points of the voxels around candidates were hit, as pairs, sorted.
    std::vector<std::uint64_t> hits_around(const std::vector<Candidate>& candidates) const;
    /// Of one candidate: the looks in which it was hit, sorted.
    void hit_looks(const Candidate& candidate, const std::vector<std::uint64_t>& hits,
                   std::vector<std::uint64_t>& looks) const;
    /// Of the points of one voxel.
    struct Verdict {
        bool with_time = false, without_time = false;
    };
    static Verdict judge(std::span<const std::uint64_t> passed, std::span<const std::uint64_t> hit);

    const Region& region_;
    const CancelToken& cancel_;
    VoxelSet voxels_;
    std::vector<std::uint32_t> voxel_of_;  ///< of each point
    /// A look that passed through a voxel: voxel · 2³² + look. Made unique whenever they have doubled.
    std::vector<std::uint64_t> passes_;
    std::vector<std::uint32_t> last_look_;  ///< of each voxel: saves most of what would be there twice
    std::size_t compact_above_;
};

}  // namespace citysplat::tiling
