#pragma once

#include "model/trajectory.hpp"

#include <vector>

namespace citysplat {

/// The rotation by |v| radians about v, and back; the latter turns by at most π.
Quaternion quaternion_exp(Vec3d v);
Vec3d quaternion_log(const Quaternion& q);

/// A path whose position and rotation are twice continuously differentiable: what a vehicle with a mass does,
/// and what an IMU on it measures. Uniform cubic B-splines; rotations by the cumulative form (Sommer et al.,
/// "Efficient Derivative Computation for Cumulative B-Splines on Lie Groups", CVPR 2020, eq. 4, 13).
class PoseSpline {
  public:
    struct State {
        Pose pose;
        Vec3d velocity_m_s, acceleration_m_s2;  ///< in the world
        Vec3d turn_rad_s;                       ///< in the frame of the body
    };

    /// Follows the trajectory in steps of about `step_s`: motion that is quicker is smoothed away. Requires
    /// at least two poses. Throws UsageError when it would take millions of steps.
    PoseSpline(const Trajectory& trajectory, double step_s);

    double begin_s() const { return begin_s_; }
    double end_s() const { return begin_s_ + step_s_ * static_cast<double>(segments()); }
    /// Times outside are moved to the nearer end.
    State at(double time_s) const;
    /// Poses so close to each other that straight lines between them are the spline to 10 µm and 1 µrad.
    Trajectory sampled() const;

  private:
    std::size_t segments() const { return places_.size() - 3; }

    double begin_s_, step_s_;
    Vec3d origin_m_;             ///< places are relative to it
    std::vector<Vec3d> places_;  ///< control points, one before the beginning and two behind the end
    std::vector<Quaternion> rotations_;
    std::vector<Vec3d> turns_;  ///< from each control rotation to the next one
};

}  // namespace citysplat
