#include "datasets/synth/primitives.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace citysplat::synth {

namespace {

/// Borders are closed and a hair wider, so that no ray slips between two surfaces that share an edge.
constexpr double kHair = 1e-9;

double clamp01(double v) { return std::clamp(v, 0.0, 1.0); }

double distance_to_segment(Vec3d p, Vec3d a, Vec3d edge) {
    const double s = clamp01(dot(p - a, edge) / dot(edge, edge));
    return length(p - (a + s * edge));
}

/// Real roots of a·t² + 2·b·t + c = 0 in ascending order, without cancellation.
struct Roots {
    int count = 0;
    double t[2] = {0, 0};
};
Roots solve_quadratic(double a, double b, double c) {
    Roots roots;
    if (std::fabs(a) < 1e-14) {
        if (b != 0) roots.t[roots.count++] = -c / (2 * b);
        return roots;
    }
    const double discriminant = b * b - a * c;
    if (discriminant < 0) return roots;
    const double q = -(b + (b < 0 ? -1.0 : 1.0) * std::sqrt(discriminant));
    roots.t[roots.count++] = q / a;
    if (q != 0) roots.t[roots.count++] = c / q;
    if (roots.count == 2 && roots.t[0] > roots.t[1]) std::swap(roots.t[0], roots.t[1]);
    return roots;
}

bool in_reach(double t, double t_max) { return t > kNearest_m && t <= t_max; }

struct Point2 {
    double x, y;
};

/// Distance from p to the segment a–b.
double distance_2d(Point2 p, Point2 a, Point2 b) {
    const double ex = b.x - a.x, ey = b.y - a.y, square = ex * ex + ey * ey;
    const double s = square > 0 ? clamp01(((p.x - a.x) * ex + (p.y - a.y) * ey) / square) : 0;
    const double dx = p.x - (a.x + s * ex), dy = p.y - (a.y + s * ey);
    return std::sqrt(dx * dx + dy * dy);
}

}  // namespace

// ---- Patch

std::optional<Encounter> Patch::intersect(const Ray& ray, double t_max) const {
    const Vec3d o = ray.origin, d = ray.direction;
    const double a = -(c[3] * d.x * d.y + c[4] * d.x * d.x + c[5] * d.y * d.y);
    const double b = d.z - (c[1] * d.x + c[2] * d.y + c[3] * (o.x * d.y + o.y * d.x) + 2 * c[4] * o.x * d.x +
                            2 * c[5] * o.y * d.y);
    const Roots roots = solve_quadratic(a, b / 2, o.z - height(o.x, o.y));
    for (int i = 0; i < roots.count; ++i) {
        const double t = roots.t[i];
        if (!in_reach(t, t_max)) continue;
        const double x = o.x + t * d.x, y = o.y + t * d.y;
        if (x < x0 - kHair || x > x1 + kHair || y < y0 - kHair || y > y1 + kHair) continue;
        const Vec3d up =
            normalized(Vec3d{-(c[1] + c[3] * y + 2 * c[4] * x), -(c[2] + c[3] * x + 2 * c[5] * y), 1.0});
        return Encounter{t, dot(up, d) < 0 ? up : -up};
    }
    return std::nullopt;
}

double Patch::distance(Vec3d p) const {
    // Projected gradient with unit step; slopes of a few percent make it contract by orders of magnitude.
    double x = std::clamp(p.x, x0, x1), y = std::clamp(p.y, y0, y1);
    for (int i = 0; i < 12; ++i) {
        const double above = height(x, y) - p.z;
        const double nx = std::clamp(p.x - above * (c[1] + c[3] * y + 2 * c[4] * x), x0, x1);
        const double ny = std::clamp(p.y - above * (c[2] + c[3] * x + 2 * c[5] * y), y0, y1);
        const bool settled = std::fabs(nx - x) + std::fabs(ny - y) < 1e-12;
        x = nx;
        y = ny;
        if (settled) break;
    }
    return length(p - Vec3d{x, y, height(x, y)});
}

Box3d Patch::bounds() const {
    Box3d box = kEmptyBox;
    const std::array xs{x0, x1}, ys{y0, y1};
    for (const double x : xs)
        for (const double y : ys) box.grow(Vec3d{x, y, height(x, y)});
    // Along each axis the height is a parabola: its vertex, at the other coordinate's ends, and the summit.
    const auto vertex = [&](double linear, double square, double low, double high, auto&& point) {
        if (square == 0) return;
        const double at = -linear / (2 * square);
        if (at > low && at < high) box.grow(point(at));
    };
    for (const double y : ys)
        vertex(c[1] + c[3] * y, c[4], x0, x1, [&](double x) { return Vec3d{x, y, height(x, y)}; });
    for (const double x : xs)
        vertex(c[2] + c[3] * x, c[5], y0, y1, [&](double y) { return Vec3d{x, y, height(x, y)}; });
    const double det = 4 * c[4] * c[5] - c[3] * c[3];
    if (det != 0) {
        const double x = (c[3] * c[2] - 2 * c[5] * c[1]) / det, y = (c[3] * c[1] - 2 * c[4] * c[2]) / det;
        if (x > x0 && x < x1 && y > y0 && y < y1) box.grow(Vec3d{x, y, height(x, y)});
    }
    return box;
}

// ---- Flat

Flat Flat::make(Vec3d corner, Vec3d edge_u, Vec3d edge_v, bool triangular, Surface surface) {
    const double uu = dot(edge_u, edge_u), uv = dot(edge_u, edge_v), vv = dot(edge_v, edge_v);
    const double det = uu * vv - uv * uv;
    return {corner,
            edge_u,
            edge_v,
            normalized(cross(edge_u, edge_v)),
            (vv / det) * edge_u - (uv / det) * edge_v,
            (uu / det) * edge_v - (uv / det) * edge_u,
            triangular,
            surface};
}

std::optional<Encounter> Flat::intersect(const Ray& ray, double t_max) const {
    const double facing = dot(normal, ray.direction);
    if (facing == 0) return std::nullopt;
    const double t = dot(normal, corner - ray.origin) / facing;
    if (!in_reach(t, t_max)) return std::nullopt;
    const Vec3d p = ray.origin + t * ray.direction - corner;
    const double u = dot(dual_u, p), v = dot(dual_v, p);
    if (u < -kHair || v < -kHair) return std::nullopt;
    if (triangular ? u + v > 1 + kHair : (u > 1 + kHair || v > 1 + kHair)) return std::nullopt;
    return Encounter{t, facing < 0 ? normal : -normal};
}

double Flat::distance(Vec3d p) const {
    const Vec3d q = p - corner;
    const double u = dot(dual_u, q), v = dot(dual_v, q);
    if (u >= 0 && v >= 0 && (triangular ? u + v <= 1 : (u <= 1 && v <= 1))) return std::fabs(dot(normal, q));
    double best = std::min(distance_to_segment(p, corner, edge_u), distance_to_segment(p, corner, edge_v));
    if (triangular) return std::min(best, distance_to_segment(p, corner + edge_u, edge_v - edge_u));
    best = std::min(best, distance_to_segment(p, corner + edge_u, edge_v));
    return std::min(best, distance_to_segment(p, corner + edge_v, edge_u));
}

Box3d Flat::bounds() const {
    Box3d box = kEmptyBox;
    box.grow(corner);
    box.grow(corner + edge_u);
    box.grow(corner + edge_v);
    if (!triangular) box.grow(corner + edge_u + edge_v);
    return box;
}

// ---- Box

namespace {

Vec3d turn_back(Vec3d v, double cos_yaw, double sin_yaw) {
    return {cos_yaw * v.x + sin_yaw * v.y, cos_yaw * v.y - sin_yaw * v.x, v.z};
}
Vec3d turn(Vec3d v, double cos_yaw, double sin_yaw) {
    return {cos_yaw * v.x - sin_yaw * v.y, cos_yaw * v.y + sin_yaw * v.x, v.z};
}

}  // namespace

std::optional<Encounter> Box::intersect(const Ray& ray, double t_max) const {
    const Vec3d o = turn_back(ray.origin - centre, cos_yaw, sin_yaw);
    const Vec3d d = turn_back(ray.direction, cos_yaw, sin_yaw);
    double enter = -1e300, leave = 1e300;
    Vec3d enter_normal{0, 0, 1}, leave_normal{0, 0, 1};
    const auto slab = [&](double from, double speed, double extent, Vec3d axis) {
        if (speed == 0) return std::fabs(from) <= extent;
        const double sign = speed > 0 ? 1.0 : -1.0;
        const double t0 = (-sign * extent - from) / speed, t1 = (sign * extent - from) / speed;
        if (t0 > enter) enter = t0, enter_normal = -sign * axis;
        if (t1 < leave) leave = t1, leave_normal = -sign * axis;
        return enter <= leave;
    };
    if (!slab(o.x, d.x, half.x, {1, 0, 0}) || !slab(o.y, d.y, half.y, {0, 1, 0}) ||
        !slab(o.z, d.z, half.z, {0, 0, 1}))
        return std::nullopt;
    if (in_reach(enter, t_max)) return Encounter{enter, turn(enter_normal, cos_yaw, sin_yaw)};
    if (enter <= kNearest_m && in_reach(leave, t_max))
        return Encounter{leave, turn(leave_normal, cos_yaw, sin_yaw)};
    return std::nullopt;
}

double Box::distance(Vec3d p) const {
    const Vec3d q = turn_back(p - centre, cos_yaw, sin_yaw);
    const Vec3d out{std::fabs(q.x) - half.x, std::fabs(q.y) - half.y, std::fabs(q.z) - half.z};
    if (out.x <= 0 && out.y <= 0 && out.z <= 0) return -std::max({out.x, out.y, out.z});
    return length(Vec3d{std::max(out.x, 0.0), std::max(out.y, 0.0), std::max(out.z, 0.0)});
}

Box3d Box::bounds() const {
    const double ex = std::fabs(cos_yaw) * half.x + std::fabs(sin_yaw) * half.y;
    const double ey = std::fabs(sin_yaw) * half.x + std::fabs(cos_yaw) * half.y;
    const Vec3d e{ex, ey, half.z};
    return {centre - e, centre + e};
}

// ---- Frustum

Frustum Frustum::between(Vec3d base, Vec3d top, double base_radius, double top_radius, Surface surface) {
    const double h = length(top - base);
    return {base, (top - base) * (1.0 / h), h, base_radius, top_radius, surface};
}

std::optional<Encounter> Frustum::intersect(const Ray& ray, double t_max) const {
    // From the point of the ray nearest to the base, so that thin bars far away keep all their digits.
    const double t_shift = dot(base - ray.origin, ray.direction);
    const Vec3d o = ray.origin + t_shift * ray.direction - base, d = ray.direction;
    const double oz = dot(o, axis), dz = dot(d, axis);
    const double taper = (top_radius - base_radius) / height, r = base_radius + taper * oz;
    const Vec3d o_side = o - oz * axis, d_side = d - dz * axis;
    const Roots roots = solve_quadratic(dot(d_side, d_side) - taper * taper * dz * dz,
                                        dot(o_side, d_side) - taper * dz * r, dot(o_side, o_side) - r * r);
    double best = t_max - t_shift;
    std::optional<Encounter> found;
    const auto offer = [&](double t, Vec3d normal) {
        if (t + t_shift > kNearest_m && t <= best) best = t, found = Encounter{t + t_shift, normal};
    };
    for (int i = 0; i < roots.count; ++i) {
        const double z = oz + roots.t[i] * dz;
        if (z < 0 || z > height) continue;
        const Vec3d side = o_side + roots.t[i] * d_side;
        const double reach = length(side);
        if (reach > 0) offer(roots.t[i], normalized(side * (1 / reach) - taper * axis));
    }
    if (dz != 0) {
        const auto cap = [&](double z, double radius, Vec3d normal) {
            const double t = (z - oz) / dz;
            const Vec3d side = o_side + t * d_side;
            if (dot(side, side) <= radius * radius) offer(t, normal);
        };
        cap(0, base_radius, -axis);
        cap(height, top_radius, axis);
    }
    if (found && dot(found->normal, d) > 0) found->normal = -found->normal;
    return found;
}

double Frustum::distance(Vec3d p) const {
    const Vec3d q = p - base;
    const double z = dot(q, axis), r = length(q - z * axis);
    return std::min({distance_2d({r, z}, {base_radius, 0}, {top_radius, height}),
                     distance_2d({r, z}, {0, 0}, {base_radius, 0}),
                     distance_2d({r, z}, {0, height}, {top_radius, height})});
}

Box3d Frustum::bounds() const {
    const auto half = [](double a) { return std::sqrt(std::max(0.0, 1 - a * a)); };
    const Vec3d e{half(axis.x), half(axis.y), half(axis.z)};
    const Vec3d top = base + height * axis;
    Box3d box = kEmptyBox;
    box.grow(Box3d{base - base_radius * e, base + base_radius * e});
    box.grow(Box3d{top - top_radius * e, top + top_radius * e});
    return box;
}

// ---- Disc

std::optional<Encounter> Disc::intersect(const Ray& ray, double t_max) const {
    const Vec3d n = vec_cast<double>(normal), c = vec_cast<double>(centre);
    const double facing = dot(n, ray.direction);
    if (facing == 0) return std::nullopt;
    const double t = dot(n, c - ray.origin) / facing;
    if (!in_reach(t, t_max)) return std::nullopt;
    const Vec3d q = ray.origin + t * ray.direction - c;
    if (dot(q, q) > static_cast<double>(radius) * static_cast<double>(radius)) return std::nullopt;
    return Encounter{t, normalized(facing < 0 ? n : -n)};
}

double Disc::distance(Vec3d p) const {
    const Vec3d n = normalized(vec_cast<double>(normal)), q = p - vec_cast<double>(centre);
    const double z = dot(q, n), r = length(q - z * n);
    const double outside = std::max(r - static_cast<double>(radius), 0.0);
    return std::sqrt(z * z + outside * outside);
}

Box3d Disc::bounds() const {
    const Vec3d n = normalized(vec_cast<double>(normal)), c = vec_cast<double>(centre);
    const auto half = [&](double a) {
        return static_cast<double>(radius) * std::sqrt(std::max(0.0, 1 - a * a));
    };
    const Vec3d e{half(n.x), half(n.y), half(n.z)};
    return {c - e, c + e};
}

// ---- Sphere

std::optional<Encounter> Sphere::intersect(const Ray& ray, double t_max) const {
    const double nearest_t = dot(centre - ray.origin, ray.direction);
    const Vec3d miss = ray.origin + nearest_t * ray.direction - centre;
    const double square = radius * radius - dot(miss, miss);
    if (square < 0) return std::nullopt;
    const double half_chord = std::sqrt(square);
    for (const double t : {nearest_t - half_chord, nearest_t + half_chord})
        if (in_reach(t, t_max)) {
            const Vec3d out = normalized(ray.origin + t * ray.direction - centre);
            return Encounter{t, dot(out, ray.direction) < 0 ? out : -out};
        }
    return std::nullopt;
}

double Sphere::distance(Vec3d p) const { return std::fabs(length(p - centre) - radius); }

Box3d Sphere::bounds() const {
    const Vec3d e{radius, radius, radius};
    return {centre - e, centre + e};
}

// ---- Geometry

std::size_t Geometry::size() const {
    std::size_t n = 0;
    for_each_kind([&](unsigned, const auto& v) { n += v.size(); });
    return n;
}

Box3d Geometry::bounds() const {
    Box3d box = kEmptyBox;
    for_each_kind([&](unsigned, const auto& v) {
        for (const auto& primitive : v) box.grow(primitive.bounds());
    });
    return box;
}

std::optional<GeometryHit> intersect_all(const Geometry& geometry, const Ray& ray, double t_max) {
    std::optional<GeometryHit> best;
    geometry.for_each_kind([&](unsigned, const auto& v) {
        for (const auto& primitive : v) {
            const auto hit = primitive.intersect(ray, t_max);
            if (!hit || (best && hit->t >= best->encounter.t)) continue;
            t_max = hit->t;
            best = GeometryHit{*hit, look_at(primitive, ray.origin + hit->t * ray.direction)};
        }
    });
    return best;
}

std::optional<GeometryNearest> nearest_of_all(const Geometry& geometry, Vec3d p) {
    std::optional<GeometryNearest> best;
    geometry.for_each_kind([&](unsigned, const auto& v) {
        for (const auto& primitive : v) {
            const double d = primitive.distance(p);
            if (!best || d < best->distance_m) best = GeometryNearest{d, look_at(primitive, p)};
        }
    });
    return best;
}

}  // namespace citysplat::synth
