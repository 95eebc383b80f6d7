#pragma once

#include "core/math/lattice.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>

/// How points lie on disk: 64 m sectors of 16 × 16 cells of 4 m, both anchored in absolute coordinates. This
/// grid has nothing to do with the tile grid: any tile size reads the same archives.
namespace citysplat::tiling {

inline constexpr int kSectorShift = kLatticeBits + 6;
inline constexpr int kCellShift = kLatticeBits + 2;
inline constexpr std::int64_t kSectorSteps = std::int64_t{1} << kSectorShift;
inline constexpr std::int64_t kCellSteps = std::int64_t{1} << kCellShift;
inline constexpr int kCellsPerSide = 1 << (kSectorShift - kCellShift);
inline constexpr int kCellsPerSector = kCellsPerSide * kCellsPerSide;

/// No point of the world lies in a sector beyond, and no ray of one.
inline constexpr std::int64_t kMostSector = static_cast<std::int64_t>(kMaxWorld_m) / 64 + 16;

struct Sector {
    std::int32_t x = 0, y = 0;

    std::int64_t origin_x() const { return std::int64_t{x} << kSectorShift; }
    std::int64_t origin_y() const { return std::int64_t{y} << kSectorShift; }
    LatticeBox box() const {
        return {origin_x(), origin_y(), origin_x() + kSectorSteps, origin_y() + kSectorSteps};
    }
    friend auto operator<=>(const Sector&, const Sector&) = default;
};

/// A rectangle of sectors, both corners included; empty as it is made.
struct SectorBox {
    std::int32_t min_x = 0, min_y = 0, max_x = -1, max_y = -1;

    bool empty() const { return max_x < min_x || max_y < min_y; }
    bool contains(const Sector& s) const {
        return s.x >= min_x && s.x <= max_x && s.y >= min_y && s.y <= max_y;
    }
    bool intersects(const SectorBox& b) const {
        return min_x <= b.max_x && b.min_x <= max_x && min_y <= b.max_y && b.min_y <= max_y;
    }
    /// Grows to hold another one.
    void add(const SectorBox& b) {
        if (b.empty()) return;
        if (empty()) *this = b;
        min_x = std::min(min_x, b.min_x), min_y = std::min(min_y, b.min_y);
        max_x = std::max(max_x, b.max_x), max_y = std::max(max_y, b.max_y);
    }
    friend bool operator==(const SectorBox&, const SectorBox&) = default;
};

inline std::int32_t sector_index(std::int64_t steps) {
    return static_cast<std::int32_t>(steps >> kSectorShift);
}
inline Sector sector_of(std::int64_t x, std::int64_t y) { return {sector_index(x), sector_index(y)}; }

/// The sectors that a box touches.
inline SectorBox sectors_of(const LatticeBox& box) {
    return {sector_index(box.min_x), sector_index(box.min_y), sector_index(box.max_x - 1),
            sector_index(box.max_y - 1)};
}

/// Number of the cell of a point given in steps from its sector's origin. Cells count along y first, so that
/// a column of cells (one range of x) is contiguous on disk.
inline int cell_of(std::int32_t x, std::int32_t y) {
    return (x >> kCellShift) * kCellsPerSide + (y >> kCellShift);
}
inline LatticeBox cell_box(const Sector& sector, int cell) {
    const std::int64_t x = sector.origin_x() + (cell / kCellsPerSide) * kCellSteps;
    const std::int64_t y = sector.origin_y() + (cell % kCellsPerSide) * kCellSteps;
    return {x, y, x + kCellSteps, y + kCellSteps};
}

}  // namespace citysplat::tiling
