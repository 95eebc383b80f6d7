#pragma once

#include "cuda/tile_loader.hpp"

#include <span>
#include <vector>

namespace citysplat::gpu {

/// Where the tiles of a set go: all of them in one scene while they are close together (the rule), otherwise
/// in one scene per square of 2 · kSceneReach_m, so that no traversal works with coordinates too large for
/// its boxes. Rays visit the scenes one after the other.
struct SceneLayout {
    struct Scene {
        Vec3d anchor;
        std::vector<TileInstance> instances;
    };
    std::vector<Scene> scenes;
    std::vector<trace::TileView> tiles;  ///< by slot
};

SceneLayout lay_out_scenes(std::span<const LoadedTile* const> tiles);

}  // namespace citysplat::gpu
