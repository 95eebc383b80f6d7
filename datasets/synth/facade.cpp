#include "datasets/synth/primitives.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::synth {

namespace {

/// A point in the frame of the wall: along it, up, and out of it towards the street.
struct WallPoint {
    double u, v, w;
};

WallPoint to_wall(const Facade& f, Vec3d p) {
    const Vec3d q = p - f.corner;
    return {dot(q, f.along), q.z, dot(q, f.normal)};
}

/// The grid cell of a coordinate, clamped to the windows there are.
int cell_of(double coordinate, double first, double pitch, int count) {
    return static_cast<int>(std::clamp(std::floor((coordinate - first) / pitch), 0.0, count - 1.0));
}

struct Hole {
    double u0, u1, v0, v1;
    bool contains(double u, double v) const { return u > u0 && u < u1 && v > v0 && v < v1; }
};
Hole hole_of(const Facade& f, int i, int j) {
    const double u = f.first_u + i * f.pitch_u, v = f.first_v + j * f.pitch_v;
    return {u + f.low_u, u + f.high_u, v + f.low_v, v + f.high_v};
}

double beyond(double value, double low, double high) { return std::max({low - value, value - high, 0.0}); }
double norm(double a, double b, double c) { return std::sqrt(a * a + b * b + c * c); }

/// Distance to pane and reveals of one window.
double distance_to_recess(const Hole& h, double depth, WallPoint p) {
    const double du = beyond(p.u, h.u0, h.u1), dv = beyond(p.v, h.v0, h.v1), dw = beyond(p.w, -depth, 0);
    return std::min({norm(du, dv, p.w + depth), norm(p.u - h.u0, dv, dw), norm(p.u - h.u1, dv, dw),
                     norm(du, p.v - h.v0, dw), norm(du, p.v - h.v1, dw)});
}

}  // namespace

std::optional<Encounter> Facade::intersect(const Ray& ray, double t_max) const {
    constexpr double kHair = 1e-9;
    const double speed = dot(ray.direction, normal);
    if (speed >= 0) return std::nullopt;
    const WallPoint o = to_wall(*this, ray.origin);
    const double t_wall = -o.w / speed;
    if (!(t_wall > kNearest_m) || t_wall > t_max) return std::nullopt;
    const double du = dot(ray.direction, along), dv = ray.direction.z;
    const double u = o.u + t_wall * du, v = o.v + t_wall * dv;
    if (u < -kHair || u > width + kHair || v < -kHair || v > height + kHair) return std::nullopt;
    if (count_u == 0 || count_v == 0) return Encounter{t_wall, normal};
    const Hole hole =
        hole_of(*this, cell_of(u, first_u, pitch_u, count_u), cell_of(v, first_v, pitch_v, count_v));
    if (!hole.contains(u, v)) return Encounter{t_wall, normal};

    // Through the hole: whichever of the pane and the reveals comes first.
    double t = (-depth - o.w) / speed;
    Vec3d facing = normal;
    if (du != 0) {
        const double t_side = ((du > 0 ? hole.u1 : hole.u0) - o.u) / du;
        if (t_side < t) t = t_side, facing = (du > 0 ? -1.0 : 1.0) * along;
    }
    if (dv != 0) {
        const double t_sill = ((dv > 0 ? hole.v1 : hole.v0) - o.v) / dv;
        if (t_sill < t) t = t_sill, facing = {0, 0, dv > 0 ? -1.0 : 1.0};
    }
    if (t > t_max) return std::nullopt;
    return Encounter{t, facing};
}

double Facade::distance(Vec3d p) const {
    const WallPoint q = to_wall(*this, p);
    const double u = std::clamp(q.u, 0.0, width), v = std::clamp(q.v, 0.0, height);
    double best = norm(q.u - u, q.v - v, q.w);
    if (count_u == 0 || count_v == 0) return best;
    const int ci = cell_of(u, first_u, pitch_u, count_u), cj = cell_of(v, first_v, pitch_v, count_v);
    const Hole hole = hole_of(*this, ci, cj);
    if (hole.contains(u, v))
        best = norm(0, std::min({u - hole.u0, hole.u1 - u, v - hole.v0, hole.v1 - v}), q.w);
    else if (q.w >= 0)
        return best;  // in front of the wall the wall is nearest
    for (int j = std::max(cj - 1, 0); j <= std::min(cj + 1, count_v - 1); ++j)
        for (int i = std::max(ci - 1, 0); i <= std::min(ci + 1, count_u - 1); ++i)
            best = std::min(best, distance_to_recess(hole_of(*this, i, j), depth, q));
    return best;
}

Box3d Facade::bounds() const {
    Box3d box = kEmptyBox;
    for (const double u : {0.0, width})
        for (const double v : {0.0, height})
            for (const double w : {0.0, -depth}) box.grow(corner + u * along + Vec3d{0, 0, v} + w * normal);
    return box;
}

Surface Facade::surface_at(Vec3d p) const {
    const WallPoint q = to_wall(*this, p);
    return q.w < -0.75 * depth ? pane : surface;
}

}  // namespace citysplat::synth
