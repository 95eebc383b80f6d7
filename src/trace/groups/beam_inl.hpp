// Compiled once per instruction set by kernels.cpp, after lanes_inl.hpp, hence without include guard.
// Beams against boxes: which of sixteen boxes a beam may meet, and which of the packets may meet a box.

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// Boxes as beams see them: the axis first, in the direction of the rays.
struct BoxLanes {
    V near, far, b_low, b_high, c_low, c_high;
};
struct BeamLanes {
    V b_low_up, b_low_down, b_high_up, b_high_down, c_low_up, c_low_down, c_high_up, c_high_down;
    V limit, near_offset, far_offset, b_origin_low, b_origin_high, c_origin_low, c_origin_high;
};

/// The same beam in every lane.
template <unsigned kBeams>
HWY_INLINE BeamLanes one_beam(const Beams<kBeams>& beams, unsigned i) {
    return {set(beams.b_low_up[i]),      set(beams.b_low_down[i]),   set(beams.b_high_up[i]),
            set(beams.b_high_down[i]),   set(beams.c_low_up[i]),     set(beams.c_low_down[i]),
            set(beams.c_high_up[i]),     set(beams.c_high_down[i]),  set(beams.limit[i]),
            set(beams.near_offset[i]),   set(beams.far_offset[i]),   set(beams.b_origin_low[i]),
            set(beams.b_origin_high[i]), set(beams.c_origin_low[i]), set(beams.c_origin_high[i])};
}
/// A beam in each lane, from the i-th on.
template <unsigned kBeams>
HWY_INLINE BeamLanes beams_from(const Beams<kBeams>& beams, unsigned i) {
    return {load(beams.b_low_up + i),      load(beams.b_low_down + i),   load(beams.b_high_up + i),
            load(beams.b_high_down + i),   load(beams.c_low_up + i),     load(beams.c_low_down + i),
            load(beams.c_high_up + i),     load(beams.c_high_down + i),  load(beams.limit + i),
            load(beams.near_offset + i),   load(beams.far_offset + i),   load(beams.b_origin_low + i),
            load(beams.b_origin_high + i), load(beams.c_origin_low + i), load(beams.c_origin_high + i)};
}

/// The way along the axis on which a beam is within a box's extent along that axis.
struct Way {
    V begin, end;
};
HWY_INLINE Way way_through(const BeamLanes& beam, const BoxLanes& box) {
    return {hn::Max(hn::Add(box.near, beam.near_offset), hn::Zero(Floats())),
            hn::Min(hn::Add(box.far, beam.far_offset), beam.limit)};
}

/// Conservative: boxes are larger than what is in them by more than what is rounded here.
HWY_INLINE M overlap(const BeamLanes& beam, const BoxLanes& box, const Way& way) {
    const V b_low =
        hn::MulAdd(beam.b_low_up, way.begin, hn::MulAdd(beam.b_low_down, way.end, beam.b_origin_low));
    const V b_high =
        hn::MulAdd(beam.b_high_up, way.end, hn::MulAdd(beam.b_high_down, way.begin, beam.b_origin_high));
    const V c_low =
        hn::MulAdd(beam.c_low_up, way.begin, hn::MulAdd(beam.c_low_down, way.end, beam.c_origin_low));
    const V c_high =
        hn::MulAdd(beam.c_high_up, way.end, hn::MulAdd(beam.c_high_down, way.begin, beam.c_origin_high));
    return hn::And(
        hn::And(hn::Le(way.begin, way.end), hn::And(hn::Le(b_low, box.b_high), hn::Ge(b_high, box.b_low))),
        hn::And(hn::Le(c_low, box.c_high), hn::Ge(c_high, box.c_low)));
}

/// The children of a node from the i-th on.
HWY_INLINE BoxLanes children_from(const RayGroup& group, const BoxNode& node, unsigned i) {
    const V low = load(node.low[group.a] + i), high = load(node.high[group.a] + i);
    return {group.negative ? hn::Neg(high) : low, group.negative ? hn::Neg(low) : high,
            load(node.low[group.b] + i),          load(node.high[group.b] + i),
            load(node.low[group.c] + i),          load(node.high[group.c] + i)};
}
/// The same child in every lane.
HWY_INLINE BoxLanes one_child(const RayGroup& group, const BoxNode& node, unsigned i) {
    const float low = node.low[group.a][i], high = node.high[group.a][i];
    return {set(group.negative ? -high : low), set(group.negative ? -low : high), set(node.low[group.b][i]),
            set(node.high[group.b][i]),        set(node.low[group.c][i]),         set(node.high[group.c][i])};
}

/// Which children the group may meet, and from which distance on in metres.
HWY_INLINE unsigned children_met(const RayGroup& group, const BoxNode& node, float (&distance_m)[kWide]) {
    unsigned met = 0;
    const BeamLanes beam = one_beam(group.whole, 0);
    for (unsigned i = 0; i < kWide; i += kStep) {
        const BoxLanes boxes = children_from(group, node, i);
        const Way way = way_through(beam, boxes);
        hn::Store(hn::Mul(way.begin, set(group.inverse_along_max)), Floats(), distance_m + i);
        met |= bits_of(overlap(beam, boxes, way)) << i;
    }
    return met;
}

/// Which packets may meet a child.
HWY_INLINE std::uint32_t packets_at(const RayGroup& group, const BoxNode& node, unsigned child) {
    if (group.packets == 1) return 1;  // the whole group's beam is its
    std::uint32_t met = 0;
    const BoxLanes box = one_child(group, node, child);
    for (unsigned i = 0; i < group.packets; i += kStep) {
        const BeamLanes beams = beams_from(group.beams, i);
        met |= bits_of(overlap(beams, box, way_through(beams, box))) << i;
    }
    return met;
}

/// Which rays of a packet may meet a child.
HWY_INLINE unsigned rays_at(const RayGroup& group, const RayPacket& packet, const float* t_max,
                            const BoxNode& node, unsigned child) {
    unsigned met = 0;
    const BoxLanes box = one_child(group, node, child);
    const V zero = hn::Zero(Floats());
    for (unsigned i = 0; i < kPacketRays; i += kStep) {
        const V start = load(packet.origin[group.a] + i);
        const V along = group.negative ? hn::Neg(start) : start;
        const V b = load(packet.slope_b + i), c = load(packet.slope_c + i);
        const V b_origin = load(packet.origin[group.b] + i), c_origin = load(packet.origin[group.c] + i);
        const V begin = hn::Max(hn::Sub(box.near, along), zero);
        const V end = hn::Min(hn::Sub(box.far, along), hn::Mul(load(t_max + i), load(packet.along + i)));
        const V b0 = hn::MulAdd(b, begin, b_origin), b1 = hn::MulAdd(b, end, b_origin);
        const V c0 = hn::MulAdd(c, begin, c_origin), c1 = hn::MulAdd(c, end, c_origin);
        const M in_b = hn::And(hn::Le(hn::Min(b0, b1), box.b_high), hn::Ge(hn::Max(b0, b1), box.b_low));
        const M in_c = hn::And(hn::Le(hn::Min(c0, c1), box.c_high), hn::Ge(hn::Max(c0, c1), box.c_low));
        met |= bits_of(hn::And(hn::Le(begin, end), hn::And(in_b, in_c))) << i;
    }
    return met;
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
