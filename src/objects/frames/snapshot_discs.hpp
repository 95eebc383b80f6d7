#pragma once

#include "core/math/vec_hd.hpp"
#include "model/point.hpp"
#include "model/splat_hd.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::objects {

/// What one ray of a scan says: it was empty from the sensor up to the point where it ended.
struct SeenRay {
    /// What does not move.
    static constexpr std::uint64_t kStands = ~std::uint64_t{0};

    Vec3d sensor, end;              ///< world
    std::uint64_t thing = kStands;  ///< that it ended on
};

/// The rays of one scan, found by their direction.
class SeenRays {
  public:
    explicit SeenRays(std::span<const SeenRay> rays);

    struct Ray {
        std::uint32_t cell;
        Vec3d sensor, end, direction;
        double length_m;
        std::uint64_t thing;
    };
    /// Calls use(ray) for all rays within 0.02 rad of a direction of length 1, and for some beyond.
    template <class Use>
    void for_near(Vec3d direction, Use use) const {
        const auto [x, y, z] = cell_of(direction);
        for (int i = 0; i < 9; ++i) {
            const std::uint32_t first = key_of({x + i / 3 - 1, y + i % 3 - 1, z - 1});
            for (auto ray = first_of(first); ray != rays_.end() && ray->cell <= first + 2; ++ray) use(*ray);
        }
    }

  private:
    using Cell = std::array<int, 3>;
    static Cell cell_of(Vec3d direction);
    static std::uint32_t key_of(Cell cell);
    std::vector<Ray>::const_iterator first_of(std::uint32_t key) const;

    std::vector<Ray> rays_;  ///< by cell
};

struct DiscBounds {
    double least_radius_m, most_radius_m;
};

/// A disc for each point of one thing, facing the sensor. It is as wide as the four nearest points of the
/// thing ask for, as the sensor sees them, but covers no ray that passed by: where one did, its edge lies
/// about half-way between the point and that ray. Points are sorted and have sensors; `rays` are all rays of
/// their scan that are known.
std::vector<Splat> discs_facing_sensor(std::span<const TilePoint> points, Vec3d frame_origin,
                                       const SeenRays& rays, std::uint64_t thing, const DiscBounds& bounds);

}  // namespace citysplat::objects
