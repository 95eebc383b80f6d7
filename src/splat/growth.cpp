#include "splat/growth.hpp"

#include "core/math_hd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::splat {
namespace {

Vec3d difference(const PointCloud& c, std::uint32_t from, std::uint32_t to) {
    return {static_cast<double>(c.x[to] - c.x[from]), static_cast<double>(c.y[to] - c.y[from]),
            static_cast<double>(c.z[to] - c.z[from])};
}

std::int32_t nearest(double v) { return static_cast<std::int32_t>(std::floor(v + 0.5)); }

}  // namespace

/// The three reasons to stop of the paper's figure 3: error bound, class, smoothness.
bool Grower::stops_at(std::uint32_t seed, std::uint32_t neighbour) const {
    const Vec3d n = vec_cast<double>(surface_.normal[seed]);
    const double error = std::fabs(dot(n, difference(cloud_, seed, neighbour)));
    if (error > settings_.error_steps[surface_.reach_class[seed]]) return true;
    const Method method = settings_.params.method;
    if (method == Method::basic) return false;
    if (method == Method::adaptive) {
        if (cloud_.attributes[neighbour].label != cloud_.attributes[seed].label) return true;
    } else if (cloud_.group[neighbour] != cloud_.group[seed]) {
        return true;
    }
    double cosine = dot(n, vec_cast<double>(surface_.normal[neighbour]));
    if (!surface_.has(seed, Surface::kOriented) || !surface_.has(neighbour, Surface::kOriented))
        cosine = std::fabs(cosine);
    return !(cosine > settings_.params.smoothness);
}

/// Growth in the order of distance ends at the nearest point that stops it; no sorting is needed to find it.
Grower::Stop Grower::first_stop(std::uint32_t seed, const Neighbourhood& n) const {
    Stop stop{std::numeric_limits<std::uint32_t>::max(), 0};
    for (std::size_t i = 0; i < n.point.size(); ++i) {
        const std::uint32_t p = n.point[i];
        if (n.distance2[i] > stop.distance2 || p == seed || surface_.has(p, Surface::kOutlier)) continue;
        if (n.distance2[i] == stop.distance2 && cloud_.rank[p] > stop.rank) continue;
        if (stops_at(seed, p)) stop = {n.distance2[i], cloud_.rank[p]};
    }
    return stop;
}

Growth Grower::grow(std::uint32_t seed, const Neighbourhood& n, std::vector<std::uint32_t>& suppressed) {
    const double alpha = settings_.params.suppression;
    const auto suppress_within = [&](double radius) {
        const double limit2 = alpha * alpha * radius * radius;
        for (std::size_t i = 0; i < n.point.size(); ++i)
            if (n.distance2[i] <= limit2) suppressed.push_back(n.point[i]);
    };
    bool known =
        surface_.has(seed, Surface::kKnown) && edge_.encloses(cloud_.x[seed], cloud_.y[seed], n.reach2);
    for (std::size_t i = 0; known && i < n.point.size(); ++i)
        known = surface_.has(n.point[i], Surface::kKnown);
    if (!known) {
        suppress_within(std::sqrt(static_cast<double>(n.reach2)));
        return {Growth::Fate::unknown, {}};
    }

    const Stop stop = first_stop(seed, n);
    members_.clear();
    std::uint32_t last = seed;
    std::uint64_t last_order = 0;
    Vec3d sum{0, 0, 0};  // of differences: whole numbers, exact
    for (std::size_t i = 0; i < n.point.size(); ++i) {
        const std::uint32_t p = n.point[i];
        if (surface_.has(p, Surface::kOutlier) && p != seed) continue;
        if (n.distance2[i] > stop.distance2) continue;
        if (n.distance2[i] == stop.distance2 && cloud_.rank[p] >= stop.rank) continue;
        members_.push_back(p);
        sum = sum + difference(cloud_, seed, p);
        const std::uint64_t order = std::uint64_t{n.distance2[i]} << 32 | cloud_.rank[p];
        if (order > last_order) last_order = order, last = p;
    }
    if (members_.size() < static_cast<std::size_t>(settings_.params.least_points))
        return {Growth::Fate::none, {}};

    SeededSplat s{};
    s.seed = seed;
    s.normal = surface_.normal[seed];
    s.oriented = surface_.has(seed, Surface::kOriented);
    const Vec3d normal = vec_cast<double>(s.normal);
    // Eq. 5: the mean of ε is the normal times the mean difference. Eq. 6: the farthest member, projected.
    const double shift = dot(normal, sum) / static_cast<double>(members_.size());
    const Vec3d d = difference(cloud_, seed, last);
    const double height = dot(normal, d);
    const double radius = std::sqrt(std::max(0.0, dot(d, d) - height * height));
    s.splat.radius = static_cast<std::uint16_t>(std::min(std::floor(radius + 0.5), 65535.0));
    if (s.splat.radius == 0) return {Growth::Fate::none, {}};
    s.splat.x = cloud_.x[seed] + nearest(shift * normal.x);
    s.splat.y = cloud_.y[seed] + nearest(shift * normal.y);
    s.splat.z = cloud_.z[seed] + nearest(shift * normal.z);
    s.splat.normal = pack_normal(normal);
    s.splat.label = cloud_.attributes[seed].label;
    s.splat.group = cloud_.group[seed];
    add_observations(s);
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
