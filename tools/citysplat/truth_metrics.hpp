#pragma once

#include "compare/distance_statistics.hpp"
#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "datasets/synth/truth.hpp"
#include "io/input/input_list.hpp"
#include "trace/tile_cache.hpp"

#include <cstdint>
#include <map>
#include <span>

/// What only the synthetic city can tell: how far simulated returns are from true surfaces, and how much of
/// the true surface the model has.
namespace citysplat::cli {

/// Returns farther than this from any true surface are ghosts.
inline constexpr double kGhost_m = 0.10;
/// A true surface is covered when a ray finds the model within this distance of it.
inline constexpr double kCovered_m = 0.05;

/// A surface is seen where the drive has at least so many returns within this distance of it. A lone return
/// tells nothing about the surface between it and the next.
inline constexpr std::uint32_t kSeenReturns = 4;
inline constexpr double kSeen_m = 0.10;

/// Distance of every simulated return to the nearest true static surface, at most 1 m, by the class of the
/// return.
compare::DistancesByClass distance_to_truth(std::span<const InputSource> simulated, const synth::Truth& truth,
                                            const CancelToken& cancel, Progress& progress);

/// Counts of sampled returns of static surfaces.
struct Coverage {
    std::uint64_t rays = 0;          ///< all
    std::uint64_t seen = 0;          ///< the surface counts as seen by the drive; the following are of these
    std::uint64_t covered = 0;       ///< the ray finds the model within kCovered_m of the surface
    std::uint64_t met = 0;           ///< and that is the first thing it meets
    std::uint64_t hidden = 0;        ///< it meets something else before
    std::uint64_t met_in_truth = 0;  ///< as `met`, with the true surfaces for a model

    void add(const Coverage& o) {
        rays += o.rays, seen += o.seen, covered += o.covered, met += o.met, hidden += o.hidden;
        met_in_truth += o.met_in_truth;
    }
    double share(std::uint64_t n) const {
        return seen == 0 ? 0 : static_cast<double>(n) / static_cast<double>(seen);
    }
};
struct CoverageByClass {
    Coverage all;
    std::map<std::uint16_t, Coverage> classes;  ///< of the true surface
};

/// A model of a city, and what it is held against.
struct CoverageSubject {
    const TileSource& city;
    const trace::Tracer& tracer;
    std::span<const InputSource> drive;
    const synth::Truth& truth;
};

/// Casts the survey's own rays again: from the scanner's recorded position through a sample of about `rays`
/// points of the drive that met a static surface. Distances to the surface are measured along its normal. The
/// recorded position is off by the localisation error, which differs from pass to pass: near an edge a ray
/// may pass it on the other side. `met_in_truth` tells how often, because a perfect model has that, too.
CoverageByClass coverage(const CoverageSubject& subject, std::uint64_t rays, std::uint64_t budget_bytes,
                         const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::cli
