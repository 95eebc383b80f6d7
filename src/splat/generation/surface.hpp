#pragma once

#include "core/math/vec_hd.hpp"
#include "splat/generation/generation.hpp"
#include "splat/search/plane_fit.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::splat {

/// What growth asks about the neighbours of a seed, in eight bytes: neighbours lie anywhere in memory, and
/// fetching them is what growth waits for. The normal is rounded to 15 bits an axis, fine enough to tell
/// whether two point the same way.
class SurfaceBrief {
  public:
    static constexpr float kNormalScale = 16383;
    /// In the first word: the normal points to the sensor; the point was denoised away.
    static constexpr std::uint32_t kOriented = 1u << 30, kOutlier = 1u << 31;
    /// In the second word: the whole neighbourhood was read, the rest is final.
    static constexpr std::uint32_t kKnown = 1u << 15;
    struct Flags {
        bool known, outlier, oriented;
    };

    SurfaceBrief() = default;
    /// `kind`: splats do not grow from one kind to another: label, group or nothing by method.
    SurfaceBrief(Vec3f normal, std::uint16_t kind, Flags flags)
        : xy_flags_(rounded(normal.x) | rounded(normal.y) << 15 | (flags.oriented ? kOriented : 0) |
                    (flags.outlier ? kOutlier : 0)),
          z_kind_(rounded(normal.z) | (flags.known ? kKnown : 0) | std::uint32_t{kind} << 16) {}

    bool known() const { return (z_kind_ & kKnown) != 0; }
    bool outlier() const { return (xy_flags_ & kOutlier) != 0; }
    bool oriented() const { return (xy_flags_ & kOriented) != 0; }
    std::uint16_t kind() const { return static_cast<std::uint16_t>(z_kind_ >> 16); }
    /// y in bits 15 to 29, x in bits 0 to 14.
    std::uint32_t first_word() const { return xy_flags_; }
    /// Kind in bits 16 to 31, z in bits 0 to 14.
    std::uint32_t second_word() const { return z_kind_; }

  private:
    static std::uint32_t rounded(float v) {
        return static_cast<std::uint32_t>(
                   static_cast<std::int32_t>(v * kNormalScale + (v < 0 ? -0.5f : 0.5f))) &
               0x7fffu;
    }
    std::uint32_t xy_flags_, z_kind_;
};
static_assert(sizeof(SurfaceBrief) == 8);

/// What the neighbourhood of each point says about the surface there.
struct Surface {
    std::vector<SurfaceBrief> brief;
    std::vector<Vec3f> normal;
    std::vector<std::uint16_t> least_radius;  ///< of a splat that grows here, in steps
    std::vector<std::uint8_t> reach_class;    ///< neighbourhood that the point's splat grows in
    std::vector<std::uint32_t> reach2;        ///< how far it reaches; empty where shapes chose it afterwards
};

/// The normal on the side of the sensor. A line has many normals: the one that looks at the sensor is taken.
/// Without a sensor (not `known`) the sign is fixed by the coordinates.
struct Oriented {
    Vec3d normal;
    bool known;
};
Oriented orient(const PlaneFit& fit, const PointAttributes& a);

/// The normal of the plane that predicts the ranges of a neighbourhood best. Ranges are noisy, directions
/// hardly: a bar of a few points, whose noise along the rays exceeds its width, has its least spread *across*
/// the view, and PCA would turn it edge-on. Least squares along the ray s instead of total least squares
/// gives n ∝ (C + ν²)⁻¹ s, with the covariance C and a little noise ν across the rays. For a wide plane both
/// agree; a line gets the normal that looks at the sensor, a lone point looks at it.
Vec3d facing_normal(const Moments& m, Vec3d to_sensor, double noise);

/// Normals and denoising for all points; for `descriptors` also the groups (into the cloud), unless it is the
/// second generation (`discs` as in GenerationTask), which keeps them.
struct SurfaceTask {
    PointCloud& cloud;
    const NeighbourIndex& index;
    const CoveredEdge& edge;
    const GenerationSettings& settings;
    std::span<const FirstDisc> discs;
};
Surface find_surface(const SurfaceTask& task, const CancelToken& cancel);

}  // namespace citysplat::splat
