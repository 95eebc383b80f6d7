#include "sim/learn/window_walk.hpp"

namespace citysplat::sim::learn {

namespace {

/// Rows of zeros on either side: half of the large window's beams.
constexpr std::uint32_t kMargin = kLargeWindow.beams / 2;

}  // namespace

void WindowWalk::begin(const GridView& grid, std::span<const Return> returns) {
    grid_ = grid;
    words_.resize(returns.size());
    for (std::uint32_t column = 0; column < grid.columns; ++column) {
        const Return* from = returns.data() + std::size_t{column} * grid.beams;
        WindowWords* to = words_.data() + std::size_t{column} * grid.beams;
        for (std::uint32_t row = 0; row < grid.beams; ++row)
            to[row] = window_words(from[grid.beam_of_row[row]]);
    }
    column_ = -1;
    for (auto& [band, shape] : {std::pair{&small_, kSmallWindow}, std::pair{&large_, kLargeWindow}}) {
        band->half = shape.columns / 2;
        band->rows.assign(grid.beams + 2 * kMargin, {});
        // All that the window of the first column holds, but for the column that next() adds.
        for (std::int64_t c = -band->half - 1; c < band->half; ++c) move(*band, c, true);
    }
}

void WindowWalk::move(Band& band, std::int64_t column, bool add) {
    const auto columns = static_cast<std::int64_t>(grid_.columns);
    if (!grid_.wraps && (column < 0 || column >= columns)) return;
    const auto at = static_cast<std::size_t>((column % columns + columns) % columns);
    const WindowWords* from = words_.data() + at * grid_.beams;
    WindowWords* to = band.rows.data() + kMargin;
    if (add)
        for (std::uint32_t row = 0; row < grid_.beams; ++row) to[row] += from[row];
    else
        for (std::uint32_t row = 0; row < grid_.beams; ++row) to[row] -= from[row];
}

void WindowWalk::next() {
    ++column_;
    for (Band* band : {&small_, &large_}) {
        move(*band, column_ + band->half, true);
        move(*band, column_ - band->half - 1, false);
    }
}

Windows WindowWalk::at(std::uint32_t row) const {
    const WindowWords *s = small_.rows.data() + kMargin + row, *l = large_.rows.data() + kMargin + row;
    WindowWords small = s[-1], large = l[-2];
    small += s[0];
    small += s[1];
    for (int y = -1; y <= 2; ++y) large += l[y];
    return {unpack(small), unpack(large)};
}

}  // namespace citysplat::sim::learn
