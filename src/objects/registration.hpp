#pragma once

#include "model/trajectory.hpp"
#include "objects/object_points.hpp"
#include "objects/surface_map.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace citysplat::objects {

/// How points are laid on a surface, and when the result is believed. The bounds are those of the sensor and
/// of boxes drawn by people.
struct RegistrationOptions {
    double geometry_weight = 0.968;  ///< λ of Park et al.; the rest goes to the intensity
    double least_inliers = 0.60;     ///< of the points that meet the surface
    double inlier_m = 0.05;
    double least_overlap = 0.25;  ///< share of the points that meet the surface
    double most_shift_m = 0.3, most_turn_deg = 5;
    /// Standard deviation of a box: what no surface tells stays where the box has it.
    double box_shift_m = 0.15, box_turn_deg = 2.5;
    double box_length_m = 0.05;  ///< the same of the length that the boxes of a track share
};

/// The surface at three widths of cells: wide ones find a match from afar, narrow ones are exact.
class SurfacePyramid {
  public:
    static constexpr std::array<std::int64_t, 3> kCellSteps{2048, 1024, 512};  ///< 25, 12.5 and 6.25 cm

    SurfacePyramid(Vec3d min, Vec3d max);
    void add(std::span<const ObjectPoint> points);
    void remove(std::span<const ObjectPoint> points);
    const SurfaceMap& level(std::size_t i) const { return levels_[i]; }

  private:
    std::array<SurfaceMap, 3> levels_;
};

struct Registration {
    Pose correction;     ///< where the points belong from where they are
    double shift_m = 0;  ///< of their middle
    double turn_deg = 0;
    double overlap = 0;  ///< share of the points that meet the surface
    double inliers = 0;  ///< share of those that lie on it
    bool accepted = false;
    /// Too few points meet the surface to say anything.
    bool apart(const RegistrationOptions& options) const { return overlap < options.least_overlap; }
};

/// Lays points on a surface: point to plane with an intensity term (Park, Zhou, Koltun 2017, eq. 14–20),
/// Geman–McClure weights and a prior that the points lie where they are, by Gauss–Newton steps from `start`,
/// over wide cells and then narrow ones. One thread; sums are in the order of the points.
Registration register_points(const SurfacePyramid& surface, std::span<const ObjectPoint> points,
                             const Pose& start, const RegistrationOptions& options);

/// The points after a rigid motion, on the lattice again.
std::vector<ObjectPoint> moved(std::span<const ObjectPoint> points, const Pose& motion);

/// About as many points as asked for, chosen by a hash of their places; all when there are not more.
std::vector<ObjectPoint> sample_of(std::span<const ObjectPoint> points, std::size_t count);

/// Turns about a vector by its length in radians.
Quaternion from_rotation_vector(Vec3d rotation_rad);
/// The inverse of it, for small angles.
Vec3d rotation_vector(const Quaternion& q);

}  // namespace citysplat::objects
