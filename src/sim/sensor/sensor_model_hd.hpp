#pragma once

#include "core/math/host_device.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "trace/hit_hd.hpp"

#include <cmath>
#include <cstdint>

/// What a sensor makes of a true range: per-return error, intensity and drop models. Random numbers are pure
/// functions of (seed, sensor, scan, ray, purpose).
namespace citysplat::sim {

/// error(d) = a + b·d + c·d², metres (papers: optScan eq. 7; AdaSplats §6.3.4 has only a constant sigma).
struct Quadratic {
    double a = 0, b = 0, c = 0;
    CITYSPLAT_HD double at(double d) const { return a + (b + c * d) * d; }
};

struct RangeError {
    Quadratic bias_m;   ///< added to the range
    Quadratic sigma_m;  ///< standard deviation of the Gaussian part
};

/// Recorded intensity of a splat × (cos θ / cos θ₀)^incidence_power × (d₀ / d)^range_power, where θ₀ and d₀
/// are the mean incidence and range at which its points were recorded. Powers 0: as recorded.
struct IntensityModel {
    int incidence_power = 0;
    int range_power = 0;
};

/// Returns that the sensor does not report.
struct DropModel {
    double probability = 0;         ///< of every return
    double max_incidence_deg = 90;  ///< grazing returns beyond it are lost
};

enum class Purpose : std::uint64_t { range = 1, drop = 2, direction = 3, learned = 4 };

CITYSPLAT_HD constexpr std::uint64_t scan_key(std::uint64_t seed, std::uint64_t sensor, std::uint64_t scan) {
    return rng::key(rng::key(seed, sensor), scan);
}
CITYSPLAT_HD constexpr double uniform_of(std::uint64_t scan, std::uint64_t ray, Purpose purpose) {
    return rng::uniform(scan, ray * 8 + static_cast<std::uint64_t>(purpose));
}

/// Quantile of the standard normal distribution for p in (0, 1): Wichura's algorithm AS 241 (PPND7), about
/// seven digits. Six times faster than Box–Muller: 85 % of the values need no logarithm.
CITYSPLAT_HD inline double normal_quantile(double p) {
    const double q = p - 0.5;
    if (std::fabs(q) <= 0.425) {
        const double r = 0.180625 - q * q;
        return q * (((59.10937472 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
               (((67.1875636 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
    }
    double r = std::sqrt(-exact::log(q < 0 ? p : 1.0 - p));
    double z;
    if (r <= 5) {
        r -= 1.6;
        z = (((0.17023821103 * r + 1.3067284816) * r + 2.75681539) * r + 1.4234372777) /
            ((0.12021132975 * r + 0.7370016425) * r + 1.0);
    } else {
        r -= 5;
        z = (((0.017337203997 * r + 0.42868294337) * r + 3.081226386) * r + 6.657905115) /
            ((0.012258202635 * r + 0.24197894225) * r + 1.0);
    }
    return q < 0 ? -z : z;
}

/// A uniform value moved off 0, where the quantile is infinite.
CITYSPLAT_HD inline double gaussian_of(std::uint64_t scan, std::uint64_t ray, Purpose purpose) {
    return normal_quantile(uniform_of(scan, ray, purpose) + 0x1.0p-54);
}

CITYSPLAT_HD inline double measured_range(double range_m, const RangeError& error, std::uint64_t scan,
                                          std::uint64_t ray) {
    return range_m + error.bias_m.at(range_m) +
           error.sigma_m.at(range_m) * gaussian_of(scan, ray, Purpose::range);
}

CITYSPLAT_HD inline double integer_power(double base, int exponent) {
    double result = 1;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
}

/// `cosine` of the incidence angle, in [0, 1].
CITYSPLAT_HD inline std::uint16_t measured_intensity(const trace::Hit& hit, double cosine,
                                                     const IntensityModel& model) {
    if (model.incidence_power == 0 && model.range_power == 0) return hit.intensity;
    double value = hit.intensity;
    if (hit.acquired_incidence != 255 && model.incidence_power > 0) {
        const double reference = exact::cos(hit.acquired_incidence * (exact::kPi / 2 / 254));
        value *= integer_power(cosine / (reference > 0.05 ? reference : 0.05), model.incidence_power);
    }
    if (hit.acquired_range_m != 255 && model.range_power > 0)
        value *= integer_power((hit.acquired_range_m + 0.5) / (hit.range_m > 0.1 ? hit.range_m : 0.1),
                               model.range_power);
    value = std::floor(value + 0.5);
    return static_cast<std::uint16_t>(value > 65535 ? 65535 : value);
}

/// `min_cosine` is the cosine of DropModel::max_incidence_deg.
CITYSPLAT_HD inline bool is_dropped(double cosine, double probability, double min_cosine, std::uint64_t scan,
                                    std::uint64_t ray) {
    return cosine < min_cosine || (probability > 0 && uniform_of(scan, ray, Purpose::drop) < probability);
}

}  // namespace citysplat::sim
