#include "bench/bench_city.hpp"

#include "core/math/lattice.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "splat/search/curve.hpp"
#include "tiling/store/city_reader.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace citysplat::bench {

namespace {

constexpr double kEast = 652000, kNorth = 6861000, kLength_m = 400;

struct Maker {
    const TileGrid grid{32};
    std::map<TileKey, std::vector<Splat>> splats;
    std::uint64_t counter = 0;

    double random(double low, double high) { return rng::uniform(11, counter++, low, high); }

    void add(Vec3d p, Vec3d n, double radius_m, std::uint16_t label) {
        const std::int64_t x = to_lattice(kEast + p.x), y = to_lattice(kNorth + p.y), z = to_lattice(p.z);
        const TileKey key = grid.base_tile_of(x, y);
        const LatticePoint o = grid.frame(key, 0).origin();
        const Vec3d tilt{random(-0.05, 0.05), random(-0.05, 0.05), random(-0.05, 0.05)};
        splats[key].push_back({static_cast<std::int32_t>(x - o.x), static_cast<std::int32_t>(y - o.y),
                               static_cast<std::int32_t>(z - o.z), pack_normal(normalized(n + tilt)),
                               static_cast<std::uint16_t>(to_lattice(radius_m)), label, 30000, 10,
                               SplatGroup::surface, 10, 80, 0});
    }
    /// About one disc per spacing², radius 0.9 · spacing, on the rectangle a + u·s + v·t.
    void rectangle(Vec3d a, Vec3d u, Vec3d v, double spacing_m, std::uint16_t label) {
        const Vec3d n = normalized(cross(u, v));
        const double area = length(cross(u, v));
        const auto count = static_cast<std::size_t>(area / (spacing_m * spacing_m));
        for (std::size_t i = 0; i < count; ++i)
            add(a + u * random(0, 1) + v * random(0, 1) + n * random(-0.01, 0.01), n, 0.9 * spacing_m, label);
    }
};

std::uint64_t place_on_curve(const Splat& s) {
    const auto cell = [](std::int32_t steps) { return static_cast<std::uint32_t>(steps) >> 6 & 0xffff; };
    return splat::hilbert_key(cell(s.x), cell(s.y), cell(s.z + (1 << 20)), 16);
}

class MadeCity final : public TileSource {
  public:
    explicit MadeCity(std::size_t splats) {
        Maker maker;
        // Areas in units of which the spacing follows from the number asked for.
        const double s = std::sqrt(16200.0 / static_cast<double>(splats));
        maker.rectangle({0, -10, 0}, {kLength_m, 0, 0}, {0, 20, 0}, 1.6 * s, 7);
        for (const double side : {-10.0, 10.0})
            for (double x = 0; x < kLength_m; x += 12) {
                const double height = 8 + maker.random(0, 10),
                             back = side + (side > 0 ? 1 : -1) * maker.random(0, 1.5);
                maker.rectangle({x, back, 0}, {12, 0, 0}, {0, 0, height}, 1.2 * s, 1);
                for (double wx = 1; wx < 11; wx += 2.5)
                    for (double wz = 1; wz + 2 < height; wz += 3)
                        maker.rectangle({x + wx, back + (side > 0 ? 0.2 : -0.2), wz}, {1.2, 0, 0},
                                        {0, 0, 1.6}, s, 1);
            }
        for (double x = 6; x < kLength_m; x += 14)
            for (const double y : {-6.0, 6.0}) {
                for (double z = 0; z < 5; z += 0.03)
                    for (int k = 0; k < 8; ++k) {
                        const auto a = exact::sin_cos(k * exact::kPi / 4);
                        maker.add({x + 0.1 * a.cos, y + 0.1 * a.sin, z}, {a.cos, a.sin, 0}, 0.045, 5);
                    }
                for (int i = 0; i < static_cast<int>(static_cast<double>(splats) / 700); ++i) {
                    const double z = maker.random(-1, 1), a = maker.random(0, 2 * exact::kPi),
                                 r = std::cbrt(maker.random(0, 1)) * 2;
                    const Vec3d n{std::sqrt(1 - z * z) * exact::cos(a), std::sqrt(1 - z * z) * exact::sin(a),
                                  z};
                    maker.add(Vec3d{x, y, 6} + n * r,
                              normalized(n + Vec3d{maker.random(-1, 1), maker.random(-1, 1), 0.1}), 0.04, 9);
                }
            }
        for (auto& [key, list] : maker.splats) {
            std::sort(list.begin(), list.end(),
                      [](const Splat& a, const Splat& b) { return place_on_curve(a) < place_on_curve(b); });
            const TileFrame frame = maker.grid.frame(key, 0);
            tiles_.emplace_back(frame, list);
            const Vec3d origin{static_cast<double>(frame.x_m), static_cast<double>(frame.y_m), 0};
            TileEntry e{key,
                        list.size(),
                        tiles_.back().bytes().size(),
                        {INFINITY, INFINITY, INFINITY},
                        {-INFINITY, -INFINITY, -INFINITY}};
            for (std::size_t i = 0; i < list.size(); ++i) {
                const Disc d = tiles_.back().disc(i);
                const Vec3d c = origin + vec_cast<double>(d.centre);
                const double r = static_cast<double>(d.radius);
                e.min = {std::min(e.min.x, c.x - r), std::min(e.min.y, c.y - r), std::min(e.min.z, c.z - r)};
                e.max = {std::max(e.max.x, c.x + r), std::max(e.max.y, c.y + r), std::max(e.max.z, c.z + r)};
            }
            entries_.push_back(e);
        }
    }
    std::span<const TileEntry> tiles() const override { return entries_; }
    SplatTile load(std::size_t i) const override {
        SplatTile copy(tiles_[i].frame(), tiles_[i].size());
        std::ranges::copy(tiles_[i].bytes(), copy.mutable_bytes().begin());
        return copy;
    }
    const ClassMap& classes() const override { return classes_; }

  private:
    std::vector<SplatTile> tiles_;
    std::vector<TileEntry> entries_;
    ClassMap classes_;
};

}  // namespace

std::unique_ptr<TileSource> open_or_make_city(const std::string& path, std::size_t splats) {
    if (!path.empty()) return std::make_unique<tiling::CityReader>(path);
    return std::make_unique<MadeCity>(splats);
}

Trajectory drive_through_made_city(double seconds) {
    std::vector<StampedPose> poses;
    for (double t = 0; t <= seconds + 0.1; t += 0.1)
        poses.push_back({t,
                         {{kEast + 100 + 10 * t, kNorth + 0.5 * exact::sin(t), 1.9},
                          from_yaw_pitch_roll(0.05 * exact::cos(t), 0, 0)}});
    return Trajectory(poses);
}

std::uint64_t count_splats(const TileSource& city) {
    std::uint64_t n = 0;
    for (const auto& e : city.tiles()) n += e.splats;
    return n;
}

}  // namespace citysplat::bench
