#pragma once

#include "trace/part_hd.hpp"
#include "trace/tile_view_hd.hpp"

#include <cstdint>

/// A packet of rays against the discs of one leaf, in SIMD with run-time dispatch (packet.cpp, the only file
/// that uses Highway) and in scalar code. Both give the same bits: no fused multiply-add, same order.
namespace citysplat::trace {

inline constexpr unsigned kMaxPacket = 16;

/// The lanes of a packet in the frame of the tile being traversed. The arrays belong to the traversal;
/// `t_max` is its bound for culling, lowered as hits are found.
struct PacketRays {
    const float *origin_x, *origin_y, *origin_z;
    const float *direction_x, *direction_y, *direction_z;
    const float* t_min;
    float* t_max;
    const int* active;  ///< 0: the lane does not take part
};

/// Consecutive discs of a tile.
struct LeafDiscs {
    const TraceDisc* discs;
    std::uint32_t count;
    SplatPlace first;  ///< of the first disc
};

/// What is known about the tile or part with a slot.
struct SlotFacts {
    const SplatFacts* facts;  ///< of its splats or triangles
    PartFacts part;           ///< of a part; as it is from the beginning for a tile
};

inline HitName name_of(const SlotFacts* slots, SplatPlace place) {
    const SlotFacts& slot = slots[place.slot];
    return {hit_id(slot.part, slot.facts[place.splat], place.splat), slot.part.instance};
}

/// Slots of no tile: nothing was met yet; a hit of earlier tiles, `splat` is its number among those.
inline constexpr std::uint32_t kNoSlot = 0xffffffffu;
inline constexpr std::uint32_t kEarlierSlot = 0xfffffffeu;

/// First hit of each lane so far.
struct alignas(64) ClosestLanes {
    float t[kMaxPacket];
    std::uint32_t slot[kMaxPacket], splat[kMaxPacket];
    std::uint32_t touched;  ///< bit per lane: changed since cleared
    const SlotFacts* slots;
    const Hit* earlier[kMaxPacket];  ///< what earlier tiles gave

    void offer(unsigned lane, float hit_t, SplatPlace place, float& t_max) {
        if (!(hit_t < t[lane]) && !(hit_t == t[lane] && wins_tie(lane, place))) return;
        t[lane] = t_max = hit_t;
        slot[lane] = place.slot;
        splat[lane] = place.splat;
        touched |= 1u << lane;
    }

  private:
    bool wins_tie(unsigned lane, SplatPlace place) const {
        if (slot[lane] == kNoSlot) return true;
        const HitName known =
            slot[lane] == kEarlierSlot ? name_of(*earlier[lane]) : name_of(slots, {slot[lane], splat[lane]});
        return name_of(slots, place) < known;
    }
};

/// First `depth` hits of each lane so far, in order.
struct NearestLanes {
    float t[kMaxPacket][kMaxHits];
    SplatPlace place[kMaxPacket][kMaxHits];
    std::uint32_t count[kMaxPacket];
    std::uint32_t depth;
    float reach_m;  ///< hits farther behind the first cannot belong to its surface
    const SlotFacts* slots;
    const HitList* earlier[kMaxPacket];  ///< what earlier tiles gave

    void offer(unsigned lane, float hit_t, SplatPlace hit_place, float& t_max) {
        std::uint32_t at = count[lane];
        while (at > 0 &&
               (hit_t < t[lane][at - 1] || (hit_t == t[lane][at - 1] && wins_tie(lane, at - 1, hit_place))))
            --at;
        if (at == depth) return;
        std::uint32_t last = count[lane] < depth ? count[lane]++ : depth - 1;
        for (; last > at; --last) {
            t[lane][last] = t[lane][last - 1];
            place[lane][last] = place[lane][last - 1];
        }
        t[lane][at] = hit_t;
        place[lane][at] = hit_place;
        const float reach = t[lane][0] + reach_m;
        const float bound = count[lane] == depth && t[lane][depth - 1] < reach ? t[lane][depth - 1] : reach;
        if (bound < t_max) t_max = bound;
    }

    /// Hits of a lane that may belong to one surface with its first.
    std::uint32_t count_in_reach(unsigned lane) const {
        std::uint32_t n = 0;
        while (n < count[lane] && t[lane][n] <= t[lane][0] + reach_m) ++n;
        return n;
    }

  private:
    bool wins_tie(unsigned lane, std::uint32_t known, SplatPlace hit_place) const {
        return name(lane, hit_place) < name(lane, place[lane][known]);
    }
    HitName name(unsigned lane, SplatPlace of) const {
        return of.slot == kEarlierSlot ? name_of(earlier[lane]->hits[of.splat]) : name_of(slots, of);
    }
};

template <class Lanes>
using LeafFunction = void (*)(const LeafDiscs&, const PacketRays&, Lanes&);

/// Functions for packets of 4, 8 or 16 lanes; nullptr for other widths.
template <class Lanes>
LeafFunction<Lanes> leaf_function(unsigned width, bool simd);

/// One lane, scalar: also what packets of other shapes use.
template <class Lanes>
void meet_leaf_lane(const LeafDiscs& leaf, const PacketRays& rays, unsigned lane, unsigned result_lane,
                    Lanes& lanes) {
    const Vec3f origin{rays.origin_x[lane], rays.origin_y[lane], rays.origin_z[lane]};
    const Vec3f direction{rays.direction_x[lane], rays.direction_y[lane], rays.direction_z[lane]};
    for (std::uint32_t i = 0; i < leaf.count; ++i) {
        float t;
        if (meets(leaf.discs[i], origin, direction, t) && t > rays.t_min[lane] && t <= rays.t_max[lane])
            lanes.offer(result_lane, t, {leaf.first.slot, leaf.first.splat + i}, rays.t_max[lane]);
    }
}

}  // namespace citysplat::trace
