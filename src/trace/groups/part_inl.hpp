// Compiled once per instruction set by kernels.cpp, after group_inl.hpp, hence without include guard.
// A group at a part: its rays that may meet the part are moved into the part's frame, each at its own time,
// and go through the hierarchy of the shape as a group of their own.

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// Lists the rays that may meet the box of the part, and are cast while it is there.
template <class Keep>
unsigned list_rays(const GroupTask& task, const GroupPart& part, RayGroup& group, LanePlace* list) {
    if (!approach(part.frame, part.box, group)) return 0;
    enter(part.frame, group);
    unsigned count = 0;
    for (std::uint32_t packets = packets_at(group, part.box, 0); packets != 0; packets &= packets - 1) {
        const auto p = static_cast<unsigned>(__builtin_ctz(packets));
        RayPacket& packet = group.packet[p];
        enter_packet(part.frame, packet);
        unsigned rays =
            rays_at(group, packet, Keep::t_max(group, p), part.box, 0) & ((1u << packet.rays) - 1);
        for (; rays != 0; rays &= rays - 1) {
            const auto k = static_cast<unsigned>(__builtin_ctz(rays));
            if (part.part->exists(task.rays[packet.number[k]].time_s))
                list[count++] = {static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(k)};
        }
    }
    return count;
}

/// Moves the listed rays into the frame of the part.
HWY_INLINE void move_rays(const GroupTask& task, const GroupPart& part, const RayGroup& group,
                          MovedRays& moved) {
    const bool at_triangles = part.shape.triangles != nullptr;
    // Rays of one moment share the pose of the part. Most often they are in the same lane of their packets.
    struct Moment {
        float time_s = NAN;
        PoseKey pose;
    };
    Moment moments[kPacketRays];
    for (unsigned i = 0; i < moved.count; ++i) {
        const auto [p, k] = moved.from[i];
        const Ray& ray = task.rays[group.packet[p].number[k]];
        Moment& moment = moments[k];
        if (ray.time_s != moment.time_s) moment = {ray.time_s, pose_at(part.part->motion, ray.time_s)};
        moved.local[i] = local_ray(moment.pose, ray, starts_at_true_origin(part.part->facts, at_triangles));
        if (at_triangles) moved.sheared[i] = sheared(moved.local[i].origin, moved.local[i].direction);
    }
}

/// What is known about a ray goes with it, and comes back.
HWY_INLINE void hand_over(const RayGroup& group, LanePlace from, RayGroup& moved, LanePlace to, KeepClosest) {
    const ClosestLanes& own = group.closest[from.packet];
    ClosestLanes& lanes = moved.closest[to.packet];
    lanes.t[to.lane] = own.t[from.lane];
    lanes.slot[to.lane] = own.slot[from.lane];
    lanes.splat[to.lane] = own.splat[from.lane];
    lanes.earlier[to.lane] = own.earlier[from.lane];
}
HWY_INLINE void take_back(const RayGroup& moved, LanePlace from, RayGroup& group, LanePlace to, KeepClosest) {
    const ClosestLanes& lanes = moved.closest[from.packet];
    if ((lanes.touched >> from.lane & 1) == 0) return;
    ClosestLanes& own = group.closest[to.packet];
    own.t[to.lane] = lanes.t[from.lane];
    own.slot[to.lane] = lanes.slot[from.lane];
    own.splat[to.lane] = lanes.splat[from.lane];
    own.touched |= 1u << to.lane;
}
HWY_INLINE void close_lane(RayGroup& moved, unsigned q, unsigned j, KeepClosest) {
    moved.closest[q].t[j] = -1;
    moved.closest[q].slot[j] = kNoSlot;
}
HWY_INLINE void begin_packet(const GroupTask& task, const RayGroup&, RayGroup& moved, unsigned q,
                             KeepClosest) {
    moved.closest[q].touched = 0;
    moved.closest[q].slots = task.slots;
}

HWY_INLINE void hand_over(const RayGroup& group, LanePlace from, RayGroup& moved, LanePlace to, KeepNearest) {
    const NearestPacket& own = group.nearest[from.packet];
    NearestPacket& packet = moved.nearest[to.packet];
    packet.lanes.count[to.lane] = own.lanes.count[from.lane];
    std::copy_n(own.lanes.t[from.lane], own.lanes.count[from.lane], packet.lanes.t[to.lane]);
    std::copy_n(own.lanes.place[from.lane], own.lanes.count[from.lane], packet.lanes.place[to.lane]);
    packet.lanes.earlier[to.lane] = own.lanes.earlier[from.lane];
    packet.t_max[to.lane] = own.t_max[from.lane];
}
HWY_INLINE void take_back(const RayGroup& moved, LanePlace from, RayGroup& group, LanePlace to, KeepNearest) {
    const NearestPacket& packet = moved.nearest[from.packet];
    NearestPacket& own = group.nearest[to.packet];
    own.lanes.count[to.lane] = packet.lanes.count[from.lane];
    std::copy_n(packet.lanes.t[from.lane], packet.lanes.count[from.lane], own.lanes.t[to.lane]);
    std::copy_n(packet.lanes.place[from.lane], packet.lanes.count[from.lane], own.lanes.place[to.lane]);
    own.t_max[to.lane] = packet.t_max[from.lane];
}
HWY_INLINE void close_lane(RayGroup& moved, unsigned q, unsigned j, KeepNearest) {
    moved.nearest[q].lanes.count[j] = 0;
    moved.nearest[q].t_max[j] = -1;
}
HWY_INLINE void begin_packet(const GroupTask& task, const RayGroup& group, RayGroup& moved, unsigned q,
                             KeepNearest) {
    NearestLanes& lanes = moved.nearest[q].lanes;
    lanes.depth = group.nearest[0].lanes.depth;
    lanes.reach_m = group.nearest[0].lanes.reach_m;
    lanes.slots = task.slots;
}

/// Puts consecutive moved rays into packets.
template <class Keep>
void gather_moved(const GroupTask& task, const RayGroup& group, const Stretch& stretch, MovedRays& moved) {
    RayGroup& own = moved.group;
    moved.first = static_cast<unsigned>(stretch.first);
    own.packets = static_cast<unsigned>((stretch.count + kPacketRays - 1) / kPacketRays);
    for (unsigned q = 0; q < own.packets; ++q) {
        RayPacket& packet = own.packet[q];
        packet.rays =
            static_cast<unsigned>(std::min<std::size_t>(kPacketRays, stretch.count - q * kPacketRays));
        begin_packet(task, group, own, q, Keep());
        for (unsigned j = 0; j < kPacketRays; ++j) {
            const unsigned i = moved.first + q * kPacketRays + std::min(j, packet.rays - 1);
            const LocalRay& ray = moved.local[i];
            const LanePlace from = moved.from[i];
            packet.direction[0][j] = ray.direction.x;
            packet.direction[1][j] = ray.direction.y;
            packet.direction[2][j] = ray.direction.z;
            packet.lattice[0][j] = static_cast<double>(ray.origin.x);
            packet.lattice[1][j] = static_cast<double>(ray.origin.y);
            packet.lattice[2][j] = static_cast<double>(ray.origin.z);
            packet.t_min[j] = group.packet[from.packet].t_min[from.lane];
            hand_over(group, from, own, {static_cast<std::uint8_t>(q), static_cast<std::uint8_t>(j)}, Keep());
            if (j >= packet.rays) close_lane(own, q, j, Keep());
        }
    }
    bound_origins(own);
}

/// Sends moved rays that go together through the shape; splits them until they do.
template <class Keep>
void walk_shape(const GroupTask& task, const GroupPart& part, const Stretch& stretch, GroupScratch& scratch) {
    MovedRays& moved = scratch.moved;
    gather_moved<Keep>(task, scratch.group, stretch, moved);
    RayGroup& group = moved.group;
    const float along = choose_axis(group);
    if (stretch.count > 1 && !(along >= kLeastAlong && is_coherent(group))) {
        const std::size_t step = stretch.count > kPacketRays ? (group.packets + 1) / 2 * kPacketRays : 1;
        for (std::size_t first = 0; first < stretch.count; first += step)
            walk_shape<Keep>(task, part, {stretch.first + first, std::min(step, stretch.count - first)},
                             scratch);
        return;
    }
    if (!(along > 0)) return;
    group.far_m = scratch.group.far_m;
    aim(group);
    limit_packets<Keep>(group);
    const WideTile& shape = part.shape;
    if (!approach(shape.origin, *shape.level[shape.levels - 1], group)) return;
    enter(shape.origin, group);
    if (shape.triangles)
        walk(shape, group, TriangleLeaves<Keep>(moved, shape, part.slot));
    else
        walk(shape, group, DiscLeaves<Keep>(group, shape, part.slot));
    for (unsigned i = 0; i < stretch.count; ++i)
        take_back(group,
                  {static_cast<std::uint8_t>(i / kPacketRays), static_cast<std::uint8_t>(i % kPacketRays)},
                  scratch.group, moved.from[stretch.first + i], Keep());
}

template <class Keep>
void trace_part(const GroupTask& task, const GroupPart& part, GroupScratch& scratch) {
    MovedRays& moved = scratch.moved;
    moved.count = list_rays<Keep>(task, part, scratch.group, moved.from);
    if (moved.count == 0) return;
    move_rays(task, part, scratch.group, moved);
    walk_shape<Keep>(task, part, {0, moved.count}, scratch);
    limit_packets<Keep>(scratch.group);
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
