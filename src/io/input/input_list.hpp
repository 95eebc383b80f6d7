#pragma once

#include "io/drive/drive.hpp"
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
    std::filesystem::path labels{};  ///< empty: none of its own
    /// A scan of a drive: the drive, as it was understood, and the scan in it.
    std::shared_ptr<const io::Drive> drive{};
    const io::DriveScan* scan = nullptr;

    /// `options` with what the source itself says; its labels go before those of `options`.
    ReadOptions read_options(ReadOptions options) const;
    std::unique_ptr<PointFile> open(const ReadOptions& options = {}) const;
    /// World from sensor, where the source is a scan of a drive that covers the time.
    std::optional<Pose> sensor_at(double time_s) const {
        return drive ? drive->trajectory.at(time_s) : std::nullopt;
    }
};

/// What users write on a command line, as clouds:
///   a file            itself
///   a folder          all point files below it, or the scans of a drive (io/drive/drive.hpp)
///   a pattern         *, ? and [] as in the shell
///   a .vpc file       the clouds that this virtual point cloud lists
///   @list             one of these per line, relative to the list; '#' comments
/// Sorted by path, each file once. `labels`, if not empty, is a folder with one label file per cloud, named
/// like the cloud (docs/inputs.md), or the label file of the only cloud. A file that is a scan of a drive is
/// read as one, unless `drives.recognise` is false; so are the scans below a folder that is inside of a
/// drive, and the drives below one that holds no point files of other kinds. Throws UsageError or InputError
/// when an argument gives nothing, or drives give no common origin.
std::vector<InputSource> expand_inputs(std::span<const std::string> arguments,
                                       const std::filesystem::path& labels = {},
                                       const io::DriveOptions& drives = {},
                                       const CancelToken& cancel = CancelToken());

/// The drives among the sources, each once.
std::vector<std::shared_ptr<const io::Drive>> drives_of(std::span<const InputSource> sources);

/// How many scans lack labels in drives that have some, for a warning; none when none does.
std::optional<std::string> missing_labels(std::span<const InputSource> sources);

}  // namespace citysplat
