#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trace/packet.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h must come first.
#include "trace/packet.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// dot() of vec_hd.hpp: (x·x + y·y) + z·z, each operation rounded.
/// Six parameters: vectors of the machine cannot be members.
template <class V>
HWY_INLINE V dot3(V ax, V ay, V az, V bx, V by, V bz) {
    return hn::Add(hn::Add(hn::Mul(ax, bx), hn::Mul(ay, by)), hn::Mul(az, bz));
}

template <class Tag, class Mask>
HWY_INLINE unsigned bits_of(Tag tag, Mask mask) {
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(tag, mask, bits);
    return bits[0] | static_cast<unsigned>(bits[1]) << 8;
}

/// Which lanes are looked at, and the splat they meet.
struct Meeting {
    unsigned base;
    SplatPlace place;
    const PacketRays& rays;
};

/// Lane by lane: several hits are kept, or a tie must be decided.
template <class Tag, class V, class Mask, class Lanes>
HWY_INLINE void offer_each(Tag tag, V t, Mask hit, const Meeting& m, Lanes& lanes) {
    HWY_ALIGN float ts[hn::MaxLanes(tag)];
    hn::Store(t, tag, ts);
    for (unsigned mask = bits_of(tag, hit); mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
        lanes.offer(m.base + lane, ts[lane], m.place, m.rays.t_max[m.base + lane]);
    }
}

/// Six parameters: vectors of the machine cannot be members.
template <class Tag, class V, class Mask>
HWY_INLINE void take(Tag tag, V t, Mask hit, Mask, const Meeting& m, NearestLanes& lanes) {
    offer_each(tag, t, hit, m, lanes);
}

/// The bound of a lane is its first hit, so without a tie every hit is nearer. Six parameters: as above.
template <class Tag, class V, class Mask>
HWY_INLINE void take(Tag tag, V t, Mask hit, Mask tie, const Meeting& m, ClosestLanes& lanes) {
    if (!hn::AllFalse(tag, tie)) return offer_each(tag, t, hit, m, lanes);
    const auto& [base, place, rays] = m;
    const hn::RebindToUnsigned<Tag> id_tag;
    const auto id_hit = hn::RebindMask(id_tag, hit);
    hn::BlendedStore(t, hit, tag, rays.t_max + base);
    hn::BlendedStore(t, hit, tag, lanes.t + base);
    hn::BlendedStore(hn::Set(id_tag, place.slot), id_hit, id_tag, lanes.slot + base);
    hn::BlendedStore(hn::Set(id_tag, place.splat), id_hit, id_tag, lanes.splat + base);
    lanes.touched |= bits_of(tag, hit) << base;
}

template <unsigned kWidth, class Lanes>
HWY_INLINE void meet_leaf(const LeafDiscs& leaf, const PacketRays& rays, Lanes& lanes) {
    const hn::CappedTag<float, kWidth> tag;
    const hn::RebindToSigned<decltype(tag)> int_tag;
    const unsigned step = static_cast<unsigned>(hn::Lanes(tag));
    for (unsigned base = 0; base < kWidth; base += step) {
        const auto active =
            hn::RebindMask(tag, hn::Ne(hn::LoadU(int_tag, rays.active + base), hn::Zero(int_tag)));
        const auto ox = hn::LoadU(tag, rays.origin_x + base), oy = hn::LoadU(tag, rays.origin_y + base),
                   oz = hn::LoadU(tag, rays.origin_z + base);
        const auto dx = hn::LoadU(tag, rays.direction_x + base), dy = hn::LoadU(tag, rays.direction_y + base),
                   dz = hn::LoadU(tag, rays.direction_z + base);
        const auto t_min = hn::LoadU(tag, rays.t_min + base);
        for (std::uint32_t i = 0; i < leaf.count; ++i) {
            const TraceDisc& disc = leaf.discs[i];
            const auto nx = hn::Set(tag, disc.normal.x), ny = hn::Set(tag, disc.normal.y),
                       nz = hn::Set(tag, disc.normal.z);
            const auto cx = hn::Sub(hn::Set(tag, disc.centre.x), ox),
                       cy = hn::Sub(hn::Set(tag, disc.centre.y), oy),
                       cz = hn::Sub(hn::Set(tag, disc.centre.z), oz);
            const auto t = hn::Div(dot3(nx, ny, nz, cx, cy, cz), dot3(nx, ny, nz, dx, dy, dz));
            const auto px = hn::Sub(hn::Mul(dx, t), cx), py = hn::Sub(hn::Mul(dy, t), cy),
                       pz = hn::Sub(hn::Mul(dz, t), cz);
            const auto inside = hn::Lt(dot3(px, py, pz, px, py, pz), hn::Set(tag, disc.radius_squared));
            const auto t_max = hn::LoadU(tag, rays.t_max + base);
            const auto hit = hn::And(hn::And(active, inside), hn::And(hn::Gt(t, t_min), hn::Le(t, t_max)));
            if (hn::AllFalse(tag, hit)) continue;
            take(tag, t, hit, hn::And(hit, hn::Eq(t, t_max)),
                 {base, {leaf.first.slot, leaf.first.splat + i}, rays}, lanes);
        }
    }
}

void closest4(const LeafDiscs& leaf, const PacketRays& rays, ClosestLanes& lanes) {
    meet_leaf<4>(leaf, rays, lanes);
}
void closest8(const LeafDiscs& leaf, const PacketRays& rays, ClosestLanes& lanes) {
    meet_leaf<8>(leaf, rays, lanes);
}
void closest16(const LeafDiscs& leaf, const PacketRays& rays, ClosestLanes& lanes) {
    meet_leaf<16>(leaf, rays, lanes);
}
void nearest4(const LeafDiscs& leaf, const PacketRays& rays, NearestLanes& lanes) {
    meet_leaf<4>(leaf, rays, lanes);
}
void nearest8(const LeafDiscs& leaf, const PacketRays& rays, NearestLanes& lanes) {
    meet_leaf<8>(leaf, rays, lanes);
}
void nearest16(const LeafDiscs& leaf, const PacketRays& rays, NearestLanes& lanes) {
    meet_leaf<16>(leaf, rays, lanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace citysplat::trace {

namespace {

HWY_EXPORT(closest4);
HWY_EXPORT(closest8);
HWY_EXPORT(closest16);
HWY_EXPORT(nearest4);
HWY_EXPORT(nearest8);
HWY_EXPORT(nearest16);

template <unsigned kWidth, class Lanes>
void scalar_leaf(const LeafDiscs& leaf, const PacketRays& rays, Lanes& lanes) {
    for (unsigned lane = 0; lane < kWidth; ++lane)
        if (rays.active[lane]) meet_leaf_lane(leaf, rays, lane, lane, lanes);
}

template <class Lanes>
LeafFunction<Lanes> choose(unsigned width, bool simd, const LeafFunction<Lanes> (&wide)[3]) {
    switch (width) {
        case 4:
            return simd ? wide[0] : &scalar_leaf<4, Lanes>;
        case 8:
            return simd ? wide[1] : &scalar_leaf<8, Lanes>;
        case 16:
            return simd ? wide[2] : &scalar_leaf<16, Lanes>;
        default:
            return nullptr;
    }
}

}  // namespace

// Dispatch tables start with an entry that finds out about the CPU; ask for that before taking pointers.
template <>
LeafFunction<ClosestLanes> leaf_function(unsigned width, bool simd) {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return choose<ClosestLanes>(
        width, simd,
        {HWY_DYNAMIC_DISPATCH(closest4), HWY_DYNAMIC_DISPATCH(closest8), HWY_DYNAMIC_DISPATCH(closest16)});
}

template <>
LeafFunction<NearestLanes> leaf_function(unsigned width, bool simd) {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return choose<NearestLanes>(
        width, simd,
        {HWY_DYNAMIC_DISPATCH(nearest4), HWY_DYNAMIC_DISPATCH(nearest8), HWY_DYNAMIC_DISPATCH(nearest16)});
}

}  // namespace citysplat::trace

#endif
