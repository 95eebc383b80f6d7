// Vectors of a length that only the machine knows cannot be members of structures.
#define HWY_DISABLED_TARGETS \
    (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trace/groups/kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come first.
// Each of the following needs the one before.
// clang-format off
#include "trace/groups/lanes_inl.hpp"
#include "trace/groups/build_inl.hpp"
#include "trace/groups/beam_inl.hpp"
#include "trace/groups/leaf_inl.hpp"
#include "trace/groups/walk_inl.hpp"
// clang-format on

#include <algorithm>
#include <cmath>
#include <tuple>

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// Consecutive rays of a task.
struct Part {
    std::size_t first, count;
};

/// Reads a ray into a lane. Returns its t_max.
HWY_INLINE float gather_ray(const Ray& ray, unsigned k, RayPacket& packet) {
    packet.direction[0][k] = ray.direction.x;
    packet.direction[1][k] = ray.direction.y;
    packet.direction[2][k] = ray.direction.z;
    packet.t_min[k] = ray.t_min;
    const Vec3d origin = lattice_origin(ray);
    packet.lattice[0][k] = origin.x;
    packet.lattice[1][k] = origin.y;
    packet.lattice[2][k] = origin.z;
    return ray.t_max;
}

/// Reads the rays of a part into packets. Their beams come later.
void gather(const GroupTask& task, const Part& part, RayGroup& group) {
    group.packets = static_cast<unsigned>((part.count + kPacketRays - 1) / kPacketRays);
    group.far_m = 0;
    for (unsigned p = 0; p < group.packets; ++p) {
        RayPacket& packet = group.packet[p];
        const std::size_t first = part.first + p * kPacketRays;
        packet.rays =
            static_cast<unsigned>(std::min<std::size_t>(kPacketRays, part.first + part.count - first));
        for (unsigned k = 0; k < kPacketRays; ++k) {
            const std::size_t at = first + std::min(k, packet.rays - 1);
            packet.number[k] = task.order ? task.order[at] : static_cast<std::uint32_t>(at);
        }
        for (unsigned k = 0; k < kPacketRays; ++k)
            group.far_m = std::max(group.far_m, gather_ray(task.rays[packet.number[k]], k, packet));
    }
    // In a loop of its own: a vector that is read before the numbers in it have reached the cache waits.
    for (unsigned p = 0; p < group.packets; ++p)
        for (int axis = 0; axis < 3; ++axis) {
            const double* origins = group.packet[p].lattice[axis];
            group.origin_low[axis][p] = least_of(origins);
            group.origin_high[axis][p] = largest_of(origins);
        }
}

/// Chooses the axis. Returns the least component of a ray along it; not above 0 when there is no axis along
/// which all rays look the same way.
float choose_axis(RayGroup& group) {
    float best = 0;
    for (int axis = 0; axis < 3; ++axis) {
        float low = INFINITY, high = -INFINITY;
        for (unsigned p = 0; p < group.packets; ++p) {
            low = std::min(low, least_of(group.packet[p].direction[axis]));
            high = std::max(high, largest_of(group.packet[p].direction[axis]));
        }
        const float least = std::max(low, -high);
        if (least <= best) continue;
        best = least;
        group.a = axis;
        group.negative = high < 0;
    }
    group.b = (group.a + 1) % 3;
    group.c = (group.a + 2) % 3;
    return best;
}

template <unsigned kBeams>
HWY_INLINE void set_slopes(Beams<kBeams>& beams, unsigned i, const float (&b)[2], const float (&c)[2]) {
    const auto up = [](float v) { return std::max(v, 0.0f); };
    const auto down = [](float v) { return std::min(v, 0.0f); };
    beams.b_low_up[i] = up(b[0]), beams.b_low_down[i] = down(b[0]);
    beams.b_high_up[i] = up(b[1]), beams.b_high_down[i] = down(b[1]);
    beams.c_low_up[i] = up(c[0]), beams.c_low_down[i] = down(c[0]);
    beams.c_high_up[i] = up(c[1]), beams.c_high_down[i] = down(c[1]);
}

/// Slopes and origins of the packets and of the whole group.
void aim(RayGroup& group) {
    float whole_b[2] = {INFINITY, -INFINITY}, whole_c[2] = {INFINITY, -INFINITY};
    group.along_max = 0;
    for (int axis = 0; axis < 3; ++axis) group.whole_low[axis] = INFINITY, group.whole_high[axis] = -INFINITY;
    for (unsigned p = 0; p < group.packets; ++p) {
        RayPacket& packet = group.packet[p];
        for (unsigned i = 0; i < kPacketRays; i += kStep) {
            const V along = hn::Abs(load(packet.direction[group.a] + i));
            hn::Store(along, Floats(), packet.along + i);
            hn::Store(hn::Div(load(packet.direction[group.b] + i), along), Floats(), packet.slope_b + i);
            hn::Store(hn::Div(load(packet.direction[group.c] + i), along), Floats(), packet.slope_c + i);
        }
        const float b[2] = {least_of(packet.slope_b), largest_of(packet.slope_b)};
        const float c[2] = {least_of(packet.slope_c), largest_of(packet.slope_c)};
        set_slopes(group.beams, p, b, c);
        group.along_of[p] = largest_of(packet.along);
        group.along_max = std::max(group.along_max, group.along_of[p]);
        whole_b[0] = std::min(whole_b[0], b[0]), whole_b[1] = std::max(whole_b[1], b[1]);
        whole_c[0] = std::min(whole_c[0], c[0]), whole_c[1] = std::max(whole_c[1], c[1]);
        for (int axis = 0; axis < 3; ++axis) {
            group.whole_low[axis] = std::min(group.whole_low[axis], group.origin_low[axis][p]);
            group.whole_high[axis] = std::max(group.whole_high[axis], group.origin_high[axis][p]);
        }
    }
    set_slopes(group.whole, 0, whole_b, whole_c);
    group.inverse_along_max = 1 / group.along_max;
    group.whole.limit[0] = group.far_m * group.along_max;
    // Nothing meets packets that do not exist.
    for (unsigned p = group.packets; p < kGroupPackets; ++p) group.far_of[p] = group.beams.limit[p] = -1;
}

/// Once the t_max of the rays are those of hits that are known already.
template <class Keep>
void limit_packets(RayGroup& group) {
    for (unsigned p = 0; p < group.packets; ++p) {
        group.far_of[p] = largest_of(Keep::t_max(group, p));
        group.beams.limit[p] = group.far_of[p] * group.along_of[p];
    }
    limit_group(group);
}

template <unsigned kBeams>
HWY_INLINE void place(Beams<kBeams>& beams, unsigned i, const RayGroup& group, const double (&low)[3],
                      const double (&high)[3]) {
    const auto [a, b, c] = std::tuple(group.a, group.b, group.c);
    beams.near_offset[i] = static_cast<float>(group.negative ? low[a] : -high[a]);
    beams.far_offset[i] = static_cast<float>(group.negative ? high[a] : -low[a]);
    beams.b_origin_low[i] = static_cast<float>(low[b]);
    beams.b_origin_high[i] = static_cast<float>(high[b]);
    beams.c_origin_low[i] = static_cast<float>(low[c]);
    beams.c_origin_high[i] = static_cast<float>(high[c]);
}

/// Puts the beam of the whole group into the frame of a tile. Rounding keeps the order of numbers, so the
/// local origins of rays lie between the rounded ends of their interval. Returns whether the beam may meet
/// the tile.
HWY_INLINE bool approach(const WideTile& tile, RayGroup& group) {
    const double frame[3] = {tile.origin.x, tile.origin.y, tile.origin.z};
    double low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) {
        low[axis] = group.whole_low[axis] - frame[axis];
        high[axis] = group.whole_high[axis] - frame[axis];
    }
    place(group.whole, 0, group, low, high);
    alignas(64) float distance_m[kWide];
    return children_met(group, *tile.level[tile.levels - 1], distance_m) != 0;
}

/// Whether the group may meet any tile at all.
bool may_meet(const GroupTask& task, RayGroup& group) {
    for (const ReachableTile& reachable : task.reachable)
        if (approach(task.tiles[reachable.slot], group)) return true;
    return false;
}

/// The same for the beams of the packets.
void enter(const WideTile& tile, RayGroup& group) {
    const double frame[3] = {tile.origin.x, tile.origin.y, tile.origin.z};
    double low[3], high[3];
    for (unsigned p = 0; p < group.packets; ++p) {
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = group.origin_low[axis][p] - frame[axis];
            high[axis] = group.origin_high[axis][p] - frame[axis];
        }
        place(group.beams, p, group, low, high);
        group.packet[p].is_in_tile = false;
    }
}

/// How far the rays of a packet go apart in a city: extent of their directions, and of their origins at the
/// distance of a façade.
HWY_INLINE float spread(const RayGroup& group, unsigned p) {
    constexpr double kTypicalDistance_m = 10;
    float directions = 0;
    double origins = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const float* direction = group.packet[p].direction[axis];
        directions = std::max(directions, largest_of(direction) - least_of(direction));
        origins = std::max(origins, group.origin_high[axis][p] - group.origin_low[axis][p]);
    }
    return directions + static_cast<float>(origins / kTypicalDistance_m);
}

/// Whether the rays of most packets stay close together. Otherwise each of them is better off alone: a beam
/// around all of them meets too many discs. (Between spreads of 0.2 and 1 the time hardly depends on the
/// limit.)
bool is_coherent(const RayGroup& group) {
    constexpr float kWidestPacket = 0.4f;
    unsigned wide = 0;
    for (unsigned p = 0; p < group.packets; ++p) wide += spread(group, p) > kWidestPacket;
    return 8 * wide <= group.packets;
}

/// Rays of a group have at least this component along its axis, unless there is only one. It bounds the
/// slopes.
constexpr float kLeastAlong = 0.1f;

/// Calls f() with the group ready for rays that go together; splits the part until they do.
template <class F>
void for_each_group(const GroupTask& task, const Part& part, RayGroup& group, F f) {
    gather(task, part, group);
    const float along = choose_axis(group);
    if (part.count == 1 || (along >= kLeastAlong && is_coherent(group))) {
        if (!(along > 0)) return;  // without a direction
        aim(group);
        f();
        return;
    }
    // Halves of whole packets, then single rays.
    const std::size_t step = part.count > kPacketRays ? (group.packets + 1) / 2 * kPacketRays : 1;
    for (std::size_t first = 0; first < part.count; first += step)
        for_each_group(task, {part.first + first, std::min(step, part.count - first)}, group, f);
}

template <class F>
void for_each_group(const GroupTask& task, RayGroup& group, F f) {
    if (task.reachable.empty()) return;
    for (std::size_t first = 0; first < task.rays.size(); first += kGroupRays)
        for_each_group(task, {first, std::min<std::size_t>(kGroupRays, task.rays.size() - first)}, group, f);
}

template <class Keep>
void trace(const GroupTask& task, RayGroup& group) {
    limit_packets<Keep>(group);
    for (const ReachableTile& reachable : task.reachable) {
        const WideTile& tile = task.tiles[reachable.slot];
        if (!approach(tile, group)) continue;
        enter(tile, group);
        walk(tile, group, DiscLeaves<Keep>(group, tile, static_cast<std::uint32_t>(reachable.slot)));
    }
}

void begin(const GroupTask& task, RayGroup& group, std::span<const Hit> hits) {
    for (unsigned p = 0; p < group.packets; ++p) {
        const RayPacket& packet = group.packet[p];
        ClosestLanes& lanes = group.closest[p];
        lanes.touched = 0;
        lanes.facts = task.facts;
        for (unsigned k = 0; k < kPacketRays; ++k) {
            const Hit& known = hits[packet.number[k]];
            lanes.earlier[k] = &known;
            lanes.t[k] = k >= packet.rays ? -1 : known.exists() ? known.t : task.rays[packet.number[k]].t_max;
            lanes.slot[k] = known.exists() ? kEarlierSlot : kNoSlot;
            lanes.splat[k] = 0;
        }
    }
}

Hit describe(const GroupTask& task, float t, SplatPlace place, const Ray& ray) {
    const WideTile& tile = task.tiles[place.slot];
    return trace::describe(t, {tile.disc(place.splat), tile.facts[place.splat], tile.origin}, ray);
}

void finish(const GroupTask& task, const RayGroup& group, std::span<Hit> hits) {
    const auto prefetch = [&](const ClosestLanes& lanes) {
        for (unsigned left = lanes.touched; left != 0; left &= left - 1) {
            const auto k = static_cast<unsigned>(__builtin_ctz(left));
            __builtin_prefetch(task.facts[lanes.slot[k]] + lanes.splat[k]);
        }
    };
    prefetch(group.closest[0]);
    for (unsigned p = 0; p < group.packets; ++p) {
        if (p + 1 < group.packets) prefetch(group.closest[p + 1]);
        const ClosestLanes& lanes = group.closest[p];
        for (unsigned left = lanes.touched; left != 0; left &= left - 1) {
            const auto k = static_cast<unsigned>(__builtin_ctz(left));
            const std::uint32_t number = group.packet[p].number[k];
            hits[number] = describe(task, lanes.t[k], {lanes.slot[k], lanes.splat[k]}, task.rays[number]);
        }
    }
}

void closest(const GroupTask& task, RayGroup& group, std::span<Hit> hits) {
    for_each_group(task, group, [&] {
        if (!may_meet(task, group)) return;
        begin(task, group, hits);
        trace<KeepClosest>(task, group);
        finish(task, group, hits);
    });
}

/// How many hits are kept, and how far behind the first.
struct Depth {
    std::uint32_t hits;
    float reach_m;
};

void begin(const GroupTask& task, RayGroup& group, const Depth& depth, std::span<const HitList> lists) {
    for (unsigned p = 0; p < group.packets; ++p) {
        const RayPacket& packet = group.packet[p];
        auto& [lanes, t_max] = group.nearest[p];
        lanes.depth = depth.hits;
        lanes.reach_m = depth.reach_m;
        lanes.facts = task.facts;
        for (unsigned k = 0; k < kPacketRays; ++k) {
            lanes.count[k] = 0;
            t_max[k] = -1;
            if (k >= packet.rays) continue;
            const HitList& known = lists[packet.number[k]];
            lanes.earlier[k] = &known;
            t_max[k] = task.rays[packet.number[k]].t_max;
            for (std::uint32_t i = 0; i < known.count; ++i)
                lanes.offer(k, known.hits[i].t, {kEarlierSlot, i}, t_max[k]);
        }
    }
}

void finish(const GroupTask& task, const RayGroup& group, std::span<HitList> lists) {
    for (unsigned p = 0; p < group.packets; ++p) {
        const NearestLanes& lanes = group.nearest[p].lanes;
        for (unsigned k = 0; k < group.packet[p].rays; ++k) {
            const std::uint32_t number = group.packet[p].number[k];
            HitList& list = lists[number];
            list.count = lanes.count_in_reach(k);
            // Earlier hits kept their order, so none of them moved forward: from the back none is
            // overwritten.
            for (std::uint32_t i = list.count; i-- > 0;) {
                const SplatPlace place = lanes.place[k][i];
                list.hits[i] = place.slot == kEarlierSlot
                                   ? list.hits[place.splat]
                                   : describe(task, lanes.t[k][i], place, task.rays[number]);
            }
        }
    }
}

void nearest(const GroupTask& task, RayGroup& group, std::uint32_t depth, float gap_m,
             std::span<HitList> lists) {
    const Depth kept{depth, static_cast<float>(depth - 1) * gap_m};
    for_each_group(task, group, [&] {
        if (!may_meet(task, group)) return;
        begin(task, group, kept, lists);
        trace<KeepNearest>(task, group);
        finish(task, group, lists);
    });
}

const GroupKernels* kernels() {
    static constexpr GroupKernels kKernels{HWY_TARGET == HWY_AVX3   ? "avx512"
                                           : HWY_TARGET == HWY_AVX2 ? "avx2"
                                           : HWY_TARGET == HWY_SSE4 ? "sse4"
                                           : HWY_TARGET == HWY_NEON ? "neon"
                                                                    : "scalar",
                                           &build, &closest, &nearest};
    return &kKernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace citysplat::trace {

namespace {

HWY_EXPORT(kernels);

}  // namespace

std::vector<const GroupKernels*> all_group_kernels() {
    std::vector<const GroupKernels*> all;
    for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
        hwy::ChosenTarget target;
        target.Update(left);
        all.push_back(HWY_DISPATCH_TABLE(kernels)[target.GetIndex()]());
    }
    return all;
}

}  // namespace citysplat::trace

#endif
