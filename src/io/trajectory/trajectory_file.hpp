#pragma once

#include "core/words.hpp"
#include "model/trajectory.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace citysplat {

/// How a file of poses is to be understood. Everything that a file does not say itself must be said here;
/// nothing is guessed that could be a metre or a second wrong.
struct TrajectoryOptions {
    enum class Format { automatic, tum, kitti, csv, sbet };
    enum class AngleUnit { from_names, degrees, radians };
    static constexpr Words<Format, 5> kFormats{{"auto", "tum", "kitti", "csv", "sbet"}};
    static constexpr Words<AngleUnit, 3> kAngles{{"from-names", "deg", "rad"}};

    Format format = Format::automatic;
    /// CSV: unit of angle columns whose name does not end in _deg or _rad.
    AngleUnit angles = AngleUnit::from_names;
    /// CSV: names of columns that are not recognised, e.g. {"time", "slice_t"}. Roles: time, x, y, z, roll,
    /// pitch, yaw, heading, qx, qy, qz, qw.
    std::map<std::string, std::string> columns{};
    /// Added to every time, after the week.
    double time_offset_s = 0;
    /// Times are seconds of this GPS week; makes them seconds since 1980-01-06.
    std::optional<int> gps_week{};
    /// Then subtracts 10⁹ s: "adjusted standard GPS time", as in LAS files.
    bool adjusted_gps_time = false;
    /// Added to every position.
    Vec3d position_offset_m{0, 0, 0};
    /// SBET: the projected system of the city (its positions are latitudes and longitudes).
    int epsg = 0;
    /// KITTI: one time per pose; default: times.txt beside the poses, else 10 poses a second.
    std::filesystem::path times{};
    /// KITTI: calibration with "Tr:" (camera from sensor); default: calib.txt beside the poses.
    std::filesystem::path calibration{};
    /// Accept holes in the recording; positions there are interpolated. See find_gap().
    bool allow_gaps = false;
};

/// Reads poses of the body (x forward, y left, z up) in the world. Throws InputError naming line or record.
Trajectory read_trajectory(const std::filesystem::path& path, const TrajectoryOptions& options = {});

/// A hole in the recording: more than 10 s and 20 times the usual spacing between two poses, while the body
/// moved more than 5 m. Index of the pose before the first one.
std::optional<std::size_t> find_gap(const Trajectory& trajectory);

}  // namespace citysplat
