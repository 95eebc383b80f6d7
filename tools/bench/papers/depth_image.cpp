#include "bench/papers/depth_image.hpp"

#include "core/error.hpp"
#include "core/math/lattice.hpp"
#include "splat/search/curve.hpp"
#include "splat/search/neighbour_search.hpp"
#include "splat/search/plane_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace citysplat::bench {

namespace {

constexpr float kNothing = std::numeric_limits<float>::infinity();
constexpr std::size_t kBatch = 4096;

std::uint32_t cell_of(double metres, double width) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(metres / width)));
}

/// Points along the curve through cubes of `width`; those of a cube follow each other.
std::vector<splat::KeyedIndex> sorted_by_cube(std::span<const Vec3d> points, double width) {
    constexpr int kBits = 21;
    std::vector<splat::KeyedIndex> keyed(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Vec3d& p = points[i];
        const std::uint32_t x = cell_of(p.x, width), y = cell_of(p.y, width), z = cell_of(p.z, width);
        if ((x | y | z) >> kBits != 0) throw InputError("the map is larger than its cubes allow");
        keyed[i] = {splat::hilbert_key(x, y, z, kBits), static_cast<std::uint32_t>(i)};
    }
    splat::sort_by_key(keyed, 3 * kBits);
    return keyed;
}

/// Calls each(begin, end) for runs of equal keys.
template <class Each>
void for_each_cube(std::span<const splat::KeyedIndex> keyed, const Each& each) {
    for (std::size_t begin = 0, end = 0; begin < keyed.size(); begin = end) {
        while (end < keyed.size() && keyed[end].key == keyed[begin].key) ++end;
        each(begin, end);
    }
}

/// Planes through the 20 nearest neighbours within five cubes; flat where the points scatter little about it.
void find_planes(DepthMap& map) {
    constexpr int kNeighbours = 20;
    constexpr double kLeastThickness_m = 0.02;  // of noisy points on a plane
    const std::size_t n = map.points.size();
    std::vector<std::int32_t> x(n), y(n), z(n);
    std::vector<std::uint32_t> rank(n), queries;
    std::iota(rank.begin(), rank.end(), 0u);
    const auto steps = [](float m) { return static_cast<std::int32_t>(to_lattice(static_cast<double>(m))); };
    for (std::size_t i = 0; i < n; ++i) {
        const Vec3f p = map.points[i].place;
        x[i] = steps(p.x), y[i] = steps(p.y), z[i] = steps(p.z);
    }
    const splat::NeighbourIndex index(x, y, z, rank);
    const std::vector<std::uint8_t> reach_class(n, 0);
    const splat::Reach reach{kNeighbours, static_cast<std::int32_t>(to_lattice(5 * map.cube_m))};
    const double thick =
        std::max(0.5 * map.cube_m, kLeastThickness_m) * static_cast<double>(kLatticePerMetre);
    splat::SearchScratch scratch;
    std::vector<splat::Moments> moments;
    std::vector<splat::PlaneFit> fits;
    for (std::size_t begin = 0; begin < n; begin += kBatch) {
        const std::size_t end = std::min(n, begin + kBatch);
        queries.resize(end - begin), moments.resize(end - begin), fits.resize(end - begin);
        std::iota(queries.begin(), queries.end(), static_cast<std::uint32_t>(begin));
        splat::find_moments(index, {queries, reach_class, std::span(&reach, 1)}, moments, scratch);
        splat::fit_planes(moments, fits);
        for (std::size_t q = 0; q < fits.size(); ++q) {
            MapPoint& p = map.points[begin + q];
            p.normal = vec_cast<float>(fits[q].normal);
            p.flat = fits[q].shape == splat::PlaneFit::Shape::plane && moments[q].count >= 5 &&
                     fits[q].share3 * fits[q].variance <= thick * thick;
        }
    }
}

}  // namespace

DepthMap make_depth_map(std::span<const Vec3d> cloud, double cube_m) {
    DepthMap map;
    map.cube_m = cube_m;
    if (cloud.empty()) throw InputError("a map needs points");
    Vec3d low = cloud[0];
    for (const Vec3d& p : cloud) low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    map.origin_m = {std::floor(low.x), std::floor(low.y), std::floor(low.z)};
    std::vector<Vec3d> local;
    for (const Vec3d& p : cloud) local.push_back(p - map.origin_m);
    const auto cubes = sorted_by_cube(local, cube_m);
    std::vector<Vec3d> means;
    for_each_cube(cubes, [&](std::size_t begin, std::size_t end) {
        Vec3d sum{0, 0, 0};
        for (std::size_t i = begin; i < end; ++i) sum = sum + local[cubes[i].index];
        means.push_back(sum * (1.0 / static_cast<double>(end - begin)));
    });
    const auto cells = sorted_by_cube(means, double{DepthMap::kCell_m});
    for_each_cube(cells, [&](std::size_t begin, std::size_t end) {
        const auto corner = [](double v) {
            return std::floor(static_cast<float>(v) / DepthMap::kCell_m) * DepthMap::kCell_m;
        };
        const Vec3d& first = means[cells[begin].index];
        map.cells.push_back({corner(first.x), corner(first.y), corner(first.z)});
        for (std::size_t i = begin; i < end; ++i)
            map.points.push_back({vec_cast<float>(means[cells[i].index]), {0, 0, 1}, false});
        map.cell_ends.push_back(static_cast<std::uint32_t>(end));
    });
    find_planes(map);
    return map;
}

DepthImage::DepthImage(const DepthView& view)
    : view_(view),
      half_h_(static_cast<float>(view.half_horizontal_rad)),
      half_v_(static_cast<float>(view.half_vertical_rad)),
      per_rad_(static_cast<float>(1 / view.pixel_rad)),
      width_(static_cast<int>(std::ceil(2 * view.half_horizontal_rad / view.pixel_rad))),
      height_(static_cast<int>(std::ceil(2 * view.half_vertical_rad / view.pixel_rad))) {
    for (int row = 0; row < height_; ++row)
        for (int column = 0; column < width_; ++column)
            rays_.push_back(sim::direction_of((column + 0.5) * view.pixel_rad - view.half_horizontal_rad,
                                              (row + 0.5) * view.pixel_rad - view.half_vertical_rad));
}

/// `place` and `normal` in the frame of the sensor; `normal` is zero where depth is that of the point.
void DepthImage::splat(const MapPoint& point, Vec3f place, Vec3f normal, float cube_m) {
    const float depth = length(place);
    if (depth < view_.min_range_m || depth > view_.max_range_m) return;
    const float half_cube = 0.8660254f * cube_m;  // half the diagonal of the cube
    const float reach = std::asin(std::min(1.0f, half_cube / depth));
    const float azimuth = std::atan2(place.y, place.x), elevation = std::asin(place.z / depth);
    const float aside = reach / std::max(0.1f, std::cos(elevation));
    const int row0 = std::max(0, row_at(elevation - reach)),
              row1 = std::min(height_ - 1, row_at(elevation + reach));
    const int column0 = std::max(0, column_at(azimuth - aside)),
              column1 = std::min(width_ - 1, column_at(azimuth + aside));
    if (azimuth + half_h_ + aside < 0 || elevation + half_v_ + reach < 0) return;
    const float least_cosine = std::cos(std::max(reach, 0.7072f / per_rad_)), height = dot(normal, place);
    const Vec3f towards = place * (1 / depth);
    const float farthest = std::max(half_cube, 0.7072f / per_rad_ * depth);
    for (int row = row0; row <= row1; ++row)
        for (int column = column0; column <= column1; ++column) {
            const std::size_t pixel = static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) +
                                      static_cast<std::size_t>(column);
            const Vec3f& ray = rays_[pixel];
            if (dot(ray, towards) < least_cosine) continue;
            float d = depth;
            if (point.flat && height != 0) {
                d = height / dot(normal, ray);
                const Vec3f off = ray * d - place;
                if (!(dot(off, off) <= farthest * farthest)) continue;
            }
            depth_[pixel] = std::min(depth_[pixel], d);
        }
}

void DepthImage::render(const DepthMap& map, const Pose& world_from_sensor, bool plane_correction) {
    depth_.assign(rays_.size(), kNothing);
    const Quaternion back = conjugate(world_from_sensor.rotation);
    const Vec3f x = vec_cast<float>(rotate(back, {1, 0, 0})), y = vec_cast<float>(rotate(back, {0, 1, 0})),
                z = vec_cast<float>(rotate(back, {0, 0, 1}));
    const auto turned = [&](Vec3f v) { return x * v.x + y * v.y + z * v.z; };
    const Vec3f sensor = vec_cast<float>(world_from_sensor.translation - map.origin_m);
    const float round = 0.8660254f * DepthMap::kCell_m, h = DepthMap::kCell_m / 2;
    const float widest = std::sin(std::min(1.5f, half_h_));
    const auto cube_m = static_cast<float>(map.cube_m);
    std::uint32_t begin = 0;
    for (std::size_t cell = 0; cell < map.cells.size(); begin = map.cell_ends[cell++]) {
        // Cells that do not meet the field of view are passed over.
        const Vec3f middle = turned(map.cells[cell] + Vec3f{h, h, h} - sensor);
        if (length(middle) - round > view_.max_range_m || middle.x < -round) continue;
        if (std::fabs(middle.y) * std::cos(half_h_) - middle.x * widest > round) continue;
        for (std::uint32_t i = begin; i < map.cell_ends[cell]; ++i) {
            const MapPoint& p = map.points[i];
            splat(p, turned(p.place - sensor), plane_correction ? turned(p.normal) : Vec3f{0, 0, 0}, cube_m);
        }
    }
}

void DepthImage::read(std::span<const sim::Firing> pattern, const Pose& world_from_sensor,
                      std::vector<Vec3d>& out) const {
    out.clear();
    for (const sim::Firing& f : pattern) {
        const int column = column_at(std::atan2(f.direction.y, f.direction.x)),
                  row = row_at(std::asin(f.direction.z));
        if (row < 0 || row >= height_ || column < 0 || column >= width_) continue;
        const std::size_t pixel = static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) +
                                  static_cast<std::size_t>(column);
        if (depth_[pixel] == kNothing) continue;
        out.push_back(world_from_sensor.apply(vec_cast<double>(rays_[pixel] * depth_[pixel])));
    }
}

}  // namespace citysplat::bench
