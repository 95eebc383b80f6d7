#pragma once

#include "model/point.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::tiling {

/// Sorts points canonically. Requires that their x lie within 2¹⁵ steps from `x_min` (a column of cells):
/// then one counting pass on x does nearly all of the work.
void sort_in_column(std::span<TilePoint> points, std::int32_t x_min);

/// Sorts points[begin, end) in the same way and collapses identical ones.
void sort_column(std::vector<TilePoint>& points, std::size_t begin, std::int32_t x_min);

}  // namespace citysplat::tiling
