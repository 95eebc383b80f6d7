#include "view/server/picker.hpp"

#include "model/splat_id_hd.hpp"

#include <algorithm>

namespace citysplat::view {

Picker::Picker(const TileSource& city, std::uint64_t budget_bytes)
    : city_(city),
      tracer_(trace::make_group_tracer()),
      resident_(city, *tracer_,
                trace::CacheOptions{.budget_bytes = budget_bytes, .prefetch = false, .allow_missing = true}) {
}

Picked Picker::pick(Vec3d origin, Vec3d direction, const CancelToken& cancel) {
    const trace::Ray ray{origin, vec_cast<float>(normalized(direction)), 0.0f, kFar_m};
    const std::span<const trace::Ray> rays(&ray, 1);
    Picked picked;
    {
        const std::lock_guard lock(mutex_);
        const std::vector<std::uint32_t> tiles = resident_.reach(rays);
        picked.missing = resident_.visit(tiles, cancel, [&](const trace::ResidentCity::Pass& pass) {
            tracer_->closest(pass.tiles, rays, std::span(&picked.hit, 1));
        });
    }
    if (!picked.hit.exists()) return picked;
    picked.position = origin + vec_cast<double>(ray.direction) * picked.hit.range_m;
    picked.place = find(picked.hit, picked.position);
    return picked;
}

/// The splat by its name: hits do not say in which tile it is kept.
std::optional<Picked::Place> Picker::find(const trace::Hit& hit, Vec3d position) const {
    constexpr double kSlack_m = 0.01;
    const auto tiles = city_.tiles();
    for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
        const auto outside = [](double v, double min, double max) {
            return v < min - kSlack_m || v > max + kSlack_m;
        };
        const TileEntry& entry = tiles[tile];
        if (outside(position.x, entry.min.x, entry.max.x) || outside(position.y, entry.min.y, entry.max.y) ||
            outside(position.z, entry.min.z, entry.max.z))
            continue;
        try {
            const SplatTile splats = city_.load(tile);
            const LatticePoint origin = splats.frame().origin();
            for (std::size_t i = 0; i < splats.size(); ++i) {
                const Splat s = splats.splat(i);
                if (splat_id(identity(s, origin)) != hit.splat_id) continue;
                return Picked::Place{
                    tile, i, s,
                    Vec3d{to_metres(origin.x + s.x), to_metres(origin.y + s.y), to_metres(origin.z + s.z)}};
            }
        } catch (const Error&) {
            // A damaged neighbour is told by Picked::missing when the ray needs it.
        }
    }
    return std::nullopt;
}

}  // namespace citysplat::view
