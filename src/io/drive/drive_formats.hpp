#pragma once

#include "io/drive/drive.hpp"
#include "io/drive/smooth_path.hpp"

#include <string>
#include <vector>

/// The single kinds of drives; read_drive() picks one.
namespace citysplat::io {

/// What a kind of drive needs to be read.
struct DriveRequest {
    std::filesystem::path folder;
    const DriveOptions& options;
    const OpenScan& open;
    const CancelToken& cancel;
};

bool is_kitti_raw(const std::filesystem::path& folder);
bool is_kitti_sequence(const std::filesystem::path& folder);
bool is_nuscenes(const std::filesystem::path& folder);
bool is_posed_clouds(const std::filesystem::path& folder);
/// Are there sweeps as nuScenes has them, whether or not there are tables?
bool has_nuscenes_sweeps(const std::filesystem::path& folder);

Drive read_kitti_raw(const DriveRequest& request);
Drive read_kitti_sequence(const DriveRequest& request);
Drive read_nuscenes(const DriveRequest& request);
Drive read_posed_clouds(const DriveRequest& request);

/// The times of a scan's turn.
struct Turn {
    double begin_s, end_s;
};

/// Gives each scan the poses of the drive's trajectory that its turn needs; makes that trajectory from the
/// path. Requires drive.scans with their times, sorted by path.
void place_scans(Drive& drive, const SmoothPath& path);

/// Files of a folder with one of the extensions, sorted by path; hidden ones are left out.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            std::initializer_list<std::string_view> extensions);
/// The same, of files whose name is a number.
std::vector<std::filesystem::path> numbered_files_in(const std::filesystem::path& folder,
                                                     std::initializer_list<std::string_view> extensions);
/// The number that is a file's name. Throws InputError when it is none.
std::size_t number_of(const std::filesystem::path& file);

/// A fact about the numbers between the first and the last scan that no file has.
void tell_missing_scans(Drive& drive);

/// All points of a scan as its file has them.
struct RawScan {
    std::vector<Vec3d> points;
    std::vector<double> times_s;  ///< empty: the file does not say
};
RawScan read_raw(const PointFile& file, const CancelToken& cancel);

/// Middle one of some numbers. Requires at least one.
double median_of(std::vector<double> values);

/// "10.3 Hz", "1.20 m".
std::string with_unit(double value, int decimals, const char* unit);

}  // namespace citysplat::io
