#pragma once

#include "model/splat_hd.hpp"
#include "trace/hit_hd.hpp"
#include "trace/motion_hd.hpp"
#include "trace/ray_disc_hd.hpp"
#include "trace/ray_triangle_hd.hpp"
#include "trace/tile_view_hd.hpp"

#include <cstdint>

/// What a hit on a part says (trace/part.hpp).
namespace citysplat::trace {

/// Numbers of parts begin here.
inline constexpr std::uint32_t kFirstPart = 0x80000000u;

/// What tells the hits on a part from those on others.
struct PartFacts {
    std::uint32_t id = 0;        ///< kFirstPart + its number in the scenario; 0: it belongs to the city
    std::uint16_t label = 0;     ///< of all its hits; 0: what the shape says
    std::uint16_t instance = 0;  ///< at least 1 if `id` is not 0
};
static_assert(sizeof(PartFacts) == 8);

/// The id of a hit: part and primitive, or the splat's own in parts that belong to the city.
CITYSPLAT_HD inline std::uint64_t hit_id(const PartFacts& part, const SplatFacts& splat,
                                         std::uint32_t primitive) {
    return part.id == 0 ? splat.id : std::uint64_t{part.id} << 32 | primitive;
}

/// Where rays start when they meet a part. Discs are met from lattice_origin(), wherever they are: a tile
/// that is a part gives the hits of a tile. So are the triangles of a city, whose corners are on the lattice:
/// what a ray meets depends on exact differences, and on no frame. Triangles of other parts are met from the
/// true origin: 0.06 mm beside it is another face of a box where two of them meet.
CITYSPLAT_HD inline bool starts_at_true_origin(const PartFacts& part, bool at_triangles) {
    return at_triangles && part.id != 0;
}
CITYSPLAT_HD inline LocalRay local_ray(const PoseKey& world_from_part, const Ray& ray, bool true_origin) {
    return local_ray(world_from_part, true_origin ? ray.origin : lattice_origin(ray), ray.direction);
}

/// A part at the time of a ray that met it.
struct MetPart {
    const PartFacts& part;
    const PoseKey& at;
    const SplatFacts& facts;  ///< of the primitive
    std::uint32_t primitive;
};

/// All of a hit but its range and its normal.
CITYSPLAT_HD inline Hit begin_hit(float t, const MetPart& met, std::uint32_t label) {
    Hit hit;
    hit.t = t;
    hit.splat_id = hit_id(met.part, met.facts, met.primitive);
    hit.label = met.part.label != 0 ? met.part.label : static_cast<std::uint16_t>(label & 0xffffu);
    hit.intensity = met.facts.intensity;
    hit.acquired_range_m = met.facts.acquired_range_m;
    hit.acquired_incidence = met.facts.acquired_incidence;
    hit.instance = met.part.instance;
    return hit;
}

/// The operations of exact_range() for tiles, which they are where the part is not turned.
CITYSPLAT_HD inline Hit describe(float t, const MetPart& met, const TraceDisc& disc, const Ray& ray) {
    Hit hit = begin_hit(t, met, disc.label);
    const Vec3d normal = turned_to_world(met.at, vec_cast<double>(disc.normal));
    const Vec3d centre = met.at.t + turned_to_world(met.at, vec_cast<double>(disc.centre));
    hit.range_m = dot(normal, centre - ray.origin) / dot(normal, vec_cast<double>(ray.direction));
    hit.normal = is_unturned(met.at) ? met.facts.normal : pack_normal(normal);
    return hit;
}
CITYSPLAT_HD inline Hit describe(float t, const MetPart& met, const TraceTriangle& triangle, const Ray& ray) {
    Hit hit = begin_hit(t, met, triangle.label);
    if (met.part.id == 0) {
        // A corner in the world is exact: what is rounded is the same in every frame.
        const auto corner = [&](Vec3f own) { return (met.at.t + vec_cast<double>(own)) - ray.origin; };
        hit.range_m = exact_range(corner(triangle.a), corner(triangle.b), corner(triangle.c),
                                  vec_cast<double>(ray.direction));
        hit.normal = met.facts.normal;
        return hit;
    }
    const Vec3d to_part = met.at.t - ray.origin;
    const auto corner = [&](Vec3f own) { return to_part + turned_to_world(met.at, vec_cast<double>(own)); };
    const Vec3d a = corner(triangle.a), b = corner(triangle.b), c = corner(triangle.c);
    hit.range_m = exact_range(a, b, c, vec_cast<double>(ray.direction));
    hit.normal = pack_normal(cross(b - a, c - a));
    return hit;
}

}  // namespace citysplat::trace
