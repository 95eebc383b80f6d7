#pragma once

#include "adjust/moments.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// How thick surfaces are because passes disagree: what good poses would make thin. Measured in cells of half
/// a metre that are flat, between passes of one second each (a pass is what one drive saw within a second).
namespace citysplat::adjust {

inline constexpr double kThicknessCell_m = 0.5;
inline constexpr double kPass_s = 1.0;
/// A cell whose passes differ by more is called thick.
inline constexpr double kThickGap_m = 0.1;
/// A trajectory with a larger share of thick cells should be adjusted.
inline constexpr double kMostThick = 0.02;

/// What one pass saw of a cell.
struct PassOfCell {
    Moments moments;
    Vec3d sensor_m;  ///< where it saw it from
    double time_s;
    std::uint32_t drive = 0;
};

/// The plane through a cell, from the scatter within each pass alone, so that disagreement between passes
/// bends neither it nor the decision. Nothing when the cell is not flat, or too few passes have eight points.
struct CellPlane {
    Vec3d normal;
    double rms_m;  ///< of the points of a pass about its plane
};
std::optional<CellPlane> plane_of(std::span<const PassOfCell> passes, double cell_m);

/// The two passes of a cell that differ most along its normal.
struct CellGap {
    double gap_m;
    Vec3d place_m;
    double rms_m;
    double first_s, second_s;
    std::uint32_t first_drive, second_drive;
};
/// Nothing when the cell is not flat or fewer than two passes saw the same side of it with eight points each.
/// Passes must come in a fixed order.
std::optional<CellGap> gap_of(std::span<const PassOfCell> passes, double cell_m = kThicknessCell_m);

/// Gaps of many cells: how many, how large, and where the largest are. Adding is exact, in any order.
class Thickness {
  public:
    static constexpr std::size_t kWorst = 5;

    void add(const CellGap& gap);
    void add(const Thickness& other);

    std::uint64_t cells() const { return cells_; }
    std::uint64_t thick_cells() const { return thick_; }
    double share_thick() const;
    /// Gap that this share of the cells does not exceed, to the millimetre.
    double quantile_m(double share) const;
    /// Root mean square of the points of a pass about its plane, median over the cells.
    double median_rms_m() const;
    /// The largest gaps, largest first, at places at least 20 m apart.
    const std::vector<CellGap>& worst() const { return worst_; }

  private:
    static constexpr int kBins = 1001;  ///< millimetres; the last one: a metre and more
    using Histogram = std::array<std::uint64_t, kBins>;
    static double quantile_of(const Histogram& histogram, std::uint64_t cells, double share);
    void keep_worst(const CellGap& gap);

    std::uint64_t cells_ = 0, thick_ = 0;
    Histogram gaps_{}, rms_{};
    std::vector<CellGap> worst_;  ///< one per square of 20 m, the largest of it, the largest squares only
};

}  // namespace citysplat::adjust
