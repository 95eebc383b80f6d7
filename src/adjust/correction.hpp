#pragma once

#include "model/trajectory.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace citysplat::adjust {

/// Rotation by |v| radians about v.
Quaternion rotation_from(Vec3d rotation_vector_rad);

/// Six unknowns at one knot: the sensor is moved by `shift_m`, and what it saw is turned about it.
struct KnotCorrection {
    Vec3d shift_m{0, 0, 0};
    Vec3d turn_rad{0, 0, 0};  ///< rotation vector, in the axes of the world
};

/// The correction of one trajectory, as a function of time: linear between knots, as a trajectory is between
/// its poses. Knots are poses of the trajectory, so that the correction can follow poses that jump one by
/// one: where the body moves every `spacing_s`, where it stands (less than 10 cm and 0.1° from knot to knot)
/// every two seconds at the most.
class Correction {
  public:
    /// Keeps a copy of the poses. Requires at least one pose.
    Correction(Trajectory given, double spacing_s);

    const Trajectory& given() const { return given_; }
    std::span<const double> knot_times_s() const { return times_s_; }
    std::span<KnotCorrection> knots() { return knots_; }
    std::span<const KnotCorrection> knots() const { return knots_; }
    /// Intervals between knots; one even when there is only one knot.
    std::size_t intervals() const { return times_s_.size() > 1 ? times_s_.size() - 1 : 1; }
    Vec3d knot_position_m(std::size_t knot) const { return positions_m_[knot]; }  ///< as given
    double interval_begin_s(std::size_t interval) const { return times_s_[interval]; }

    /// The interval that a time of the trajectory is in. `hint`: where the last one was.
    std::size_t interval_of(double time_s, std::size_t& hint) const;
    /// A time as a knot and the share of the next one.
    struct Place {
        std::size_t knot;
        double share;
    };
    Place place_of(std::size_t interval, double time_s) const;
    Place middle_of(std::size_t interval) const;
    KnotCorrection at(const Place& place) const;
    /// Where the given trajectory is, straight from knot to knot.
    Vec3d given_position_m(const Place& place) const;

    /// The given trajectory with the correction, pose by pose.
    Trajectory corrected() const;

  private:
    Trajectory given_;
    std::vector<double> times_s_;
    std::vector<Vec3d> positions_m_;
    std::vector<KnotCorrection> knots_;
};

}  // namespace citysplat::adjust
