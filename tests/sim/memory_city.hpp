#pragma once

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "model/splat_id_hd.hpp"
#include "model/tile_source.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace citysplat::test {

/// A disc in the world, in metres; put on the lattice by MemoryCity.
struct WorldDisc {
    Vec3d centre;
    Vec3d normal;
    double radius_m;
    std::uint16_t label = 1;
    std::uint16_t intensity = 30000;
};

/// Which tiles of a MemoryCity are split into four: none, or every other one, and of its quarters again every
/// other one.
enum class Splits { none, mixed };

/// A city in memory: discs scattered to square tiles.
class MemoryCity : public TileSource {
  public:
    MemoryCity(const std::vector<WorldDisc>& discs, double tile_size_m, Splits splits = Splits::none) {
        const TileGrid grid(tile_size_m);
        std::map<TileKey, std::vector<Splat>> splats;
        for (const WorldDisc& d : discs) {
            const std::int64_t x = to_lattice(d.centre.x), y = to_lattice(d.centre.y),
                               z = to_lattice(d.centre.z);
            TileKey key = grid.base_tile_of(x, y);
            while (splits == Splits::mixed && key.level < 2 && (key.ix + key.iy) % 2 == 0)
                key = grid.tile_of(x, y, key.level + 1);
            const LatticePoint origin = frame(grid, key).origin();
            splats[key].push_back(
                {static_cast<std::int32_t>(x - origin.x), static_cast<std::int32_t>(y - origin.y),
                 static_cast<std::int32_t>(z - origin.z), pack_normal(d.normal),
                 static_cast<std::uint16_t>(std::max<std::int64_t>(1, to_lattice(d.radius_m))), d.label,
                 d.intensity, 10, SplatGroup::surface, 20, 100, 0});
        }
        for (auto& [key, list] : splats) {
            tiles_.emplace_back(frame(grid, key), list);
            TileEntry entry{key, list.size(), SplatTile::body_bytes(list.size()), {}, {}};
            entry.min = {INFINITY, INFINITY, INFINITY};
            entry.max = {-INFINITY, -INFINITY, -INFINITY};
            for (std::size_t i = 0; i < list.size(); ++i) {
                const Disc d = tiles_.back().disc(i);
                const Vec3d c = world(tiles_.back(), d.centre),
                            r = Vec3d{1, 1, 1} * (static_cast<double>(d.radius) + 0.001);
                entry.min = {std::min(entry.min.x, c.x - r.x), std::min(entry.min.y, c.y - r.y),
                             std::min(entry.min.z, c.z - r.z)};
                entry.max = {std::max(entry.max.x, c.x + r.x), std::max(entry.max.y, c.y + r.y),
                             std::max(entry.max.z, c.z + r.z)};
            }
            entries_.push_back(entry);
        }
    }

    std::span<const TileEntry> tiles() const override { return entries_; }
    SplatTile load(std::size_t tile) const override {
        ++loads;
        if (damaged.contains(tile))
            throw CorruptionError("tile " + entries_[tile].key.text() + " is damaged");
        SplatTile copy(tiles_[tile].frame(), tiles_[tile].size());
        std::ranges::copy(tiles_[tile].bytes(), copy.mutable_bytes().begin());
        return copy;
    }
    const ClassMap& classes() const override { return classes_; }

    const SplatTile& tile(std::size_t i) const { return tiles_[i]; }
    static Vec3d world(const SplatTile& tile, Vec3f local) {
        return vec_cast<double>(local) + Vec3d{static_cast<double>(tile.frame().x_m),
                                               static_cast<double>(tile.frame().y_m),
                                               static_cast<double>(tile.frame().z_m)};
    }

    static std::uint64_t id(const SplatTile& tile, std::size_t i) {
        return splat_id(identity(tile.splat(i), tile.frame().origin()));
    }

    std::set<std::size_t> damaged;
    mutable std::atomic<int> loads{0};

  private:
    /// Split tiles begin at heights of their own.
    static TileFrame frame(const TileGrid& grid, const TileKey& key) {
        return grid.frame(key, key.level == 0 ? 0 : key.ix % 50 - 20);
    }

    std::vector<SplatTile> tiles_;
    std::vector<TileEntry> entries_;
    ClassMap classes_;
};

/// A small street: ground, two façades, some poles, around (x0, y0) with coordinates as large as UTM's.
inline std::vector<WorldDisc> street(double x0, double y0, double length_m, double spacing_m = 0.25) {
    std::vector<WorldDisc> discs;
    std::uint64_t n = 0;
    const auto jitter = [&](double amount) { return rng::uniform(7, n++, -amount, amount); };
    for (double x = 0; x < length_m; x += spacing_m) {
        for (double y = -8; y <= 8; y += spacing_m)
            discs.push_back({{x0 + x + jitter(0.05), y0 + y + jitter(0.05), jitter(0.01)},
                             normalized(Vec3d{jitter(0.02), jitter(0.02), 1}),
                             spacing_m * 0.9,
                             7,
                             20000});
        for (double z = 0; z <= 10; z += spacing_m)
            for (const double side : {-8.0, 8.0})
                discs.push_back({{x0 + x, y0 + side + jitter(0.01), z},
                                 normalized(Vec3d{jitter(0.02), -side, jitter(0.02)}),
                                 spacing_m * 0.9,
                                 1,
                                 40000});
    }
    for (double x = 5; x < length_m; x += 15)
        for (double z = 0; z < 6; z += 0.04)
            for (int k = 0; k < 6; ++k) {
                const double a = k * 1.0471975511965976;
                discs.push_back({{x0 + x + 0.08 * std::cos(a), y0 + 5 + 0.08 * std::sin(a), z},
                                 {std::cos(a), std::sin(a), 0},
                                 0.05,
                                 5,
                                 50000});
            }
    return discs;
}

}  // namespace citysplat::test
