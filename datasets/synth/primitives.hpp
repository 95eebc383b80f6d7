#pragma once

#include "core/math/box.hpp"
#include "core/math/vec_hd.hpp"

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

/// The surfaces of which the synthetic city is made, each with the three questions that the truth must answer
/// exactly: where does a ray meet it, how far is a point from it, and in which box does it lie. All
/// arithmetic is double, built from operations that IEEE 754 fixes, so that the answers are the same bits
/// everywhere.
namespace citysplat::synth {

struct Ray {
    Vec3d origin;
    Vec3d direction;  ///< unit
};

/// How a surface's look varies over it. Patterns are functions of the position in the block.
enum class Pattern : std::uint8_t { plain, street_east, street_north };

/// What a surface is made of.
struct Surface {
    std::uint8_t label = 0;                 ///< datasets/classes/synthetic.toml
    std::uint8_t reflectance_percent = 50;  ///< diffuse
    Pattern pattern = Pattern::plain;
    friend bool operator==(const Surface&, const Surface&) = default;
};

/// A ray's encounter: distance along the ray, and the unit normal on the side the ray comes from.
struct Encounter {
    double t;
    Vec3d normal;
};

/// Rays never meet anything nearer than this to their origin.
inline constexpr double kNearest_m = 1e-6;

/// Piece of ground: z = c0 + c1·x + c2·y + c3·xy + c4·x² + c5·y² over a rectangle. Quadratic is just enough
/// for graded streets with a crown, domed crossings and warped lots that join without gaps.
struct Patch {
    double x0, x1, y0, y1;
    double c[6];
    Surface surface;

    double height(double x, double y) const {
        return c[0] + c[1] * x + c[2] * y + c[3] * x * y + c[4] * x * x + c[5] * y * y;
    }
    std::optional<Encounter> intersect(const Ray& ray, double t_max) const;
    double distance(Vec3d p) const;
    Box3d bounds() const;
};

/// Parallelogram (or its lower-left triangle): corner + s·edge_u + t·edge_v with s, t in [0, 1].
struct Flat {
    Vec3d corner, edge_u, edge_v;
    Vec3d normal;          ///< unit, edge_u × edge_v
    Vec3d dual_u, dual_v;  ///< s = dual_u·(p − corner), t = dual_v·(p − corner)
    bool triangular;
    Surface surface;

    static Flat make(Vec3d corner, Vec3d edge_u, Vec3d edge_v, bool triangular, Surface surface);
    std::optional<Encounter> intersect(const Ray& ray, double t_max) const;
    double distance(Vec3d p) const;
    Box3d bounds() const;
};

/// Upright box turned about z.
struct Box {
    Vec3d centre, half;
    double cos_yaw, sin_yaw;
    Surface surface;

    std::optional<Encounter> intersect(const Ray& ray, double t_max) const;
    double distance(Vec3d p) const;
    Box3d bounds() const;
};

/// Closed frustum of a cone: poles, bars, trunks, wheels, legs.
struct Frustum {
    Vec3d base, axis;  ///< axis: unit, from base to top
    double height, base_radius, top_radius;
    Surface surface;

    static Frustum between(Vec3d base, Vec3d top, double base_radius, double top_radius, Surface surface);
    std::optional<Encounter> intersect(const Ray& ray, double t_max) const;
    double distance(Vec3d p) const;
    Box3d bounds() const;
};

/// A leaf. Stored small: there are tens of thousands in a block.
struct Disc {
    Vec3f centre, normal;
    float radius;
    Surface surface;

    std::optional<Encounter> intersect(const Ray& ray, double t_max) const;
    double distance(Vec3d p) const;
    Box3d bounds() const;
};

struct Sphere {
    Vec3d centre;
    double radius;
    Surface surface;

    std::optional<Encounter> intersect(const Ray& ray, double t_max) const;
    double distance(Vec3d p) const;
    Box3d bounds() const;
};

/// A wall with a grid of recessed windows: hundreds of rectangles for the price of one. Window (i, j) is the
/// hole [i·pitch_u + low_u, i·pitch_u + high_u] × [j·pitch_v + low_v, …] of the wall, with a pane `depth`
/// behind it and four reveals. Seen from its front only; the inside of a house is nobody's business.
struct Facade {
    Vec3d corner, along,
        normal;  ///< lower corner, unit vector along the wall, unit outward normal; both horizontal
    double width, height;
    double first_u, first_v;  ///< where the grid of windows begins
    double pitch_u, pitch_v;
    double low_u, high_u, low_v, high_v;  ///< the hole in its grid cell
    double depth;
    int count_u, count_v;
    Surface surface, pane;

    std::optional<Encounter> intersect(const Ray& ray, double t_max) const;
    double distance(Vec3d p) const;
    Box3d bounds() const;
    /// Pane or wall: what a point on the façade is made of.
    Surface surface_at(Vec3d p) const;
};

/// Surfaces by kind, in one frame. The index of a kind is its place in the tuple; an element is named by
/// (kind, index).
struct Geometry {
    std::tuple<std::vector<Patch>, std::vector<Flat>, std::vector<Box>, std::vector<Frustum>,
               std::vector<Disc>, std::vector<Sphere>, std::vector<Facade>>
        kinds;

    template <class T>
    std::vector<T>& of() {
        return std::get<std::vector<T>>(kinds);
    }
    template <class T>
    const std::vector<T>& of() const {
        return std::get<std::vector<T>>(kinds);
    }
    /// Calls visit(kind, vector) for each kind in order.
    template <class Visit>
    void for_each_kind(Visit&& visit) const {
        std::apply([&, kind = 0u](const auto&... vectors) mutable { (visit(kind++, vectors), ...); }, kinds);
    }
    std::size_t size() const;
    Box3d bounds() const;
};

/// Appearance at a point of a surface, patterns resolved.
struct Look {
    std::uint8_t label;
    double reflectance;
};

/// First encounter with any surface, by trying all of them: for small sets, and the oracle of the tests.
struct GeometryHit {
    Encounter encounter;
    Look look;
};
std::optional<GeometryHit> intersect_all(const Geometry& geometry, const Ray& ray, double t_max);
struct GeometryNearest {
    double distance_m;
    Look look;
};
std::optional<GeometryNearest> nearest_of_all(const Geometry& geometry, Vec3d p);

/// The appearance of `primitive` at `p`, a point on it, in the frame of its block.
Look look_of(Surface surface, Vec3d p);
template <class Primitive>
Look look_at(const Primitive& primitive, Vec3d p) {
    return look_of(primitive.surface, p);
}
inline Look look_at(const Facade& facade, Vec3d p) { return look_of(facade.surface_at(p), p); }

}  // namespace citysplat::synth
