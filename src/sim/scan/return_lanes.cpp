#include "sim/scan/return_lanes.hpp"

#include <algorithm>

// foreach_target.h compiles this file again for each instruction set and must come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/scan/return_lanes.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "core/math/mix_inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace citysplat::sim {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using citysplat::HWY_NAMESPACE::mix;
using citysplat::HWY_NAMESPACE::product;

/// As many doubles as fit a vector of at most 64 bytes.
using Doubles = hn::CappedTag<double, 8>;
using Words = hn::Rebind<std::uint64_t, Doubles>;
using Double = hn::Vec<Doubles>;
using Word = hn::Vec<Words>;

HWY_INLINE Double number(double value) { return hn::Set(Doubles(), value); }

/// Of whole numbers below 2⁵³, exactly: the halves become the low bits of doubles whose unit they are.
HWY_INLINE Double to_double(Word v) {
    const Doubles doubles;
    const Words words;
    const Word low = hn::Or(hn::And(v, hn::Set(words, 0xffffffffull)), hn::Set(words, 0x4330000000000000ull));
    const Word high = hn::Or(hn::ShiftRight<32>(v), hn::Set(words, 0x4530000000000000ull));
    return hn::Add(hn::Sub(hn::BitCast(doubles, low), number(0x1p52)),
                   hn::Sub(hn::BitCast(doubles, high), number(0x1p84)));
}

/// uniform_of(), of Purpose::range.
HWY_INLINE Double uniform(std::uint64_t scan, Word ray) {
    const Words words;
    const Word counter =
        hn::Add(hn::ShiftLeft<3>(ray), hn::Set(words, static_cast<std::uint64_t>(Purpose::range) + 1));
    const Word bits = mix(hn::Add(hn::Set(words, scan), product(counter, 0x9e3779b97f4a7c15ull)));
    return hn::Mul(to_double(hn::ShiftRight<11>(bits)), number(0x1.0p-53));
}

/// exact::log().
HWY_INLINE Double log(Double x) {
    const Doubles doubles;
    const Words words;
    const Word bits = hn::BitCast(words, x);
    Double exponent = hn::Sub(to_double(hn::ShiftRight<52>(bits)), number(1023));
    Double m = hn::BitCast(doubles, hn::Or(hn::And(bits, hn::Set(words, 0x000fffffffffffffull)),
                                           hn::Set(words, 0x3ff0000000000000ull)));
    const auto large = hn::Gt(m, number(1.4142135623730951));
    m = hn::IfThenElse(large, hn::Mul(m, number(0.5)), m);
    exponent = hn::IfThenElse(large, hn::Add(exponent, number(1)), exponent);
    const Double z = hn::Div(hn::Sub(m, number(1.0)), hn::Add(m, number(1.0))), q = hn::Mul(z, z);
    Double sum = number(1.0 / 19);
    for (int k = 17; k >= 1; k -= 2) sum = hn::Add(hn::Mul(sum, q), number(1.0 / k));
    return hn::Add(hn::Mul(exponent, number(0.69314718055994530942)), hn::Mul(hn::Mul(number(2.0), z), sum));
}

/// ((a·r + b)·r + c)·r + d, and without the first.
HWY_INLINE Double cubic(Double r, const double (&p)[4]) {
    Double sum = hn::Add(hn::Mul(number(p[0]), r), number(p[1]));
    sum = hn::Add(hn::Mul(sum, r), number(p[2]));
    return hn::Add(hn::Mul(sum, r), number(p[3]));
}
HWY_INLINE Double square(Double r, const double (&p)[3]) {
    return hn::Add(hn::Mul(hn::Add(hn::Mul(number(p[0]), r), number(p[1])), r), number(p[2]));
}

/// The part of normal_quantile() beyond |q| = 0.425, without its sign. `p` is the smaller tail.
HWY_INLINE Double tail_quantile(Double p) {
    const Doubles doubles;
    const Double r = hn::Sqrt(hn::Neg(log(p)));
    const Double near = hn::Sub(r, number(1.6)), far = hn::Sub(r, number(5));
    const Double z = hn::Div(cubic(near, {0.17023821103, 1.3067284816, 2.75681539, 1.4234372777}),
                             square(near, {0.12021132975, 0.7370016425, 1.0}));
    const auto is_near = hn::Le(r, number(5));
    if (hn::AllTrue(doubles, is_near)) return z;
    const Double z_far = hn::Div(cubic(far, {0.017337203997, 0.42868294337, 3.081226386, 6.657905115}),
                                 square(far, {0.012258202635, 0.24197894225, 1.0}));
    return hn::IfThenElse(is_near, z, z_far);
}

/// normal_quantile().
HWY_INLINE Double quantile(Double p) {
    const Doubles doubles;
    const Double q = hn::Sub(p, number(0.5));
    const Double r = hn::Sub(number(0.180625), hn::Mul(q, q));
    const Double z = hn::Div(hn::Mul(q, cubic(r, {59.10937472, 159.29113202, 50.434271938, 3.3871327179})),
                             cubic(r, {67.1875636, 78.757757664, 17.895169469, 1.0}));
    const auto central = hn::Le(hn::Abs(q), number(0.425));
    if (hn::AllTrue(doubles, central)) return z;
    const auto negative = hn::Lt(q, hn::Zero(doubles));
    const Double tail = tail_quantile(hn::IfThenElse(negative, p, hn::Sub(number(1.0), p)));
    return hn::IfThenElse(central, z, hn::IfThenElse(negative, hn::Neg(tail), tail));
}

/// Quadratic::at().
HWY_INLINE Double value_at(const Quadratic& f, Double d) {
    return hn::Add(number(f.a), hn::Mul(hn::Add(number(f.b), hn::Mul(number(f.c), d)), d));
}

/// measured_range().
HWY_INLINE void measure_ranges(const RangeError& error, std::uint64_t scan, std::size_t count,
                               EchoColumns& e) {
    const Doubles doubles;
    for (std::size_t i = 0; i < count; i += hn::Lanes(doubles)) {
        const Double range = hn::Load(doubles, e.range_m + i);
        const Double place = hn::Add(uniform(scan, hn::Load(Words(), e.ray + i)), number(0x1.0p-54));
        const Double noise = hn::Mul(value_at(error.sigma_m, range), quantile(place));
        hn::Store(hn::Add(hn::Add(range, value_at(error.bias_m, range)), noise), doubles, e.range_m + i);
    }
}

/// unpack_normal(), turned towards the sensor, and the cosine.
HWY_INLINE void find_normals(std::size_t count, EchoColumns& e) {
    const hn::CappedTag<float, 16> floats;
    const hn::RebindToSigned<decltype(floats)> ints;
    const auto one = hn::Set(floats, 1.0f), zero = hn::Zero(floats), scale = hn::Set(floats, 1.0f / 32767.0f);
    const auto signed_one = [&](auto v) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(v, zero), hn::Set(floats, -1.0f), one);
    };
    for (std::size_t i = 0; i < count; i += hn::Lanes(floats)) {
        const auto packed =
            hn::BitCast(ints, hn::Load(hn::RebindToUnsigned<decltype(floats)>(), e.packed_normal + i));
        const auto u0 = hn::Mul(hn::ConvertTo(floats, hn::ShiftRight<16>(hn::ShiftLeft<16>(packed))), scale);
        const auto v0 = hn::Mul(hn::ConvertTo(floats, hn::ShiftRight<16>(packed)), scale);
        const auto z = hn::Sub(hn::Sub(one, hn::Abs(u0)), hn::Abs(v0));
        const auto below = hn::Lt(z, zero);
        const auto u = hn::IfThenElse(below, hn::Mul(hn::Sub(one, hn::Abs(v0)), signed_one(u0)), u0);
        const auto v = hn::IfThenElse(below, hn::Mul(hn::Sub(one, hn::Abs(u0)), signed_one(v0)), v0);
        const auto length2 = hn::Add(hn::Add(hn::Mul(u, u), hn::Mul(v, v)), hn::Mul(z, z));
        const auto inverse = hn::Div(one, hn::Sqrt(length2));
        const auto x = hn::Mul(u, inverse), y = hn::Mul(v, inverse), n = hn::Mul(z, inverse);
        const auto along = hn::Add(hn::Add(hn::Mul(x, hn::Load(floats, e.direction_x + i)),
                                           hn::Mul(y, hn::Load(floats, e.direction_y + i))),
                                   hn::Mul(n, hn::Load(floats, e.direction_z + i)));
        const auto away = hn::Gt(along, zero);
        hn::Store(hn::IfThenElse(away, hn::Neg(x), x), floats, e.normal_x + i);
        hn::Store(hn::IfThenElse(away, hn::Neg(y), y), floats, e.normal_y + i);
        hn::Store(hn::IfThenElse(away, hn::Neg(n), n), floats, e.normal_z + i);
        const auto steepness = hn::Abs(along);
        hn::Store(hn::IfThenElse(hn::Gt(steepness, one), one, steepness), floats, e.cosine + i);
    }
}

inline void measure(const ReturnModel& model, std::uint64_t scan, std::size_t count, EchoColumns& echoes) {
    find_normals(count, echoes);
    if (model.noise) measure_ranges(model.error, scan, count, echoes);
}

/// exact::atan2() where both are at least 0 and not both are 0.
HWY_INLINE Double angle_of(Double y, Double x) {
    const auto halved = [](Double t) HWY_ATTR {
        return hn::Div(t, hn::Add(number(1.0), hn::Sqrt(hn::Add(number(1.0), hn::Mul(t, t)))));
    };
    const auto steep = hn::Gt(y, x);
    const Double t = halved(halved(hn::Div(hn::IfThenElse(steep, x, y), hn::IfThenElse(steep, y, x))));
    const Double q = hn::Mul(t, t);
    Double sum = number(1.0 / 21);
    for (int k = 19; k >= 1; k -= 2) sum = hn::Add(number(((k / 2) % 2 ? -1.0 : 1.0) / k), hn::Mul(q, sum));
    const Double angle = hn::Mul(hn::Mul(number(4.0), t), sum);
    return hn::IfThenElse(steep, hn::Sub(number(exact::kPi / 2), angle), angle);
}

inline void incidences(std::span<float> cosines) {
    const Doubles doubles;
    const hn::Rebind<float, Doubles> floats;
    const std::size_t step = hn::Lanes(doubles);
    const auto convert = [&](const float* from, float* to) HWY_ATTR {
        const Double v = hn::PromoteTo(doubles, hn::LoadU(floats, from));
        const Double other = hn::Sqrt(hn::Mul(hn::Sub(number(1.0), v), hn::Add(number(1.0), v)));
        const Double angle = hn::Sub(number(exact::kPi / 2), angle_of(v, other));
        hn::StoreU(hn::DemoteTo(floats, hn::Mul(angle, number(exact::kDegreesPerRad))), floats, to);
    };
    std::size_t i = 0;
    for (; i + step <= cosines.size(); i += step) convert(&cosines[i], &cosines[i]);
    if (i == cosines.size()) return;
    float rest[hn::MaxLanes(doubles)] = {};
    std::copy(cosines.begin() + static_cast<std::ptrdiff_t>(i), cosines.end(), rest);
    convert(rest, rest);
    std::copy_n(rest, cosines.size() - i, &cosines[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::sim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace citysplat::sim {

HWY_EXPORT(measure);
HWY_EXPORT(incidences);

ReturnLanes return_lanes() {
    // Dispatch tables start with an entry that finds out about the CPU; ask for that before taking pointers.
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return {HWY_DYNAMIC_DISPATCH(measure), HWY_DYNAMIC_DISPATCH(incidences)};
}

}  // namespace citysplat::sim
#endif
