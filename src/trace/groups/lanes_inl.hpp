// Compiled once per instruction set by kernels.cpp, hence without include guard.
// Sixteen floats at a time, in as many vectors as the machine needs for them, and the boxes of discs.
#include "trace/groups/ray_group.hpp"

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kWide>;
using Numbers = hn::RebindToUnsigned<Floats>;
using V = hn::Vec<Floats>;
using M = hn::Mask<Floats>;
constexpr unsigned kStep = hn::MaxLanes(Floats());  ///< lanes of a vector: sixteen are kWide / kStep vectors
static_assert(kPacketRays == kWide && kWide % kStep == 0);

HWY_INLINE V load(const float* from) { return hn::Load(Floats(), from); }
HWY_INLINE V set(float value) { return hn::Set(Floats(), value); }

/// A bit for each lane of a mask.
HWY_INLINE unsigned bits_of(M mask) {
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(Floats(), mask, bytes);
    std::uint16_t bits;
    std::memcpy(&bits, bytes, sizeof bits);
    return bits & ((1u << kStep) - 1);
}

/// Of sixteen numbers.
template <class T>
HWY_INLINE T least_of(const T* from) {
    const hn::CappedTag<T, kWide> tag;
    auto v = hn::Load(tag, from);
    for (std::size_t i = hn::MaxLanes(tag); i < kWide; i += hn::MaxLanes(tag))
        v = hn::Min(v, hn::Load(tag, from + i));
    return hn::GetLane(hn::MinOfLanes(tag, v));
}
template <class T>
HWY_INLINE T largest_of(const T* from) {
    const hn::CappedTag<T, kWide> tag;
    auto v = hn::Load(tag, from);
    for (std::size_t i = hn::MaxLanes(tag); i < kWide; i += hn::MaxLanes(tag))
        v = hn::Max(v, hn::Load(tag, from + i));
    return hn::GetLane(hn::MaxOfLanes(tag, v));
}

/// dot() of vec_hd.hpp: (x·x + y·y) + z·z, each operation rounded.
HWY_INLINE V dot3(const V (&a)[3], const V (&b)[3]) {
    return hn::Add(hn::Add(hn::Mul(a[0], b[0]), hn::Mul(a[1], b[1])), hn::Mul(a[2], b[2]));
}

/// Where the lines of rays meet the planes of discs, and whether inside: the operations of meets() in their
/// order. One of the two, rays or discs, is the same in every lane.
struct Meeting {
    V t;
    M inside;
};
HWY_INLINE Meeting meeting(const V (&to_centre)[3], const V (&normal)[3], const V (&direction)[3],
                           V radius_squared) {
    const V t = hn::Div(dot3(normal, to_centre), dot3(normal, direction));
    const V off[3] = {hn::Sub(hn::Mul(direction[0], t), to_centre[0]),
                      hn::Sub(hn::Mul(direction[1], t), to_centre[1]),
                      hn::Sub(hn::Mul(direction[2], t), to_centre[2])};
    return {t, hn::Lt(dot3(off, off), radius_squared)};
}

/// The machine's approximation of a root errs by less than this part: 2⁻¹⁴ with AVX-512, 1.5 · 2⁻¹² with
/// SSE and AVX, below 2⁻⁸ on ARM.
#if HWY_ARCH_ARM
constexpr float kRootError = 5e-3f;
#else
constexpr float kRootError = 5e-4f;
#endif
/// Not less than the root of v ≥ 0 (of v below 1e-30, some small number).
HWY_INLINE V root_from_above(V v) {
    const V some = hn::Max(v, set(1e-30f));
    return hn::Mul(hn::Mul(some, set(1 + kRootError)), hn::ApproximateReciprocalSqrt(some));
}

/// Half extents of the boxes around discs, not less than disc_reach() of disc_bounds_hd.hpp without its
/// absolute part: radius times the root of the sum of the other two squares.
HWY_INLINE void reach_of(const V (&normal)[3], V radius, V (&reach)[3]) {
    const V squared[3] = {hn::Mul(normal[0], normal[0]), hn::Mul(normal[1], normal[1]),
                          hn::Mul(normal[2], normal[2])};
    for (int x = 0; x < 3; ++x)
        reach[x] = hn::Mul(radius, root_from_above(hn::Add(squared[(x + 1) % 3], squared[(x + 2) % 3])));
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
