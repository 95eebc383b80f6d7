#pragma once

#include "core/math/lattice.hpp"
#include "core/math/rng_hd.hpp"
#include "model/point.hpp"
#include "tiling/sector.hpp"

#include <algorithm>
#include <cstdint>

/// A point whose sensor and time are known is the end of a ray, and says that the ray met nothing before it.
namespace citysplat::tiling {

/// Lattice steps in a step of TilePoint::sensor_dx.
inline constexpr std::int64_t kSensorSteps = kLatticePerMetre / TilePoint::kSensorStepsPerMetre;
/// Free space is judged in cubes of about 20 cm, anchored in the world.
inline constexpr std::int64_t kVoxelSteps = kLatticePerMetre / 5;
/// Of longer rays only this much, before their end: bounds what one point can touch.
inline constexpr std::int64_t kLongestRaySteps = 128 * kLatticePerMetre;

/// True for the points whose rays are asked: sensor and time are known, and a hash of the place chooses one
/// in four. Neighbouring rays say the same. Points are given in steps from the origin of their sector.
inline bool is_witness(const TilePoint& p, const Sector& sector) {
    if (!p.has_sensor() || p.slot == TilePoint::kNoSlot) return false;
    const auto x = static_cast<std::uint64_t>(sector.origin_x() + p.x);
    const auto y = static_cast<std::uint64_t>(sector.origin_y() + p.y);
    const auto z = static_cast<std::uint64_t>(std::int64_t{p.z});
    return rng::mix(x * 0x9e3779b97f4a7c15u + y * 0xc2b2ae3d27d4eb4fu + z * 0xd6e8feb86659fd93u) % 4 == 0;
}

/// The sectors that the ray of a witness may have passed, with a voxel around it; empty for other points.
inline SectorBox reach_of(const TilePoint& p, const Sector& sector) {
    if (!is_witness(p, sector)) return {};
    const auto away = [](std::int16_t steps) {
        return std::clamp(steps * kSensorSteps, -kLongestRaySteps, kLongestRaySteps);
    };
    const std::int64_t x = sector.origin_x() + p.x, y = sector.origin_y() + p.y;
    const std::int64_t dx = away(p.sensor_dx), dy = away(p.sensor_dy);
    const LatticeBox box{std::min(x, x + dx), std::min(y, y + dy), std::max(x, x + dx) + 1,
                         std::max(y, y + dy) + 1};
    return sectors_of(box.widened(kVoxelSteps));
}

}  // namespace citysplat::tiling
