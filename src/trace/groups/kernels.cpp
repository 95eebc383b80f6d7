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
#include "trace/groups/facts_inl.hpp"
#include "trace/groups/build_inl.hpp"
#include "trace/groups/beam_inl.hpp"
#include "trace/groups/leaf_inl.hpp"
#include "trace/groups/triangle_inl.hpp"
#include "trace/groups/walk_inl.hpp"
#include "trace/groups/group_inl.hpp"
#include "trace/groups/part_inl.hpp"
// clang-format on

#include <algorithm>
#include <cmath>
#include <tuple>

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

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

/// Reads consecutive rays into packets. Their beams come later.
void gather(const GroupTask& task, const Stretch& stretch, RayGroup& group) {
    group.packets = static_cast<unsigned>((stretch.count + kPacketRays - 1) / kPacketRays);
    group.far_m = 0;
    for (unsigned p = 0; p < group.packets; ++p) {
        RayPacket& packet = group.packet[p];
        const std::size_t first = stretch.first + p * kPacketRays;
        packet.rays =
            static_cast<unsigned>(std::min<std::size_t>(kPacketRays, stretch.first + stretch.count - first));
        for (unsigned k = 0; k < kPacketRays; ++k) {
            const std::size_t at = first + std::min(k, packet.rays - 1);
            packet.number[k] = task.order ? task.order[at] : static_cast<std::uint32_t>(at);
        }
        for (unsigned k = 0; k < kPacketRays; ++k)
            group.far_m = std::max(group.far_m, gather_ray(task.rays[packet.number[k]], k, packet));
    }
    bound_origins(group);
}

/// Calls f() with the group ready for rays that go together; splits the stretch until they do.
template <class F>
void for_each_group(const GroupTask& task, const Stretch& stretch, RayGroup& group, F f) {
    gather(task, stretch, group);
    const float along = choose_axis(group);
    if (stretch.count == 1 || (along >= kLeastAlong && is_coherent(group))) {
        if (!(along > 0)) return;  // without a direction
        aim(group);
        f();
        return;
    }
    // Halves of whole packets, then single rays.
    const std::size_t step = stretch.count > kPacketRays ? (group.packets + 1) / 2 * kPacketRays : 1;
    for (std::size_t first = 0; first < stretch.count; first += step)
        for_each_group(task, {stretch.first + first, std::min(step, stretch.count - first)}, group, f);
}

template <class F>
void for_each_group(const GroupTask& task, RayGroup& group, F f) {
    if (task.reachable.empty()) return;
    for (std::size_t first = 0; first < task.rays.size(); first += kGroupRays)
        for_each_group(task, {first, std::min<std::size_t>(kGroupRays, task.rays.size() - first)}, group, f);
}

/// Whether the group may meet any tile or part at all.
bool may_meet(const GroupTask& task, RayGroup& group) {
    for (const ReachableTile& reachable : task.reachable) {
        if (reachable.slot >= task.first_part) {
            const GroupPart& part = task.parts[reachable.slot - task.first_part];
            if (approach(part.frame, part.box, group)) return true;
        } else {
            const WideTile& tile = task.tiles[reachable.slot];
            if (approach(tile.origin, *tile.level[tile.levels - 1], group)) return true;
        }
    }
    return false;
}

template <class Keep>
void trace(const GroupTask& task, GroupScratch& scratch) {
    RayGroup& group = scratch.group;
    limit_packets<Keep>(group);
    for (const ReachableTile& reachable : task.reachable) {
        if (HWY_UNLIKELY(reachable.slot >= task.first_part)) {
            trace_part<Keep>(task, task.parts[reachable.slot - task.first_part], scratch);
            continue;
        }
        const WideTile& tile = task.tiles[reachable.slot];
        if (!approach(tile.origin, *tile.level[tile.levels - 1], group)) continue;
        enter(tile.origin, group);
        walk(tile, group, DiscLeaves<Keep>(group, tile, static_cast<std::uint32_t>(reachable.slot)));
    }
}

void begin(const GroupTask& task, RayGroup& group, std::span<const Hit> hits) {
    for (unsigned p = 0; p < group.packets; ++p) {
        const RayPacket& packet = group.packet[p];
        ClosestLanes& lanes = group.closest[p];
        lanes.touched = 0;
        lanes.slots = task.slots;
        for (unsigned k = 0; k < kPacketRays; ++k) {
            const Hit& known = hits[packet.number[k]];
            lanes.earlier[k] = &known;
            lanes.t[k] = k >= packet.rays ? -1 : known.exists() ? known.t : task.rays[packet.number[k]].t_max;
            lanes.slot[k] = known.exists() ? kEarlierSlot : kNoSlot;
            lanes.splat[k] = 0;
        }
    }
}

/// The pose of a part for the rays of one moment: neighbouring rays ask for the same.
struct KnownPose {
    std::uint32_t slot = kNoSlot;
    float time_s = 0;
    PoseKey pose;
};

HWY_NOINLINE Hit describe_part(const GroupTask& task, float t, SplatPlace place, const Ray& ray,
                               KnownPose& known) {
    const GroupPart& part = task.parts[place.slot - task.first_part];
    if (known.slot != place.slot || known.time_s != ray.time_s)
        known = {place.slot, ray.time_s, pose_at(part.part->motion, ray.time_s)};
    const MetPart met{part.part->facts, known.pose, part.shape.facts[place.splat], place.splat};
    return part.shape.triangles ? trace::describe(t, met, part.shape.triangle(place.splat), ray)
                                : trace::describe(t, met, part.shape.disc(place.splat), ray);
}

HWY_INLINE Hit describe(const GroupTask& task, float t, SplatPlace place, const Ray& ray, KnownPose& known) {
    if (HWY_UNLIKELY(place.slot >= task.first_part)) return describe_part(task, t, place, ray, known);
    const WideTile& tile = task.tiles[place.slot];
    return trace::describe(t, {tile.disc(place.splat), tile.facts[place.splat], tile.origin}, ray);
}

void finish(const GroupTask& task, const RayGroup& group, std::span<Hit> hits) {
    KnownPose known[kPacketRays];
    const auto prefetch = [&](const ClosestLanes& lanes) {
        for (unsigned left = lanes.touched; left != 0; left &= left - 1) {
            const auto k = static_cast<unsigned>(__builtin_ctz(left));
            __builtin_prefetch(task.slots[lanes.slot[k]].facts + lanes.splat[k]);
        }
    };
    prefetch(group.closest[0]);
    for (unsigned p = 0; p < group.packets; ++p) {
        if (p + 1 < group.packets) prefetch(group.closest[p + 1]);
        const ClosestLanes& lanes = group.closest[p];
        for (unsigned left = lanes.touched; left != 0; left &= left - 1) {
            const auto k = static_cast<unsigned>(__builtin_ctz(left));
            const std::uint32_t number = group.packet[p].number[k];
            hits[number] =
                describe(task, lanes.t[k], {lanes.slot[k], lanes.splat[k]}, task.rays[number], known[k]);
        }
    }
}

void closest(const GroupTask& task, GroupScratch& scratch, std::span<Hit> hits) {
    RayGroup& group = scratch.group;
    for_each_group(task, group, [&] {
        if (!may_meet(task, group)) return;
        begin(task, group, hits);
        trace<KeepClosest>(task, scratch);
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
        lanes.slots = task.slots;
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
    KnownPose known[kPacketRays];
    const auto prefetch = [&](unsigned p) {
        const NearestLanes& lanes = group.nearest[p].lanes;
        for (unsigned k = 0; k < group.packet[p].rays; ++k)
            for (std::uint32_t i = 0; i < lanes.count[k]; ++i) {
                const SplatPlace place = lanes.place[k][i];
                if (place.slot != kEarlierSlot)
                    __builtin_prefetch(task.slots[place.slot].facts + place.splat);
            }
    };
    prefetch(0);
    for (unsigned p = 0; p < group.packets; ++p) {
        if (p + 1 < group.packets) prefetch(p + 1);
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
                                   : describe(task, lanes.t[k][i], place, task.rays[number], known[k]);
            }
        }
    }
}

void nearest(const GroupTask& task, GroupScratch& scratch, std::uint32_t depth, float gap_m,
             std::span<HitList> lists) {
    RayGroup& group = scratch.group;
    const Depth kept{depth, static_cast<float>(depth - 1) * gap_m};
    for_each_group(task, group, [&] {
        if (!may_meet(task, group)) return;
        begin(task, group, kept, lists);
        trace<KeepNearest>(task, scratch);
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
