#pragma once

#include "core/point.hpp"

#include <cstddef>
#include <vector>

namespace citysplat::tiling {

/// Sorts points[begin, end) canonically and collapses identical ones. Requires that their x lie within 2¹⁵
/// steps from `x_min` (a column of cells): then one counting pass on x does nearly all of the work.
void sort_column(std::vector<TilePoint>& points, std::size_t begin, std::int32_t x_min);

}  // namespace citysplat::tiling
