#pragma once

#include "core/math/vec_hd.hpp"

namespace citysplat::adjust {

/// A symmetric 3 × 3 matrix.
struct Symmetric3 {
    double xx = 0, xy = 0, xz = 0, yy = 0, yz = 0, zz = 0;

    Symmetric3& operator+=(const Symmetric3& o) {
        xx += o.xx, xy += o.xy, xz += o.xz, yy += o.yy, yz += o.yz, zz += o.zz;
        return *this;
    }
    /// Adds weight · v vᵀ.
    void add_outer(double weight, Vec3d v) {
        xx += weight * v.x * v.x, xy += weight * v.x * v.y, xz += weight * v.x * v.z;
        yy += weight * v.y * v.y, yz += weight * v.y * v.z, zz += weight * v.z * v.z;
    }
};

/// Count, mean and scatter (sum of squares about the mean) of a set of points.
struct Moments {
    double points = 0;
    Vec3d mean_m{0, 0, 0};
    Symmetric3 scatter_m2;

    /// Joins another set to this one. Sums are rounded: join in a fixed order.
    Moments& operator+=(const Moments& o) {
        if (o.points == 0) return *this;
        const double all = points + o.points;
        const Vec3d between = o.mean_m - mean_m;
        scatter_m2 += o.scatter_m2;
        scatter_m2.add_outer(points * o.points / all, between);
        mean_m = mean_m + (o.points / all) * between;
        points = all;
        return *this;
    }
};

/// Directions of least, middle and largest spread of a set of points, and the variances along the first two.
struct Spread {
    Vec3d normal;
    double least_m2, middle_m2;
};

/// Spread of `points` points with this scatter. Uses only +, −, ×, ÷ and sqrt: the same bits everywhere.
Spread spread_of(const Symmetric3& scatter_m2, double points);

}  // namespace citysplat::adjust
