#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"

#include <memory>

namespace citysplat::io {

/// The point clouds of an MCAP file of ROS 2 (sensor_msgs/PointCloud2 in CDR), in the world: every point is
/// placed by tf, or else by odometry, at its own time, and knows where its sensor was. A cloud is a block.
/// The root of the tree of frames is the world. docs/ros.md tells which fields are read as time.
///
/// Clouds of times that have no pose are left out and counted in a note.
std::unique_ptr<PointFile> open_bag(File file, const ReadOptions& options);

}  // namespace citysplat::io
