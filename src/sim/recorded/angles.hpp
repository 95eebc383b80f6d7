#pragma once

#include "core/math/math_hd.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace citysplat::sim {

inline constexpr double kDegree_rad = exact::kRadPerDegree, kTurn_rad = 2 * exact::kPi;

/// The same angle in (−π, π].
inline double wrapped(double rad) { return rad - kTurn_rad * std::ceil(rad / kTurn_rad - 0.5); }
/// The same angle in [0, 2π).
inline double turned(double rad) { return rad - kTurn_rad * std::floor(rad / kTurn_rad); }

/// Requires a value. Changes their order.
inline double median_of(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace citysplat::sim
