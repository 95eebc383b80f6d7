#pragma once

#include "core/cancel.hpp"
#include "core/math/lattice.hpp"
#include "splat/generation/point_cloud.hpp"
#include "splat/generation/stage_times.hpp"
#include "splat/params/splat_params.hpp"
#include "splat/search/neighbour_search.hpp"
#include "tiling/tile_processor.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

/// One generation of splats from the points of a region: normals, growth, selection (§3.1–3.3 of the paper).
///
/// Points near the edge of what was read may have neighbours outside; their state is unknown, and so is what
/// depends on them. The result lists the points whose fate is unknown: nothing outside the region can change
/// the others.
namespace citysplat::splat {

/// Neighbourhoods by reach class: the four groups, the plain one (K, R̄), the one of surfaces with few points,
/// and the widest of all, which bounds what a point of unknown group might do.
inline constexpr std::uint8_t kPlainReach = 4, kSparseReach = 5, kWidestReach = 6;
inline constexpr std::size_t kReachClasses = 7;

/// Parameters and city-wide means, turned into lattice steps.
struct GenerationSettings {
    GenerationSettings(const SplatParams& params, const tiling::Calibration& calibration,
                       StageTimes* times = nullptr);

    SplatParams params;
    std::array<Reach, kReachClasses> reaches;
    std::array<double, kReachClasses> error_steps;  ///< bound of |ε| by reach class
    std::array<double, 4> least_radius_steps;       ///< of a splat, by group
    std::array<double, 4> lateral_noise_steps;      ///< by group; 0: normals by PCA
    double crease_noise_steps;
    double radius_of_range;       ///< least radius of a splat over PointAttributes::range of its seed, …
    double line_radius_of_range;  ///< … the same on a lone scan line
    double range_radius_limit_steps;  ///< … up to this
    std::int32_t mean_radius_steps;   ///< R̄
    StageTimes* times;                ///< where stages book their time, if anywhere

    bool resamples() const {
        return params.resample && params.method != Method::basic && params.method != Method::surfels;
    }
    /// The first splats of this group are final.
    bool first_stands(SplatGroup group) const {
        return !resamples() || !params.resample_group[static_cast<std::size_t>(group)];
    }
    std::int32_t widest_radius() const { return reaches[kWidestReach].radius; }
    /// How far a splat may keep other points from becoming seeds.
    std::int32_t widest_suppression() const;
    /// How far a splat's centre may lie from its seed.
    std::int32_t largest_shift() const;
};

/// A splat with the point it grew from.
struct SeededSplat {
    std::uint32_t seed;
    Splat splat;
    Vec3f normal;
    /// Of the disc through its points, and what the splat has at least: its own radius is the larger one.
    std::uint16_t fitted_radius, least_radius;
    bool oriented;  ///< the normal points to a known sensor position
};

struct Generation {
    std::vector<SeededSplat> splats;     ///< accepted, in descending priority
    std::vector<std::uint32_t> unknown;  ///< points that may or may not be seeds
};

/// The disc that a point of the second generation stands for.
struct FirstDisc {
    Vec3f normal;
    std::uint16_t radius, least_radius;  ///< the fitted one; the rest as in SeededSplat
    bool oriented;
};

struct GenerationTask {
    LatticeBox covered;   ///< every point of the city within this box (world steps) is in the cloud
    bool observe = true;  ///< fill in intensity, range, incidence and number of points of the splats
    /// Second generation: what the points stand for, by rank; their groups are final. Empty: the first.
    std::span<const FirstDisc> discs{};
};

Generation generate(PointCloud& cloud, const GenerationTask& task, const GenerationSettings& settings,
                    const CancelToken& cancel);

/// How far a point is from the nearest place that was not read, in steps; at most 0 outside `covered`.
class CoveredEdge {
  public:
    CoveredEdge(const LatticeBox& covered, const TileFrame& frame);
    std::int64_t distance(std::int32_t x, std::int32_t y) const {
        const std::int64_t dx = std::min(x - min_x_, max_x_ - x), dy = std::min(y - min_y_, max_y_ - y);
        return std::min(dx, dy);
    }
    /// Nothing outside is within sqrt(reach2) of (x, y).
    bool encloses(std::int32_t x, std::int32_t y, std::uint32_t reach2) const {
        const std::int64_t d = distance(x, y);
        return d > 0 && d * d > std::int64_t{reach2};
    }

  private:
    std::int64_t min_x_, min_y_, max_x_, max_y_;  ///< nearest places outside, local steps
};

}  // namespace citysplat::splat
