#pragma once

#include "datasets/synth/city_plan.hpp"
#include "datasets/synth/primitives.hpp"

namespace citysplat::synth {

/// All static surfaces of a cell in its local frame, a pure function of (seed, cell).
Geometry make_block(std::uint64_t seed, Cell cell);

/// Adds surfaces to a geometry in a frame of their own: moved to `origin` and turned about z.
class Placed {
  public:
    Placed(Geometry& geometry, Vec3d origin, double yaw_rad);
    Placed at(Vec3d local_origin, double yaw_rad = 0) const;  ///< a frame within this frame
    Placed sloped(double grade) const;  ///< the same frame, rising by grade·x: a car on a hill

    Vec3d point(Vec3d local) const;
    Vec3d vector(Vec3d local) const;
    void box(Vec3d centre, Vec3d size, Surface surface) const;
    void bar(Vec3d from, Vec3d to, double radius, Surface surface) const {
        cone(from, to, radius, radius, surface);
    }
    void cone(Vec3d from, Vec3d to, double from_radius, double to_radius, Surface surface) const;
    void quad(Vec3d corner, Vec3d edge_u, Vec3d edge_v, Surface surface) const;
    void triangle(Vec3d a, Vec3d b, Vec3d c, Surface surface) const;
    /// Planar four-sided face a-b-c-d as two triangles.
    void face(Vec3d a, Vec3d b, Vec3d c, Vec3d d, Surface surface) const;
    void disc(Vec3d centre, Vec3d normal, double radius, Surface surface) const;
    void sphere(Vec3d centre, double radius, Surface surface) const;
    Geometry& geometry() const { return *geometry_; }

  private:
    Placed(Geometry* geometry, Vec3d origin, double cos, double sin)
        : geometry_(geometry), origin_(origin), cos_(cos), sin_(sin) {}
    Geometry* geometry_;
    Vec3d origin_;
    double cos_, sin_, grade_ = 0;
};

/// One side of a street for the things that stand on it: x runs along the street from 0 to `length`, y from
/// the kerb towards the houses.
struct StreetSide {
    Placed frame;
    double length;
    double grade, base;  ///< the top of the kerb is base + grade·x
    std::uint64_t key;
    /// Height of the sidewalk at (x, y).
    double height(double x, double y) const {
        return base + grade * x + plan::kSidewalkRise / (plan::kStreetHalf - plan::kRoadHalf) * y;
    }
};

void add_houses(Geometry& geometry, std::uint64_t seed, Cell cell);
void add_street_side(const StreetSide& side);
void add_tree(const Placed& place, Dice& dice, double crown_limit_m);
void add_bush(const Placed& place, Dice& dice, Vec3d size);

enum class VehicleKind { hatchback, saloon, van };
/// A car on its wheels: x forward, y left, z up, the origin on the ground below its middle.
void add_vehicle(const Placed& place, VehicleKind kind, Dice& dice, std::uint8_t vehicle_label);

}  // namespace citysplat::synth
