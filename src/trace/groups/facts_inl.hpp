// Compiled once per instruction set by kernels.cpp, after lanes_inl.hpp, hence without include guard.
// What hits say about their splats, sixteen splats at a time.
#include "core/math/mix_inl.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

using Halves = hn::Rebind<std::uint16_t, Floats>;

/// The columns of one block. The columns of a tile end somewhere: the last block is copied and filled up with
/// splats of radius 0.
struct BlockColumns {
    const std::uint32_t *x, *y, *z, *normal;
    const std::uint16_t *radius, *label, *intensity;
    const std::uint8_t* incidence;
};
struct LastBlock {
    std::uint32_t x[kWide]{}, y[kWide]{}, z[kWide]{}, normal[kWide]{};
    std::uint16_t radius[kWide]{}, label[kWide]{}, intensity[kWide]{};
    std::uint8_t incidence[kWide]{};

    LastBlock(const SplatColumns& columns, std::size_t first, std::size_t count) {
        const auto fill = [&](const auto* from, auto& to) { std::copy_n(from + first, count, to); };
        fill(columns.x, x), fill(columns.y, y), fill(columns.z, z), fill(columns.normal, normal);
        fill(columns.radius, radius), fill(columns.label, label), fill(columns.intensity, intensity);
        fill(columns.incidence, incidence);
    }
    BlockColumns view() const { return {x, y, z, normal, radius, label, intensity, incidence}; }
};

/// At most eight words of 64 bits.
using Words = hn::CappedTag<std::uint64_t, kWide / 2>;
using W = hn::Vec<Words>;

// The second half of SplatFacts is written as one word.
static_assert(std::endian::native == std::endian::little && offsetof(SplatFacts, normal) == 8 &&
              offsetof(SplatFacts, intensity) == 12 && offsetof(SplatFacts, acquired_range_m) == 14 &&
              offsetof(SplatFacts, acquired_incidence) == 15);

/// What positions in the tile are counted from: 2²³ steps below its origin, so that they are not negative.
constexpr std::int64_t kBelow = std::int64_t{1} << 23;

/// The part of the sum in splat_id() that all splats of a tile share.
inline std::uint64_t id_of_corner(const LatticePoint& origin) {
    return static_cast<std::uint64_t>(origin.x - kBelow) * kIdX +
           static_cast<std::uint64_t>(origin.y - kBelow) * kIdY +
           static_cast<std::uint64_t>(origin.z - kBelow) * kIdZ;
}

/// A sum of products with odd numbers, modulo 2⁶⁴. Factors have 32 bits.
class SumOfProducts {
  public:
    explicit HWY_INLINE SumOfProducts(std::uint64_t first)
        : low_(hn::Set(Words(), first)), high_(hn::Zero(Words())) {}
    HWY_INLINE void add(W a, std::uint64_t b) {
        low_ = hn::Add(low_, product32(a, b));
        high_ = hn::Add(high_, product32(a, b >> 32));
    }
    /// 2³² · a · b.
    HWY_INLINE void add_high(W a, std::uint64_t b) { high_ = hn::Add(high_, product32(a, b)); }
    HWY_INLINE W sum() const { return hn::Add(low_, hn::ShiftLeft<32>(high_)); }

  private:
    /// Of the lower halves.
    template <class Vector>
    static HWY_INLINE Vector product32(Vector a, std::uint64_t b) {
        const hn::DFromV<Vector> words;
        if constexpr (hn::MaxLanes(words) == 1) {
            return hn::Set(words, (hn::GetLane(a) & 0xffffffffu) * (b & 0xffffffffu));
        } else {
            const hn::Repartition<std::uint32_t, decltype(words)> halves;
            return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, hn::Set(words, b)));
        }
    }
    W low_, high_;
};

/// Makes facts_of() of sixteen splats. `corner` is id_of_corner() of their tile.
HWY_INLINE void build_facts(const BlockColumns& columns, std::uint64_t corner, SplatFacts* facts) {
    const hn::Rebind<std::uint8_t, Floats> bytes;
    alignas(64) std::uint32_t x[kWide], y[kWide], z[kWide], sizes[kWide], records[kWide];
    const auto place = [](const std::uint32_t* from) HWY_ATTR {
        const auto steps = hn::And(hn::LoadU(Numbers(), from), hn::Set(Numbers(), 0xffffffu));
        return hn::Xor(steps, hn::Set(Numbers(), static_cast<std::uint32_t>(kBelow)));
    };
    const auto small = [](const std::uint16_t* from)
                           HWY_ATTR { return hn::PromoteTo(Numbers(), hn::LoadU(Halves(), from)); };
    for (unsigned i = 0; i < kWide; i += kStep) {
        hn::Store(place(columns.x + i), Numbers(), x + i);
        hn::Store(place(columns.y + i), Numbers(), y + i);
        hn::Store(place(columns.z + i), Numbers(), z + i);
        hn::Store(hn::Or(small(columns.radius + i), hn::ShiftLeft<16>(small(columns.label + i))), Numbers(),
                  sizes + i);
        const auto range = hn::ShiftRight<24>(hn::LoadU(Numbers(), columns.z + i));
        const auto incidence = hn::PromoteTo(Numbers(), hn::LoadU(bytes, columns.incidence + i));
        hn::Store(hn::Or(small(columns.intensity + i),
                         hn::Or(hn::ShiftLeft<16>(range), hn::ShiftLeft<24>(incidence))),
                  Numbers(), records + i);
    }
    const auto word = [](const std::uint32_t* from) HWY_ATTR {
        return hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<std::uint32_t, Words>(), from));
    };
    for (unsigned i = 0; i < kWide; i += static_cast<unsigned>(hn::Lanes(Words()))) {
        const W normal = word(columns.normal + i), record = word(records + i);
        SumOfProducts sum(corner);
        sum.add(word(x + i), kIdX);
        sum.add(word(y + i), kIdY);
        sum.add(word(z + i), kIdZ);
        sum.add(normal, kIdShape);
        sum.add_high(word(sizes + i), kIdShape);
        sum.add(record, kIdRecord);
        const W id = citysplat::HWY_NAMESPACE::mix(sum.sum());
        const W named = hn::IfThenElse(hn::Eq(id, hn::Zero(Words())), hn::Set(Words(), 1), id);
        hn::StoreInterleaved2(named, hn::Or(normal, hn::ShiftLeft<32>(record)), Words(),
                              reinterpret_cast<std::uint64_t*>(facts + i));
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
