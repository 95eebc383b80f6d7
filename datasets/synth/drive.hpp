#pragma once

#include "datasets/synth/city_plan.hpp"
#include "model/trajectory.hpp"

#include <cstdint>
#include <vector>

/// The drive of the survey vehicle through the city, in city coordinates: a path of straight lines and arcs
/// along the streets, a speed along it, and from both the pose at any time. Closed formulas throughout: no
/// table grows with the number of points.
namespace citysplat::synth {

/// A piece of the path: a straight line (curvature 0) or an arc.
struct PathPiece {
    double begin_m;  ///< arc length of the drive at its start
    double length_m;
    double x, y, heading_rad;  ///< at its start
    double curvature;          ///< 1/m, positive to the left
    double speed_limit;        ///< m/s
};

struct PathPoint {
    double x, y, heading_rad;
};

/// The route of a seed: out of a street, a turn about at a crossing, back through the same street on the
/// other lane, a right turn, and then a walk through the city. At least `length_m` long.
std::vector<PathPiece> plan_route(std::uint64_t seed, double length_m);

/// A time span of constant acceleration.
struct MotionPhase {
    double begin_s, begin_m, speed, acceleration;
};

struct DriveParams {
    std::uint64_t seed = 1;
    double length_m = 200;
    double sensor_height_m = 2.2;   ///< optical centre of the scanner above the ground
    double localisation_m = 0.012;  ///< standard deviation of the recorded position, per axis; 0: perfect
};

/// Poses are evaluated on a grid of 1/128 s, and between two of them as model/trajectory.hpp does it
/// (position linear, rotation spherical), so that the trajectory file *is* the drive.
class Drive {
  public:
    static constexpr double kPosesPerSecond = 128;
    static constexpr double kBegin_s = 302400;  ///< GPS seconds of the week

    explicit Drive(const DriveParams& params);
    const DriveParams& params() const { return params_; }
    double duration_s() const { return duration_s_; }
    double length_m() const { return params_.length_m; }
    const std::vector<PathPiece>& route() const { return route_; }
    double standstill_s() const { return standstill_s_; }

    /// Arc length at `time_s` seconds after the start.
    double travelled_m(double time_s) const;
    PathPoint path_at(double arc_m) const;

    /// world_from_body of grid pose k, city coordinates: the body has its origin in the scanner's optical
    /// centre and the axes of the vehicle (x forward, y left, z up).
    Pose true_pose(std::int64_t k) const;
    /// What the navigation system believes: true pose with a slowly drifting error of centimetres.
    Pose recorded_pose(std::int64_t k) const;
    std::int64_t pose_count() const;  ///< poses 0 … count − 1 cover the drive
    static double pose_time_s(std::int64_t k) { return static_cast<double>(k) / kPosesPerSecond; }

    static Pose interpolate(const Pose& a, const Pose& b, double t);
    Pose true_pose_at(double time_s) const;
    Pose recorded_pose_at(double time_s) const;

  private:
    void plan_motion();

    DriveParams params_;
    std::vector<PathPiece> route_;
    std::vector<MotionPhase> motion_;
    double duration_s_ = 0;
    double standstill_s_ = 0;
};

}  // namespace citysplat::synth
