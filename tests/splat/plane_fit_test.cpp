#include "splat/search/plane_fit.hpp"

#include "core/math/rng_hd.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

using namespace citysplat;
using namespace citysplat::splat;

namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

/// Eigenvector of the smallest eigenvalue by cyclic Jacobi rotations: slow and sure.
Vec3d jacobi_normal(Matrix a, std::array<double, 3>& values) {
    Matrix v{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    for (int sweep = 0; sweep < 60; ++sweep)
        for (std::size_t p = 0; p < 2; ++p)
            for (std::size_t q = p + 1; q < 3; ++q) {
                if (a[p][q] == 0) continue;
                const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
                const double c = 1 / std::sqrt(t * t + 1), s = t * c;
                for (std::size_t k = 0; k < 3; ++k) {
                    const double kp = a[k][p], kq = a[k][q];
                    a[k][p] = c * kp - s * kq, a[k][q] = s * kp + c * kq;
                }
                for (std::size_t k = 0; k < 3; ++k) {
                    const double pk = a[p][k], qk = a[q][k];
                    a[p][k] = c * pk - s * qk, a[q][k] = s * pk + c * qk;
                }
                for (std::size_t k = 0; k < 3; ++k) {
                    const double kp = v[k][p], kq = v[k][q];
                    v[k][p] = c * kp - s * kq, v[k][q] = s * kp + c * kq;
                }
            }
    std::size_t least = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        values[i] = a[i][i];
        if (a[i][i] < a[least][least]) least = i;
    }
    return {v[0][least], v[1][least], v[2][least]};
}

struct Sample {
    Moments moments{};
    Matrix covariance{};
};

/// Points in an ellipsoid with the given half axes (steps), turned at random.
Sample sample(std::uint64_t seed, int count, Vec3d half_axes) {
    const auto u = [&](std::uint64_t i) { return rng::uniform(seed, i, -1, 1); };
    const Vec3d x = normalized(Vec3d{u(0), u(1), u(2)});
    const Vec3d y = normalized(cross(x, Vec3d{u(3), u(4), u(5)})), z = cross(x, y);
    Sample s;
    std::array<double, 3> mean{};
    std::vector<std::array<double, 3>> points;
    for (int i = 0; i < count; ++i) {
        const auto k = static_cast<std::uint64_t>(10 + 3 * i);
        const Vec3d p =
            x * (half_axes.x * u(k)) + y * (half_axes.y * u(k + 1)) + z * (half_axes.z * u(k + 2));
        points.push_back({std::round(p.x), std::round(p.y), std::round(p.z)});
        Moments& m = s.moments;
        const auto& [a, b, c] = points.back();
        m.sum_x += a, m.sum_y += b, m.sum_z += c, m.sum_xx += a * a, m.sum_yy += b * b, m.sum_zz += c * c;
        m.sum_xy += a * b, m.sum_xz += a * c, m.sum_yz += b * c, ++m.count;
        for (std::size_t d = 0; d < 3; ++d) mean[d] += points.back()[d] / count;
    }
    for (const auto& p : points)
        for (std::size_t a = 0; a < 3; ++a)
            for (std::size_t b = 0; b < 3; ++b)
                s.covariance[a][b] += (p[a] - mean[a]) * (p[b] - mean[b]) / count;
    return s;
}

}  // namespace

TEST_CASE("normals and eigenvalues agree with Jacobi's method to a hundredth of a degree") {
    for (const Vec3d axes : {Vec3d{1000, 900, 100}, Vec3d{3000, 200, 30}, Vec3d{500, 500, 5},
                             Vec3d{40000, 30000, 40}, Vec3d{100, 80, 60}, Vec3d{2000, 90, 70}})
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            const Sample s = sample(seed, 40, axes);
            PlaneFit fit;
            fit_planes({&s.moments, 1}, {&fit, 1});
            std::array<double, 3> values{};
            const Vec3d normal = jacobi_normal(s.covariance, values);
            std::sort(values.begin(), values.end());
            REQUIRE(fit.shape == PlaneFit::Shape::plane);
            const double sine = length(cross(fit.normal, normal));
            REQUIRE(sine < 0.01 / 57.3);
            REQUIRE(fit.share3 * fit.variance == Approx(values[0]).epsilon(1e-6));
            REQUIRE(fit.share2 * fit.variance == Approx(values[1]).epsilon(1e-6));
            REQUIRE(fit.share1 * fit.variance == Approx(values[2]).epsilon(1e-6));
        }
}

TEST_CASE("a line has a normal across it, and a point has one at all") {
    PlaneFit fit;
    Moments exact{};
    for (int i = 0; i < 30; ++i) {
        const double d = i * 10;
        exact.sum_x += d, exact.sum_y += 2 * d, exact.sum_z += 3 * d, ++exact.count;
        exact.sum_xx += d * d, exact.sum_yy += 4 * d * d, exact.sum_zz += 9 * d * d;
        exact.sum_xy += 2 * d * d, exact.sum_xz += 3 * d * d, exact.sum_yz += 6 * d * d;
    }
    fit_planes({&exact, 1}, {&fit, 1});
    CHECK(fit.shape == PlaneFit::Shape::line);
    CHECK(std::abs(dot(fit.normal, normalized(Vec3d{1, 2, 3}))) < 1e-6);
    CHECK(length(fit.normal) == Approx(1));
    const Moments single{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
    fit_planes({&single, 1}, {&fit, 1});
    CHECK(fit.shape == PlaneFit::Shape::point);
    CHECK(length(fit.normal) == Approx(1));
}
