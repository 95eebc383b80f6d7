#pragma once

#include "core/math/host_device.hpp"
#include "core/math/vec_hd.hpp"

#include <cmath>
#include <cstdint>

/// How a ray meets a triangle, from either side and without cracks: a ray at the common edge of two triangles
/// or at the common corner of many meets at least one of them.
///
/// The corners are moved by a shear so that the ray becomes an axis (Woop, Benthin and Wald, "Watertight
/// Ray/Triangle Intersection", JCGT 2013). Each corner is rounded by itself, in the same way in all triangles
/// it belongs to; what follows decides for the rounded corners without error. The edge function of an edge is
/// a difference of two products: rounding keeps the order of numbers, so its sign is right or it is 0, and
/// then it is taken again in double precision, where the products are exact. Seen from the other triangle the
/// edge runs backwards and the function is the exact negative. 0 counts as inside on both sides.
namespace citysplat::trace {

/// A triangle as tracers keep it, in the frame of its shape.
struct TraceTriangle {
    Vec3f a, b, c;
    std::uint32_t label;
};
static_assert(sizeof(TraceTriangle) == 40);

/// A ray as triangles see it. It depends on the ray alone, not on how rays go together.
struct ShearedRay {
    float origin[3];  ///< along the axes x, y and z below
    float shear_x, shear_y, scale_z;
    std::uint32_t x, y, z;  ///< axes: z is the one along which the ray goes most
};

CITYSPLAT_HD inline float component(Vec3f v, std::uint32_t axis) {
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

CITYSPLAT_HD inline ShearedRay sheared(Vec3f origin, Vec3f direction) {
    const Vec3f size{std::fabs(direction.x), std::fabs(direction.y), std::fabs(direction.z)};
    const std::uint32_t z = size.x >= size.y ? (size.x >= size.z ? 0 : 2) : (size.y >= size.z ? 1 : 2);
    const std::uint32_t x = (z + 1) % 3, y = (z + 2) % 3;
    const float along = component(direction, z);
    return {{component(origin, x), component(origin, y), component(origin, z)},
            component(direction, x) / along,
            component(direction, y) / along,
            1.0f / along,
            x,
            y,
            z};
}

/// The edge from (ax, ay) to (bx, by), seen from the ray.
CITYSPLAT_HD inline float edge_function(float ax, float ay, float bx, float by) {
    const float e = bx * ay - by * ax;
    if (e != 0) return e;
    return static_cast<float>(static_cast<double>(bx) * static_cast<double>(ay) -
                              static_cast<double>(by) * static_cast<double>(ax));
}

/// Distance along the ray, and whether it meets the triangle. A triangle without an area, and one that is
/// seen exactly from its edge, is not met.
CITYSPLAT_HD inline bool meets(const TraceTriangle& triangle, const ShearedRay& ray, float& t) {
    const auto relative = [&](Vec3f corner, float& x, float& y, float& z) {
        const float depth = component(corner, ray.z) - ray.origin[2];
        x = (component(corner, ray.x) - ray.origin[0]) - ray.shear_x * depth;
        y = (component(corner, ray.y) - ray.origin[1]) - ray.shear_y * depth;
        z = ray.scale_z * depth;
    };
    float ax, ay, az, bx, by, bz, cx, cy, cz;
    relative(triangle.a, ax, ay, az);
    relative(triangle.b, bx, by, bz);
    relative(triangle.c, cx, cy, cz);
    const float u = edge_function(bx, by, cx, cy), v = edge_function(cx, cy, ax, ay),
                w = edge_function(ax, ay, bx, by);
    if ((u < 0 || v < 0 || w < 0) && (u > 0 || v > 0 || w > 0)) return false;
    const float sum = (u + v) + w;
    t = ((u * az + v * bz) + w * cz) / sum;
    return sum != 0;
}

/// The distance from the true origin in double precision: where the ray crosses the triangle's plane. Where
/// it hardly does, the plane says little: the crossing is then taken no farther than where the triangle
/// begins or ends along the ray. `a`, `b`, `c` are the corners relative to the ray's origin.
CITYSPLAT_HD inline double exact_range(Vec3d a, Vec3d b, Vec3d c, Vec3d direction) {
    const Vec3d normal = cross(b - a, c - a);
    const double da = dot(a, direction), db = dot(b, direction), dc = dot(c, direction);
    const double near = da < db ? (da < dc ? da : dc) : (db < dc ? db : dc);
    const double far = da > db ? (da > dc ? da : dc) : (db > dc ? db : dc);
    const double range = dot(normal, a) / dot(normal, direction);
    return !(range > near) ? near : range < far ? range : far;
}

}  // namespace citysplat::trace
