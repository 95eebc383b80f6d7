#pragma once

#include "io/point_file.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citysplat {

/// One cloud among the inputs of a command, with what belongs to it.
struct InputSource {
    std::filesystem::path path;
    std::filesystem::path labels;             ///< empty: none of its own
    std::optional<Pose> world_from_sensor{};  ///< a scan of a KITTI sequence
    std::optional<double> scan_time_s{};

    /// Opens the cloud; labels, pose and time of the source go before those of `options`.
    std::unique_ptr<PointFile> open(ReadOptions options = {}) const;
};

/// What users write on a command line, as clouds:
///   a file            itself
///   a folder          all point files below it, or the scans of a KITTI sequence (velodyne/, poses.txt)
///   a pattern         *, ? and [] as in the shell
///   @list             one of these per line, relative to the list; '#' comments
/// Sorted by path, each file once. `labels`, if not empty, is a folder with one label file per cloud, named
/// like the cloud (docs/inputs.md), or the label file of the only cloud.
/// Throws UsageError or InputError when an argument gives nothing.
std::vector<InputSource> expand_inputs(std::span<const std::string> arguments,
                                       const std::filesystem::path& labels = {});

/// How many scans lack labels in KITTI sequences that have some, for a warning; none when none does.
std::optional<std::string> missing_labels(std::span<const InputSource> sources);

}  // namespace citysplat
