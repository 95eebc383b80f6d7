#pragma once

#include "trace/tile_view_hd.hpp"

#include <cstdint>

/// What the host tells the OptiX programs (optix_programs.cu), and what they keep while a ray is under way.
/// Plain data and pure functions: the tests run all of it on the CPU.
namespace citysplat::gpu {

/// Tiles whose traversal frames share an origin: an instance acceleration structure.
struct SceneView {
    std::uint64_t traversable;  ///< OptixTraversableHandle
    Vec3d anchor;               ///< origin of the traversal frame in the world: whole metres
};
static_assert(sizeof(SceneView) == 32);

/// The hits a ray asks for.
struct Wanted {
    std::uint32_t depth;  ///< 1 (closest), 1 … kMaxHits (nearest)
    float reach_m;        ///< hits farther behind the first are not wanted
};

/// Frame number of a launch that sees all splats, whatever their frame.
inline constexpr std::uint32_t kAllFrames = 0xffffffffu;

struct TraceParams {
    const SceneView* scenes;
    const trace::TileView* tiles;  ///< TraceDisc::label has the splat's frame number above its 16 bits
    const trace::Ray* rays;
    trace::Hit* hits;  ///< `wanted.depth` per ray, in order; the first that does not exist ends a ray's hits
    std::uint32_t scene_count;
    Wanted wanted;        ///< of each ray; `reach_m` is for nearest only
    std::uint32_t frame;  ///< which dynamic splats are there; kAllFrames, or 0 for static ones only
};
static_assert(sizeof(TraceParams) == 48);

/// Payload registers of every trace; the pipeline is compiled for this many.
inline constexpr int kPayloadWords = 3;

/// The traversal works in float on boxes in tile frames and on rays in the scene's frame. With boxes this
/// much larger than the discs it cannot lose a hit while tiles lie within kSceneReach_m of the scene's anchor
/// (docs/gpu.md has the sum of errors).
inline constexpr float kBoxSlack_m = 8e-3f;
inline constexpr double kSceneReach_m = 2048;

CITYSPLAT_HD inline bool in_frame(std::uint32_t label_and_frame, std::uint32_t frame) {
    const std::uint32_t own = label_and_frame >> 16;
    return frame == kAllFrames || own == 0 || own == frame;
}

/// Where the ray meets the splat, by the rules of ray_disc_hd.hpp in the frame of the tile; false when it
/// does not, or not within its limits. Traversal decides only which splats are asked.
CITYSPLAT_HD inline bool meets_splat(const trace::TileView& tile, std::uint32_t splat, const trace::Ray& ray,
                                     std::uint32_t frame, float& t) {
    const trace::TraceDisc& disc = tile.discs[splat];
    const Vec3f origin = trace::local_origin(trace::lattice_origin(ray), tile.origin);
    return trace::meets(disc, origin, ray.direction, t) && t > ray.t_min && t <= ray.t_max &&
           in_frame(disc.label, frame);
}

/// A hit while its ray is under way.
struct Candidate {
    float t;
    trace::SplatPlace place;  ///< in TraceParams::tiles
};

/// Slot of a candidate that stands for "nothing yet".
inline constexpr std::uint32_t kNoSlot = 0xffffffffu;

/// The order of hits (hit_hd.hpp). Ids are looked up only where distances are equal.
CITYSPLAT_HD inline bool comes_before(const Candidate& a, const Candidate& b, const trace::TileView* tiles) {
    return a.t != b.t ? a.t < b.t : id_of(tiles, a.place) < id_of(tiles, b.place);
}

/// The nearest hits of a ray so far, in order.
struct Nearest {
    Candidate hits[trace::kMaxHits];
    std::uint32_t count;
};

/// Puts a hit in its place; a hit that is there already (OptiX may ask a splat twice) changes nothing.
/// Returns the distance beyond which no hit is wanted any more.
CITYSPLAT_HD inline float offer(Nearest& nearest, const Candidate& hit, const Wanted& wanted,
                                const trace::TileView* tiles) {
    bool known = false;
    for (std::uint32_t i = 0; i < nearest.count; ++i) {
        const trace::SplatPlace place = nearest.hits[i].place;
        known = known || (place.slot == hit.place.slot && place.splat == hit.place.splat);
    }
    std::uint32_t at = nearest.count;
    while (!known && at > 0 && comes_before(hit, nearest.hits[at - 1], tiles)) --at;
    if (!known && at < wanted.depth) {
        std::uint32_t last = nearest.count < wanted.depth ? nearest.count++ : wanted.depth - 1;
        for (; last > at; --last) nearest.hits[last] = nearest.hits[last - 1];
        nearest.hits[at] = hit;
    }
    const float reach = nearest.hits[0].t + wanted.reach_m;
    const std::uint32_t deepest = wanted.depth - 1;
    const bool full = nearest.count > deepest && nearest.hits[deepest].t < reach;
    return full ? nearest.hits[deepest].t : reach;
}

/// Hits within reach of the first. What lies behind depends on the order of traversal and is not told.
CITYSPLAT_HD inline std::uint32_t count_within_reach(const Nearest& nearest, float reach_m) {
    std::uint32_t n = nearest.count;
    while (n > 0 && nearest.hits[n - 1].t > nearest.hits[0].t + reach_m) --n;
    return n;
}

/// Requires a hit that meets_splat() found.
CITYSPLAT_HD inline trace::Hit describe(const Candidate& hit, const trace::TileView* tiles,
                                        const trace::Ray& ray) {
    return trace::describe(hit.t, tiles, hit.place, ray);
}

}  // namespace citysplat::gpu
