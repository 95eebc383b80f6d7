#pragma once

#include "sim/learn/learning_set.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::sim::learn {

/// How real intensities scatter around what is expected of them. `chosen` are the rays that are known, in
/// order; `expected` of all rays, from 0 to 1. Requires one ray at least.
ResidualTable find_residuals(const LearningRays& rays, std::span<const std::uint32_t> chosen,
                             std::span<const float> expected);

}  // namespace citysplat::sim::learn
