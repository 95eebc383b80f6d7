#pragma once

#include "io/trajectory/trajectory_file.hpp"

#include <string>
#include <vector>

/// The single formats of trajectories; read_trajectory() picks one. Times and positions as in the file.
namespace citysplat::io {

std::vector<StampedPose> read_kitti_poses(const std::filesystem::path& path,
                                          const TrajectoryOptions& options);
std::vector<StampedPose> read_csv_poses(const std::filesystem::path& path, const TrajectoryOptions& options);
std::vector<StampedPose> read_sbet_poses(const std::filesystem::path& path, const TrajectoryOptions& options);

inline constexpr std::uint64_t kSbetRecordBytes = 17 * 8;

/// World from body for compass angles: heading clockwise from north, pitch nose up, roll right side down.
Quaternion from_heading(double heading_rad, double pitch_rad, double roll_rad);

}  // namespace citysplat::io
