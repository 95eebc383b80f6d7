#include "adjust/thickness.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace citysplat::adjust {

namespace {

constexpr double kLeastPoints = 8;       ///< of a pass in a cell
constexpr double kLeastPointsCell = 24;  ///< of a cell, for its plane
constexpr double kFlatness = 9;          ///< variance along the plane ≥ this × variance across it
constexpr double kLeastWidth = 0.14;     ///< of the cell's edge: standard deviation along the plane
constexpr double kMostRms_m = 0.06;
constexpr double kApart_m = 20;

auto square_of(const CellGap& gap) {
    return std::pair(std::floor(gap.place_m.x / kApart_m), std::floor(gap.place_m.y / kApart_m));
}

/// Largest first; a total order, so that equal gaps have one, too.
bool worse(const CellGap& a, const CellGap& b) {
    const auto key = [](const CellGap& g) {
        return std::tuple(-g.gap_m, g.place_m.x, g.place_m.y, g.place_m.z, g.first_s, g.second_s);
    };
    return key(a) < key(b);
}

std::size_t bin_of(double metres) {
    return static_cast<std::size_t>(std::clamp(std::floor(metres * 1000), 0.0, 1000.0));
}

}  // namespace

std::optional<CellPlane> plane_of(std::span<const PassOfCell> passes, double cell_m) {
    Symmetric3 within;
    double points = 0;
    for (const PassOfCell& pass : passes)
        if (pass.moments.points >= kLeastPoints)
            within += pass.moments.scatter_m2, points += pass.moments.points;
    if (points < kLeastPointsCell) return std::nullopt;
    const Spread spread = spread_of(within, points);
    const double least_width = kLeastWidth * cell_m;
    if (spread.middle_m2 < least_width * least_width || spread.middle_m2 < kFlatness * spread.least_m2 ||
        spread.least_m2 > kMostRms_m * kMostRms_m)
        return std::nullopt;
    return CellPlane{spread.normal, std::sqrt(spread.least_m2)};
}

std::optional<CellGap> gap_of(std::span<const PassOfCell> passes, double cell_m) {
    if (passes.size() < 2) return std::nullopt;
    const auto plane = plane_of(passes, cell_m);
    if (!plane) return std::nullopt;
    const Vec3d origin = passes[0].moments.mean_m;
    std::optional<CellGap> largest;
    // The two sides of a wall are two surfaces.
    for (const double side : {1.0, -1.0}) {
        const PassOfCell *low = nullptr, *high = nullptr;
        const auto height = [&](const PassOfCell* p) {
            return dot(p->moments.mean_m - origin, plane->normal);
        };
        for (const PassOfCell& pass : passes) {
            if (pass.moments.points < kLeastPoints ||
                !(side * dot(pass.sensor_m - pass.moments.mean_m, plane->normal) > 0))
                continue;
            if (!low || height(&pass) < height(low)) low = &pass;
            if (!high || height(&pass) > height(high)) high = &pass;
        }
        if (!low || low == high) continue;
        const double gap = height(high) - height(low);
        if (largest && gap <= largest->gap_m) continue;
        const auto [first, second] =
            low->time_s <= high->time_s ? std::pair(low, high) : std::pair(high, low);
        largest = CellGap{gap,          low->moments.mean_m, plane->rms_m, first->time_s, second->time_s,
                          first->drive, second->drive};
    }
    return largest;
}

void Thickness::keep_worst(const CellGap& gap) {
    if (worst_.size() == kWorst && !worse(gap, worst_.back())) return;
    const auto same = std::find_if(worst_.begin(), worst_.end(),
                                   [&](const CellGap& other) { return square_of(other) == square_of(gap); });
    if (same != worst_.end()) {
        if (worse(gap, *same)) *same = gap;
    } else {
        worst_.push_back(gap);
    }
    std::sort(worst_.begin(), worst_.end(), worse);
    if (worst_.size() > kWorst) worst_.pop_back();
}

void Thickness::add(const CellGap& gap) {
    ++cells_;
    if (gap.gap_m > kThickGap_m) ++thick_;
    ++gaps_[bin_of(gap.gap_m)];
    ++rms_[bin_of(gap.rms_m)];
    keep_worst(gap);
}

void Thickness::add(const Thickness& other) {
    cells_ += other.cells_;
    thick_ += other.thick_;
    for (std::size_t i = 0; i < gaps_.size(); ++i) gaps_[i] += other.gaps_[i], rms_[i] += other.rms_[i];
    for (const CellGap& gap : other.worst_) keep_worst(gap);
}

double Thickness::share_thick() const {
    return cells_ == 0 ? 0 : static_cast<double>(thick_) / static_cast<double>(cells_);
}

double Thickness::quantile_of(const Histogram& histogram, std::uint64_t cells, double share) {
    const double wanted = share * static_cast<double>(cells);
    std::uint64_t below = 0;
    for (std::size_t bin = 0; bin < histogram.size(); ++bin) {
        below += histogram[bin];
        if (below > 0 && static_cast<double>(below) >= wanted) return (static_cast<double>(bin) + 0.5) / 1000;
    }
    return 0;
}

double Thickness::quantile_m(double share) const { return quantile_of(gaps_, cells_, share); }
double Thickness::median_rms_m() const { return quantile_of(rms_, cells_, 0.5); }

}  // namespace citysplat::adjust
