#pragma once

#include "model/trajectory.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::io {

/// Where a frame is over time: any number of moving parts, one on the other, and a fixed one at the end.
class FramePath {
  public:
    /// Requires at least one moving part.
    FramePath(std::vector<Trajectory> moving, const Pose& fixed)
        : moving_(std::move(moving)), fixed_(fixed) {}

    bool covers(double begin_s, double end_s) const;
    /// Requires that it covers the time.
    Pose at(double time_s) const;

  private:
    std::vector<Trajectory> moving_;  ///< from the root on
    Pose fixed_;
};

/// The frames of a bag, as tf and odometry tell them.
class FrameTree {
  public:
    enum class Source { odometry, moving, fixed };

    explicit FrameTree(std::string file_name) : file_name_(std::move(file_name)) {}

    /// Throws InputError for a pose that is none, and for a frame that hangs on two others.
    void add(const std::string& parent, const std::string& child, const StampedPose& pose, Source source);
    /// From the root of the tree to a frame; nothing when it does not move. Throws InputError when frames
    /// hang on each other in a circle, or times are told twice with different poses.
    std::optional<FramePath> path_to(const std::string& frame) const;
    /// All frames that something hangs on or that hang on something, for messages.
    std::string listed() const;

  private:
    struct Edge {
        std::string parent;
        Source source;
        std::vector<StampedPose> poses;
    };
    Trajectory trajectory_of(const std::string& child, const Edge& edge, const Pose& before) const;

    std::string file_name_;
    std::map<std::string, Edge> edges_;  ///< by child
    std::size_t poses_ = 0;
};

}  // namespace citysplat::io
