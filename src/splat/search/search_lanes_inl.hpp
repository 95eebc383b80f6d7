// Compiled once per instruction set by neighbour_search.cpp, hence without include guard.
// What the search needs from vectors beyond Highway: packing the lanes of a mask, pairs of 16-bit numbers in
// a lane, and halves of float vectors as doubles.
#include "splat/search/neighbour_search.hpp"

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kGroup = 16;
using Lanes32 = hn::CappedTag<std::int32_t, kGroup>;

/// Moves the lanes of a mask to the front of vectors. Instruction sets without a native compress look the
/// permutation up once for all columns. (Highway 1.0's own Compress copies its table to the stack on each
/// call when GCC compiles it for AVX2.)
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
constexpr std::size_t kPackLanes = HWY_TARGET == HWY_AVX2 ? 8 : 4;
struct PackTable {
    alignas(64) std::int32_t lane[1u << kPackLanes][kPackLanes];
};
constexpr PackTable make_pack_table() {
    PackTable t{};
    for (std::size_t mask = 0; mask < (1u << kPackLanes); ++mask) {
        std::size_t n = 0;
        for (std::size_t i = 0; i < kPackLanes; ++i)
            if (mask >> i & 1u) t.lane[mask][n++] = static_cast<std::int32_t>(i);
    }
    return t;
}
static constexpr PackTable kPackTable = make_pack_table();

template <class D>
struct Packer {
    HWY_INLINE Packer(D d, hn::Mask<D> mask) {
        std::uint8_t bits[8];
        hn::StoreMaskBits(d, mask, bits);
        const std::size_t row = bits[0] & ((1u << kPackLanes) - 1);
        count = static_cast<std::size_t>(__builtin_popcount(static_cast<unsigned>(row)));
        lanes = hn::SetTableIndices(d, kPackTable.lane[row]);
    }
    template <class DV, class V>
    HWY_INLINE V front(DV dv, V v) const {
        const D d;
        return hn::BitCast(dv, hn::TableLookupLanes(hn::BitCast(d, v), lanes));
    }
    template <class DV, class V>
    HWY_INLINE void store(DV dv, V v, hn::TFromD<DV>* to) const {
        hn::StoreU(front(dv, v), dv, to);
    }
    std::size_t count;
    decltype(hn::SetTableIndices(D(), kPackTable.lane[0])) lanes;
};
#else
template <class D>
struct Packer {
    HWY_INLINE Packer(D d, hn::Mask<D> m) : count(hn::CountTrue(d, m)), mask(m) {}
    template <class DV, class V>
    HWY_INLINE V front(DV dv, V v) const {
        return hn::Compress(v, hn::RebindMask(dv, mask));
    }
    template <class DV, class V>
    HWY_INLINE void store(DV dv, V v, hn::TFromD<DV>* to) const {
        hn::StoreU(front(dv, v), dv, to);
    }
    std::size_t count;
    hn::Mask<D> mask;
};
#endif

/// first, first + 1, … (Highway 1.0's Iota goes through the stack when GCC compiles it, at the cost of a
/// store-forwarding stall.)
alignas(64) static constexpr std::int32_t kLaneNumbers[kGroup] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                                  8, 9, 10, 11, 12, 13, 14, 15};
HWY_INLINE auto numbered_from(std::size_t first) {
    const Lanes32 di;
    return hn::Add(hn::Load(di, kLaneNumbers), hn::Set(di, static_cast<std::int32_t>(first)));
}

/// Bit mask of the lanes of a mask.
template <class D>
HWY_INLINE unsigned mask_bits(D d, hn::Mask<D> mask) {
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, mask, bits);
    return static_cast<unsigned>(bits[0] | bits[1] << 8) & ((1u << hn::Lanes(d)) - 1);
}

/// A lane may hold two signed 16-bit numbers.
constexpr std::int32_t kLowHalf = 0xffff;
inline std::int32_t pair_of(std::int32_t low, std::int32_t high) {
    return static_cast<std::int32_t>((static_cast<std::uint32_t>(high) << 16) |
                                     (static_cast<std::uint32_t>(low) & 0xffffu));
}

#if HWY_TARGET == HWY_SCALAR || !HWY_ARCH_X86
template <class D, class V>
HWY_INLINE V subtract_pairs(D d, V a, V b) {
    const auto low = hn::Set(d, kLowHalf);
    return hn::Or(hn::And(low, hn::Sub(a, b)), hn::Sub(hn::AndNot(low, a), hn::AndNot(low, b)));
}
/// sum + low(a)·low(b) + high(a)·high(b)
template <class D, class V>
HWY_INLINE V add_products(D, V a, V b, V sum) {
    const auto low = [](V v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
    const auto high = [](V v) HWY_ATTR { return hn::ShiftRight<16>(v); };
    return hn::Add(sum, hn::Add(hn::Mul(low(a), low(b)), hn::Mul(high(a), high(b))));
}
#else
template <class D, class V>
HWY_INLINE V subtract_pairs(D d, V a, V b) {
    const hn::Repartition<std::int16_t, D> half;
    return hn::BitCast(d, hn::Sub(hn::BitCast(half, a), hn::BitCast(half, b)));
}
template <class D, class V>
HWY_INLINE V add_products(D d, V a, V b, V sum) {
    const hn::Repartition<std::int16_t, D> half;
    auto unused = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(half, a), hn::BitCast(half, b), sum, unused);
}
#endif

/// Adds the sums over all lanes of a, b, c and d to to[0…3]. Each sum must fit 32 bits.
/// Six parameters: vectors of the machine cannot be members.
#if HWY_TARGET == HWY_SCALAR
template <class D, class V>
HWY_INLINE void add_sums(D, V a, V b, V c, V d, double* to) {
    to[0] += hn::GetLane(a), to[1] += hn::GetLane(b), to[2] += hn::GetLane(c), to[3] += hn::GetLane(d);
}
#else
template <class D, class V>
HWY_INLINE void add_sums(D di, V a, V b, V c, V d, double* to) {
    const hn::Repartition<std::int64_t, D> wide;
    const auto halves = [&](V v, V w) HWY_ATTR {  // (v0+v2, w0+w2, v1+v3, w1+w3) in each block of four
        return hn::BitCast(wide, hn::Add(hn::InterleaveLower(di, v, w), hn::InterleaveUpper(di, v, w)));
    };
    const auto ab = halves(a, b), cd = halves(c, d);
    const auto all = hn::Add(hn::BitCast(di, hn::InterleaveLower(wide, ab, cd)),
                             hn::BitCast(di, hn::InterleaveUpper(wide, ab, cd)));
    alignas(64) std::int32_t sums[kGroup];
    hn::Store(all, di, sums);
    for (std::size_t i = 0; i < 4; ++i) {
        std::int32_t sum = sums[i];
        for (std::size_t block = 4; block < hn::Lanes(di); block += 4) sum += sums[block + i];
        to[i] += sum;
    }
}
#endif

/// Lower and upper half of a vector of floats as doubles. With a single lane the upper half is nothing.
#if HWY_TARGET == HWY_SCALAR
template <class DF>
using DoublesOf = hn::Rebind<double, DF>;
template <class DD, class V>
HWY_INLINE auto lower_doubles(DD dd, V v) {
    return hn::PromoteTo(dd, v);
}
template <class DD, class V>
HWY_INLINE auto upper_doubles(DD dd, V) {
    return hn::Zero(dd);
}
#else
template <class DF>
using DoublesOf = hn::Rebind<double, hn::Half<DF>>;
template <class DD, class V>
HWY_INLINE auto lower_doubles(DD dd, V v) {
    return hn::PromoteTo(dd, hn::LowerHalf(hn::Rebind<float, DD>(), v));
}
template <class DD, class V>
HWY_INLINE auto upper_doubles(DD dd, V v) {
    return hn::PromoteTo(dd, hn::UpperHalf(hn::Rebind<float, DD>(), v));
}
#endif

/// Sums over lanes of floats that hold whole numbers, of the numbers and their products: whole numbers below
/// 2⁵³, so any order gives the same sums.
class WholeSums {
  public:
    HWY_INLINE WholeSums() { x_ = y_ = z_ = xx_ = yy_ = zz_ = xy_ = xz_ = yz_ = hn::Zero(dd_); }
    template <class V>
    HWY_INLINE void add(V x, V y, V z) {
        add_doubles(lower_doubles(dd_, x), lower_doubles(dd_, y), lower_doubles(dd_, z));
        if (hn::Lanes(df_) > 1)
            add_doubles(upper_doubles(dd_, x), upper_doubles(dd_, y), upper_doubles(dd_, z));
    }
    HWY_INLINE void add_to(Moments& m) const {
        const auto total = [&](auto v) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(dd_, v)); };
        m.sum_x += total(x_), m.sum_y += total(y_), m.sum_z += total(z_);
        m.sum_xx += total(xx_), m.sum_yy += total(yy_), m.sum_zz += total(zz_);
        m.sum_xy += total(xy_), m.sum_xz += total(xz_), m.sum_yz += total(yz_);
    }

  private:
    using Floats = hn::Rebind<float, Lanes32>;
    using Doubles = DoublesOf<Floats>;
    using Sum = decltype(hn::Zero(Doubles()));

    HWY_INLINE void add_doubles(Sum x, Sum y, Sum z) {
        x_ = hn::Add(x_, x), y_ = hn::Add(y_, y), z_ = hn::Add(z_, z);
        xx_ = hn::Add(xx_, hn::Mul(x, x)), yy_ = hn::Add(yy_, hn::Mul(y, y));
        zz_ = hn::Add(zz_, hn::Mul(z, z)), xy_ = hn::Add(xy_, hn::Mul(x, y));
        xz_ = hn::Add(xz_, hn::Mul(x, z)), yz_ = hn::Add(yz_, hn::Mul(y, z));
    }

    const Floats df_{};
    const Doubles dd_{};
    Sum x_, y_, z_, xx_, yy_, zz_, xy_, xz_, yz_;
};

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::splat
HWY_AFTER_NAMESPACE();
