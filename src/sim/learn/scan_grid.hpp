#pragma once

#include "sim/learn/learned_scan_hd.hpp"
#include "sim/sensor/sensor.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace citysplat::sim::learn {

/// Cells of an own-car mask: one for each beam and degree of azimuth in the sensor's frame.
inline constexpr std::uint32_t kMaskCells = 360;

/// The rays of a spinning sensor as an image of beams and columns.
class ScanGrid {
  public:
    /// Throws ConfigError for other kinds: their rays have no beam above and none below.
    explicit ScanGrid(const Sensor& sensor);

    std::uint32_t beams() const { return pattern_.beams; }
    std::uint32_t columns() const { return pattern_.columns; }
    std::uint32_t rays() const { return pattern_.beams * pattern_.columns; }
    bool wraps() const { return wraps_; }
    std::uint32_t beam_of_row(std::uint32_t row) const { return beam_of_row_[row]; }
    double elevation_deg(std::uint32_t beam) const;
    /// Azimuth of a ray, whole turns taken off, rounded down to degrees.
    std::uint32_t mask_cell(std::uint32_t beam, std::uint32_t column) const;
    /// The column in which the beam looks nearest to that azimuth. Nothing when a sector ends before it.
    std::optional<std::uint32_t> column_at(std::uint32_t beam, double azimuth_rad) const;

    /// Valid as long as this is.
    GridView view() const { return {beams(), columns(), wraps_ ? 1u : 0u, beam_of_row_.data()}; }

  private:
    double azimuth_rad(std::uint32_t beam, double column) const;

    std::vector<Beam> beams_;
    SpinningPattern pattern_;
    bool wraps_;
    std::vector<std::uint32_t> beam_of_row_;
};

}  // namespace citysplat::sim::learn
