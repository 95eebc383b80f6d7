#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/learn/network_lanes.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
// foreach_target.h must come first.
#include "sim/learn/network_lanes.hpp"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace citysplat::sim::learn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
constexpr std::size_t kMostLanes = hn::MaxLanes(Tag());

/// Normalised features and the first hidden layer of as many rays as there are lanes.
struct Scratch {
    HWY_ALIGN float x[kFeatures * kMostLanes];
    HWY_ALIGN float h1[kHidden1 * kMostLanes];
    HWY_ALIGN float h2[kHidden2 * kMostLanes];
};

/// What one window says: see make_features(). Returns 1 / hits.
template <class V, class Get, class Put>
HWY_INLINE V window_features(Tag tag, V per_range, const Get& get, const Put& put) {
    const auto one = hn::Set(tag, 1.0f), step = hn::Set(tag, kRangeStep_m);
    const auto hits = get(1), per_hit = hn::Div(one, hn::Max(hits, one));
    put(0, hn::Div(hits, get(0)));
    put(1, hn::Sub(one, hn::Mul(hn::Mul(hn::Mul(get(2), per_hit), step), per_range)));
    put(2, hn::Mul(hn::Mul(hn::Mul(hn::Sqrt(get(3)), per_hit), step), per_range));
    put(3, hn::Mul(hn::Mul(get(4), per_hit), hn::Set(tag, kIntensityScale)));
    return per_hit;
}

HWY_INLINE void lane_features(Tag tag, const LaneBlock& block, std::size_t base, float* HWY_RESTRICT x) {
    const std::size_t lanes = hn::Lanes(tag);
    const auto in = [&](unsigned input) { return hn::LoadU(tag, block.inputs + input * block.count + base); };
    const auto most = hn::Set(tag, kMostDeviation), least = hn::Set(tag, -kMostDeviation);
    const auto put = [&](unsigned feature, auto value) {
        const auto deviation = hn::Mul(hn::Sub(value, hn::Set(tag, block.norm->mean[feature])),
                                       hn::Set(tag, block.norm->scale[feature]));
        hn::Store(hn::Max(hn::Min(deviation, most), least), tag, x + feature * lanes);
    };
    const auto zero = hn::Zero(tag), one = hn::Set(tag, 1.0f), near_m = hn::Set(tag, kNear_m);
    const auto range = hn::Max(in(kInRange_m), hn::Set(tag, kLeastRange_m)), per_range = hn::Div(one, range);
    put(kRange, hn::Mul(range, hn::Set(tag, kRangeScale)));
    put(kRootRange, hn::Sqrt(range));
    put(kNearness, hn::Div(near_m, hn::Add(near_m, range)));
    const auto intensity = in(kInIntensity);
    put(kIntensity, intensity);
    put(kRootIntensity, hn::Sqrt(intensity));
    put(kDark, hn::IfThenElse(hn::Gt(intensity, zero), zero, one));
    const auto cosine = in(kInCosine);
    put(kCosine, cosine);
    put(kSine, hn::Sqrt(hn::Max(hn::Sub(one, hn::Mul(cosine, cosine)), zero)));
    put(kRecordedRange, in(kInRecordedRange));
    put(kRecordedIncidence, in(kInRecordedIncidence));
    window_features(
        tag, per_range, [&](unsigned i) { return in(kInSmallRays + i); },
        [&](unsigned i, auto value) { put(kSmallShare + i, value); });
    const auto per_hit = window_features(
        tag, per_range, [&](unsigned i) { return in(kInLargeRays + i); },
        [&](unsigned i, auto value) { put(kLargeShare + i, value); });
    put(kLargeDark, hn::Mul(in(kInLargeDark), per_hit));
    put(kMask, in(kInMask));
}

/// Eight units of a layer at once, so that sums do not wait for one another: `from` are the values of the
/// layer before, `weights` those of the first of the eight units, whose rows are `kFrom` long.
template <unsigned kFrom, class Bias>
HWY_INLINE void eight_units(Tag tag, const float* HWY_RESTRICT from, const float* HWY_RESTRICT weights,
                            const Bias& bias, float* HWY_RESTRICT to) {
    const std::size_t lanes = hn::Lanes(tag);
    auto s0 = bias(0), s1 = bias(1), s2 = bias(2), s3 = bias(3), s4 = bias(4), s5 = bias(5), s6 = bias(6),
         s7 = bias(7);
    for (unsigned j = 0; j < kFrom; ++j) {
        const auto v = hn::Load(tag, from + j * lanes);
        const auto product = [&](unsigned unit) {
            return hn::Mul(hn::Set(tag, weights[unit * kFrom + j]), v);
        };
        s0 = hn::Add(s0, product(0));
        s1 = hn::Add(s1, product(1));
        s2 = hn::Add(s2, product(2));
        s3 = hn::Add(s3, product(3));
        s4 = hn::Add(s4, product(4));
        s5 = hn::Add(s5, product(5));
        s6 = hn::Add(s6, product(6));
        s7 = hn::Add(s7, product(7));
    }
    const auto put = [&](unsigned unit, auto sum) {
        hn::Store(hn::Max(sum, hn::Mul(sum, hn::Set(tag, 0.125f))), tag, to + unit * lanes);
    };
    put(0, s0);
    put(1, s1);
    put(2, s2);
    put(3, s3);
    put(4, s4);
    put(5, s5);
    put(6, s6);
    put(7, s7);
}

HWY_INLINE void lane_network(Tag tag, const LaneNetwork& net, std::size_t count, std::size_t base,
                             Scratch& scratch) {
    const std::size_t lanes = hn::Lanes(tag);
    const Network& n = *net.network;
    for (unsigned k = 0; k < kHidden1; k += 8)
        eight_units<kFeatures>(
            tag, scratch.x, n.w1[k],
            [&](unsigned unit) { return hn::LoadU(tag, net.bias + (k + unit) * count + base); },
            scratch.h1 + k * lanes);
    static_assert(kHidden2 == 8);
    eight_units<kHidden1>(
        tag, scratch.h1, n.w2[0], [&](unsigned unit) { return hn::Set(tag, n.b2[unit]); }, scratch.h2);
    auto sum = hn::Set(tag, n.b3);
    for (unsigned m = 0; m < kHidden2; ++m)
        sum = hn::Add(sum, hn::Mul(hn::Set(tag, n.w3[m]), hn::Load(tag, scratch.h2 + m * lanes)));
    hn::StoreU(sum, tag, net.output + base);
}

void evaluate_block(const LaneBlock& block, const LaneNetwork& first, const LaneNetwork& second) {
    const Tag tag;
    Scratch scratch;
    for (std::size_t base = 0; base < block.count; base += hn::Lanes(tag)) {
        lane_features(tag, block, base, scratch.x);
        lane_network(tag, first, block.count, base, scratch);
        if (second.network) lane_network(tag, second, block.count, base, scratch);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::sim::learn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace citysplat::sim::learn {

HWY_EXPORT(evaluate_block);

void evaluate_lanes(const LaneBlock& block, const LaneNetwork& first, const LaneNetwork& second) {
    HWY_DYNAMIC_DISPATCH(evaluate_block)(block, first, second);
}

}  // namespace citysplat::sim::learn

#endif
