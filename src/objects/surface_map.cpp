#include "objects/surface_map.hpp"

#include "splat/search/plane_fit.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::objects {

namespace {

/// A plane needs so many points, spread to both sides: the second axis has this share of the variance at
/// least, and the third not more than this part of the second.
constexpr std::int64_t kLeastPoints = 8;
constexpr double kLeastSecondShare = 0.03, kMostThirdOfSecond = 0.2;

/// The slope of the intensity along a plane is damped as if points lay so far from its middle.
constexpr double kSlopeDamping_m = 0.02;

constexpr double kFullIntensity = 65535;

double as_double(std::int64_t v) { return static_cast<double>(v); }

}  // namespace

SurfaceMap::SurfaceMap(const Grid& grid) : cell_steps_(grid.cell_steps) {
    const double low[3] = {grid.min.x, grid.min.y, grid.min.z},
                 high[3] = {grid.max.x, grid.max.y, grid.max.z};
    std::size_t cells = 1;
    for (int a = 0; a < 3; ++a) {
        min_[a] = floor_div(to_lattice(low[a]), cell_steps_);
        size_[a] = static_cast<std::int32_t>(floor_div(to_lattice(high[a]), cell_steps_) - min_[a] + 1);
        cells *= static_cast<std::size_t>(size_[a]);
    }
    index_.assign(cells, 0);
}

bool SurfaceMap::cell_at(Vec3d place, std::int32_t (&cell)[3]) const {
    const double p[3] = {place.x, place.y, place.z};
    for (int a = 0; a < 3; ++a) {
        const std::int64_t c = floor_div(to_lattice(p[a]), cell_steps_) - min_[a];
        if (c < 0 || c >= size_[a]) return false;
        cell[a] = static_cast<std::int32_t>(c);
    }
    return true;
}

const SurfaceMap::Cell* SurfaceMap::find(std::int32_t x, std::int32_t y, std::int32_t z) const {
    if (x < 0 || y < 0 || z < 0 || x >= size_[0] || y >= size_[1] || z >= size_[2]) return nullptr;
    const auto at =
        (static_cast<std::size_t>(z) * static_cast<std::size_t>(size_[1]) + static_cast<std::size_t>(y)) *
            static_cast<std::size_t>(size_[0]) +
        static_cast<std::size_t>(x);
    const std::uint32_t number = index_[at];
    return number == 0 ? nullptr : &cells_[number - 1];
}

void SurfaceMap::change(std::span<const ObjectPoint> points, std::int64_t sign) {
    for (const ObjectPoint& point : points) {
        std::int32_t at[3];
        if (!cell_at(point.place, at)) continue;
        const auto place = (static_cast<std::size_t>(at[2]) * static_cast<std::size_t>(size_[1]) +
                            static_cast<std::size_t>(at[1])) *
                               static_cast<std::size_t>(size_[0]) +
                           static_cast<std::size_t>(at[0]);
        if (index_[place] == 0) {
            cells_.push_back({{}, {at[0], at[1], at[2]}});
            means_.emplace_back();
            index_[place] = static_cast<std::uint32_t>(cells_.size());
        }
        Cell& cell = cells_[index_[place] - 1];
        Sums& s = cell.sums;
        const std::int64_t x = to_lattice(point.place.x) - (min_[0] + at[0]) * cell_steps_;
        const std::int64_t y = to_lattice(point.place.y) - (min_[1] + at[1]) * cell_steps_;
        const std::int64_t z = to_lattice(point.place.z) - (min_[2] + at[2]) * cell_steps_;
        const std::int64_t i = point.intensity;
        s.n += sign;
        s.x += sign * x, s.y += sign * y, s.z += sign * z;
        s.xx += sign * x * x, s.yy += sign * y * y, s.zz += sign * z * z;
        s.xy += sign * x * y, s.xz += sign * x * z, s.yz += sign * y * z;
        s.i += sign * i, s.ix += sign * i * x, s.iy += sign * i * y, s.iz += sign * i * z;
        means_[index_[place] - 1] = mean_of(cell);
    }
    ++version_;
}

void SurfaceMap::Sums::add_shifted(const Sums& s, std::int64_t dx, std::int64_t dy, std::int64_t dz) {
    n += s.n;
    x += s.x + s.n * dx, y += s.y + s.n * dy, z += s.z + s.n * dz;
    xx += s.xx + 2 * dx * s.x + s.n * dx * dx;
    yy += s.yy + 2 * dy * s.y + s.n * dy * dy;
    zz += s.zz + 2 * dz * s.z + s.n * dz * dz;
    xy += s.xy + dx * s.y + dy * s.x + s.n * dx * dy;
    xz += s.xz + dx * s.z + dz * s.x + s.n * dx * dz;
    yz += s.yz + dy * s.z + dz * s.y + s.n * dy * dz;
    i += s.i;
    ix += s.ix + s.i * dx, iy += s.iy + s.i * dy, iz += s.iz + s.i * dz;
}

Vec3d SurfaceMap::corner_of(const Cell& cell) const {
    return {to_metres((min_[0] + cell.at[0]) * cell_steps_), to_metres((min_[1] + cell.at[1]) * cell_steps_),
            to_metres((min_[2] + cell.at[2]) * cell_steps_)};
}

SurfaceMap::Mean SurfaceMap::mean_of(const Cell& cell) const {
    const Sums& s = cell.sums;
    if (s.n == 0) return {};
    const double scale = kLatticeStep_m / as_double(s.n);
    return {corner_of(cell) + Vec3d{as_double(s.x), as_double(s.y), as_double(s.z)} * scale, true};
}

namespace {

/// Requires n > 0.
template <class Sums>
splat::PlaneFit plane_through(const Sums& s) {
    const splat::Moments moments{as_double(s.x),
                                 as_double(s.y),
                                 as_double(s.z),
                                 as_double(s.xx),
                                 as_double(s.yy),
                                 as_double(s.zz),
                                 as_double(s.xy),
                                 as_double(s.xz),
                                 as_double(s.yz),
                                 static_cast<std::int32_t>(s.n),
                                 1};
    splat::PlaneFit fit;
    splat::fit_planes({&moments, 1}, {&fit, 1});
    return fit;
}

}  // namespace

SurfaceMap::Patch SurfaceMap::fit(const Cell& cell, const Sums& s) const {
    Patch patch{};
    if (s.n < kLeastPoints) return patch;
    const splat::PlaneFit plane = plane_through(s);
    patch.flat = plane.shape == splat::PlaneFit::Shape::plane && plane.share2 >= kLeastSecondShare &&
                 plane.share3 <= kMostThirdOfSecond * plane.share2;
    if (!patch.flat) return patch;
    const double n = as_double(s.n);
    const Vec3d mean = Vec3d{as_double(s.x), as_double(s.y), as_double(s.z)} * (1 / n);
    patch.centre = corner_of(cell) + mean * kLatticeStep_m;
    patch.normal = plane.normal;
    patch.intensity = as_double(s.i) / n / kFullIntensity;
    // The slope of the intensity: along each of two axes in the plane its covariance with the intensity over
    // its own, solved as a 2 × 2 system.
    const Vec3d across = std::fabs(plane.normal.z) < 0.7 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
    const Vec3d u = normalized(cross(plane.normal, across)), v = cross(plane.normal, u);
    const double xx = as_double(s.xx) / n - mean.x * mean.x, yy = as_double(s.yy) / n - mean.y * mean.y;
    const double zz = as_double(s.zz) / n - mean.z * mean.z, xy = as_double(s.xy) / n - mean.x * mean.y;
    const double xz = as_double(s.xz) / n - mean.x * mean.z, yz = as_double(s.yz) / n - mean.y * mean.z;
    const auto spread = [&](Vec3d a, Vec3d b) {
        return dot(a, Vec3d{xx * b.x + xy * b.y + xz * b.z, xy * b.x + yy * b.y + yz * b.z,
                            xz * b.x + yz * b.y + zz * b.z}) *
               kLatticeStep_m * kLatticeStep_m;
    };
    const double i = as_double(s.i) / n;
    const Vec3d with_i = Vec3d{as_double(s.ix) / n - i * mean.x, as_double(s.iy) / n - i * mean.y,
                               as_double(s.iz) / n - i * mean.z} *
                         (kLatticeStep_m / kFullIntensity);
    const double uu = spread(u, u) + kSlopeDamping_m * kSlopeDamping_m;
    const double vv = spread(v, v) + kSlopeDamping_m * kSlopeDamping_m, uv = spread(u, v);
    const double determinant = uu * vv - uv * uv, ui = dot(u, with_i), vi = dot(v, with_i);
    patch.gradient = u * ((vv * ui - uv * vi) / determinant) + v * ((uu * vi - uv * ui) / determinant);
    return patch;
}

SurfaceMap::Patch SurfaceMap::patch_of(const Cell& cell) const {
    const Patch own = fit(cell, cell.sums);
    if (own.flat) return own;
    Sums sums;
    for (std::int32_t dz = -1; dz <= 1; ++dz)
        for (std::int32_t dy = -1; dy <= 1; ++dy)
            for (std::int32_t dx = -1; dx <= 1; ++dx)
                if (const Cell* near = find(cell.at[0] + dx, cell.at[1] + dy, cell.at[2] + dz))
                    sums.add_shifted(near->sums, dx * cell_steps_, dy * cell_steps_, dz * cell_steps_);
    return fit(cell, sums);
}

const SurfaceMap::Patch* SurfaceMap::nearest(Vec3d place) const {
    std::int32_t at[3], low[3], high[3];
    if (!cell_at(place, at)) return nullptr;
    for (int a = 0; a < 3; ++a) low[a] = std::max(at[a] - 1, 0), high[a] = std::min(at[a] + 1, size_[a] - 1);
    const Patch* best = nullptr;
    double best2 = 0;
    for (std::int32_t z = low[2]; z <= high[2]; ++z)
        for (std::int32_t y = low[1]; y <= high[1]; ++y) {
            const std::uint32_t* row =
                index_.data() + (static_cast<std::ptrdiff_t>(z) * size_[1] + y) * size_[0];
            for (std::int32_t x = low[0]; x <= high[0]; ++x) {
                if (row[x] == 0) continue;
                const Mean& mean = means_[row[x] - 1];
                if (!mean.taken) continue;
                const double distance2 = dot(mean.place - place, mean.place - place);
                if (best && distance2 >= best2) continue;
                const Cell& cell = cells_[row[x] - 1];
                if (cell.patch_version != version_) {
                    cell.patch = patch_of(cell);
                    cell.patch_version = version_;
                }
                if (!cell.patch.flat) continue;
                best = &cell.patch, best2 = distance2;
            }
        }
    return best;
}

bool SurfaceMap::occupied(Vec3d place) const {
    std::int32_t at[3];
    if (!cell_at(place, at)) return false;
    for (std::int32_t dz = -1; dz <= 1; ++dz)
        for (std::int32_t dy = -1; dy <= 1; ++dy)
            for (std::int32_t dx = -1; dx <= 1; ++dx) {
                const Cell* cell = find(at[0] + dx, at[1] + dy, at[2] + dz);
                if (cell && cell->sums.n > 0) return true;
            }
    return false;
}

double SurfaceMap::mean_thickness_m() const {
    constexpr std::int64_t kEnough = 10;
    std::vector<const Cell*> cells;
    for (const Cell& cell : cells_)
        if (cell.sums.n >= kEnough) cells.push_back(&cell);
    std::sort(cells.begin(), cells.end(), [](const Cell* a, const Cell* b) {
        return std::lexicographical_compare(a->at, a->at + 3, b->at, b->at + 3);
    });
    double sum = 0, points = 0;
    for (const Cell* cell : cells) {
        const splat::PlaneFit plane = plane_through(cell->sums);
        if (plane.shape != splat::PlaneFit::Shape::plane || plane.share2 < kLeastSecondShare) continue;
        sum += as_double(cell->sums.n) * std::sqrt(std::max(0.0, plane.share3 * plane.variance));
        points += as_double(cell->sums.n);
    }
    return points == 0 ? 0 : sum / points * kLatticeStep_m;
}

}  // namespace citysplat::objects
