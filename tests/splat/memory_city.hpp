#pragma once

#include "core/math/rng_hd.hpp"
#include "model/tile_grid.hpp"
#include "tiling/tile_processor.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace citysplat::test {

/// A point in world terms, for clouds made by tests.
struct WorldPoint {
    LatticePoint place;
    std::uint16_t label = 0, intensity = 0;
    std::int16_t sensor_dx = TilePoint::kNoSensor, sensor_dy = TilePoint::kNoSensor,
                 sensor_dz = TilePoint::kNoSensor;
    std::uint32_t slot = TilePoint::kNoSlot;

    TilePoint in(const TileFrame& frame) const {
        const LatticePoint o = frame.origin();
        return {static_cast<std::int32_t>(place.x - o.x),
                static_cast<std::int32_t>(place.y - o.y),
                static_cast<std::int32_t>(place.z - o.z),
                label,
                intensity,
                0,
                sensor_dx,
                sensor_dy,
                sensor_dz,
                slot};
    }
};

/// A cloud held in memory, read like a city on disk.
class MemoryCity : public tiling::RegionReader {
  public:
    explicit MemoryCity(std::vector<WorldPoint> points) : points_(std::move(points)) {
        std::sort(points_.begin(), points_.end(),
                  [](const WorldPoint& a, const WorldPoint& b) { return a.place < b.place; });
    }

    tiling::Region read(const LatticeBox& core, std::int64_t halo_steps) const override {
        tiling::Region region;
        region.core = core;
        region.covered = core.widened(halo_steps);
        region.frame = {floor_div(core.min_x, kLatticePerMetre), floor_div(core.min_y, kLatticePerMetre), 0};
        const auto first =
            std::lower_bound(points_.begin(), points_.end(), region.covered.min_x,
                             [](const WorldPoint& p, std::int64_t x) { return p.place.x < x; });
        for (auto p = first; p != points_.end() && p->place.x < region.covered.max_x; ++p)
            if (region.covered.contains(p->place.x, p->place.y)) region.points.push_back(p->in(region.frame));
        std::sort(region.points.begin(), region.points.end());
        region.points.erase(std::unique(region.points.begin(), region.points.end()), region.points.end());
        return region;
    }
    std::uint64_t count_at_most(const LatticeBox& box) const override {
        const auto before = [](const WorldPoint& p, std::int64_t x) { return p.place.x < x; };
        const auto first = std::lower_bound(points_.begin(), points_.end(), box.min_x, before);
        return static_cast<std::uint64_t>(std::lower_bound(first, points_.end(), box.max_x, before) - first);
    }
    std::uint64_t total_points() const override { return points_.size(); }
    LatticeBox bounds() const override {
        if (points_.empty()) return {};
        LatticeBox b{points_[0].place.x, points_[0].place.y, points_[0].place.x + 1, points_[0].place.y + 1};
        for (const WorldPoint& p : points_) {
            b.min_x = std::min(b.min_x, p.place.x), b.max_x = std::max(b.max_x, p.place.x + 1);
            b.min_y = std::min(b.min_y, p.place.y), b.max_y = std::max(b.max_y, p.place.y + 1);
        }
        return b;
    }
    std::vector<tiling::Sector> occupied_sectors() const override {
        std::set<tiling::Sector> sectors;
        for (const WorldPoint& p : points_) sectors.insert(tiling::sector_of(p.place.x, p.place.y));
        return {sectors.begin(), sectors.end()};
    }
    std::vector<int> occupied_cells(const tiling::Sector& sector) const override {
        std::set<int> cells;
        for (const WorldPoint& p : points_)
            if (tiling::sector_of(p.place.x, p.place.y) == sector)
                cells.insert(tiling::cell_of(static_cast<std::int32_t>(p.place.x - sector.origin_x()),
                                             static_cast<std::int32_t>(p.place.y - sector.origin_y())));
        return {cells.begin(), cells.end()};
    }
    const std::vector<WorldPoint>& points() const { return points_; }

  private:
    std::vector<WorldPoint> points_;
};

/// A piece of street by (seed): road with kerb and sidewalk, a wall on one side, poles, a bush, a few stray
/// points. Labels follow the class map "synthetic". The drive passes along x at y = 0, 2 m up.
inline std::vector<WorldPoint> small_street(double length_m, double points_per_m2, std::uint64_t seed,
                                            double noise_m = 0.01, LatticePoint origin = {0, 0, 0}) {
    std::vector<WorldPoint> points;
    std::uint64_t counter = 0;
    const auto uniform = [&](double low, double high) {
        return rng::uniform(rng::key(seed, 1), counter++, low, high);
    };
    const auto noise = [&] {
        return noise_m * (uniform(-1, 1) + uniform(-1, 1) + uniform(-1, 1));  // standard deviation 1 × noise
    };
    const auto add = [&](double x, double y, double z, std::uint16_t label) {
        WorldPoint p;
        p.place = {origin.x + to_lattice(x + noise()), origin.y + to_lattice(y + noise()),
                   origin.z + to_lattice(z + noise())};
        p.label = label;
        p.intensity = static_cast<std::uint16_t>(1000 * label + 10 * uniform(0, 20));
        const auto steps = [](double m) { return static_cast<std::int16_t>(std::floor(m * 64 + 0.5)); };
        p.sensor_dx = steps(uniform(-2, 2)), p.sensor_dy = steps(-y), p.sensor_dz = steps(2 - z);
        points.push_back(p);
    };
    const auto many = [&](double area_m2) { return static_cast<int>(area_m2 * points_per_m2); };
    for (int i = 0; i < many(length_m * 6); ++i) {
        const double y = uniform(-3, 3);
        add(uniform(0, length_m), y, -0.01 * y * y, 7);
    }
    for (int i = 0; i < many(length_m * 2); ++i) add(uniform(0, length_m), uniform(3, 5), 0.08, 8);
    for (int i = 0; i < many(length_m * 5); ++i) add(uniform(0, length_m), 5, uniform(0, 5), 1);
    for (double x = 1; x < length_m; x += 4)
        for (int i = 0; i < many(2); ++i) {
            const double a = uniform(0, 6.2831853);
            add(x + 0.06 * std::cos(a), 3.5 + 0.06 * std::sin(a), uniform(0, 4), 5);
        }
    for (double x = 3; x < length_m; x += 6)
        for (int i = 0; i < many(3); ++i)
            add(x + uniform(-0.5, 0.5), 4 + uniform(-0.5, 0.5), uniform(0.5, 1.5), 9);
    for (int i = 0; i < many(length_m * 0.1); ++i)
        add(uniform(0, length_m), uniform(-3, 5), uniform(0, 5), 1);
    for (int i = 0; i < many(length_m * 0.2); ++i)
        add(uniform(0, length_m), uniform(-1, 1), uniform(0, 1.5), 20);
    return points;
}

}  // namespace citysplat::test
