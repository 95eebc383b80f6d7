#pragma once

#include "core/host_device.hpp"
#include "core/splat_hd.hpp"
#include "core/vec_hd.hpp"

#include <cstdint>

/// How a ray meets a splat (AdaSplats §4.1). Every backend decides hits with these operations in this order,
/// so that acceleration structures, SIMD widths and devices cannot change a result.
namespace citysplat::sim {

/// A ray in the world. The direction is of unit length.
struct Ray {
    Vec3d origin;
    Vec3f direction;
    float t_min, t_max;  ///< metres; a hit has t_min < t <= t_max
};
static_assert(sizeof(Ray) == 48);

/// A disc as tracers keep it: half a cache line in the tile's frame.
struct TraceDisc {
    Vec3f centre;
    float radius_squared;
    Vec3f normal;
    std::uint32_t label;
};
static_assert(sizeof(TraceDisc) == 32);

CITYSPLAT_HD inline TraceDisc make_trace_disc(const Disc& disc, std::uint16_t label) {
    return {disc.centre, disc.radius * disc.radius, disc.normal, label};
}

/// Origin of a ray in a tile's frame: subtracted in double, rounded once. It depends on the ray and the tile
/// alone, not on what else is resident.
CITYSPLAT_HD inline Vec3f local_origin(Vec3d world, Vec3d tile_origin) {
    return vec_cast<float>(world - tile_origin);
}

/// Distance along the ray to the disc's plane, eq. 11, and whether it lies inside the disc, eq. 12. A ray in
/// the plane gives an infinite or undefined t, which every comparison below refuses.
CITYSPLAT_HD inline bool meets(const TraceDisc& disc, Vec3f origin, Vec3f direction, float& t) {
    const Vec3f to_centre = disc.centre - origin;
    t = dot(disc.normal, to_centre) / dot(disc.normal, direction);
    const Vec3f off = direction * t - to_centre;
    return dot(off, off) < disc.radius_squared;
}

/// The same distance in double precision, for the disc that was hit: float loses about |origin|·1e-7 / cos of
/// the incidence, a millimetre at grazing rays.
CITYSPLAT_HD inline double exact_range(const TraceDisc& disc, Vec3d origin_in_tile, Vec3f direction) {
    const Vec3d normal = vec_cast<double>(disc.normal);
    return dot(normal, vec_cast<double>(disc.centre) - origin_in_tile) /
           dot(normal, vec_cast<double>(direction));
}

}  // namespace citysplat::sim
