#include "cuda/scene_layout.hpp"

#include "core/math/lattice.hpp"

#include <algorithm>
#include <map>

namespace citysplat::gpu {

namespace {

constexpr std::int64_t kReach_m = static_cast<std::int64_t>(kSceneReach_m);

/// Smallest box around the frames of the tiles.
struct FrameBox {
    TileFrame min, max;

    explicit FrameBox(std::span<const LoadedTile* const> tiles) : min(tiles[0]->frame), max(min) {
        for (const LoadedTile* tile : tiles) {
            const TileFrame& f = tile->frame;
            min = {std::min(min.x_m, f.x_m), std::min(min.y_m, f.y_m), std::min(min.z_m, f.z_m)};
            max = {std::max(max.x_m, f.x_m), std::max(max.y_m, f.y_m), std::max(max.z_m, f.z_m)};
        }
    }
    TileFrame middle() const {
        return {floor_div(min.x_m + max.x_m, 2), floor_div(min.y_m + max.y_m, 2),
                floor_div(min.z_m + max.z_m, 2)};
    }
    bool fits_one_scene() const {
        return max.x_m - min.x_m <= 2 * kReach_m && max.y_m - min.y_m <= 2 * kReach_m &&
               max.z_m - min.z_m <= 2 * kReach_m;
    }
};

TileInstance instance_of(const LoadedTile& tile, std::uint32_t slot, const TileFrame& anchor) {
    const TileFrame& f = tile.frame;
    TileInstance instance{};
    instance.scene_from_tile[0] = instance.scene_from_tile[5] = instance.scene_from_tile[10] = 1;
    instance.scene_from_tile[3] = static_cast<float>(f.x_m - anchor.x_m);
    instance.scene_from_tile[7] = static_cast<float>(f.y_m - anchor.y_m);
    instance.scene_from_tile[11] = static_cast<float>(f.z_m - anchor.z_m);
    instance.slot = slot;
    instance.visibility_mask = 255;
    instance.traversable = tile.traversable;
    return instance;
}

}  // namespace

SceneLayout lay_out_scenes(std::span<const LoadedTile* const> tiles) {
    SceneLayout layout;
    const FrameBox box(tiles);
    const auto anchor_of = [&](const TileFrame& f) {
        if (box.fits_one_scene()) return box.middle();
        const auto centre = [](std::int64_t v) {
            return floor_div(v, 2 * kReach_m) * 2 * kReach_m + kReach_m;
        };
        return TileFrame{centre(f.x_m), centre(f.y_m), centre(f.z_m)};
    };
    std::map<TileFrame, SceneLayout::Scene> scenes;
    for (std::uint32_t slot = 0; slot < tiles.size(); ++slot) {
        const LoadedTile& tile = *tiles[slot];
        const TileFrame anchor = anchor_of(tile.frame);
        SceneLayout::Scene& scene = scenes[anchor];
        scene.anchor = anchor.origin_m();
        scene.instances.push_back(instance_of(tile, slot, anchor));
        layout.tiles.push_back({tile.discs(), tile.facts(), tile.frame.origin_m()});
    }
    for (auto& [anchor, scene] : scenes) layout.scenes.push_back(std::move(scene));
    return layout;
}

}  // namespace citysplat::gpu
