#include "tiling/points/canonical_order.hpp"

#include "tiling/sector.hpp"

#include <algorithm>
#include <cstdint>

namespace citysplat::tiling {

namespace {

/// Below this, comparison sorting is faster than clearing the histogram.
constexpr std::size_t kFewPoints = 4096;

}  // namespace

void sort_in_column(std::span<TilePoint> points, std::int32_t x_min) {
    if (points.size() < kFewPoints) {
        std::sort(points.begin(), points.end());
        return;
    }
    std::vector<std::uint32_t> next((std::size_t{1} << kCellShift) + 1, 0);
    for (const TilePoint& p : points) ++next[static_cast<std::size_t>(p.x - x_min) + 1];
    for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    std::vector<TilePoint> sorted(points.size());
    for (const TilePoint& p : points) sorted[next[static_cast<std::size_t>(p.x - x_min)]++] = p;
    for (auto run = sorted.begin(); run != sorted.end();) {
        const auto end =
            std::find_if(run, sorted.end(), [x = run->x](const TilePoint& p) { return p.x != x; });
        std::sort(run, end);
        run = end;
    }
    std::copy(sorted.begin(), sorted.end(), points.begin());
}

void sort_column(std::vector<TilePoint>& points, std::size_t begin, std::int32_t x_min) {
    sort_in_column(std::span(points).subspan(begin), x_min);
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
    points.erase(std::unique(first, points.end()), points.end());
}

}  // namespace citysplat::tiling
