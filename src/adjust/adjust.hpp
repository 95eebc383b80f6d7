#pragma once

#include "adjust/cell_equations.hpp"
#include "adjust/patches.hpp"
#include "adjust/thickness.hpp"
#include "core/number_range.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Strip adjustment: trajectories are corrected so that surfaces that were seen several times are thin.
///
/// Unknown are a shift and a turn at each knot of each drive (correction.hpp). Flat cells, of 2 m first and
/// of half a metre in the end, say how far the slots that saw them differ along their normals; heights far
/// from the others count less and less (Cauchy's weights), so that what moved has no say. The given shape is
/// trusted where the clouds say nothing: changes of the rate of correction cost. So does, a little, the
/// correction itself: what the clouds cannot know at all (one shift and turn of everything) stays as given on
/// average over all drives. That is the datum.
namespace citysplat::adjust {

/// A trajectory and the clouds that were seen from it.
struct AdjustDrive {
    std::string name;
    Trajectory given;
    std::vector<OpenCloud> clouds;
};

struct AdjustOptions {
    static constexpr NumberRange kKnots_s{0.01, 60, "s"};
    static constexpr NumberRange kMostShift_m{0.001, 100, "m"};
    static constexpr NumberRange kMostTurn_deg{0.001, 45, "degrees"};

    double knots_s = 0.1;  ///< least time between knots; doubled until there are at most kMostKnots
    double most_shift_m = 5, most_turn_deg = 10;  ///< larger corrections are refused
    PatchOptions points{};
    // What follows changes no result.
    std::uint64_t memory_bytes = std::uint64_t{4} << 30;
    std::filesystem::path scratch = ".";

    static constexpr std::size_t kMostKnots = 8192;
};

/// What happened to one trajectory.
struct DriveChange {
    std::string name;
    Trajectory adjusted;
    std::size_t knots = 0, knots_seen = 0;  ///< seen: some cell says something about it
    double mean_shift_m = 0, most_shift_m = 0, most_shift_s = 0;
    double mean_turn_rad = 0, most_turn_rad = 0, most_turn_s = 0;
    /// Scale in the correction: the trajectory became longer by this share, like a map that was enlarged. A
    /// sensor whose ranges are too long asks for exactly that, and no cloud can tell the two apart.
    double stretch = 0;
    double extent_m = 0;  ///< root mean square distance of the knots from their middle
};

struct AdjustReport {
    std::vector<DriveChange> drives;
    double knots_s = 0;
    PointsLeftOut points;
    std::uint64_t patches = 0;
    EquationCounts cells;  ///< of the last round
    Thickness before, after;
    std::vector<std::string> warnings;
    /// Why the result should not be used; nothing when it should.
    std::optional<std::string> refusal;
};

/// Adjusts all drives together. The same bits for any number of threads, order of clouds and memory. Throws
/// InputError when there is nothing to adjust by, ResourceError when the memory does not do, Interrupted.
AdjustReport adjust(std::span<const AdjustDrive> drives, const AdjustOptions& options,
                    const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::adjust
