#pragma once

#include "model/trajectory.hpp"

#include <vector>

namespace citysplat::io {

/// A smooth path through poses that are one scan apart: cubic in position and rotation, with the slope at
/// each pose of the parabola through it and its neighbours. Across holes of more than half a second it is
/// straight, and beyond its ends it goes on with the speed it has there.
class SmoothPath {
  public:
    /// Requires at least one pose.
    explicit SmoothPath(const Trajectory& given);

    Pose at(double time_s) const;
    /// Poses close enough that straight lines between them are the path to a millimetre: those given and some
    /// between, from begin_s (if that is earlier than the first) to end_s (if later than the last).
    Trajectory resampled(double begin_s, double end_s) const;

  private:
    /// Place and rotation as seven numbers, and their change per second.
    struct Knot {
        double time_s;
        double value[7], slope[7];
    };
    Pose between(const Knot& a, const Knot& b, double time_s) const;

    std::vector<Knot> knots_;
};

}  // namespace citysplat::io
