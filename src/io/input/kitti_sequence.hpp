#pragma once

#include "model/trajectory.hpp"

#include <filesystem>
#include <optional>

namespace citysplat::io {

/// What a KITTI sequence folder (velodyne/NNNNNN.bin, poses.txt, and maybe labels/, times.txt, calib.txt)
/// says about one of its scans.
struct KittiScan {
    StampedPose pose;
    std::filesystem::path labels;  ///< empty: none
};

class KittiSequence {
  public:
    /// Is this the folder of a sequence?
    static bool is_at(const std::filesystem::path& folder);
    /// The sequence that a file belongs to: the folder above the velodyne/ it is in.
    static std::optional<std::filesystem::path> folder_of(const std::filesystem::path& scan);

    /// Reads the poses. Throws InputError.
    explicit KittiSequence(const std::filesystem::path& folder);

    /// Throws InputError when the file is not named by a number that has a pose.
    KittiScan scan(const std::filesystem::path& path) const;
    /// Its .bin files, in no order.
    std::vector<std::filesystem::path> scans() const;

  private:
    std::filesystem::path folder_;
    Trajectory poses_;
};

}  // namespace citysplat::io
