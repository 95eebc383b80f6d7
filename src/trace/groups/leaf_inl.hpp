// Compiled once per instruction set by kernels.cpp, after lanes_inl.hpp, hence without include guard.
// The discs of a leaf against the packets that reach it.

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// Which hits are kept: the first of each ray, or the first few.
struct KeepClosest {
    static ClosestLanes& lanes(RayGroup& group, unsigned p) { return group.closest[p]; }
    static float* t_max(RayGroup& group, unsigned p) { return group.closest[p].t; }
};
struct KeepNearest {
    static NearestLanes& lanes(RayGroup& group, unsigned p) { return group.nearest[p].lanes; }
    static float* t_max(RayGroup& group, unsigned p) { return group.nearest[p].t_max; }
};

/// Moves the rays of a packet into the frame of a tile.
HWY_INLINE void enter_packet(Vec3d frame_origin, RayPacket& packet) {
    for (unsigned k = 0; k < kPacketRays; ++k) {
        const Vec3f local =
            local_origin({packet.lattice[0][k], packet.lattice[1][k], packet.lattice[2][k]}, frame_origin);
        packet.origin[0][k] = local.x;
        packet.origin[1][k] = local.y;
        packet.origin[2][k] = local.z;
    }
    packet.is_in_tile = true;
}

/// Looks how far the rays of a packet still reach. Returns whether that is less than before.
template <class Keep>
HWY_INLINE bool lower(RayGroup& group, unsigned p) {
    const float far = largest_of(Keep::t_max(group, p));
    if (!(far < group.far_of[p])) return false;
    group.far_of[p] = far;
    group.beams.limit[p] = far * group.along_of[p];
    return true;
}

/// Rays of a packet, as many as fit a vector.
struct RayLanes {
    V origin[3], direction[3], t_min;

    RayLanes(const RayPacket& packet, unsigned i)
        : origin{load(packet.origin[0] + i), load(packet.origin[1] + i), load(packet.origin[2] + i)},
          direction{load(packet.direction[0] + i), load(packet.direction[1] + i),
                    load(packet.direction[2] + i)},
          t_min(load(packet.t_min + i)) {}

    /// With one disc. `hits`: inside and not before t_min.
    HWY_INLINE Meeting meet(const DiscBlock& block, unsigned disc) const {
        const V normal[3] = {set(block.normal[0][disc]), set(block.normal[1][disc]),
                             set(block.normal[2][disc])};
        const V to_centre[3] = {hn::Sub(set(block.centre[0][disc]), origin[0]),
                                hn::Sub(set(block.centre[1][disc]), origin[1]),
                                hn::Sub(set(block.centre[2][disc]), origin[2])};
        const Meeting m = meeting(to_centre, normal, direction, set(block.radius_squared[disc]));
        return {m.t, hn::And(m.inside, hn::Gt(m.t, t_min))};
    }
};

/// The leaf test of discs. The walk through the tree knows a leaf by its number only: another kind of shape
/// needs another class with these two functions.
template <class Keep>
class DiscLeaves {
  public:
    DiscLeaves(RayGroup& group, const WideTile& tile, std::uint32_t slot)
        : group_(group), tile_(tile), slot_(slot) {}

    void prefetch(std::uint32_t leaf) const {
        const auto* lines = reinterpret_cast<const char*>(tile_.blocks + leaf);
        for (unsigned i = 0; i < 7; ++i) __builtin_prefetch(lines + 64 * i);
    }

    /// Finds hits of these packets in a leaf, which is a child of `node`. Returns whether a packet does not
    /// reach as far any more.
    bool meet(std::uint32_t leaf, std::uint32_t packets, const BoxNode& node) {
        const DiscBlock& block = tile_.blocks[leaf];
        if (group_.is_single_ray()) {
            if (!group_.packet[0].is_in_tile) enter_packet(tile_.origin, group_.packet[0]);
            return discs_at_rays(block, leaf, {0, kAllDiscs}, 1) && lower<Keep>(group_, 0);
        }
        DiscBoxes boxes;
        bound(block, boxes);
        bool lowered = false;
        for (; packets != 0; packets &= packets - 1) {
            const auto p = static_cast<unsigned>(__builtin_ctz(packets));
            const unsigned discs = discs_met(boxes, p);
            if (discs == 0) continue;
            RayPacket& packet = group_.packet[p];
            if (!packet.is_in_tile) enter_packet(tile_.origin, packet);
            if (meet_packet(block, leaf, {p, discs}, node)) lowered |= lower<Keep>(group_, p);
        }
        return lowered;
    }

  private:
    /// Boxes of discs in the order of BoxLanes.
    struct DiscBoxes {
        alignas(64) float near[kWide], far[kWide], b_low[kWide], b_high[kWide], c_low[kWide], c_high[kWide];
    };
    static constexpr unsigned kAllDiscs = (1u << kWide) - 1;
    struct Candidates {
        unsigned packet;
        unsigned discs;  ///< bits
    };

    HWY_INLINE void bound(const DiscBlock& block, DiscBoxes& boxes) const {
        const int axes[3] = {group_.a, group_.b, group_.c};
        const V slack = set(tile_.slack_m);
        for (unsigned i = 0; i < kWide; i += kStep) {
            const V normal[3] = {load(block.normal[axes[0]] + i), load(block.normal[axes[1]] + i),
                                 load(block.normal[axes[2]] + i)};
            V reach[3];
            reach_of(normal, root_from_above(load(block.radius_squared + i)), reach);
            const auto store = [&](V centre, V half, float* low, float* high) HWY_ATTR {
                hn::Store(hn::Sub(centre, half), Floats(), low + i);
                hn::Store(hn::Add(centre, half), Floats(), high + i);
            };
            const V along = load(block.centre[axes[0]] + i);
            store(group_.negative ? hn::Neg(along) : along, hn::Add(reach[0], slack), boxes.near, boxes.far);
            store(load(block.centre[axes[1]] + i), hn::Add(reach[1], slack), boxes.b_low, boxes.b_high);
            store(load(block.centre[axes[2]] + i), hn::Add(reach[2], slack), boxes.c_low, boxes.c_high);
        }
    }

    HWY_INLINE unsigned discs_met(const DiscBoxes& boxes, unsigned p) const {
        const BeamLanes beam = one_beam(group_.beams, p);
        unsigned met = 0;
        for (unsigned i = 0; i < kWide; i += kStep) {
            const BoxLanes box{load(boxes.near + i),   load(boxes.far + i),   load(boxes.b_low + i),
                               load(boxes.b_high + i), load(boxes.c_low + i), load(boxes.c_high + i)};
            met |= bits_of(overlap(beam, box, way_through(beam, box))) << i;
        }
        return met;
    }

    /// Sixteen rays at each disc, or sixteen discs at each ray, whichever are fewer. Returns whether
    /// something was met.
    HWY_INLINE bool meet_packet(const DiscBlock& block, std::uint32_t leaf, const Candidates& candidates,
                                const BoxNode& node) {
        constexpr int kFewDiscs = 4;
        const auto [p, discs] = candidates;
        const int count = __builtin_popcount(discs);
        if (count > kFewDiscs) {
            const unsigned rays =
                rays_at(group_, group_.packet[p], Keep::t_max(group_, p), node, leaf % kWide);
            if (rays == 0) return false;
            if (__builtin_popcount(rays) < count) return discs_at_rays(block, leaf, candidates, rays);
        }
        return rays_at_discs(block, leaf, candidates, Keep::lanes(group_, p));
    }

    /// The bound of a ray is its first hit, so without a tie every hit is nearer, and none needs a branch.
    HWY_INLINE bool rays_at_discs(const DiscBlock& block, std::uint32_t leaf, const Candidates& candidates,
                                  ClosestLanes& lanes) {
        const Floats tag;
        const Numbers number_tag;
        bool any = false;
        for (unsigned i = 0; i < kPacketRays; i += kStep) {
            const RayLanes rays(group_.packet[candidates.packet], i);
            V t_max = load(lanes.t + i);
            auto splats = hn::Load(number_tag, lanes.splat + i);
            M won = hn::FirstN(tag, 0);
            const auto write_back = [&]() HWY_ATTR {
                const unsigned changed = bits_of(won);
                if (changed == 0) return;
                any = true;
                lanes.touched |= changed << i;
                hn::Store(t_max, tag, lanes.t + i);
                hn::Store(splats, number_tag, lanes.splat + i);
                hn::BlendedStore(hn::Set(number_tag, slot_), hn::RebindMask(number_tag, won), number_tag,
                                 lanes.slot + i);
            };
            for (unsigned discs = candidates.discs; discs != 0; discs &= discs - 1) {
                const auto disc = static_cast<unsigned>(__builtin_ctz(discs));
                const std::uint32_t splat = leaf * kWide + disc;
                const Meeting met = rays.meet(block, disc);
                const M tie = hn::And(met.inside, hn::Eq(met.t, t_max));
                if (HWY_UNLIKELY(!hn::AllFalse(tag, tie))) {
                    write_back();
                    any |= offer(met.t, bits_of(tie), {i, splat}, lanes);
                    t_max = load(lanes.t + i);
                    splats = hn::Load(number_tag, lanes.splat + i);
                    won = hn::FirstN(tag, 0);
                }
                const M nearer = hn::And(met.inside, hn::Lt(met.t, t_max));
                t_max = hn::IfThenElse(nearer, met.t, t_max);
                splats =
                    hn::IfThenElse(hn::RebindMask(number_tag, nearer), hn::Set(number_tag, splat), splats);
                won = hn::Or(won, nearer);
            }
            write_back();
        }
        return any;
    }

    HWY_INLINE bool rays_at_discs(const DiscBlock& block, std::uint32_t leaf, const Candidates& candidates,
                                  NearestLanes& lanes) {
        float* t_max = group_.nearest[candidates.packet].t_max;
        bool any = false;
        for (unsigned i = 0; i < kPacketRays; i += kStep) {
            const RayLanes rays(group_.packet[candidates.packet], i);
            for (unsigned discs = candidates.discs; discs != 0; discs &= discs - 1) {
                const auto disc = static_cast<unsigned>(__builtin_ctz(discs));
                const Meeting met = rays.meet(block, disc);
                unsigned hits = bits_of(hn::And(met.inside, hn::Le(met.t, load(t_max + i))));
                if (hits == 0) continue;
                any = true;
                HWY_ALIGN float ts[kStep];
                hn::Store(met.t, Floats(), ts);
                for (; hits != 0; hits &= hits - 1) {
                    const auto lane = static_cast<unsigned>(__builtin_ctz(hits));
                    lanes.offer(i + lane, ts[lane], {slot_, leaf * kWide + disc}, t_max[i + lane]);
                }
            }
        }
        return any;
    }

    struct Offered {
        unsigned first_lane;
        std::uint32_t splat;
    };
    HWY_NOINLINE bool offer(V t, unsigned hits, const Offered& offered, ClosestLanes& lanes) const {
        HWY_ALIGN float ts[kStep];
        hn::Store(t, Floats(), ts);
        for (; hits != 0; hits &= hits - 1) {
            const auto lane = static_cast<unsigned>(__builtin_ctz(hits));
            const unsigned ray = offered.first_lane + lane;
            lanes.offer(ray, ts[lane], {slot_, offered.splat}, lanes.t[ray]);
        }
        return true;
    }

    HWY_INLINE bool discs_at_rays(const DiscBlock& block, std::uint32_t leaf, const Candidates& candidates,
                                  unsigned rays) {
        const RayPacket& packet = group_.packet[candidates.packet];
        auto& lanes = Keep::lanes(group_, candidates.packet);
        float* t_max = Keep::t_max(group_, candidates.packet);
        bool any = false;
        for (; rays != 0; rays &= rays - 1) {
            const auto ray = static_cast<unsigned>(__builtin_ctz(rays));
            const V direction[3] = {set(packet.direction[0][ray]), set(packet.direction[1][ray]),
                                    set(packet.direction[2][ray])};
            const V origin[3] = {set(packet.origin[0][ray]), set(packet.origin[1][ray]),
                                 set(packet.origin[2][ray])};
            for (unsigned i = 0; i < kWide; i += kStep) {
                const V normal[3] = {load(block.normal[0] + i), load(block.normal[1] + i),
                                     load(block.normal[2] + i)};
                const V to_centre[3] = {hn::Sub(load(block.centre[0] + i), origin[0]),
                                        hn::Sub(load(block.centre[1] + i), origin[1]),
                                        hn::Sub(load(block.centre[2] + i), origin[2])};
                const Meeting met = meeting(to_centre, normal, direction, load(block.radius_squared + i));
                unsigned hits = bits_of(hn::And(met.inside, hn::And(hn::Gt(met.t, set(packet.t_min[ray])),
                                                                    hn::Le(met.t, set(t_max[ray])))));
                if (hits == 0) continue;
                any = true;
                HWY_ALIGN float ts[kStep];
                hn::Store(met.t, Floats(), ts);
                for (; hits != 0; hits &= hits - 1) {
                    const auto disc = static_cast<unsigned>(__builtin_ctz(hits));
                    if (ts[disc] <= t_max[ray])
                        lanes.offer(ray, ts[disc], {slot_, leaf * kWide + i + disc}, t_max[ray]);
                }
            }
        }
        return any;
    }

    RayGroup& group_;
    const WideTile& tile_;
    std::uint32_t slot_;
};

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
