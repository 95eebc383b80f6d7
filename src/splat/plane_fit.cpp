#include "splat/plane_fit.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::splat {
namespace {

/// Covariance divided by its trace; symmetric.
struct Covariance {
    double xx, yy, zz, xy, xz, yz;
};

/// Smallest root of λ³ − λ² + c1·λ − c0, all of whose roots are real and not negative. Laguerre's method
/// climbs to it from 0 without passing it and triples the digits each step.
double smallest_root(double c1, double c0) {
    double root = 0;
    for (int step = 0; step < 7; ++step) {
        const double p = ((root - 1.0) * root + c1) * root - c0;
        const double dp = (3.0 * root - 2.0) * root + c1;
        const double ddp = 6.0 * root - 2.0;
        const double spread = std::sqrt(std::max(0.0, 4.0 * dp * dp - 6.0 * p * ddp));
        const double slope = std::max(dp + spread, 1e-150);
        const double next = std::clamp(root - 3.0 * p / slope, 0.0, 1.0 / 3.0);
        if (next - root <= 1e-15) return next;
        root = next;
    }
    return root;
}

double square(Vec3d v) { return dot(v, v); }

/// The axis that is farthest from u, made perpendicular to u.
Vec3d any_perpendicular(Vec3d u) {
    const Vec3d axis = std::fabs(u.z) < 0.9 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
    return normalized(axis - u * dot(axis, u));
}

PlaneFit fit_plane(const Moments& m) {
    PlaneFit fit{{0, 0, 1}, {0, 0, 0}, 0, 0, 0, 0, 0, PlaneFit::Shape::point};
    const auto n = static_cast<double>(m.count);
    // n²·covariance: whole numbers, exact.
    Covariance c{n * m.sum_xx - m.sum_x * m.sum_x, n * m.sum_yy - m.sum_y * m.sum_y,
                 n * m.sum_zz - m.sum_z * m.sum_z, n * m.sum_xy - m.sum_x * m.sum_y,
                 n * m.sum_xz - m.sum_x * m.sum_z, n * m.sum_yz - m.sum_y * m.sum_z};
    const double trace = c.xx + c.yy + c.zz;
    if (!(trace > 0)) return fit;
    fit.variance = trace / (n * n);
    const double scale = 1.0 / trace;
    c = {c.xx * scale, c.yy * scale, c.zz * scale, c.xy * scale, c.xz * scale, c.yz * scale};

    const double minor_x = c.yy * c.zz - c.yz * c.yz, minor_y = c.xx * c.zz - c.xz * c.xz,
                 minor_z = c.xx * c.yy - c.xy * c.xy;
    const double c1 = minor_x + minor_y + minor_z;
    const double c0 =
        c.xx * minor_x - c.xy * (c.xy * c.zz - c.yz * c.xz) + c.xz * (c.xy * c.yz - c.yy * c.xz);
    fit.share3 = smallest_root(c1, std::max(0.0, c0));
    const double rest = 1.0 - fit.share3;
    const double gap = std::sqrt(std::max(0.0, 0.25 * rest * rest - (c1 - fit.share3 * rest)));
    fit.share1 = 0.5 * rest + gap;
    fit.share2 = std::max(fit.share3, rest - fit.share1);

    // The normal is perpendicular to every row of (covariance − λ3): the largest cross product of two rows.
    const Vec3d row_x{c.xx - fit.share3, c.xy, c.xz}, row_y{c.xy, c.yy - fit.share3, c.yz},
        row_z{c.xz, c.yz, c.zz - fit.share3};
    const Vec3d xy = cross(row_x, row_y), xz = cross(row_x, row_z), yz = cross(row_y, row_z);
    Vec3d best = xy;
    if (square(xz) > square(best)) best = xz;
    if (square(yz) > square(best)) best = yz;
    constexpr double kLine = 1e-7;
    if (square(best) >= kLine * kLine) {
        fit.normal = normalized(best);
        fit.shape = PlaneFit::Shape::plane;
    } else {
        Vec3d axis = row_x;
        if (square(row_y) > square(axis)) axis = row_y;
        if (square(row_z) > square(axis)) axis = row_z;
        if (!(square(axis) > 0)) return fit;  // a perfect ball: no direction stands out
        fit.axis = normalized(axis);
        fit.normal = any_perpendicular(fit.axis);
        fit.shape = PlaneFit::Shape::line;
    }
    fit.offset = std::fabs(fit.normal.x * m.sum_x + fit.normal.y * m.sum_y + fit.normal.z * m.sum_z) / n;
    return fit;
}

}  // namespace

void fit_planes(std::span<const Moments> moments, std::span<PlaneFit> out) {
    for (std::size_t i = 0; i < moments.size(); ++i) out[i] = fit_plane(moments[i]);
}

}  // namespace citysplat::splat
