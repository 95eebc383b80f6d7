#include "adjust/sights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::adjust {

namespace {

constexpr std::uint16_t kNothing = std::numeric_limits<std::uint16_t>::max();
constexpr double kMargin_m = 0.5, kMarginShare = 0.03;

}  // namespace

Sights::Sights(std::size_t slots) : nearest_cm_(slots * kBins) {
    for (auto& nearest : nearest_cm_) nearest.store(kNothing, std::memory_order_relaxed);
}

std::size_t Sights::bin_of(Vec3d d) {
    const double scale = 1 / (std::fabs(d.x) + std::fabs(d.y) + std::fabs(d.z));
    double u = scale * d.x, v = scale * d.y;
    if (d.z < 0) {  // the lower half is folded over the corners of the square
        const double folded = (1 - std::fabs(v)) * (u < 0 ? -1 : 1);
        v = (1 - std::fabs(u)) * (v < 0 ? -1 : 1);
        u = folded;
    }
    const auto along = [](double w) {
        return static_cast<std::size_t>(std::clamp((w + 1) / 2 * kEdge, 0.0, kEdge - 1.0));
    };
    return along(v) * kEdge + along(u);
}

void Sights::add(std::uint32_t slot, Vec3d offset_m) {
    const double range_m = length(offset_m);
    if (!(range_m > 0)) return;
    const auto cm = static_cast<std::uint16_t>(std::min(100 * range_m, kNothing - 1.0));
    std::atomic<std::uint16_t>& nearest = nearest_cm_[slot * kBins + bin_of(offset_m)];
    std::uint16_t before = nearest.load(std::memory_order_relaxed);
    while (cm < before && !nearest.compare_exchange_weak(before, cm, std::memory_order_relaxed)) {
    }
}

bool Sights::passes(std::uint32_t slot, Vec3d offset_m) const {
    if (!(length(offset_m) > 0)) return false;  // the place of the sensor itself lies in no direction
    const std::uint16_t nearest =
        nearest_cm_[slot * kBins + bin_of(offset_m)].load(std::memory_order_relaxed);
    return nearest != kNothing && nearest > 100 * ((1 + kMarginShare) * length(offset_m) + kMargin_m);
}

}  // namespace citysplat::adjust
