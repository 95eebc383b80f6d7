#pragma once

#include "core/math/box.hpp"
#include "core/math/vec_hd.hpp"

#include <algorithm>
#include <cmath>

/// Distances between convex sets. A set knows two things: its nearest point to a place, and how far down it
/// reaches along a direction.
namespace citysplat::sim::convex {

struct Cuboid {
    Box3d box;

    Vec3d nearest(Vec3d p) const {
        return {std::clamp(p.x, box.min.x, box.max.x), std::clamp(p.y, box.min.y, box.max.y),
                std::clamp(p.z, box.min.z, box.max.z)};
    }
    double lowest(Vec3d d) const {
        return d.x * (d.x > 0 ? box.min.x : box.max.x) + d.y * (d.y > 0 ? box.min.y : box.max.y) +
               d.z * (d.z > 0 ? box.min.z : box.max.z);
    }
    Vec3d middle() const { return 0.5 * (box.min + box.max); }
};

struct FlatDisc {
    Vec3d centre, normal;  ///< normal: unit
    double radius;

    Vec3d nearest(Vec3d p) const {
        Vec3d v = p - centre;
        v = v - dot(v, normal) * normal;
        const double l = length(v);
        return centre + (l > radius ? radius / l : 1.0) * v;
    }
    double lowest(Vec3d d) const { return dot(d, centre) - radius * length(d - dot(d, normal) * normal); }
    Vec3d middle() const { return centre; }
};

struct Triangle {
    Vec3d a, b, c;

    Vec3d nearest(Vec3d p) const;
    double lowest(Vec3d d) const { return std::min({dot(d, a), dot(d, b), dot(d, c)}); }
    Vec3d middle() const { return (1.0 / 3) * (a + b + c); }
};

/// How exact a distance is.
inline constexpr double kTolerance_m = 1e-4;

/// Distance of two sets, at most kTolerance_m too large; what is beyond `limit_m` may be told as any number
/// beyond it. Projects onto the one and the other in turn with momentum (Nesterov), until a plane between
/// them proves the rest.
template <class A, class B>
double distance(const A& a, const B& b, double limit_m) {
    Vec3d p = a.nearest(b.middle()), y = p;
    double t = 1, best = 1e300;
    constexpr int kMostSteps = 2000;
    for (int step = 0; step < kMostSteps; ++step) {
        const Vec3d next = a.nearest(b.nearest(y));
        const Vec3d gap = next - b.nearest(next);
        const double upper = length(gap);
        if (upper <= kTolerance_m) return upper;
        const Vec3d d = (1 / upper) * gap;
        const double lower = a.lowest(d) + b.lowest(-d);
        if (lower > limit_m) return lower;
        if (upper - lower <= kTolerance_m) return upper;
        // Momentum that makes it worse is dropped.
        const double t_next = upper > best ? 1 : (1 + std::sqrt(1 + 4 * t * t)) / 2;
        y = upper > best ? next : next + (t - 1) / t_next * (next - p);
        best = std::min(best, upper);
        p = next, t = t_next;
    }
    return best;
}

/// Whether a disc and a box have a point in common: the box cuts a polygon out of the disc's plane, which the
/// disc reaches or does not.
bool meets(const FlatDisc& disc, const Box3d& box);

}  // namespace citysplat::sim::convex
