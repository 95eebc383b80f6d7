#pragma once

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "model/splat_tile.hpp"
#include "trace/tracer.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::test {

/// A street of random splats at UTM-like coordinates, cut into square tiles: a floor, two walls and clutter.
struct Street {
    static constexpr std::int64_t kEast_m = 448'000, kNorth_m = 5'411'000, kUp_m = 35;
    static constexpr std::int64_t kTile_m = 24;

    std::vector<SplatTile> tiles;
    Vec3d middle{};

    Street(std::uint64_t seed, std::size_t tiles_x, std::size_t tiles_y, std::size_t splats_per_tile) {
        for (std::size_t ty = 0; ty < tiles_y; ++ty)
            for (std::size_t tx = 0; tx < tiles_x; ++tx) {
                const TileFrame frame{kEast_m + kTile_m * static_cast<std::int64_t>(tx),
                                      kNorth_m + kTile_m * static_cast<std::int64_t>(ty), kUp_m};
                tiles.push_back(make_tile(rng::key(seed, tiles.size()), frame, splats_per_tile));
            }
        middle = {
            static_cast<double>(kEast_m) + 0.5 * static_cast<double>(kTile_m) * static_cast<double>(tiles_x),
            static_cast<double>(kNorth_m) + 0.5 * static_cast<double>(kTile_m) * static_cast<double>(tiles_y),
            static_cast<double>(kUp_m) + 2.0};
    }

    /// Rays from near the middle in all directions, a third of them along the ground.
    std::vector<trace::Ray> rays(std::uint64_t seed, std::size_t count, float range_m = 80) const {
        std::vector<trace::Ray> out(count);
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t key = rng::key(seed, i);
            const double azimuth = rng::uniform(key, 0, -exact::kPi, exact::kPi);
            const double elevation =
                i % 3 ? rng::uniform(key, 1, -1.5, 1.5) : rng::uniform(key, 1, -0.05, 0.02);
            const auto a = exact::sin_cos(azimuth), e = exact::sin_cos(elevation);
            const Vec3d offset{rng::uniform(key, 2, -8, 8), rng::uniform(key, 3, -8, 8),
                               rng::uniform(key, 4, -1, 1)};
            out[i] = {middle + offset, vec_cast<float>(Vec3d{e.cos * a.cos, e.cos * a.sin, e.sin}), 0.1f,
                      range_m};
        }
        return out;
    }

  private:
    static SplatTile make_tile(std::uint64_t key, const TileFrame& frame, std::size_t count) {
        std::vector<Splat> splats(count);
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t k = rng::key(key, i);
            const auto steps = [&](std::uint64_t n, double low, double high) {
                return static_cast<std::int32_t>(rng::uniform(k, n, low, high) *
                                                 static_cast<double>(kLatticePerMetre));
            };
            const double size = static_cast<double>(kTile_m);
            Splat& s = splats[i];
            s = {steps(0, 0, size),
                 steps(1, 0, size),
                 steps(2, -0.02, 0.02),
                 0,
                 0,
                 0,
                 0,
                 1,
                 SplatGroup::ground,
                 0,
                 0,
                 0};
            Vec3d normal{rng::uniform(k, 3, -0.05, 0.05), rng::uniform(k, 4, -0.05, 0.05), 1};
            if (i % 3 == 1) {  // a wall across the tile
                s.y = steps(5, 11.98, 12.02);
                s.z = steps(6, 0, 9);
                normal = {rng::uniform(k, 3, -0.05, 0.05), 1, rng::uniform(k, 4, -0.05, 0.05)};
            } else if (i % 9 == 2) {  // anything anywhere
                s.z = steps(6, 0, 9);
                normal = {rng::uniform(k, 3, -1, 1), rng::uniform(k, 4, -1, 1),
                          rng::uniform(k, 7, -1, 1) + 1e-9};
            }
            s.normal = pack_normal(normalized(normal));
            s.radius = static_cast<std::uint16_t>(steps(8, 0.02, 0.4));
            s.label = static_cast<std::uint16_t>(rng::bits(k, 9) % 5);
            s.intensity = static_cast<std::uint16_t>(rng::bits(k, 10));
            s.range = static_cast<std::uint8_t>(rng::bits(k, 11));
            s.incidence = static_cast<std::uint8_t>(rng::bits(k, 12));
        }
        return SplatTile(frame, splats);
    }
};

/// SplatTile is move-only; tracers take theirs by value.
inline SplatTile copy(const SplatTile& tile) {
    std::vector<Splat> splats(tile.size());
    for (std::size_t i = 0; i < tile.size(); ++i) splats[i] = tile.splat(i);
    return SplatTile(tile.frame(), splats);
}

inline std::vector<trace::TracerTilePtr> load_all(const trace::Tracer& tracer, const Street& street) {
    std::vector<trace::TracerTilePtr> out;
    for (std::size_t i = 0; i < street.tiles.size(); ++i) out.push_back(tracer.load(copy(street.tiles[i])));
    return out;
}

inline bool same(const trace::Hit& a, const trace::Hit& b) {
    return a.t == b.t && a.splat_id == b.splat_id && a.normal == b.normal && a.range_m == b.range_m &&
           a.label == b.label && a.intensity == b.intensity && a.acquired_range_m == b.acquired_range_m &&
           a.acquired_incidence == b.acquired_incidence;
}

}  // namespace citysplat::test
