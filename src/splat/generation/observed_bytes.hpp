#pragma once

#include "core/math/math_hd.hpp"
#include "model/splat_hd.hpp"

#include <algorithm>
#include <cstdint>

/// How a splat says from where it was seen: Splat::range and Splat::incidence.
namespace citysplat::splat {

inline std::uint8_t range_byte(double metres) {
    return static_cast<std::uint8_t>(std::min(254.0, metres + 0.5));
}

/// `cosine` of the angle between the normal and the ray, from 0 to 1.
inline std::uint8_t incidence_byte(double cosine) {
    const double angle = exact::acos(std::min(1.0, cosine));
    return static_cast<std::uint8_t>(angle / (exact::kPi / 2) * 254.0 + 0.5);
}

}  // namespace citysplat::splat
