// Compiled once per instruction set by plane_fit.cpp, hence without include guard.
// The formulas are written once, for numbers T: vectors of doubles, which do nearly all the work, and double
// itself for the few neighbourhoods that are no plane.
#include "splat/search/plane_fit.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DoubleLanes = hn::CappedTag<double, 8>;
using DoubleMask = hn::Mask<DoubleLanes>;

struct Doubles {
    hn::Vec<DoubleLanes> v;

    HWY_INLINE explicit Doubles(hn::Vec<DoubleLanes> vector) : v(vector) {}
    HWY_INLINE Doubles(double d) : v(hn::Set(DoubleLanes(), d)) {}
    friend HWY_INLINE Doubles operator+(Doubles a, Doubles b) { return Doubles(hn::Add(a.v, b.v)); }
    friend HWY_INLINE Doubles operator-(Doubles a, Doubles b) { return Doubles(hn::Sub(a.v, b.v)); }
    friend HWY_INLINE Doubles operator*(Doubles a, Doubles b) { return Doubles(hn::Mul(a.v, b.v)); }
    friend HWY_INLINE Doubles operator/(Doubles a, Doubles b) { return Doubles(hn::Div(a.v, b.v)); }
    friend HWY_INLINE DoubleMask operator<(Doubles a, Doubles b) { return hn::Lt(a.v, b.v); }
};
HWY_INLINE Doubles square_root(Doubles a) { return Doubles(hn::Sqrt(a.v)); }
HWY_INLINE Doubles magnitude(Doubles a) { return Doubles(hn::Abs(a.v)); }
HWY_INLINE Doubles choose(DoubleMask m, Doubles yes, Doubles no) {
    return Doubles(hn::IfThenElse(m, yes.v, no.v));
}
HWY_INLINE DoubleMask either(DoubleMask a, DoubleMask b) { return hn::Or(a, b); }
HWY_INLINE bool all_of(DoubleMask m) { return hn::AllTrue(DoubleLanes(), m); }

HWY_INLINE double square_root(double a) { return std::sqrt(a); }
HWY_INLINE double magnitude(double a) { return std::fabs(a); }
HWY_INLINE double choose(bool m, double yes, double no) { return m ? yes : no; }
HWY_INLINE bool either(bool a, bool b) { return a || b; }
HWY_INLINE bool all_of(bool m) { return m; }

/// Not the instructions of that name, which disagree about the sign of zero.
template <class T>
HWY_INLINE T larger(T a, T b) {
    return choose(a < b, b, a);
}
template <class T>
HWY_INLINE T clamped(T v, T low, T high) {
    return choose(v < low, low, choose(high < v, high, v));
}

/// Smallest root of λ³ − λ² + c1·λ − c0, all of whose roots are real and not negative. Laguerre's method
/// climbs to it from 0 without passing it and triples the digits each step.
template <class T>
HWY_INLINE T smallest_root(T c1, T c0) {
    T root = 0.0;
    auto done = T(1.0) < T(0.0);
    for (int step = 0; step < 7; ++step) {
        const T p = ((root - T(1.0)) * root + c1) * root - c0;
        const T dp = (T(3.0) * root - T(2.0)) * root + c1;
        const T ddp = T(6.0) * root - T(2.0);
        const T spread = square_root(larger(T(0.0), T(4.0) * dp * dp - T(6.0) * p * ddp));
        const T slope = larger(dp + spread, T(1e-150));
        const T next = clamped(root - T(3.0) * p / slope, T(0.0), T(1.0 / 3.0));
        const auto settled = next - root < T(1e-15);
        root = choose(done, root, next);
        done = either(done, settled);
        if (all_of(done)) break;
    }
    return root;
}

template <class T>
HWY_INLINE T square(const Vec3<T>& v) {
    return v.x * v.x + v.y * v.y + v.z * v.z;
}
template <class T>
HWY_INLINE Vec3<T> cross_product(const Vec3<T>& a, const Vec3<T>& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class T>
HWY_INLINE void take_longer(Vec3<T>& best, T& best2, const Vec3<T>& other) {
    const T other2 = square(other);
    const auto longer = best2 < other2;
    best = {choose(longer, other.x, best.x), choose(longer, other.y, best.y),
            choose(longer, other.z, best.z)};
    best2 = choose(longer, other2, best2);
}

template <class T>
struct Sums {
    T n, x, y, z, xx, yy, zz, xy, xz, yz;
};

/// Rows of (covariance − λ3) / trace, and what follows from them.
template <class T>
struct Axes {
    T trace;  ///< of n²·covariance: a whole number, exact
    T share1, share2, share3;
    Vec3<T> row_x, row_y, row_z;
    Vec3<T> normal;  ///< not yet of unit length
    T normal2;       ///< its squared length
};

template <class T>
HWY_INLINE Axes<T> principal_axes(const Sums<T>& m) {
    // n²·covariance: whole numbers, exact.
    T xx = m.n * m.xx - m.x * m.x, yy = m.n * m.yy - m.y * m.y, zz = m.n * m.zz - m.z * m.z,
      xy = m.n * m.xy - m.x * m.y, xz = m.n * m.xz - m.x * m.z, yz = m.n * m.yz - m.y * m.z;
    const T trace = xx + yy + zz;
    const T scale = T(1.0) / larger(trace, T(1.0));
    xx = xx * scale, yy = yy * scale, zz = zz * scale, xy = xy * scale, xz = xz * scale, yz = yz * scale;

    const T minor_x = yy * zz - yz * yz, minor_y = xx * zz - xz * xz, minor_z = xx * yy - xy * xy;
    const T c1 = minor_x + minor_y + minor_z;
    const T c0 = xx * minor_x - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz);
    const T share3 = smallest_root(c1, larger(T(0.0), c0));
    const T rest = T(1.0) - share3;
    const T gap = square_root(larger(T(0.0), T(0.25) * rest * rest - (c1 - share3 * rest)));
    const T share1 = T(0.5) * rest + gap;
    const T share2 = larger(share3, rest - share1);

    // The normal is perpendicular to every row of (covariance − λ3): the largest cross product of two rows.
    const Vec3<T> row_x{xx - share3, xy, xz}, row_y{xy, yy - share3, yz}, row_z{xz, yz, zz - share3};
    Vec3<T> normal = cross_product(row_x, row_y);
    T normal2 = square(normal);
    take_longer(normal, normal2, cross_product(row_x, row_z));
    take_longer(normal, normal2, cross_product(row_y, row_z));
    return {trace, share1, share2, share3, row_x, row_y, row_z, normal, normal2};
}

/// Squared length of the normal below which a neighbourhood is a line.
constexpr double kLine2 = 1e-7 * 1e-7;

/// Distance of the query from the plane through the centroid.
template <class T>
HWY_INLINE T offset_of(const Vec3<T>& normal, const Sums<T>& m) {
    return magnitude(normal.x * m.x + normal.y * m.y + normal.z * m.z) / m.n;
}

/// A line or a point.
inline PlaneFit fit_degenerate(const Moments& m) {
    PlaneFit fit{{0, 0, 1}, {0, 0, 0}, 0, 0, 0, 0, 0, PlaneFit::Shape::point};
    const auto n = static_cast<double>(m.count);
    const Sums<double> sums{n,        m.sum_x,  m.sum_y,  m.sum_z,  m.sum_xx,
                            m.sum_yy, m.sum_zz, m.sum_xy, m.sum_xz, m.sum_yz};
    const Axes<double> axes = principal_axes(sums);
    if (!(axes.trace > 0)) return fit;
    fit.variance = axes.trace / (n * n);
    fit.share1 = axes.share1, fit.share2 = axes.share2, fit.share3 = axes.share3;
    Vec3d axis = axes.row_x;
    double axis2 = square(axis);
    take_longer(axis, axis2, axes.row_y);
    take_longer(axis, axis2, axes.row_z);
    if (!(axis2 > 0)) return fit;  // a perfect ball: no direction stands out
    fit.axis = normalized(axis);
    // The coordinate axis that is farthest from the line, made perpendicular to it.
    const Vec3d other = std::fabs(fit.axis.z) < 0.9 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
    fit.normal = normalized(other - fit.axis * dot(other, fit.axis));
    fit.shape = PlaneFit::Shape::line;
    fit.offset = offset_of(fit.normal, sums);
    return fit;
}

/// Numbers of up to sixty-four neighbourhoods, one column each.
constexpr std::size_t kBlock = 64;
struct BlockColumn {
    alignas(64) std::array<double, kBlock> at;
};
struct Block {
    Sums<BlockColumn> sums;
    BlockColumn nx, ny, nz, share1, share2, share3, variance, offset;
    BlockColumn is_plane;  ///< not negative: it is
};

inline void load_block(std::span<const Moments> moments, Sums<BlockColumn>& s) {
    const auto put = [&](std::size_t i, const Moments& m) {
        s.n.at[i] = m.count, s.x.at[i] = m.sum_x, s.y.at[i] = m.sum_y, s.z.at[i] = m.sum_z;
        s.xx.at[i] = m.sum_xx, s.yy.at[i] = m.sum_yy, s.zz.at[i] = m.sum_zz;
        s.xy.at[i] = m.sum_xy, s.xz.at[i] = m.sum_xz, s.yz.at[i] = m.sum_yz;
    };
    for (std::size_t i = 0; i < moments.size(); ++i) put(i, moments[i]);
    for (std::size_t i = moments.size(); i < kBlock && i % 8 != 0; ++i) put(i, moments[0]);
}

HWY_INLINE void fit_lanes(std::size_t first, Block& b) {
    const DoubleLanes d;
    const auto get = [&](const BlockColumn& c) HWY_ATTR { return Doubles(hn::Load(d, &c.at[first])); };
    const auto put = [&](BlockColumn& c, Doubles value) HWY_ATTR { hn::Store(value.v, d, &c.at[first]); };
    const Sums<Doubles> sums{get(b.sums.n),  get(b.sums.x),  get(b.sums.y),  get(b.sums.z),  get(b.sums.xx),
                             get(b.sums.yy), get(b.sums.zz), get(b.sums.xy), get(b.sums.xz), get(b.sums.yz)};
    const Axes<Doubles> axes = principal_axes(sums);
    const Doubles scale = Doubles(1.0) / square_root(larger(axes.normal2, Doubles(kLine2)));
    const Vec3<Doubles> normal{axes.normal.x * scale, axes.normal.y * scale, axes.normal.z * scale};
    put(b.nx, normal.x), put(b.ny, normal.y), put(b.nz, normal.z);
    put(b.share1, axes.share1), put(b.share2, axes.share2), put(b.share3, axes.share3);
    put(b.variance, axes.trace / (sums.n * sums.n));
    put(b.offset, offset_of(normal, sums));
    put(b.is_plane, choose(Doubles(0.0) < axes.trace, axes.normal2 - Doubles(kLine2), Doubles(-1.0)));
}

inline void fit_block(std::span<const Moments> moments, std::span<PlaneFit> out, Block& b) {
    load_block(moments, b.sums);
    for (std::size_t i = 0; i < moments.size(); i += hn::Lanes(DoubleLanes())) fit_lanes(i, b);
    for (std::size_t i = 0; i < moments.size(); ++i) {
        if (b.is_plane.at[i] >= 0)
            out[i] = {{b.nx.at[i], b.ny.at[i], b.nz.at[i]},
                      {0, 0, 0},
                      b.share1.at[i],
                      b.share2.at[i],
                      b.share3.at[i],
                      b.variance.at[i],
                      b.offset.at[i],
                      PlaneFit::Shape::plane};
        else
            out[i] = fit_degenerate(moments[i]);
    }
}

inline void fit_all(std::span<const Moments> moments, std::span<PlaneFit> out) {
    Block b;
    for (std::size_t first = 0; first < moments.size(); first += kBlock) {
        const std::size_t n = std::min(kBlock, moments.size() - first);
        fit_block(moments.subspan(first, n), out.subspan(first, n), b);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::splat
HWY_AFTER_NAMESPACE();
