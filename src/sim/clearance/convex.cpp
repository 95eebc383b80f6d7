#include "sim/clearance/convex.hpp"

#include <array>

namespace citysplat::sim::convex {

namespace {

/// A convex polygon in the plane of a disc; the box cuts at most six corners off a square.
struct Polygon {
    std::array<Vec3d, 16> corners;
    std::size_t count = 0;
};

/// The part with sign · (v.axis − wall) <= 0.
Polygon cut(const Polygon& in, double Vec3d::*axis, double wall, double sign) {
    Polygon out;
    for (std::size_t i = 0; i < in.count; ++i) {
        const Vec3d a = in.corners[i], b = in.corners[(i + 1) % in.count];
        const double da = sign * (a.*axis - wall), db = sign * (b.*axis - wall);
        if (da <= 0) out.corners[out.count++] = a;
        if ((da < 0 && db > 0) || (da > 0 && db < 0)) out.corners[out.count++] = a + da / (da - db) * (b - a);
    }
    return out;
}

double distance_to_segment(Vec3d p, Vec3d a, Vec3d b) {
    const Vec3d ab = b - a;
    const double l = dot(ab, ab);
    const double s = l > 0 ? std::clamp(dot(p - a, ab) / l, 0.0, 1.0) : 0;
    return length(p - (a + s * ab));
}

}  // namespace

Vec3d Triangle::nearest(Vec3d p) const {
    // Region by region (Ericson, Real-Time Collision Detection, 5.1.5).
    const Vec3d ab = b - a, ac = c - a, ap = p - a;
    const double d1 = dot(ab, ap), d2 = dot(ac, ap);
    if (d1 <= 0 && d2 <= 0) return a;
    const Vec3d bp = p - b;
    const double d3 = dot(ab, bp), d4 = dot(ac, bp);
    if (d3 >= 0 && d4 <= d3) return b;
    const double vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0) return a + d1 / (d1 - d3) * ab;
    const Vec3d cp = p - c;
    const double d5 = dot(ab, cp), d6 = dot(ac, cp);
    if (d6 >= 0 && d5 <= d6) return c;
    const double vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0) return a + d2 / (d2 - d6) * ac;
    const double va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) return b + (d4 - d3) / ((d4 - d3) + (d5 - d6)) * (c - b);
    const double sum = va + vb + vc;
    return a + vb / sum * ab + vc / sum * ac;
}

bool meets(const FlatDisc& disc, const Box3d& box) {
    const Vec3d n = disc.normal;
    // Two axes of the plane; the first along the smallest part of the normal.
    const double x = std::fabs(n.x), y = std::fabs(n.y), z = std::fabs(n.z);
    const Vec3d other = x <= y && x <= z ? Vec3d{1, 0, 0} : y <= z ? Vec3d{0, 1, 0} : Vec3d{0, 0, 1};
    Vec3d u = cross(n, other);
    u = (1 / length(u)) * u;
    const Vec3d v = cross(n, u);
    Polygon polygon;
    for (const auto& [su, sv] : {std::pair{1.0, 1.0}, {-1.0, 1.0}, {-1.0, -1.0}, {1.0, -1.0}})
        polygon.corners[polygon.count++] = disc.centre + disc.radius * (su * u + sv * v);
    for (const auto axis : {&Vec3d::x, &Vec3d::y, &Vec3d::z}) {
        polygon = cut(polygon, axis, box.max.*axis, 1);
        polygon = cut(polygon, axis, box.min.*axis, -1);
        if (polygon.count == 0) return false;
    }
    const Vec3d c = disc.centre;
    const bool inside = c.x >= box.min.x && c.x <= box.max.x && c.y >= box.min.y && c.y <= box.max.y &&
                        c.z >= box.min.z && c.z <= box.max.z;
    if (inside) return true;
    for (std::size_t i = 0; i < polygon.count; ++i)
        if (distance_to_segment(c, polygon.corners[i], polygon.corners[(i + 1) % polygon.count]) <=
            disc.radius)
            return true;
    return false;
}

}  // namespace citysplat::sim::convex
