#include "splat/growth.hpp"

#include "core/math_hd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::splat {
namespace {

Vec3d difference(const SurfacePoint& from, const SurfacePoint& to) {
    return {static_cast<double>(to.x - from.x), static_cast<double>(to.y - from.y),
            static_cast<double>(to.z - from.z)};
}

constexpr std::uint32_t kNoStop = std::numeric_limits<std::uint32_t>::max();

std::int32_t nearest(double v) { return static_cast<std::int32_t>(v < 0 ? v - 0.5 : v + 0.5); }

}  // namespace

/// Growth in the order of distance ends at the nearest point that stops it (figure 3 of the paper: error
/// bound, class, smoothness); no sorting is needed to find it.
Grower::Stop Grower::first_stop(std::uint32_t seed, const Neighbourhood& n) const {
    const SurfacePoint& s = surface_.points[seed];
    const Vec3d normal = vec_cast<double>(s.normal);
    const double bound = settings_.error_steps[surface_.reach_class[seed]];
    const bool smooth = settings_.params.method != Method::basic;
    const double least_cosine = settings_.params.smoothness;
    Stop stop{kNoStop, 0};
    for (std::size_t i = 0; i < n.point.size(); ++i) {
        if (n.distance2[i] > stop.distance2) continue;
        const SurfacePoint& p = surface_.points[n.point[i]];
        if (n.point[i] == seed || p.has(SurfacePoint::kOutlier)) continue;
        if (n.distance2[i] == stop.distance2 && p.rank > stop.rank) continue;
        bool stops = std::fabs(dot(normal, difference(s, p))) > bound || p.kind != s.kind;
        if (!stops && smooth) {
            const double cosine = dot(normal, vec_cast<double>(p.normal));
            const bool oriented = (s.flags & p.flags & SurfacePoint::kOriented) != 0;
            stops = !((oriented ? cosine : std::fabs(cosine)) > least_cosine);
        }
        if (stops) stop = {n.distance2[i], p.rank};
    }
    return stop;
}

/// All that was read up to the reach is final, and nothing outside lies within it.
bool Grower::is_known(std::uint32_t seed, const Neighbourhood& n, std::uint32_t reach2) const {
    const SurfacePoint& s = surface_.points[seed];
    if (!s.has(SurfacePoint::kKnown) || !edge_.encloses(s.x, s.y, reach2)) return false;
    for (std::size_t i = 0; i < n.point.size(); ++i)
        if (n.distance2[i] <= reach2 && !surface_.points[n.point[i]].has(SurfacePoint::kKnown)) return false;
    return true;
}

/// Puts the points before the stop into members_; returns the last of them. `sum` becomes the sum of their
/// differences from the seed: whole numbers, exact.
std::uint32_t Grower::find_members(std::uint32_t seed, const Neighbourhood& n, const Stop& stop, Vec3d& sum) {
    members_.clear();
    sum = {0, 0, 0};
    const SurfacePoint& s = surface_.points[seed];
    std::uint32_t last = seed;
    std::uint64_t last_order = 0;
    for (std::size_t i = 0; i < n.point.size(); ++i) {
        if (n.distance2[i] > stop.distance2) continue;
        const SurfacePoint& p = surface_.points[n.point[i]];
        if (p.has(SurfacePoint::kOutlier) && n.point[i] != seed) continue;
        if (n.distance2[i] == stop.distance2 && p.rank >= stop.rank) continue;
        members_.push_back(n.point[i]);
        sum = sum + difference(s, p);
        const std::uint64_t order = std::uint64_t{n.distance2[i]} << 32 | p.rank;
        if (order > last_order) last_order = order, last = n.point[i];
    }
    return last;
}

Growth Grower::grow(std::uint32_t seed, const Neighbourhood& n, std::vector<std::uint32_t>& suppressed) {
    const double alpha = settings_.params.suppression;
    const auto suppress_within = [&](double radius) {
        const double limit2 = alpha * alpha * radius * radius;
        for (std::size_t i = 0; i < n.point.size(); ++i)
            if (n.distance2[i] <= limit2) suppressed.push_back(n.point[i]);
    };
    const Stop stop = first_stop(seed, n);
    const bool stopped = stop.distance2 != kNoStop;
    if (!stopped && !n.whole) return {Growth::Fate::open, {}};
    // What lies behind the stop does not matter; what might lie before it does.
    if (!is_known(seed, n, stopped ? stop.distance2 : n.reach2)) {
        if (!n.whole) return {Growth::Fate::open, {}};
        suppress_within(std::sqrt(static_cast<double>(n.reach2)));
        return {Growth::Fate::unknown, {}};
    }
    Vec3d sum;
    const std::uint32_t last = find_members(seed, n, stop, sum);
    if (members_.size() < static_cast<std::size_t>(settings_.params.least_points))
        return {Growth::Fate::none, {}};

    SeededSplat s{};
    s.seed = seed;
    s.normal = surface_.points[seed].normal;
    s.oriented = surface_.points[seed].has(SurfacePoint::kOriented);
    const Vec3d normal = vec_cast<double>(s.normal);
    // Eq. 5: the mean of ε is the normal times the mean difference. Eq. 6: the farthest member, projected.
    const double shift = dot(normal, sum) / static_cast<double>(members_.size());
    const Vec3d d = difference(surface_.points[seed], surface_.points[last]);
    const double height = dot(normal, d);
    const double radius = std::sqrt(std::max(0.0, dot(d, d) - height * height));
    s.splat.radius = static_cast<std::uint16_t>(std::min(radius + 0.5, 65535.0));
    if (s.splat.radius == 0) return {Growth::Fate::none, {}};
    s.splat.x = cloud_.x[seed] + nearest(shift * normal.x);
    s.splat.y = cloud_.y[seed] + nearest(shift * normal.y);
    s.splat.z = cloud_.z[seed] + nearest(shift * normal.z);
    s.splat.normal = pack_normal(normal);
    s.splat.label = cloud_.attributes[seed].label;
    s.splat.group = cloud_.group[seed];
    if (observe_) add_observations(s);
    suppress_within(static_cast<double>(s.splat.radius));
    return {Growth::Fate::splat, s};
}

/// Median intensity, mean range and incidence, number of points: whole-number sums over the members.
void Grower::add_observations(SeededSplat& s) {
    intensities_.clear();
    std::int64_t range = 0, cosine = 0, seen = 0;
    const Vec3d n = vec_cast<double>(s.normal);
    for (const std::uint32_t p : members_) {
        const PointAttributes& a = cloud_.attributes[p];
        intensities_.push_back(a.intensity);
        if (!a.has_sensor()) continue;
        ++seen;
        range += a.range;
        cosine += nearest(std::fabs(dot(n, a.to_sensor())) / a.range * 65536.0);
    }
    const auto middle = intensities_.begin() + static_cast<std::ptrdiff_t>((intensities_.size() - 1) / 2);
    std::nth_element(intensities_.begin(), middle, intensities_.end());
    s.splat.intensity = *middle;
    s.splat.point_count = static_cast<std::uint8_t>(std::min<std::size_t>(members_.size(), 255));
    s.splat.range = s.splat.incidence = kUnknownByte;
    if (seen > 0) {
        const auto count = static_cast<double>(seen);
        const double metres = static_cast<double>(range) / count / TilePoint::kSensorStepsPerMetre;
        const double angle = exact::acos(std::min(1.0, static_cast<double>(cosine) / count / 65536.0));
        s.splat.range = static_cast<std::uint8_t>(std::min(254, nearest(metres)));
        s.splat.incidence = static_cast<std::uint8_t>(nearest(angle / (exact::kPi / 2) * 254.0));
    }
}

}  // namespace citysplat::splat
