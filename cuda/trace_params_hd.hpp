#pragma once

#include "trace/part_hd.hpp"
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

/// A part (trace/part.hpp) on the device. Its shape is in a scene of its own, whose frame is the shape's.
struct PartView {
    std::uint64_t traversable;  ///< of that scene
    const trace::TraceDisc* discs;
    const trace::TraceTriangle* triangles;  ///< nullptr: it is made of discs
    const trace::SplatFacts* splats;        ///< of discs or triangles
    trace::MotionView motion;
    trace::PartFacts facts;
    float from_s, to_s;

    CITYSPLAT_HD bool exists(float time_s) const { return time_s >= from_s && time_s < to_s; }
};
static_assert(sizeof(PartView) == 72);

/// What hits refer to. Slots below kFirstPartSlot are those of tiles, from there on those of parts.
struct SceneTables {
    const trace::TileView* tiles;
    const PartView* parts;
};
inline constexpr std::uint32_t kFirstPartSlot = 0x80000000u;

CITYSPLAT_HD inline trace::HitName name_of(const SceneTables& tables, trace::SplatPlace place) {
    if (place.slot < kFirstPartSlot) return {trace::id_of(tables.tiles, place), 0};
    const PartView& part = tables.parts[place.slot - kFirstPartSlot];
    return {trace::hit_id(part.facts, part.splats[place.splat], place.splat), part.facts.instance};
}

struct TraceParams {
    const SceneView* scenes;
    SceneTables tables;
    const trace::Ray* rays;
    trace::Hit* hits;  ///< `wanted.depth` per ray, in order; the first that does not exist ends a ray's hits
    std::uint32_t scene_count, part_count;
    Wanted wanted;  ///< of each ray; `reach_m` is for nearest only
};
static_assert(sizeof(TraceParams) == 56);

/// Payload registers of every trace; the pipeline is compiled for this many. The last one says where the ray
/// is: kAmongTiles, or the number of a part.
inline constexpr int kPayloadWords = 4;
inline constexpr std::uint32_t kAmongTiles = 0xffffffffu;

/// The traversal works in float on boxes in tile frames and on rays in the scene's frame. With boxes this
/// much larger than the discs it cannot lose a hit while tiles lie within kSceneReach_m of the scene's anchor
/// (docs/gpu.md has the sum of errors).
inline constexpr float kBoxSlack_m = 8e-3f;
inline constexpr double kSceneReach_m = 2048;

/// Where the ray meets the splat, by the rules of ray_disc_hd.hpp in the frame of the tile; false when it
/// does not, or not within its limits. Traversal decides only which splats are asked.
CITYSPLAT_HD inline bool meets_splat(const trace::TileView& tile, std::uint32_t splat, const trace::Ray& ray,
                                     float& t) {
    const trace::TraceDisc& disc = tile.discs[splat];
    const Vec3f origin = trace::local_origin(trace::lattice_origin(ray), tile.origin);
    return trace::meets(disc, origin, ray.direction, t) && t > ray.t_min && t <= ray.t_max;
}

/// The same for a primitive of a part, by the rules of its shape. The ray is in the part's frame already.
CITYSPLAT_HD inline bool meets_part(const PartView& part, std::uint32_t primitive,
                                    const trace::LocalRay& local, const trace::Ray& ray, float& t) {
    const bool met = part.triangles ? trace::meets(part.triangles[primitive],
                                                   trace::sheared(local.origin, local.direction), t)
                                    : trace::meets(part.discs[primitive], local.origin, local.direction, t);
    return met && t > ray.t_min && t <= ray.t_max;
}

/// A hit while its ray is under way.
struct Candidate {
    float t;
    trace::SplatPlace place;  ///< in SceneTables
};

/// Slot of a candidate that stands for "nothing yet".
inline constexpr std::uint32_t kNoSlot = 0xffffffffu;

/// The order of hits (hit_hd.hpp). Ids are looked up only where distances are equal.
CITYSPLAT_HD inline bool comes_before(const Candidate& a, const Candidate& b, const SceneTables& tables) {
    return a.t != b.t ? a.t < b.t : name_of(tables, a.place) < name_of(tables, b.place);
}

/// The nearest hits of a ray so far, in order.
struct Nearest {
    Candidate hits[trace::kMaxHits];
    std::uint32_t count;
};

/// Puts a hit in its place; a hit that is there already (OptiX may ask a splat twice) changes nothing.
/// Returns the distance beyond which no hit is wanted any more.
CITYSPLAT_HD inline float offer(Nearest& nearest, const Candidate& hit, const Wanted& wanted,
                                const SceneTables& tables) {
    bool known = false;
    for (std::uint32_t i = 0; i < nearest.count; ++i) {
        const trace::SplatPlace place = nearest.hits[i].place;
        known = known || (place.slot == hit.place.slot && place.splat == hit.place.splat);
    }
    std::uint32_t at = nearest.count;
    while (!known && at > 0 && comes_before(hit, nearest.hits[at - 1], tables)) --at;
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

/// Requires a hit that meets_splat() or meets_part() found.
CITYSPLAT_HD inline trace::Hit describe(const Candidate& hit, const SceneTables& tables,
                                        const trace::Ray& ray) {
    const auto [slot, splat] = hit.place;
    if (slot < kFirstPartSlot) return trace::describe(hit.t, tables.tiles, hit.place, ray);
    const PartView& part = tables.parts[slot - kFirstPartSlot];
    const trace::PoseKey at = trace::pose_at(part.motion, ray.time_s);
    const trace::MetPart met{part.facts, at, part.splats[splat], splat};
    return part.triangles ? trace::describe(hit.t, met, part.triangles[splat], ray)
                          : trace::describe(hit.t, met, part.discs[splat], ray);
}

}  // namespace citysplat::gpu
