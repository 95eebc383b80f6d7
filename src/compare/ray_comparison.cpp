#include "compare/ray_comparison.hpp"

#include <algorithm>
#include <cassert>

namespace citysplat::compare {

namespace {

bool returned(const sim::Return& r) { return r.status == sim::RayStatus::hit; }

std::size_t range_bin(double range_m) {
    return static_cast<std::size_t>(std::upper_bound(kRangeEnds_m.begin(), kRangeEnds_m.end(), range_m) -
                                    kRangeEnds_m.begin());
}

void add_empty(RayTally& row, const sim::Return& met) {
    ++row.empty;
    row.extra += returned(met);
    row.taken_away += met.status == sim::RayStatus::dropped;
}

void add_return(RayTally& row, const RecordedScan& scan, const RecordedRay& ray, const sim::Return& met) {
    ++row.returns;
    if (!returned(met)) {
        ++row.holes;
        row.dropped += met.status == sim::RayStatus::dropped;
        return;
    }
    const double error_m = static_cast<double>(met.range_m) - ray.range_m;
    row.front += error_m < -kFront_m;
    row.behind += error_m > kFront_m;
    row.range.add(error_m);
    row.normal.add(error_m * static_cast<double>(met.cosine));
    if (scan.has_intensity && std::abs(error_m) <= kSameSurface_m)
        row.intensity.add(ray.intensity, met.intensity);
}

}  // namespace

double RayTally::agreement() const {
    const std::uint64_t rays = returns + empty, agreeing = returns - holes + empty - extra;
    return rays == 0 ? 0 : static_cast<double>(agreeing) / static_cast<double>(rays);
}

std::array<RayTally*, 4> RayComparison::rows_of(const RecordedScan& scan, const RecordedRay& ray,
                                                const sim::Return& met) {
    std::array<RayTally*, 4> rows{&all_, nullptr, nullptr, nullptr};
    if (ray.met_city() || returned(met))
        rows[1] = &ranges_[range_bin(ray.met_city() ? ray.range_m : static_cast<double>(met.range_m))];
    if (ray.met_city() && scan.has_labels)
        rows[2] = &classes_[ray.label];
    else if (returned(met))
        rows[2] = &classes_[met.label];
    if (ray.beam < beams_.size()) rows[3] = &beams_[ray.beam];
    return rows;
}

bool RayComparison::counts(const RecordedRay& ray) const {
    if (region_.is_everything()) return true;
    if (ray.is_empty()) return false;
    const Vec3d place = ray.origin + ray.direction * ray.range_m;
    return region_.contains(to_lattice(place.x), to_lattice(place.y));
}

void RayComparison::add(const RecordedScan& scan, std::span<const sim::Return> simulated) {
    assert(simulated.size() == scan.rays.size());
    ++scans_;
    if (beams_.size() < scan.beams) beams_.resize(scan.beams);
    own_car_ += scan.own_car;
    for (std::size_t i = 0; i < scan.rays.size(); ++i) {
        const RecordedRay& ray = scan.rays[i];
        if (!counts(ray)) continue;
        const auto add_to = [&](RayTally& row, bool came_back) {
            came_back ? add_return(row, scan, ray, simulated[i]) : add_empty(row, simulated[i]);
        };
        for (RayTally* row : rows_of(scan, ray, simulated[i]))
            if (row) add_to(*row, ray.met_city());
        add_to(with_own_car_, !ray.is_empty());
    }
}

}  // namespace citysplat::compare
