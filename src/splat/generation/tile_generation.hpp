#pragma once

#include "splat/generation/generation.hpp"

namespace citysplat::splat {

/// Splats of a region before any resampling.
struct FirstGeneration {
    PointCloud cloud;
    Generation generation;
    /// All seeds within this distance of the core are decided; negative: not even those in the core.
    std::int64_t decided_steps = 0;
};
/// Takes the points out of the region once they are in the cloud.
FirstGeneration generate_first(tiling::Region& region, const ClassMap& classes,
                               const GenerationSettings& settings, const CancelToken& cancel);

struct TileSplats {
    std::int64_t wanted_halo_steps = 0;  ///< 0: certified
    std::vector<Splat> splats;           ///< seeds in the core; steps from the region's frame
};

/// Splats of the core of a region, with one generation or, when resampling, two. Takes its points.
TileSplats make_tile_splats(tiling::Region& region, const ClassMap& classes,
                            const GenerationSettings& settings, double mean_density,
                            const CancelToken& cancel);

/// Halo in which nearly all tiles are certified.
std::int64_t initial_halo(const GenerationSettings& settings);

}  // namespace citysplat::splat
