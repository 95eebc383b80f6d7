#pragma once

#include "core/trajectory.hpp"
#include "core/vec_hd.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::sim {

/// What became of a ray.
enum class RayStatus : std::uint8_t {
    none = 0,     ///< nothing within range
    hit = 1,      ///< a return
    dropped = 2,  ///< the sensor's drop model swallowed it
    missing = 3   ///< it would have crossed a tile that could not be loaded (--allow-missing)
};

/// One ray of a scan and its return. The bytes of these records, in ray order, make the digest of a scan.
struct Return {
    Vec3d position;  ///< world, metres; of a ray without return: where it would be at maximum range
    float range_m;   ///< as measured: with bias and noise
    float time_s;    ///< since the scan began
    Vec3f normal;    ///< of the splat, turned towards the sensor
    float cosine;    ///< of the incidence angle
    std::uint32_t tile, splat;  ///< id of the (first) splat hit
    std::uint16_t beam;
    std::uint16_t label, intensity;
    std::uint8_t hits;  ///< splats that contributed
    RayStatus status;
};
static_assert(sizeof(Return) == 64);

/// One sweep of one sensor.
struct Scan {
    std::uint64_t index = 0;
    double time_s = 0;            ///< when it began
    Pose world_from_sensor;       ///< at that time
    std::vector<Return> returns;  ///< every ray, in firing order
    std::uint64_t hits = 0, dropped = 0, missing = 0;
};

}  // namespace citysplat::sim
