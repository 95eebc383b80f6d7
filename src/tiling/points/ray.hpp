#pragma once

#include "core/math/lattice.hpp"
#include "core/math/rng_hd.hpp"
#include "model/point.hpp"
#include "tiling/sector.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

/// A point whose sensor and time are known is the end of a ray, and says that the ray met nothing before it.
namespace citysplat::tiling {

/// Lattice steps in a step of TilePoint::sensor_dx.
inline constexpr std::int64_t kSensorSteps = kLatticePerMetre / TilePoint::kSensorStepsPerMetre;
/// Free space is judged in cubes of about 20 cm, anchored in the world.
inline constexpr std::int64_t kVoxelSteps = kLatticePerMetre / 5;
/// Of longer rays only this much, before their end: bounds what one point can touch.
inline constexpr std::int64_t kLongestRaySteps = 128 * kLatticePerMetre;

/// A ray as free space is judged by it: its end, and the way back to the sensor.
struct Ray {
    std::int32_t x, y, z;  ///< of its end, in steps from the origin of its sector
    std::uint32_t slot;    ///< this and the sensor as in TilePoint; both are known
    std::int16_t sensor_dx, sensor_dy, sensor_dz;
    std::uint16_t zero = 0;
    friend auto operator<=>(const Ray&, const Ray&) = default;
};
static_assert(sizeof(Ray) == 24 && std::has_unique_object_representations_v<Ray>);

inline Ray ray_of(const TilePoint& p) {
    return {p.x, p.y, p.z, p.slot, p.sensor_dx, p.sensor_dy, p.sensor_dz};
}

/// True for the points whose rays are asked: sensor and time are known, and a hash of the place chooses one
/// in four. Neighbouring rays say the same. Points are given in steps from the origin of their sector.
inline bool is_witness(const TilePoint& p, const Sector& sector) {
    if (!p.has_sensor() || p.slot == TilePoint::kNoSlot) return false;
    const auto x = static_cast<std::uint64_t>(sector.origin_x() + p.x);
    const auto y = static_cast<std::uint64_t>(sector.origin_y() + p.y);
    const auto z = static_cast<std::uint64_t>(std::int64_t{p.z});
    return rng::mix(x * 0x9e3779b97f4a7c15u + y * 0xc2b2ae3d27d4eb4fu + z * 0xd6e8feb86659fd93u) % 4 == 0;
}

/// What a ray may have passed, with a voxel around it.
inline LatticeBox box_of(const Ray& p, const Sector& sector) {
    const auto away = [](std::int16_t steps) {
        return std::clamp(steps * kSensorSteps, -kLongestRaySteps, kLongestRaySteps);
    };
    const std::int64_t x = sector.origin_x() + p.x, y = sector.origin_y() + p.y;
    const std::int64_t dx = away(p.sensor_dx), dy = away(p.sensor_dy);
    const LatticeBox box{std::min(x, x + dx), std::min(y, y + dy), std::max(x, x + dx) + 1,
                         std::max(y, y + dy) + 1};
    return box.widened(kVoxelSteps);
}

}  // namespace citysplat::tiling
