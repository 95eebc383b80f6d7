#pragma once

#include "model/track.hpp"
#include "model/trajectory.hpp"

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace citysplat::sim {

/// Poses of something as they become known. Where it was at a time does not depend on how many of them came
/// at once.
class ToldPath {
  public:
    /// `name` is for messages.
    explicit ToldPath(std::string name) : name_(std::move(name)) {}

    bool empty() const { return poses_.empty(); }
    double first_s() const { return first_s_; }  ///< of all poses ever told; requires one
    double begin_s() const { return poses_.front().time_s; }
    double end_s() const { return poses_.back().time_s; }
    bool leaves() const { return leaves_s_ < std::numeric_limits<double>::infinity(); }

    /// Poses that follow those before. Throws InputError as Trajectory does, and changes nothing then.
    void append(std::span<const StampedPose> poses);
    /// It exists no longer from this time on. Throws InputError unless it was told where it is before that.
    void leave(double time_s);
    /// Lets go of poses that no time from `time_s` on needs.
    void forget_before(double time_s);

    /// The poses that the times from `begin_s` to `end_s` need. Requires that there is one.
    Trajectory during(double begin_s, double end_s) const;
    /// The same as a track: it exists from the first pose on, and stands at the last one until it leaves.
    /// Throws UsageError when it was told where it was at `begin_s`, and that is forgotten.
    Track track_during(double begin_s, double end_s) const;

  private:
    std::string name_;
    std::vector<StampedPose> poses_;
    double first_s_ = 0, leaves_s_ = std::numeric_limits<double>::infinity();
};

}  // namespace citysplat::sim
