#pragma once

#include "splat/generation/tile_generation.hpp"

namespace citysplat::splat {

/// The discs of LiDARsim (Manivasagam et al., CVPR 2020, §3.1): of the points in each cube of surfel_voxel_m
/// one stays and is the centre of a disc; its normal comes from a PCA of what stayed within surfel_reach_m.
/// The disc has the intensity of its point, its distance from the sensor and the angle at which it was seen.
/// Points with fewer than two others in reach have no normal and make no disc.
///
/// Which point of a cube stays is settled by the hash that orders seeds, cubes are counted from the world's
/// origin, and all that matters lies within surfel_halo() of the core: the result is seamless. Takes the
/// points out of the region.
TileSplats make_surfels(tiling::Region& region, const ClassMap& classes, const SplatParams& params,
                        const CancelToken& cancel);

std::int64_t surfel_halo(const SplatParams& params);

}  // namespace citysplat::splat
