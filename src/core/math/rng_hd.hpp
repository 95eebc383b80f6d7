#pragma once

#include "core/math/host_device.hpp"

#include <cmath>
#include <cstdint>

/// Counter-based random numbers: a value is a pure function of (key, counter). Nothing carries state from one
/// item to the next, so results cannot depend on threads, order or device.
namespace citysplat::rng {

/// Bijective finaliser of splitmix64: every input bit reaches every output bit.
CITYSPLAT_HD constexpr std::uint64_t mix(std::uint64_t v) {
    v ^= v >> 30;
    v *= 0xbf58476d1ce4e5b9ull;
    v ^= v >> 27;
    v *= 0x94d049bb133111ebull;
    v ^= v >> 31;
    return v;
}

/// Derives an independent key from a key and one more word. Chain it: key(key(seed, scan), ray).
CITYSPLAT_HD constexpr std::uint64_t key(std::uint64_t parent, std::uint64_t word) {
    return mix(parent * 0x9e3779b97f4a7c15ull + mix(word + 0x632be59bd9b4e019ull));
}

CITYSPLAT_HD constexpr std::uint64_t bits(std::uint64_t k, std::uint64_t counter) {
    return mix(k + (counter + 1) * 0x9e3779b97f4a7c15ull);
}

/// In [0, 1), 53 bits.
CITYSPLAT_HD constexpr double uniform(std::uint64_t k, std::uint64_t counter) {
    return static_cast<double>(bits(k, counter) >> 11) * 0x1.0p-53;
}

CITYSPLAT_HD constexpr double uniform(std::uint64_t k, std::uint64_t counter, double low, double high) {
    return low + (high - low) * uniform(k, counter);
}

}  // namespace citysplat::rng
