#pragma once

#include "core/math/host_device.hpp"
#include "core/math/rng_hd.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

/// Elementary functions built from +, −, ×, ÷ and sqrt only, which IEEE 754 rounds the same way everywhere.
/// The C library picks its sin, cos and log by CPU model, so its last bits differ between machines (and
/// between CPU and GPU); results that must be the same bytes anywhere use these. Absolute error below 1e-14.
namespace citysplat::exact {

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kRadPerDegree = kPi / 180, kDegreesPerRad = 180 / kPi;

struct SinCos {
    double sin, cos;
};

/// Requires |radians| < 1e6.
CITYSPLAT_HD inline SinCos sin_cos(double radians) {
    // Nearest multiple of π/2, removed in two parts whose products with a small integer are exact.
    const double turns = radians * (2.0 / kPi);
    const double nearest = std::floor(turns + 0.5);
    constexpr double kHalfPiHigh = 0x1.921fb544p+0, kHalfPiLow = 0x1.0b4611a626331p-34;
    const double r = (radians - nearest * kHalfPiHigh) - nearest * kHalfPiLow;
    const double q = r * r;
    const double s =
        r * (1.0 + q * (-1.0 / 6 +
                        q * (1.0 / 120 + q * (-1.0 / 5040 + q * (1.0 / 362880 +
                                                                 q * (-1.0 / 39916800 +
                                                                      q * (1.0 / 6227020800.0 -
                                                                           q * (1.0 / 1307674368000.0))))))));
    const double c =
        1.0 +
        q * (-0.5 +
             q * (1.0 / 24 +
                  q * (-1.0 / 720 +
                       q * (1.0 / 40320 + q * (-1.0 / 3628800 + q * (1.0 / 479001600.0 +
                                                                     q * (-1.0 / 87178291200.0 +
                                                                          q * (1.0 / 20922789888000.0))))))));
    switch (static_cast<std::int64_t>(nearest) & 3) {
        case 0:
            return {s, c};
        case 1:
            return {c, -s};
        case 2:
            return {-s, -c};
        default:
            return {-c, s};
    }
}

CITYSPLAT_HD inline double sin(double radians) { return sin_cos(radians).sin; }
CITYSPLAT_HD inline double cos(double radians) { return sin_cos(radians).cos; }

/// Natural logarithm. Requires a positive, finite, normal x.
CITYSPLAT_HD inline double log(double x) {
    std::uint64_t word;
    std::memcpy(&word, &x, sizeof word);
    std::int64_t exponent = static_cast<std::int64_t>(word >> 52) - 1023;
    word = (word & 0x000fffffffffffffull) | 0x3ff0000000000000ull;
    double m;
    std::memcpy(&m, &word, sizeof m);
    if (m > 1.4142135623730951) m *= 0.5, ++exponent;
    // ln m = 2 artanh(z), z = (m−1)/(m+1), |z| < 0.1716.
    const double z = (m - 1.0) / (m + 1.0), q = z * z;
    double sum = 0;
    for (int k = 19; k >= 1; k -= 2) sum = sum * q + 1.0 / k;
    return static_cast<double>(exponent) * 0.69314718055994530942 + 2.0 * z * sum;
}

/// Angle of (x, y) in (−π, π]; 0 for the origin.
CITYSPLAT_HD inline double atan2(double y, double x) {
    const double ax = x < 0 ? -x : x, ay = y < 0 ? -y : y;
    const double big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    if (big == 0) return 0;
    double t = small / big;  // in [0, 1]
    // Halve the angle twice: tan(a/2) = t / (1 + sqrt(1 + t²)); afterwards t < 0.2.
    t = t / (1.0 + std::sqrt(1.0 + t * t));
    t = t / (1.0 + std::sqrt(1.0 + t * t));
    const double q = t * t;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2) sum = ((k / 2) % 2 ? -1.0 : 1.0) / k + q * sum;
    double angle = 4.0 * t * sum;
    if (ay > ax) angle = kPi / 2 - angle;
    if (x < 0) angle = kPi - angle;
    return y < 0 ? -angle : angle;
}

CITYSPLAT_HD inline double asin(double v) {
    if (v > 1) v = 1;
    if (v < -1) v = -1;
    return atan2(v, std::sqrt((1.0 - v) * (1.0 + v)));
}
CITYSPLAT_HD inline double acos(double v) { return kPi / 2 - asin(v); }

}  // namespace citysplat::exact

namespace citysplat::rng {

/// Standard normal deviate by Box–Muller from two uniforms of the same counter.
CITYSPLAT_HD inline double gaussian(std::uint64_t k, std::uint64_t counter) {
    const double u = 1.0 - uniform(k, 2 * counter);  // (0, 1]
    const double v = uniform(k, 2 * counter + 1);
    return std::sqrt(-2.0 * exact::log(u)) * exact::cos(2.0 * exact::kPi * v);
}

}  // namespace citysplat::rng
