#include "trace/tile_frustum.hpp"

#include "core/error.hpp"

#include <array>
#include <limits>
#include <string>

namespace citysplat::trace {

namespace {

/// Rays start at lattice_origin(), up to 0.9 mm from the origins that are looked at here.
constexpr double kMargin_m = 2e-3;
/// Of coordinates relative to the anchor: more than what the slab test rounds, 4 · 2⁻²⁴.
constexpr double kRelativeMargin = 2e-6;

struct Vec2d {
    double x, y;
};
double cross(Vec2d a, Vec2d b) { return a.x * b.y - a.y * b.x; }
double dot(Vec2d a, Vec2d b) { return a.x * b.x + a.y * b.y; }

/// The horizontal sector that holds the directions of a batch: axis and the slopes of its two sides. Useless
/// (no culling) when the directions span too much or point straight up or down.
struct Sector {
    bool useful = false;
    Vec2d axis{1, 0};
    double low = 0, high = 0;

    explicit Sector(std::span<const Ray> rays) {
        Vec2d sum{0, 0};
        for (const Ray& r : rays) sum = {sum.x + r.direction.x, sum.y + r.direction.y};
        const double norm = std::sqrt(dot(sum, sum));
        if (!(norm > 1e-3)) return;
        axis = {sum.x / norm, sum.y / norm};
        low = std::numeric_limits<double>::infinity(), high = -low;
        for (const Ray& r : rays) {
            const Vec2d d{r.direction.x, r.direction.y};
            const double along = dot(axis, d);
            if (!(along > 1e-4)) return;
            const double slope = cross(axis, d) / along;
            low = std::min(low, slope);
            high = std::max(high, slope);
        }
        low -= 1e-3 * (1 + std::fabs(low));
        high += 1e-3 * (1 + std::fabs(high));
        useful = true;
    }

    /// Box corners relative to the apex.
    bool misses(double min_x, double min_y, double max_x, double max_y) const {
        if (!useful) return false;
        const Vec2d left{axis.x - high * axis.y, axis.y + high * axis.x};
        const Vec2d right{axis.x - low * axis.y, axis.y + low * axis.x};
        bool all_left = true, all_right = true, all_behind = true;
        for (const Vec2d p :
             {Vec2d{min_x, min_y}, Vec2d{max_x, min_y}, Vec2d{min_x, max_y}, Vec2d{max_x, max_y}}) {
            all_left = all_left && cross(left, p) > 0;
            all_right = all_right && cross(right, p) < 0;
            all_behind = all_behind && dot(axis, p) < 0;
        }
        return all_left || all_right || all_behind;
    }
};

float outward(double v, double sign) {
    return static_cast<float>(v + sign * (kMargin_m + std::fabs(v) * kRelativeMargin));
}

void require_finite(std::span<const Ray> rays) {
    for (std::size_t i = 0; i < rays.size(); ++i) {
        const Ray& r = rays[i];
        const double sum = r.origin.x + r.origin.y + r.origin.z +
                           static_cast<double>(r.direction.x + r.direction.y + r.direction.z) +
                           static_cast<double>(r.t_min + r.t_max);
        if (!std::isfinite(sum)) throw InputError("ray " + std::to_string(i) + " of a batch is not finite");
    }
}

}  // namespace

void refuse_longer_rays(std::span<const Ray> rays, float max_range_m) {
    for (const Ray& ray : rays)
        if (ray.t_max > max_range_m)
            throw InputError("a ray of " + std::to_string(ray.t_max) + " m: this tracer is made for " +
                             std::to_string(max_range_m) + " m");
}

void require_range(float max_range_m) {
    if (!(max_range_m > 0 && max_range_m <= kMaxRange_m))
        throw UsageError("max_range_m must be above 0 and at most 10 000");
}

double distance_to_box(Vec3d p, const Box3d& box) {
    const auto axis = [](double v, double low, double high) { return std::max({low - v, 0.0, v - high}); };
    return length(Vec3d{axis(p.x, box.min.x, box.max.x), axis(p.y, box.min.y, box.max.y),
                        axis(p.z, box.min.z, box.max.z)});
}

double entry_distance(const Ray& ray, const Box3d& box) {
    double near = 0, far = static_cast<double>(ray.t_max);
    const auto slab = [&](double origin, double direction, double low, double high) {
        if (direction == 0) {
            if (origin < low || origin > high) far = -1;
            return;
        }
        const double a = (low - origin) / direction, b = (high - origin) / direction;
        near = std::max(near, std::min(a, b));
        far = std::min(far, std::max(a, b));
    };
    const Vec3d d = vec_cast<double>(ray.direction);
    slab(ray.origin.x, d.x, box.min.x, box.max.x);
    slab(ray.origin.y, d.y, box.min.y, box.max.y);
    slab(ray.origin.z, d.z, box.min.z, box.max.z);
    return near <= far ? near : -1;
}

std::vector<ReachableTile> find_reachable(std::span<const Box3d> boxes, std::span<const Ray> rays) {
    std::vector<ReachableTile> reachable;
    if (rays.empty()) return reachable;
    require_finite(rays);
    const Vec3d anchor = rays[0].origin;
    Box3d origins;
    float t_max = 0;
    for (const Ray& r : rays) {
        origins.grow(r.origin - anchor);
        t_max = std::max(t_max, r.t_max);
    }
    const auto& [low, high] = origins;
    const double reach = static_cast<double>(t_max) + length(high - low) + kMargin_m;
    const Sector sector(rays);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const double distance = distance_to_box(anchor, boxes[i]);
        if (distance > reach) continue;
        const Vec3d a = boxes[i].min - anchor, b = boxes[i].max - anchor;
        // A box widened by the spread of the origins, seen from one apex, covers what all origins see.
        if (sector.misses(a.x - high.x - kMargin_m, a.y - high.y - kMargin_m, b.x - low.x + kMargin_m,
                          b.y - low.y + kMargin_m))
            continue;
        reachable.push_back({i,
                             distance,
                             {{outward(a.x, -1), outward(a.y, -1), outward(a.z, -1)},
                              {outward(b.x, 1), outward(b.y, 1), outward(b.z, 1)}}});
    }
    std::sort(reachable.begin(), reachable.end(),
              [](const auto& x, const auto& y) { return x.distance_m < y.distance_m; });
    return reachable;
}

}  // namespace citysplat::trace
