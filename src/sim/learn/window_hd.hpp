#pragma once

#include "core/math/host_device.hpp"
#include "sim/scan/return_hd.hpp"

#include <cstdint>

/// What the rays around a ray met, as sums of integers: exact, so that neither the order of the summation nor
/// the way it is done (sliding along a beam, or ray by ray) can be seen in the result.
namespace citysplat::sim::learn {

/// A neighbourhood of `beams` × `columns` rays, the ray itself in the middle.
struct WindowShape {
    std::int32_t beams, columns;
};
inline constexpr WindowShape kSmallWindow{3, 9}, kLargeWindow{5, 21};

inline constexpr float kRangeStep_m = 1.0f / 16;
inline constexpr std::uint32_t kMostRangeSteps = 16383;  ///< 1 km; what is farther counts as that

/// Several counts side by side in two words, each with room for the sum over the large window (105 rays):
///
///   a: hits 7 bits, hits of intensity zero 7, range steps 21, intensities 23
///   b: rays 7 bits, squares of range steps 35
struct WindowWords {
    std::uint64_t a = 0, b = 0;

    CITYSPLAT_HD WindowWords& operator+=(const WindowWords& other) {
        a += other.a;
        b += other.b;
        return *this;
    }
    CITYSPLAT_HD WindowWords& operator-=(const WindowWords& other) {
        a -= other.a;
        b -= other.b;
        return *this;
    }
};

/// Whether a ray met a surface, reported or not.
CITYSPLAT_HD inline bool met_something(const Return& r) {
    return r.status == RayStatus::hit || r.status == RayStatus::dropped;
}

/// The words of one ray.
CITYSPLAT_HD inline WindowWords window_words(const Return& r) {
    if (!met_something(r)) return {0, 1};
    const float scaled = r.range_m * (1.0f / kRangeStep_m);
    std::uint64_t steps = 0;
    if (scaled >= static_cast<float>(kMostRangeSteps))
        steps = kMostRangeSteps;
    else if (scaled > 0)
        steps = static_cast<std::uint64_t>(scaled);
    const std::uint64_t dark = r.intensity == 0 ? 1 : 0;
    return {1 | dark << 7 | steps << 14 | static_cast<std::uint64_t>(r.intensity) << 35, 1 | (steps * steps)
                                                                                                 << 7};
}

/// The same, unpacked.
struct WindowSums {
    std::uint32_t rays, hits, dark, range_steps, intensity;
    std::uint64_t squared_steps;

    /// hits² times the variance of the range steps; exact.
    CITYSPLAT_HD std::uint64_t scatter() const {
        return hits * squared_steps - static_cast<std::uint64_t>(range_steps) * range_steps;
    }
};
CITYSPLAT_HD inline WindowSums unpack(const WindowWords& w) {
    const auto field = [](std::uint64_t word, unsigned from, unsigned bits) {
        return static_cast<std::uint32_t>(word >> from & ((std::uint64_t{1} << bits) - 1));
    };
    return {field(w.b, 0, 7),   field(w.a, 0, 7),   field(w.a, 7, 7),
            field(w.a, 14, 21), field(w.a, 35, 23), w.b >> 7};
}

}  // namespace citysplat::sim::learn
