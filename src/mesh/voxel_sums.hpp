#pragma once

#include "core/math/vec_hd.hpp"
#include "model/point.hpp"
#include "splat/search/neighbour_search.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace citysplat::mesh {

/// Direction from a point to its sensor, in whole units of 2⁻¹⁰. All zero: not known.
struct SightLine {
    std::int64_t x, y, z;
};
inline constexpr double kSightUnits = 1024;
inline SightLine sight_line(const TilePoint& p) {
    if (!p.has_sensor()) return {0, 0, 0};
    const Vec3d d{static_cast<double>(p.sensor_dx), static_cast<double>(p.sensor_dy),
                  static_cast<double>(p.sensor_dz)};
    const double norm = length(d);
    if (!(norm > 0)) return {0, 0, 0};
    const auto unit = [norm](double c) {
        return static_cast<std::int64_t>(std::floor(c / norm * kSightUnits + 0.5));
    };
    return {unit(d.x), unit(d.y), unit(d.z)};
}

/// Statistics of points as whole numbers: they have no order, and sums over boxes of voxels are exact. The
/// points count from some origin, d = point − origin in lattice steps; u is the sight line.
struct VoxelSums {
    enum Channel : std::size_t {
        n,
        x,
        y,
        z,
        xx,
        yy,
        zz,
        xy,
        xz,
        yz,    ///< of d
        seen,  ///< how many have a sight line
        ux,
        uy,
        uz,
        uxx,
        uyy,
        uzz,
        uxy,
        uxz,
        uyz,
        channels
    };
    std::array<std::int64_t, channels> of{};

    void add(std::int64_t dx, std::int64_t dy, std::int64_t dz, const SightLine& u) {
        of[n] += 1;
        of[x] += dx, of[y] += dy, of[z] += dz;
        of[xx] += dx * dx, of[yy] += dy * dy, of[zz] += dz * dz;
        of[xy] += dx * dy, of[xz] += dx * dz, of[yz] += dy * dz;
        if (u.x == 0 && u.y == 0 && u.z == 0) return;
        of[seen] += 1;
        of[ux] += u.x, of[uy] += u.y, of[uz] += u.z;
        of[uxx] += u.x * u.x, of[uyy] += u.y * u.y, of[uzz] += u.z * u.z;
        of[uxy] += u.x * u.y, of[uxz] += u.x * u.z, of[uyz] += u.y * u.z;
    }
    VoxelSums& operator+=(const VoxelSums& other) {
        for (std::size_t c = 0; c < channels; ++c) of[c] += other.of[c];
        return *this;
    }
    VoxelSums& operator-=(const VoxelSums& other) {
        for (std::size_t c = 0; c < channels; ++c) of[c] -= other.of[c];
        return *this;
    }
    friend VoxelSums operator+(VoxelSums a, const VoxelSums& b) { return a += b; }
    friend VoxelSums operator-(VoxelSums a, const VoxelSums& b) { return a -= b; }
    /// The same points seen from an origin that lies at (ox, oy, oz). Exact.
    VoxelSums moved(std::int64_t ox, std::int64_t oy, std::int64_t oz) const;

    splat::Moments moments() const;
    Vec3d sights() const {
        return {static_cast<double>(of[ux]), static_cast<double>(of[uy]), static_cast<double>(of[uz])};
    }
    /// Sum of (u·a)².
    double sum_of_sights2(Vec3d a) const {
        const auto v = [this](Channel c) { return static_cast<double>(of[c]); };
        return a.x * a.x * v(uxx) + a.y * a.y * v(uyy) + a.z * a.z * v(uzz) +
               2 * (a.x * a.y * v(uxy) + a.x * a.z * v(uxz) + a.y * a.z * v(uyz));
    }
    friend bool operator==(const VoxelSums&, const VoxelSums&) = default;
};

inline VoxelSums VoxelSums::moved(std::int64_t ox, std::int64_t oy, std::int64_t oz) const {
    VoxelSums m = *this;
    const std::int64_t count = of[n];
    m.of[x] = of[x] - count * ox;
    m.of[y] = of[y] - count * oy;
    m.of[z] = of[z] - count * oz;
    // Σ(a − p)(b − q) = Σab − q·Σa − p·Σ(b − q)
    m.of[xx] = of[xx] - ox * of[x] - ox * m.of[x];
    m.of[yy] = of[yy] - oy * of[y] - oy * m.of[y];
    m.of[zz] = of[zz] - oz * of[z] - oz * m.of[z];
    m.of[xy] = of[xy] - oy * of[x] - ox * m.of[y];
    m.of[xz] = of[xz] - oz * of[x] - ox * m.of[z];
    m.of[yz] = of[yz] - oz * of[y] - oy * m.of[z];
    return m;
}

inline splat::Moments VoxelSums::moments() const {
    const auto v = [this](Channel c) { return static_cast<double>(of[c]); };
    return {.sum_x = v(x),
            .sum_y = v(y),
            .sum_z = v(z),
            .sum_xx = v(xx),
            .sum_yy = v(yy),
            .sum_zz = v(zz),
            .sum_xy = v(xy),
            .sum_xz = v(xz),
            .sum_yz = v(yz),
            .count = static_cast<std::int32_t>(of[n]),
            .reach2 = 0};
}

}  // namespace citysplat::mesh
