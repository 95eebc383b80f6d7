#include "model/point.hpp"

#include "core/math/lattice.hpp"

#include <cmath>
#include <stdexcept>

namespace citysplat {

void PointBatch::clear() {
    for (auto* column : {&x, &y, &z, &gps_time}) column->clear();
    for (auto* column : {&intensity, &label, &instance, &beam}) column->clear();
    scan_angle_deg.clear();
    sensor.clear();
    withheld.clear();
    empty_rays.clear();
    no_return = damaged = 0;
    masked = {};
    first_bad_label.reset();
}

void PointBatch::reserve(std::size_t n) {
    for (auto* column : {&x, &y, &z}) column->reserve(n);
}

void PointBatch::remove(const std::vector<std::uint8_t>& flags) {
    const auto compact = [&](auto& column) {
        if (column.empty()) return;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < flags.size(); ++i)
            if (!flags[i]) column[kept++] = column[i];
        column.resize(kept);
    };
    for (auto* column : {&x, &y, &z, &gps_time}) compact(*column);
    for (auto* column : {&intensity, &label, &instance, &beam}) compact(*column);
    compact(scan_angle_deg);
    compact(sensor);
    compact(withheld);
}

void PointBatch::check() const {
    const std::size_t n = size();
    const auto fits = [n](const auto& column) { return column.empty() || column.size() == n; };
    if (y.size() != n || z.size() != n || !fits(gps_time) || !fits(intensity) || !fits(label) ||
        !fits(instance) || !fits(scan_angle_deg) || !fits(sensor) || !fits(withheld) || !fits(beam))
        throw std::logic_error("PointBatch: columns of different lengths");
}

std::uint32_t time_slot(double time_s) {
    constexpr double kMost_s = 1e15;
    constexpr std::int64_t kSlots = UINT32_MAX;  // all numbers but kNoSlot
    if (!(std::abs(time_s) <= kMost_s)) return TilePoint::kNoSlot;
    const auto tenths = static_cast<std::int64_t>(std::floor(time_s * TilePoint::kSlotsPerSecond));
    return static_cast<std::uint32_t>(1 + tenths - floor_div(tenths, kSlots) * kSlots);
}

}  // namespace citysplat
