#pragma once

#include "trace/hit_hd.hpp"
#include "trace/ray_disc_hd.hpp"

#include <cstdint>

/// A resident tile as rays see it, on the CPU and on devices alike, and the splats in it by number.
namespace citysplat::trace {

/// What a hit says about its splat besides the disc: together, because a hit asks for all of it at once.
struct SplatFacts {
    std::uint64_t id;      ///< splat_id()
    std::uint32_t normal;  ///< pack_normal()
    std::uint16_t intensity;
    std::uint8_t acquired_range_m, acquired_incidence;
};
static_assert(sizeof(SplatFacts) == 16);

struct TileView {
    const TraceDisc* discs;
    const SplatFacts* facts;
    Vec3d origin;  ///< of the tile's frame in the world: whole metres
};
static_assert(sizeof(TileView) == 40);

/// A splat while its ray is under way: the tile's place in the table of a set, and the place in the tile. It
/// means nothing outside of the set; what leaves a tracer is the id.
struct SplatPlace {
    std::uint32_t slot, splat;
};

CITYSPLAT_HD inline std::uint64_t id_of(const TileView* tiles, SplatPlace place) {
    return tiles[place.slot].facts[place.splat].id;
}

/// A splat that was met, in its tile's frame.
struct MetSplat {
    const TraceDisc& disc;
    const SplatFacts& facts;
    Vec3d frame_origin;
};

/// The hit as the simulation wants it. Requires that the ray meets the splat at `t`.
CITYSPLAT_HD inline Hit describe(float t, const MetSplat& splat, const Ray& ray) {
    const auto& [disc, facts, frame_origin] = splat;
    Hit hit;
    hit.t = t;
    hit.normal = facts.normal;
    hit.splat_id = facts.id;
    hit.range_m = exact_range(disc, frame_origin, ray);
    hit.label = static_cast<std::uint16_t>(disc.label & 0xffffu);
    hit.intensity = facts.intensity;
    hit.acquired_range_m = facts.acquired_range_m;
    hit.acquired_incidence = facts.acquired_incidence;
    return hit;
}
CITYSPLAT_HD inline Hit describe(float t, const TileView* tiles, SplatPlace place, const Ray& ray) {
    const TileView& tile = tiles[place.slot];
    return describe(t, {tile.discs[place.splat], tile.facts[place.splat], tile.origin}, ray);
}

}  // namespace citysplat::trace
