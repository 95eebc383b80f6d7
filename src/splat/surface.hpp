#pragma once

#include "core/vec_hd.hpp"
#include "splat/generation.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::splat {

/// What growth asks about a point, together in half a cache line.
struct SurfacePoint {
    enum Flag : std::uint8_t {
        kKnown = 1,     ///< the whole neighbourhood was read: the rest is final
        kOutlier = 2,   ///< denoised away
        kOriented = 4,  ///< the normal points to the sensor
    };
    std::int32_t x, y, z;
    Vec3f normal;
    std::uint32_t rank;
    std::uint16_t kind;  ///< splats do not grow from one kind to another: label, group or nothing by method
    std::uint8_t flags;
    std::uint8_t reserved;

    bool has(Flag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(SurfacePoint) == 32);

/// What the neighbourhood of each point says about the surface there.
struct Surface {
    std::vector<SurfacePoint> points;
    std::vector<std::uint8_t> reach_class;  ///< neighbourhood that the point's splat grows in
};

/// The normal of the plane that predicts the ranges of a neighbourhood best. Ranges are noisy, directions
/// hardly: a bar of a few points, whose noise along the rays exceeds its width, has its least spread *across*
/// the view, and PCA would turn it edge-on. Least squares along the ray s instead of total least squares
/// gives n ∝ (C + ν²)⁻¹ s, with the covariance C and a little noise ν across the rays. For a wide plane both
/// agree; a line gets the normal that looks at the sensor, a lone point looks at it.
Vec3d facing_normal(const Moments& m, Vec3d to_sensor, double noise);

/// Normals and denoising for all points; for `descriptors` also the groups (into the cloud), unless it is the
/// second generation (`discs` as in GenerationTask), which keeps them.
Surface find_surface(PointCloud& cloud, const NeighbourIndex& index, const CoveredEdge& edge,
                     const GenerationSettings& settings, std::span<const FirstDisc> discs,
                     const CancelToken& cancel);

}  // namespace citysplat::splat
