#pragma once

#include "core/hash.hpp"
#include "io/point_file.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <filesystem>
#include <memory>

namespace citysplat {

/// A trajectory as it was recorded, and as `citysplat adjust` corrected it, with the files that say so.
struct Adjustment {
    Trajectory given;  ///< empty: each scan of a drive has its own poses
    Trajectory adjusted;
    std::filesystem::path given_file, adjusted_file;  ///< given_file is empty where `given` is
    Hash128 given_hash, adjusted_hash;
};

}  // namespace citysplat

namespace citysplat::io {

/// Reads both. Throws InputError when the adjusted poses are not of the times of the given ones.
std::shared_ptr<const Adjustment> read_adjustment(const std::filesystem::path& given_file,
                                                  const TrajectoryOptions& how,
                                                  const std::filesystem::path& adjusted_file);

/// The points of a file where the adjusted trajectory puts them: each is moved by adjusted(t) · given(t)⁻¹ at
/// its own time t, and so is the place of its sensor. `options.adjustment` says how; where it has no given
/// trajectory, the poses of the sweep in `options` are it. Points without a time, or with one that the
/// trajectories do not cover, stay where they are; their sensor becomes unknown, so that whoever counts
/// points without a sensor counts them. Throws InputError when nobody says where the points were seen from.
std::unique_ptr<PointFile> with_adjusted_poses(std::unique_ptr<PointFile> file, const ReadOptions& options,
                                               const std::string& file_name);

}  // namespace citysplat::io
