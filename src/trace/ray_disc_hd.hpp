#pragma once

#include "core/math/host_device.hpp"
#include "core/math/vec_hd.hpp"
#include "model/splat_hd.hpp"

#include <cstdint>

/// How a ray meets a splat (AdaSplats §4.1). Every backend decides hits with these operations in this order,
/// so that acceleration structures, SIMD widths, devices and tiles cannot change a result.
namespace citysplat::trace {

/// A ray in the world. The direction is of unit length.
struct Ray {
    Vec3d origin;
    Vec3f direction;
    float t_min, t_max;  ///< metres; a hit has t_min < t <= t_max
    float time_s = 0;    ///< since the scan began: when it meets what moves
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

/// Where a ray starts when it meets splats: its origin on the lattice of the splats (2⁻¹³ m), or for rays
/// beyond kFineReach_m on every eighth of its points (2⁻¹⁰ m). This makes what a ray meets independent of
/// tiles, because every frame then sees the same numbers:
///
/// - A frame is at whole metres and its splats lie within 1024 m of it (kMaxSplatSteps), their radius is
///   below 8 m. A ray that can meet one of them starts within 1024 + 1000 + 8 < 2048 m of the frame; in
///   steps of 2⁻¹³ m that is below 2²⁴, so local_origin() is exact. A long ray (10 000 m, the most that a
///   sensor file may ask for; 15 000 m would do) starts within 1024 + 10 000 + 8 < 16 384 m: below 2²⁴ steps
///   of 2⁻¹⁰ m, exact as well.
/// - The splat's centre is exact in its frame (24 bits), so the one subtraction of meets() rounds the true
///   difference, which no frame can change. Everything behind it works with that difference.
/// - Where the ray starts farther away than that from a frame, local_origin() may round by a millimetre, but
///   none of the frame's splats is within the ray's t_max.
///
/// The ray is moved by at most 0.06 mm (long rays 0.5 mm) along each axis. That decides only which discs it
/// meets and in which order: the range that is reported is measured from the true origin (exact_range()).
inline constexpr float kFineReach_m = 1000;

CITYSPLAT_HD inline Vec3d lattice_origin(const Ray& ray) {
    // Near 1.5 · 2⁵² · step the doubles are a step apart: the sum is rounded to a step, the difference exact.
    const double far_away = ray.t_max > kFineReach_m ? 0x1.8p42 : 0x1.8p39;
    return {(ray.origin.x + far_away) - far_away, (ray.origin.y + far_away) - far_away,
            (ray.origin.z + far_away) - far_away};
}

/// The same ray, of which nothing beyond `t_max` matters. It keeps its lattice_origin(): a long ray is not
/// cut to where it would count as a short one.
CITYSPLAT_HD inline Ray shortened(Ray ray, float t_max) {
    if (ray.t_max > kFineReach_m && t_max <= kFineReach_m) t_max = kFineReach_m + 1;
    if (t_max < ray.t_max) ray.t_max = t_max;
    return ray;
}

/// A lattice_origin() in a frame of whole metres; exact wherever a splat of that frame can be met.
CITYSPLAT_HD inline Vec3f local_origin(Vec3d lattice_origin, Vec3d frame_origin) {
    return vec_cast<float>(lattice_origin - frame_origin);
}

/// Rays are at most this long; what a sensor file may ask for.
inline constexpr float kMaxRange_m = 10000;

/// A hit lies no farther than this outside its disc, whatever meets() rounds. With u = 2⁻²⁴ and the distance
/// D of the disc, n·c errs by 3 u·D, n·d moves the plane's foot by as much again, the division by u·D, and
/// direction · t by u·D along each axis: 9 u·D, 5.4 mm at 10 km. A box that is this much larger than its disc
/// loses no hit if the traversal itself errs on the safe side; 0.1 mm is for the rounding of its corners.
CITYSPLAT_HD constexpr float hit_slack_m(float range_m) {
    constexpr float kLargestRadius_m = 8;
    return 1e-4f + 9 * 0x1p-24f * (range_m + kLargestRadius_m);
}

/// Distance along the ray to the disc's plane, eq. 11, and whether it lies inside the disc, eq. 12. A ray in
/// the plane gives an infinite or undefined t, which every comparison below refuses.
CITYSPLAT_HD inline bool meets(const TraceDisc& disc, Vec3f origin, Vec3f direction, float& t) {
    const Vec3f to_centre = disc.centre - origin;
    t = dot(disc.normal, to_centre) / dot(disc.normal, direction);
    const Vec3f off = direction * t - to_centre;
    return dot(off, off) < disc.radius_squared;
}

/// Centre of a disc in the world: exact.
CITYSPLAT_HD inline Vec3d world_centre(const TraceDisc& disc, Vec3d frame_origin) {
    return frame_origin + vec_cast<double>(disc.centre);
}

/// The distance from the ray's true origin in double precision, for the disc that was hit: float loses about
/// distance · 1e-7 / cos of the incidence, a millimetre at grazing rays.
CITYSPLAT_HD inline double exact_range(const TraceDisc& disc, Vec3d frame_origin, const Ray& ray) {
    const Vec3d normal = vec_cast<double>(disc.normal);
    return dot(normal, world_centre(disc, frame_origin) - ray.origin) /
           dot(normal, vec_cast<double>(ray.direction));
}

}  // namespace citysplat::trace
