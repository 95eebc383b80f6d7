#pragma once

#include "sim/hit_hd.hpp"
#include "sim/ray_disc_hd.hpp"

#include <cstdint>

/// What the host tells the OptiX programs (optix_programs.cu), and what they keep while a ray is under way.
/// Plain data and pure functions: the tests run all of it on the CPU.
namespace citysplat::gpu {

/// What a return says about its splat besides the disc.
struct SplatFacts {
    std::uint32_t normal;  ///< pack_normal()
    std::uint16_t intensity;
    std::uint8_t acquired_range_m, acquired_incidence;
};
static_assert(sizeof(SplatFacts) == 8);

/// A resident tile as rays see it. The table of a scene is sorted by `index`, so that the order of two slots
/// is the order of their tiles.
struct TileView {
    const sim::TraceDisc* discs;  ///< label in the low 16 bits of TraceDisc::label, frame number above them
    const SplatFacts* facts;
    Vec3d origin;         ///< of the tile's frame in the world: whole metres
    std::uint32_t index;  ///< in the TileSource
    std::uint32_t splats;
};
static_assert(sizeof(TileView) == 48);

/// Tiles whose traversal frames share an origin: an instance acceleration structure.
struct SceneView {
    std::uint64_t traversable;  ///< OptixTraversableHandle
    Vec3d anchor;               ///< origin of the traversal frame in the world: whole metres
};
static_assert(sizeof(SceneView) == 32);

/// Frame number of a launch that sees all splats, whatever their frame.
inline constexpr std::uint32_t kAllFrames = 0xffffffffu;

struct TraceParams {
    const SceneView* scenes;
    const TileView* tiles;
    const sim::Ray* rays;
    sim::Hit* hits;  ///< `depth` per ray, in order; the first that does not exist ends a ray's hits
    std::uint32_t scene_count;
    std::uint32_t depth;  ///< hits wanted of each ray: 1 (closest), 1 … kMaxHits (nearest)
    float reach_m;        ///< nearest only: hits farther behind the first are not wanted
    std::uint32_t frame;  ///< which dynamic splats are there; kAllFrames, or 0 for static ones only
};
static_assert(sizeof(TraceParams) == 48);

/// Payload registers of every trace; the pipeline is compiled for this many.
inline constexpr int kPayloadWords = 3;

/// The traversal works in float on boxes in tile frames and on rays in the scene's frame. With boxes this
/// much larger than the discs it cannot lose a hit while coordinates in the scene's frame stay below
/// kSceneReach_m plus the sensor's range (docs/gpu.md has the sum of errors).
inline constexpr float kBoxSlack_m = 5e-4f;
inline constexpr double kSceneReach_m = 2048;

CITYSPLAT_HD inline bool in_frame(std::uint32_t label_and_frame, std::uint32_t frame) {
    const std::uint32_t own = label_and_frame >> 16;
    return frame == kAllFrames || own == 0 || own == frame;
}

/// Where the ray meets the splat, by the rules of ray_disc_hd.hpp in the frame of the tile; false when it
/// does not, or not within its limits. Traversal decides only which splats are asked.
CITYSPLAT_HD inline bool meets_splat(const TileView& tile, std::uint32_t splat, const sim::Ray& ray,
                                     std::uint32_t frame, float& t) {
    const sim::TraceDisc& disc = tile.discs[splat];
    return sim::meets(disc, sim::local_origin(ray.origin, tile.origin), ray.direction, t) && t > ray.t_min &&
           t <= ray.t_max && in_frame(disc.label, frame);
}

/// A hit while its ray is under way. `slot` is the place in TraceParams::tiles.
struct Candidate {
    float t;
    std::uint32_t slot, splat;
};

CITYSPLAT_HD inline bool comes_before(const Candidate& a, const Candidate& b) {
    return sim::comes_before(a.t, a.slot, a.splat, b.t, b.slot, b.splat);
}

/// The nearest hits of a ray so far, in order.
struct Nearest {
    Candidate hits[sim::kMaxHits];
    std::uint32_t count;
};

/// Puts a hit in its place; a hit that is there already (OptiX may ask a splat twice) changes nothing.
/// Returns the distance beyond which no hit is wanted any more.
CITYSPLAT_HD inline float offer(Nearest& nearest, const Candidate& hit, std::uint32_t depth, float reach_m) {
    std::uint32_t at = nearest.count;
    while (at > 0 && comes_before(hit, nearest.hits[at - 1])) --at;
    const bool known = at > 0 && !comes_before(nearest.hits[at - 1], hit);
    if (!known && at < depth) {
        std::uint32_t last = nearest.count < depth ? nearest.count++ : depth - 1;
        for (; last > at; --last) nearest.hits[last] = nearest.hits[last - 1];
        nearest.hits[at] = hit;
    }
    const float reach = nearest.hits[0].t + reach_m;
    const bool full = nearest.count == depth && nearest.hits[depth - 1].t < reach;
    return full ? nearest.hits[depth - 1].t : reach;
}

/// Hits within reach of the first. What lies behind depends on the order of traversal and is not told.
CITYSPLAT_HD inline std::uint32_t count_within_reach(const Nearest& nearest, float reach_m) {
    std::uint32_t n = nearest.count;
    while (n > 0 && nearest.hits[n - 1].t > nearest.hits[0].t + reach_m) --n;
    return n;
}

/// The hit as the simulation wants it. Requires a hit that meets_splat() found.
CITYSPLAT_HD inline sim::Hit describe(const Candidate& hit, const TileView& tile, const sim::Ray& ray) {
    const sim::TraceDisc& disc = tile.discs[hit.splat];
    const SplatFacts& facts = tile.facts[hit.splat];
    sim::Hit out;
    out.t = hit.t;
    out.tile = tile.index;
    out.splat = hit.splat;
    out.normal = facts.normal;
    out.range_m = sim::exact_range(disc, ray.origin - tile.origin, ray.direction);
    out.label = static_cast<std::uint16_t>(disc.label & 0xffffu);
    out.intensity = facts.intensity;
    out.acquired_range_m = facts.acquired_range_m;
    out.acquired_incidence = facts.acquired_incidence;
    return out;
}

}  // namespace citysplat::gpu
