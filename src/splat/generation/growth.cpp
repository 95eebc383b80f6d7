#include "splat/generation/growth.hpp"

#include "splat/generation/observed_bytes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::splat {
namespace {

std::int32_t nearest(double v) { return static_cast<std::int32_t>(v < 0 ? v - 0.5 : v + 0.5); }

}  // namespace

Grower::Grower(const GrowthInput& input)
    : cloud_(input.cloud),
      surface_(input.surface),
      edge_(input.edge),
      settings_(input.settings),
      observe_(input.observe),
      discs_(input.discs),
      lanes_(input.lanes),
      site_{surface_.brief, cloud_.rank} {}

/// When growth from the seed stops: at the error bound, another class or another direction.
StopRule Grower::rule_of(std::uint32_t seed) const {
    constexpr float kAnyDirection = -2;
    const bool smooth = settings_.params.method != Method::basic;
    return {surface_.normal[seed], static_cast<float>(settings_.error_steps[surface_.reach_class[seed]]),
            smooth ? static_cast<float>(settings_.params.smoothness) : kAnyDirection};
}

/// All that was read up to the reach is final, and nothing outside lies within it.
bool Grower::is_known(std::uint32_t seed, const Neighbours& n, std::uint32_t reach2) const {
    const std::int32_t x = cloud_.x[seed], y = cloud_.y[seed];
    if (!surface_.brief[seed].known() || !edge_.encloses(x, y, reach2)) return false;
    // Far from the edge every point within reach is final.
    const double inside = static_cast<double>(edge_.distance(x, y)) - settings_.widest_radius() - 1;
    if (inside > 0 && inside * inside > static_cast<double>(reach2)) return true;
    for (std::size_t i = 0; i < n.size(); ++i)
        if (n.distance2[i] <= reach2 && !surface_.brief[n.point[i]].known()) return false;
    return true;
}

/// Of the members, when they stand for discs.
double Grower::mean_extent2() const {
    if (discs_.empty()) return 0;
    double sum = 0;
    for (const std::uint32_t p : members_) sum += extent_of(p) * extent_of(p);
    return sum / static_cast<double>(members_.size());
}

/// Radius of the full disc whose points spread as much as the members do across their narrow direction: a
/// uniform disc of radius r has the variance r²/4 along any axis, and so has each member that stands for a
/// disc. Half a disc — points at the edge of a wall — gives about r/2, a bar its half width.
/// Infinite when the members of a surface are on a line: that says where the scanner looked, not how wide the
/// surface is.
double Grower::narrow_radius(std::uint32_t seed, Vec3d normal, const Moments& m) const {
    constexpr double kLine = 0.05;
    const auto count = static_cast<double>(m.count);
    const Vec3d axis = std::fabs(normal.z) < 0.9 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
    const Vec3d u = normalized(axis - normal * dot(axis, normal)), v = cross(normal, u);
    const double mean_u = dot(m.sum(), u) / count, mean_v = dot(m.sum(), v) / count;
    const double own = 0.25 * mean_extent2();
    const double uu = m.sum_of_products(u, u) / count - mean_u * mean_u + own,
                 vv = m.sum_of_products(v, v) / count - mean_v * mean_v + own,
                 uv = m.sum_of_products(u, v) / count - mean_u * mean_v;
    const double middle = 0.5 * (uu + vv), half_gap = std::sqrt(0.25 * (uu - vv) * (uu - vv) + uv * uv);
    const double narrow = std::max(0.0, middle - half_gap), wide = middle + half_gap;
    const bool thin = settings_.least_radius_steps[group_of(seed)] > 0;
    if (!thin && narrow <= kLine * wide) return std::numeric_limits<double>::infinity();
    return 2.0 * std::sqrt(narrow);
}

/// A disc around the mean of its points, moved in its plane until its seed is well inside: the seed is a
/// return, and a ray through it must find the disc.
Grower::Disc Grower::centred_disc(Vec3d normal, Vec3d mean, double radius, double grown) const {
    const Vec3d along = normal * dot(normal, mean), aside = mean - along;
    const double shift = std::sqrt(dot(aside, aside)), most = settings_.params.seed_inside * radius;
    return {shift > most ? along + aside * (most / shift) : mean, radius, grown};
}

/// Eq. 5 and 6: along the normal by the mean of ε, which is the normal times the mean difference; out to the
/// farthest member. That disc sticks out over edges by up to its radius, so it is then fitted to its members.
Grower::Disc Grower::fit_disc(std::uint32_t seed, Vec3d normal, const MemberSums& sums) const {
    constexpr std::int32_t kFewest = 4;  // with fewer points the spread says little
    constexpr double kKept = 0.75;
    const Vec3d mean = sums.moments.sum() * (1.0 / static_cast<double>(sums.moments.count));
    const double height = dot(normal, sums.last), extent = extent_of(seed);
    const double grown =
        std::max(std::sqrt(std::max(0.0, dot(sums.last, sums.last) - height * height)), extent);
    Disc disc{normal * dot(normal, mean), grown, grown};
    const double fill = settings_.params.disc_fill[group_of(seed)];
    if (fill > 0 && (sums.moments.count >= kFewest || extent > 0)) {
        const double narrow = narrow_radius(seed, normal, sums.moments);
        if (std::isfinite(narrow)) disc = centred_disc(normal, mean, std::min(grown, fill * narrow), grown);
        // Between few discs the mean lies between them: what the first disc covered stays covered.
        const Vec3d aside = disc.centre - normal * dot(normal, disc.centre);
        if (extent > 0 && std::sqrt(dot(aside, aside)) + kKept * extent > disc.radius)
            disc = {normal * dot(normal, mean), extent, grown};
    }
    disc.radius = std::max(disc.radius, settings_.least_radius_steps[group_of(seed)]);
    return disc;
}

/// Suppressed points lie near the seed and well inside the disc, so that what starts no splat is covered by
/// one; and nearer than the stop, beyond which the seed is not certain of its neighbours.
SuppressedPart Grower::suppressed_part(std::uint32_t seed, Vec3d normal, const Disc& disc) const {
    const double alpha = settings_.params.suppression;
    const double reach = alpha * std::max(disc.grown, disc.radius), inside = alpha * disc.radius;
    const bool everywhere = settings_.params.disc_fill[group_of(seed)] == 0;
    return {vec_cast<float>(disc.centre), vec_cast<float>(normal),
            everywhere ? std::numeric_limits<float>::infinity() : static_cast<float>(inside * inside),
            static_cast<std::int32_t>(std::min(reach * reach, 1e9))};
}

/// All that a splat of this seed might suppress, whatever it turns out to be.
void Grower::suppress_all(std::uint32_t seed, const Neighbours& n, PointList& suppressed) const {
    const double largest = std::max({std::sqrt(static_cast<double>(n.reach2)), extent_of(seed),
                                     settings_.least_radius_steps[group_of(seed)]});
    const double reach = settings_.params.suppression * largest;
    const auto reach2 = static_cast<std::uint32_t>(std::min(reach * reach, 4e9));
    std::uint32_t* const out = suppressed.room(n.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < n.size(); ++i) {
        out[count] = n.point[i];
        count += n.distance2[i] <= reach2;
    }
    suppressed.resize(suppressed.size() + count);
}

/// What becomes of a seed whose splat has too few members. It is a splat if its group allows it, if the ball
/// holds at least three points but few in all, and if all of that ball was read; unknown if it was not.
Growth::Fate Grower::fate_of_few(std::uint32_t seed, const Neighbours& n) const {
    constexpr std::size_t kLeast = 3;  // two may be a pair of outliers
    const auto many = static_cast<std::size_t>(settings_.params.sparse_points[group_of(seed)]);
    if (!discs_.empty() || !settings_.params.sparse_discs[group_of(seed)]) return Growth::Fate::none;
    if (surface_.reach_class[seed] != kSparseReach && n.size() >= many) return Growth::Fate::none;
    if (!is_known(seed, n, n.reach2)) return Growth::Fate::unknown;
    return n.size() < kLeast ? Growth::Fate::none : Growth::Fate::splat;
}

/// Finds the nearest points of the seed's kind, itself among them, in order.
void Grower::find_nearest(std::uint32_t seed, const Neighbours& n, std::size_t most) {
    near_.clear();
    for (std::size_t i = 0; i < n.size(); ++i) {
        const SurfaceBrief brief = surface_.brief[n.point[i]];
        if ((n.point[i] == seed || !brief.outlier()) && brief.kind() == surface_.brief[seed].kind())
            near_.push_back({n.distance2[i], cloud_.rank[n.point[i]], i});
    }
    most = std::min(most, near_.size());
    std::partial_sort(near_.begin(), near_.begin() + static_cast<std::ptrdiff_t>(most), near_.end());
    near_.resize(most);
}

/// A ball around a crease holds two surfaces, and its plane is neither. The nearest points say which one the
/// seed is on, roughly: a small disc with the normal that predicts their ranges. Appends its members.
Growth::Fate Grower::grow_at_crease(std::uint32_t seed, const Neighbours& n, PointList& members,
                                    Vec3d& normal, Disc& disc) {
    const auto most = static_cast<std::size_t>(settings_.params.crease_points);
    const std::int32_t least = settings_.params.least_points[group_of(seed)];
    const PointAttributes& a = cloud_.attributes[seed];
    const bool facing = a.has_sensor() && dot(a.to_sensor(), a.to_sensor()) > 0;
    if (most == 0 || !discs_.empty() || !facing) return Growth::Fate::none;
    find_nearest(seed, n, most);
    const std::uint32_t reach2 = near_.size() < most ? n.reach2 : near_.back().distance2;
    if (!is_known(seed, n, reach2)) return Growth::Fate::unknown;
    Moments all{};
    for (const Near& p : near_) all.add(n.offset(p.place));
    normal = facing_normal(all, a.to_sensor(), settings_.crease_noise_steps);
    const double bound = settings_.error_steps[surface_.reach_class[seed]];
    MemberSums sums{};
    for (const Near& p : near_) {
        const Vec3d d = n.offset(p.place);
        if (std::fabs(dot(normal, d)) > bound) continue;
        members.push_back(n.point[p.place]);
        sums.moments.add(d);
        sums.last = d;
    }
    if (sums.moments.count < least) return Growth::Fate::none;
    disc = fit_disc(seed, normal, sums);
    const double largest = settings_.params.crease_radius_m * static_cast<double>(kLatticePerMetre);
    if (disc.radius > largest) disc = centred_disc(normal, disc.centre, largest, disc.grown);
    return Growth::Fate::splat;
}

/// A small disc in the place of the seed. So few points have no plane: it faces the sensor.
Grower::Disc Grower::sparse_disc(std::uint32_t seed, double grown, Vec3d& normal) const {
    const PointAttributes& a = cloud_.attributes[seed];
    const Vec3d s = a.to_sensor();
    if (a.has_sensor() && dot(s, s) > 0) normal = normalized(s);
    const double metre = static_cast<double>(kLatticePerMetre);
    const double radius = std::clamp(0.5 * grown, settings_.params.least_radius_m * metre,
                                     settings_.params.sparse_radius_m * metre);
    return {{0, 0, 0}, radius, radius};
}

/// Whether the sensor that saw the seed is behind the disc: the centre is not where the seed was.
bool Grower::is_behind(std::uint32_t seed, Vec3d centre, Vec3d normal) const {
    constexpr double kStep = static_cast<double>(kLatticePerMetre) / TilePoint::kSensorStepsPerMetre;
    const PointAttributes& a = cloud_.attributes[seed];
    return a.has_sensor() && dot(normal, a.to_sensor() * kStep - centre) < 0;
}

Growth Grower::grow(std::uint32_t seed, const Neighbours& n, PointList& suppressed, PointList& members) {
    const std::size_t begin = members.size();
    const Growth growth = grow_members(seed, n, suppressed, members);
    if (growth.fate != Growth::Fate::splat || !observes(growth.splat.splat.group)) members.resize(begin);
    return growth;
}

Growth Grower::grow_members(std::uint32_t seed, const Neighbours& n, PointList& suppressed,
                            PointList& members) {
    const Stop stop = lanes_.find_stop(site_, surface_.brief[seed], n, rule_of(seed), columns_);
    // What lies behind the stop does not matter; what might lie before it does.
    const auto unknown = [&]() -> Growth {
        suppress_all(seed, n, suppressed);
        return {Growth::Fate::unknown, {}};
    };
    if (!is_known(seed, n, stop.exists() ? static_cast<std::uint32_t>(stop.distance2) : n.reach2))
        return unknown();
    const std::size_t begin = members.size();
    const MemberSums sums = lanes_.find_members(site_, n, stop, columns_, members);
    members_ = members.points().subspan(begin);
    // A centre of the first generation stands for a splat, however few others are near it.
    const std::int32_t least = discs_.empty() ? settings_.params.least_points[group_of(seed)] : 1;
    Vec3d normal = vec_cast<double>(surface_.normal[seed]);
    Disc disc = fit_disc(seed, normal, sums);
    const bool few = sums.moments.count < least;
    if (few) {
        Growth::Fate fate = fate_of_few(seed, n);
        if (fate == Growth::Fate::splat) {
            disc = sparse_disc(seed, disc.grown, normal);
        } else if (fate == Growth::Fate::none) {
            members.resize(begin);
            fate = grow_at_crease(seed, n, members, normal, disc);
        }
        if (fate == Growth::Fate::unknown) return unknown();
        if (fate != Growth::Fate::splat) return {fate, {}};
    }
    if (is_behind(seed, disc.centre, normal)) normal = -normal;
    SeededSplat s{};
    s.seed = seed;
    s.normal = vec_cast<float>(normal);
    s.oriented = surface_.brief[seed].oriented();
    s.fitted_radius = static_cast<std::uint16_t>(std::min(disc.radius + 0.5, 65535.0));
    s.least_radius = few ? 0 : surface_.least_radius[seed];
    s.splat.radius = std::max(s.fitted_radius, s.least_radius);
    if (s.fitted_radius == 0) return {Growth::Fate::none, {}};
    s.splat.x = cloud_.x[seed] + nearest(disc.centre.x);
    s.splat.y = cloud_.y[seed] + nearest(disc.centre.y);
    s.splat.z = cloud_.z[seed] + nearest(disc.centre.z);
    s.splat.normal = pack_normal(normal);
    s.splat.label = cloud_.attributes[seed].label;
    s.splat.group = cloud_.group[seed];
    lanes_.suppress(n, stop, suppressed_part(seed, normal, disc), suppressed);
    return {Growth::Fate::splat, s};
}

void Grower::add_observations(std::span<const std::uint32_t> members, Splat& splat, Vec3f normal) {
    const Observations o = lanes_.observe(cloud_.attributes, members, normal, columns_);
    splat.intensity = o.intensity;
    splat.point_count = static_cast<std::uint8_t>(std::min<std::size_t>(members.size(), 255));
    splat.range = splat.incidence = kUnknownByte;
    if (o.seen == 0) return;
    const auto count = static_cast<double>(o.seen);
    splat.range = range_byte(o.range / count / TilePoint::kSensorStepsPerMetre);
    splat.incidence = incidence_byte(o.cosine / count / 65536.0);
}

}  // namespace citysplat::splat
