// Compiled once per instruction set by who includes it, after hwy/highway.h, hence without include guard:
// rng::mix() of many words at a time.
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace citysplat {
namespace HWY_NAMESPACE {

/// a · b modulo 2⁶⁴, from products of 32 bits: not every instruction set has another.
template <class V>
HWY_INLINE V product(V a, std::uint64_t b) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::DFromV<V> words;
    if constexpr (hn::MaxLanes(words) == 1) {
        return hn::Set(words, hn::GetLane(a) * b);
    } else {
        const hn::Repartition<std::uint32_t, decltype(words)> halves;
        const V factor = hn::Set(words, b);
        const auto a_low = hn::BitCast(halves, a), a_high = hn::BitCast(halves, hn::ShiftRight<32>(a));
        const auto b_low = hn::BitCast(halves, factor),
                   b_high = hn::BitCast(halves, hn::ShiftRight<32>(factor));
        const V cross = hn::Add(hn::MulEven(a_low, b_high), hn::MulEven(a_high, b_low));
        return hn::Add(hn::MulEven(a_low, b_low), hn::ShiftLeft<32>(cross));
    }
}

/// rng::mix().
template <class V>
HWY_INLINE V mix(V v) {
    namespace hn = hwy::HWY_NAMESPACE;
    v = hn::Xor(v, hn::ShiftRight<30>(v));
    v = product(v, 0xbf58476d1ce4e5b9ull);
    v = hn::Xor(v, hn::ShiftRight<27>(v));
    v = product(v, 0x94d049bb133111ebull);
    return hn::Xor(v, hn::ShiftRight<31>(v));
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat
HWY_AFTER_NAMESPACE();
