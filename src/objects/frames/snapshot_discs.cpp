#include "objects/frames/snapshot_discs.hpp"

#include "core/math/lattice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::objects {

namespace {

/// A disc covers the place of its point up to half-way to its neighbours: those of a scan lie in lines, and
/// the fourth is usually the first of another line.
constexpr std::size_t kNeighbours = 4;
constexpr double kShareOfDistance = 0.7;
/// The edge of a thing lies somewhere between the last ray that met it and the first that did not; discs are
/// round, so that a little more than the half of it makes up for the notches between them.
constexpr double kShareOfGap = 0.6;
/// Two points of one thing are of one surface unless it would be seen flatter than 1 : 10 between them.
constexpr double kFlattest = 10, kSurfaceNoise_m = 0.1;
/// A ray that ends this much in front of a point still says that the thing was not there: the road beside a
/// wheel.
constexpr double kInFront_m = 0.2;
/// Rays nearer to each other than this are two returns of one ray.
constexpr double kSameRay_rad = 5e-4;

constexpr int kCellsPerUnit = 50, kCellOffset = 64;  // cells of 0.02 of a direction of length 1

/// What the rays around a point say about its disc.
class Surroundings {
  public:
    Surroundings(Vec3d point, Vec3d direction, std::uint64_t thing)
        : point_(point), direction_(direction), thing_(thing) {
        nearest_.fill(std::numeric_limits<double>::infinity());
    }

    void add(const SeenRays::Ray& ray) {
        if (ray.thing == thing_) {
            const Vec3d off = ray.end - point_;
            const double deeper = dot(off, direction_);
            const double aside = length(off - direction_ * deeper);
            if (std::fabs(deeper) <= kFlattest * aside + kSurfaceNoise_m) return add_neighbour(aside);
            if (deeper < 0) return;
        }
        add_passing(ray);
    }
    double radius_m(const DiscBounds& bounds) const {
        const double asked = std::min(kShareOfDistance * nearest_.back(), kShareOfGap * gap_);
        return std::clamp(asked, bounds.least_radius_m, bounds.most_radius_m);
    }

  private:
    void add_neighbour(double aside) {
        if (aside == 0) return;  // the point itself
        for (double& distance : nearest_)
            if (aside < distance) std::swap(aside, distance);
    }
    void add_passing(const SeenRays::Ray& ray) {
        const Vec3d to_point = point_ - ray.sensor;
        const double depth = dot(to_point, ray.direction);
        if (depth > ray.length_m + kInFront_m) return;
        const double aside = length(to_point - ray.direction * depth);
        if (aside > kSameRay_rad * depth) gap_ = std::min(gap_, aside);
    }

    Vec3d point_, direction_;
    std::uint64_t thing_;
    std::array<double, kNeighbours> nearest_{};  ///< of the same surface, as the sensor sees them
    double gap_ = std::numeric_limits<double>::infinity();
};

}  // namespace

SeenRays::SeenRays(std::span<const SeenRay> rays) {
    rays_.reserve(rays.size());
    for (const SeenRay& ray : rays) {
        const Vec3d along = ray.end - ray.sensor;
        const double length_m = length(along);
        if (!(length_m > 0)) continue;
        const Vec3d direction = along * (1 / length_m);
        rays_.push_back({key_of(cell_of(direction)), ray.sensor, ray.end, direction, length_m, ray.thing});
    }
    std::sort(rays_.begin(), rays_.end(), [](const Ray& a, const Ray& b) { return a.cell < b.cell; });
}

SeenRays::Cell SeenRays::cell_of(Vec3d direction) {
    const auto index = [](double v) { return static_cast<int>(std::floor(v * kCellsPerUnit)); };
    return {index(direction.x), index(direction.y), index(direction.z)};
}

std::uint32_t SeenRays::key_of(Cell cell) {
    std::uint32_t key = 0;
    for (const int index : cell) key = key << 7 | static_cast<std::uint32_t>(index + kCellOffset);
    return key;
}

std::vector<SeenRays::Ray>::const_iterator SeenRays::first_of(std::uint32_t key) const {
    return std::lower_bound(rays_.begin(), rays_.end(), key,
                            [](const Ray& ray, std::uint32_t wanted) { return ray.cell < wanted; });
}

std::vector<Splat> discs_facing_sensor(std::span<const TilePoint> points, Vec3d frame_origin,
                                       const SeenRays& rays, std::uint64_t thing, const DiscBounds& bounds) {
    std::vector<Splat> splats;
    splats.reserve(points.size());
    for (const TilePoint& p : points) {
        const Vec3d place = frame_origin + Vec3d{to_metres(p.x), to_metres(p.y), to_metres(p.z)};
        const Vec3d to_sensor = Vec3d{double(p.sensor_dx), double(p.sensor_dy), double(p.sensor_dz)} *
                                (1.0 / TilePoint::kSensorStepsPerMetre);
        const double range_m = length(to_sensor);
        const Vec3d normal = range_m > 0 ? normalized(to_sensor) : Vec3d{0, 0, 1};
        const Vec3d direction = normal * -1.0;
        Surroundings around(place, direction, thing);
        rays.for_near(direction, [&](const SeenRays::Ray& ray) { around.add(ray); });
        Splat s{};
        s.x = p.x, s.y = p.y, s.z = p.z;
        s.normal = pack_normal(normal);
        s.radius = static_cast<std::uint16_t>(std::max<std::int64_t>(to_lattice(around.radius_m(bounds)), 1));
        s.label = p.label, s.intensity = p.intensity;
        s.point_count = 1;
        s.group = SplatGroup::non_surface;
        s.range = static_cast<std::uint8_t>(std::min(std::floor(range_m + 0.5), 254.0));
        s.incidence = kUnknownByte;
        splats.push_back(s);
    }
    return splats;
}

}  // namespace citysplat::objects
