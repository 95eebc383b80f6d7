#include "datasets/synth/block.hpp"

#include <cmath>

namespace citysplat::synth {

Placed::Placed(Geometry& geometry, Vec3d origin, double yaw_rad) : geometry_(&geometry), origin_(origin) {
    const auto turn = exact::sin_cos(yaw_rad);
    cos_ = turn.cos;
    sin_ = turn.sin;
}

Placed Placed::at(Vec3d local_origin, double yaw_rad) const {
    const auto turn = exact::sin_cos(yaw_rad);
    return {geometry_, point(local_origin), cos_ * turn.cos - sin_ * turn.sin,
            sin_ * turn.cos + cos_ * turn.sin};
}

Placed Placed::sloped(double grade) const {
    Placed result = *this;
    result.grade_ = grade;
    return result;
}

Vec3d Placed::vector(Vec3d v) const {
    return {cos_ * v.x - sin_ * v.y, sin_ * v.x + cos_ * v.y, v.z + grade_ * v.x};
}
Vec3d Placed::point(Vec3d local) const { return origin_ + vector(local); }

void Placed::box(Vec3d centre, Vec3d size, Surface surface) const {
    geometry_->of<Box>().push_back({point(centre), 0.5 * size, cos_, sin_, surface});
}
void Placed::cone(Vec3d from, Vec3d to, double from_radius, double to_radius, Surface surface) const {
    geometry_->of<Frustum>().push_back(
        Frustum::between(point(from), point(to), from_radius, to_radius, surface));
}
void Placed::quad(Vec3d corner, Vec3d edge_u, Vec3d edge_v, Surface surface) const {
    geometry_->of<Flat>().push_back(
        Flat::make(point(corner), vector(edge_u), vector(edge_v), false, surface));
}
void Placed::triangle(Vec3d a, Vec3d b, Vec3d c, Surface surface) const {
    geometry_->of<Flat>().push_back(Flat::make(point(a), vector(b - a), vector(c - a), true, surface));
}
void Placed::face(Vec3d a, Vec3d b, Vec3d c, Vec3d d, Surface surface) const {
    triangle(a, b, c, surface);
    triangle(a, c, d, surface);
}
void Placed::disc(Vec3d centre, Vec3d normal, double radius, Surface surface) const {
    geometry_->of<Disc>().push_back({vec_cast<float>(point(centre)), vec_cast<float>(vector(normal)),
                                     static_cast<float>(radius), surface});
}
void Placed::sphere(Vec3d centre, double radius, Surface surface) const {
    geometry_->of<Sphere>().push_back({point(centre), radius, surface});
}

Geometry make_block(std::uint64_t seed, Cell cell) {
    using namespace plan;
    Geometry geometry;
    geometry.of<Patch>() = ground_patches(seed, cell);
    geometry.of<Flat>() = kerbs(seed, cell);
    add_houses(geometry, seed, cell);

    const double h = node_height(seed, cell.i, cell.j);
    const double east = node_height(seed, cell.i + 1, cell.j), north = node_height(seed, cell.i, cell.j + 1);
    const double segment = kPitch - 2 * kStreetHalf;
    const std::uint64_t key = key_of(seed, Purpose::furniture, cell);
    const auto side = [&](int index, Vec3d origin, double yaw, double from, double to) {
        add_street_side({Placed(geometry, origin, yaw), segment, (to - from) / segment, from + kKerb,
                         rng::key(key, static_cast<std::uint64_t>(index))});
    };
    // Each side in a right-handed frame with y towards the houses.
    const double near = kStreetHalf, far = kStreetHalf + segment, edge = kRoadHalf;
    side(0, {near, edge, 0}, 0, h, east);
    side(1, {far, -edge, 0}, exact::kPi, east, h);
    side(2, {edge, far, 0}, -exact::kPi / 2, north, h);
    side(3, {-edge, near, 0}, exact::kPi / 2, h, north);
    return geometry;
}

}  // namespace citysplat::synth
