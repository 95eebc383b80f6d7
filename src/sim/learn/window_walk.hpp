#pragma once

#include "sim/learn/scan_grid.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::sim::learn {

/// The windows of all rays of a scan, column by column: sums slide along the beams, so that a ray costs some
/// twenty additions instead of 132 cells.
class WindowWalk {
  public:
    /// Reads the returns once, now: they may change while the walk goes on. The walk keeps its memory from
    /// scan to scan.
    void begin(const GridView& grid, std::span<const Return> returns);
    /// Goes to the first column, then to the next.
    void next();
    /// Of the current column.
    Windows at(std::uint32_t row) const;

  private:
    /// Sums of each row over the columns of a window, with rows of zeros above and below.
    struct Band {
        std::int64_t half = 0;
        std::vector<WindowWords> rows;
    };
    void move(Band& band, std::int64_t column, bool add);

    GridView grid_{};
    std::vector<WindowWords> words_;  ///< by column × beams + row
    Band small_, large_;
    std::int64_t column_ = -1;
};

}  // namespace citysplat::sim::learn
