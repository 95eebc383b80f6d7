#include "objects/object_shape.hpp"

#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "splat/splat_processor.hpp"
#include "trace/tracer.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

namespace citysplat::objects {

namespace {

std::int16_t sensor_steps(double metres) {
    constexpr double kLimit = 511;
    return static_cast<std::int16_t>(
        std::floor(std::clamp(metres, -kLimit, kLimit) * TilePoint::kSensorStepsPerMetre + 0.5));
}

/// The points of an object, read like those of a city.
class ObjectCloud final : public tiling::RegionReader {
  public:
    ObjectCloud(std::span<const ObjectPoint> points, std::uint16_t label) {
        for (const ObjectPoint& p : points) {
            TilePoint t{};
            t.x = static_cast<std::int32_t>(to_lattice(p.place.x));
            t.y = static_cast<std::int32_t>(to_lattice(p.place.y));
            t.z = static_cast<std::int32_t>(to_lattice(p.place.z));
            t.label = label;
            t.intensity = p.intensity;
            const bool known = dot(p.to_sensor, p.to_sensor) > 0;
            t.sensor_dx = known ? sensor_steps(p.to_sensor.x) : TilePoint::kNoSensor;
            t.sensor_dy = known ? sensor_steps(p.to_sensor.y) : TilePoint::kNoSensor;
            t.sensor_dz = known ? sensor_steps(p.to_sensor.z) : TilePoint::kNoSensor;
            t.slot = time_slot(p.time_s);
            points_.push_back(t);
        }
        std::sort(points_.begin(), points_.end());
        points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
    }

    tiling::Region read(const LatticeBox& core, std::int64_t halo_steps) const override {
        tiling::Region region;
        region.core = core;
        region.covered = core.widened(halo_steps);
        for (const TilePoint& p : points_)
            if (region.covered.contains(p.x, p.y)) region.points.push_back(p);
        return region;
    }
    std::uint64_t count_at_most(const LatticeBox& box) const override {
        return static_cast<std::uint64_t>(std::count_if(
            points_.begin(), points_.end(), [&](const TilePoint& p) { return box.contains(p.x, p.y); }));
    }
    std::uint64_t total_points() const override { return points_.size(); }
    LatticeBox bounds() const override {
        LatticeBox b{points_.front().x, points_.front().y, points_.front().x + 1, points_.front().y + 1};
        for (const TilePoint& p : points_) {
            b.min_x = std::min<std::int64_t>(b.min_x, p.x);
            b.max_x = std::max<std::int64_t>(b.max_x, p.x + 1);
            b.min_y = std::min<std::int64_t>(b.min_y, p.y);
            b.max_y = std::max<std::int64_t>(b.max_y, p.y + 1);
        }
        return b;
    }
    std::vector<tiling::Sector> occupied_sectors() const override {
        std::set<tiling::Sector> sectors;
        for (const TilePoint& p : points_) sectors.insert(tiling::sector_of(p.x, p.y));
        return {sectors.begin(), sectors.end()};
    }
    std::vector<int> occupied_cells(const tiling::Sector& sector) const override {
        std::set<int> cells;
        for (const TilePoint& p : points_)
            if (tiling::sector_of(p.x, p.y) == sector)
                cells.insert(tiling::cell_of(static_cast<std::int32_t>(p.x - sector.origin_x()),
                                             static_cast<std::int32_t>(p.y - sector.origin_y())));
        return {cells.begin(), cells.end()};
    }

  private:
    std::vector<TilePoint> points_;
};

/// Where a ray is inside of the box of an object; nothing when it misses it.
struct Inside {
    double from_m, to_m;
};
std::optional<Inside> through_box(const ObjectSize& size, Vec3d origin, Vec3d direction) {
    const double low[3] = {-size.length_m / 2, -size.width_m / 2, 0};
    const double high[3] = {size.length_m / 2, size.width_m / 2, size.height_m};
    const double o[3] = {origin.x, origin.y, origin.z}, d[3] = {direction.x, direction.y, direction.z};
    Inside inside{0, 1e9};
    for (int a = 0; a < 3; ++a) {
        if (d[a] == 0) {
            if (o[a] < low[a] || o[a] > high[a]) return std::nullopt;
            continue;
        }
        const double t0 = (low[a] - o[a]) / d[a], t1 = (high[a] - o[a]) / d[a];
        inside.from_m = std::max(inside.from_m, std::min(t0, t1));
        inside.to_m = std::min(inside.to_m, std::max(t0, t1));
    }
    if (inside.from_m >= inside.to_m) return std::nullopt;
    return inside;
}

}  // namespace

SplatTile make_splats(std::span<const ObjectPoint> points, const ShapeOptions& options,
                      const CancelToken& cancel) {
    if (points.empty()) return SplatTile({}, std::span<const Splat>{});
    const ObjectCloud cloud(points, options.label);
    const ClassMap classes("object", 1, {}, ClassInfo{"object", SplatGroup::surface, false, 0x3f6fb0});
    splat::SplatProcessor processor(
        splat::SplatParams::of(options.rigid ? splat::Method::adaptive : splat::Method::descriptors),
        classes);
    Progress silent;
    processor.set_calibration(processor.calibrate(cloud, cancel, silent));
    // Nothing but the object exists: every neighbourhood is complete.
    constexpr std::int64_t kEverywhere_m = 500;
    const LatticeBox everywhere = LatticeBox{}.widened(kEverywhere_m * kLatticePerMetre);
    tiling::TileOutput output = processor.process(cloud.read(everywhere, everywhere.max_x), cancel);
    if (!output.certified()) throw std::logic_error("the splats of an object depend on something outside");
    return std::move(output.splats);
}

Coverage coverage_of(const SplatTile& splats, const ObjectSize& size) {
    constexpr double kDistance_m = 10;
    constexpr int kAcross = 24;  // rays across the box, both ways
    Coverage coverage{};
    if (splats.empty()) return coverage;
    const auto tracer = trace::make_group_tracer();
    const trace::TracerTilePtr tile = tracer->load(splats);
    const trace::TileSetPtr tiles = tracer->bind({&tile, 1});
    const Vec3d middle{0, 0, size.height_m / 2};
    const double half_m = 0.5 * length(Vec3d{size.length_m, size.width_m, size.height_m});
    std::vector<trace::Ray> rays;
    std::vector<trace::Hit> hits;
    for (std::size_t e = 0; e < kElevations; ++e)
        for (std::size_t a = 0; a < kAzimuths; ++a) {
            const auto up = exact::sin_cos(kElevation_deg[e] * exact::kRadPerDegree);
            const auto around = exact::sin_cos(static_cast<double>(a) * 10 * exact::kRadPerDegree);
            const Vec3d towards{up.cos * around.cos, up.cos * around.sin, up.sin};
            const Vec3d right{-around.sin, around.cos, 0}, top = cross(towards, right);
            const Vec3d eye = middle + towards * (kDistance_m + half_m);
            rays.clear();
            for (int i = 0; i < kAcross * kAcross; ++i) {
                const double u = (2.0 * (i % kAcross) + 1) / kAcross - 1;
                const double v = (2.0 * (i / kAcross) + 1) / kAcross - 1;
                const Vec3d direction = normalized(middle + right * (u * half_m) + top * (v * half_m) - eye);
                const auto inside = through_box(size, eye, direction);
                if (!inside) continue;
                trace::Ray ray{};
                ray.origin = eye;
                ray.direction = vec_cast<float>(direction);
                ray.t_max = static_cast<float>(inside->to_m);
                rays.push_back(ray);
            }
            hits.assign(rays.size(), trace::Hit{});
            tracer->closest(*tiles, rays, hits);
            const auto met = static_cast<std::size_t>(
                std::count_if(hits.begin(), hits.end(), [](const trace::Hit& h) { return h.exists(); }));
            coverage[coverage_index(a, e)] =
                static_cast<std::uint8_t>(rays.empty() ? 0 : (100 * met + rays.size() / 2) / rays.size());
        }
    return coverage;
}

}  // namespace citysplat::objects
