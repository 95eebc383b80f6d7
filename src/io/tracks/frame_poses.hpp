#pragma once

#include "io/tracks/track_file.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace citysplat::io {

/// Where the Velodyne of a KITTI drive was at each frame.
class FramePoses {
  public:
    /// Reads what TrackOptions::poses, times and calibration name. Throws InputError; UsageError when there
    /// are no poses.
    FramePoses(const std::filesystem::path& labels, const TrackOptions& options, const CancelToken& cancel);
    /// Throws InputError that begins with `where`.
    const StampedPose& at(std::uint64_t frame, const std::string& where) const;

  private:
    std::string name_;
    std::map<std::uint64_t, StampedPose> frames_;
};

/// Seconds of each frame, by number: a file with one number a line, or KITTI's timestamps with date and time.
std::vector<double> read_frame_times(const std::filesystem::path& path);

/// The rigid transforms of a KITTI calibration file by name: lines "NAME: 12 numbers" or "NAME 9 numbers",
/// the colon may be missing; the lines R and T of the raw drives together are "RT".
std::map<std::string, Pose> read_kitti_calibration(const std::filesystem::path& path);

}  // namespace citysplat::io
