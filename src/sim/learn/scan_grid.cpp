#include "sim/learn/scan_grid.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace citysplat::sim::learn {

namespace {

constexpr double kTurn_rad = 2 * exact::kPi;

const SpinningHead& head_of(const Sensor& sensor) {
    if (const auto* head = std::get_if<SpinningHead>(&sensor.rays)) return *head;
    throw ConfigError("sensor \"" + sensor.id +
                      "\" is not of kind \"spinning\": only such sensors can have a learned model");
}

}  // namespace

ScanGrid::ScanGrid(const Sensor& sensor)
    : beams_(head_of(sensor).beams), pattern_(head_of(sensor).pattern), beam_of_row_(beams_.size()) {
    wraps_ = std::fabs(std::fabs(pattern_.step_rad) * pattern_.columns - kTurn_rad) < 1e-6;
    std::iota(beam_of_row_.begin(), beam_of_row_.end(), 0u);
    std::stable_sort(beam_of_row_.begin(), beam_of_row_.end(), [this](std::uint32_t a, std::uint32_t b) {
        return beams_[a].elevation_rad < beams_[b].elevation_rad;
    });
}

double ScanGrid::elevation_deg(std::uint32_t beam) const {
    return beams_[beam].elevation_rad * exact::kDegreesPerRad;
}

double ScanGrid::azimuth_rad(std::uint32_t beam, double column) const {
    const Beam& b = beams_[beam];
    return pattern_.first_azimuth_rad + pattern_.step_rad * (column + b.time_s / pattern_.column_time_s) +
           b.azimuth_rad;
}

std::uint32_t ScanGrid::mask_cell(std::uint32_t beam, std::uint32_t column) const {
    const double degrees = azimuth_rad(beam, column) * exact::kDegreesPerRad;
    const auto cell = static_cast<std::int64_t>(std::floor(degrees));
    return static_cast<std::uint32_t>((cell % kMaskCells + kMaskCells) % kMaskCells);
}

std::optional<std::uint32_t> ScanGrid::column_at(std::uint32_t beam, double azimuth) const {
    const double exact_column = (azimuth - azimuth_rad(beam, 0)) / pattern_.step_rad,
                 per_turn = kTurn_rad / std::fabs(pattern_.step_rad);
    // Nearest to the middle of the image: a sector may begin before or after any whole turn.
    const double middle = 0.5 * (pattern_.columns - 1.0);
    const double column =
        std::floor(exact_column - per_turn * std::floor((exact_column - middle) / per_turn + 0.5) + 0.5);
    const double last = pattern_.columns - 1.0;
    if (wraps_)
        return static_cast<std::uint32_t>(column < 0 ? column + per_turn + 0.5 : std::min(column, last));
    if (column < 0 || column > last) return std::nullopt;
    return static_cast<std::uint32_t>(column);
}

}  // namespace citysplat::sim::learn
