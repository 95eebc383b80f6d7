#pragma once

#include "core/vec_hd.hpp"
#include "splat/generation.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::splat {

/// What the neighbourhood of each point says about the surface there.
struct Surface {
    enum Flag : std::uint8_t {
        kKnown = 1,     ///< the whole neighbourhood was read: the rest is final
        kOutlier = 2,   ///< denoised away
        kOriented = 4,  ///< the normal points to the sensor
    };
    std::vector<Vec3f> normal;
    std::vector<std::uint8_t> flags;
    std::vector<std::uint8_t> reach_class;  ///< neighbourhood that the point's splat grows in

    bool has(std::size_t i, Flag flag) const { return (flags[i] & flag) != 0; }
};

/// PCA normals and denoising for all points; for `descriptors` also the groups (into the cloud), unless they
/// are to be kept.
Surface find_surface(PointCloud& cloud, const NeighbourIndex& index, const CoveredEdge& edge,
                     const GenerationSettings& settings, bool keep_groups, const CancelToken& cancel);

}  // namespace citysplat::splat
