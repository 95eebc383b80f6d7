#pragma once

#include "model/sweep.hpp"

#include <cstdint>
#include <optional>

namespace citysplat::io {

/// The sensor of a sweep at any moment of it: when it looked where, and from where.
class SweepClock {
  public:
    /// Throws InputError naming `name` when the poses make no trajectory or do not cover the turn.
    SweepClock(const Sweep& sweep, const std::string& name);

    bool covers(double time_s) const { return path_.covers(time_s); }
    /// Requires a time between begin_s and end_s, or one that is covered.
    Pose world_from_sensor(double time_s) const { return *path_.at(time_s); }
    const Pose& world_from_reference() const { return world_from_reference_; }

    /// When the sensor looked towards a point, given in its own frame. `in_file` is the point's place among
    /// those of the file, from 0 to 1; it decides at the seam of the turn where the file is in order.
    double time_towards(Vec3d in_sensor, double in_file) const;
    /// When it measured a point that the file has in the frame of reference_s: where it stood at that time
    /// decides the direction, so a few steps are needed. Without order, a point at the seam stays on the side
    /// where the frame of reference has it.
    double time_of_fixed(Vec3d in_reference, double in_file) const;
    /// Of record i of n, when the file has one for every firing.
    double time_of_record(std::uint64_t record, std::uint64_t records) const;
    /// Was the sensor within this distance of a place at any time of its poses?
    bool passes(Vec3d world, double distance_m) const;
    /// Where the sensor looks at a time, in its own frame.
    double azimuth_at(double time_s) const;

  private:
    double turn_towards(Vec3d in_sensor) const;  ///< share of the turn, from 0 to 1
    /// The share, or the end of the turn that it should be at.
    double at_seam(double turn, double in_file) const;
    double time_at(double turn) const { return begin_s_ + turn * (end_s_ - begin_s_); }

    Trajectory path_;
    Pose world_from_reference_;
    double begin_s_, end_s_, start_azimuth_rad_;
    bool clockwise_, in_order_;
    std::size_t beams_;
};

}  // namespace citysplat::io
