#pragma once

#include "core/cancel.hpp"
#include "core/math/box.hpp"
#include "core/words.hpp"
#include "model/track.hpp"

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// Tracks of objects as data sets and traffic simulators write them. docs/scenarios.md lists the formats.
namespace citysplat {

/// How a file of tracks is to be understood. What a file does not say itself must be said here.
struct TrackOptions {
    enum class Format { automatic, csv, kitti_tracking, kitti_tracklets, kitti_360, nuscenes, sumo };
    static constexpr Words<Format, 7> kFormats{
        {"auto", "csv", "kitti-tracking", "kitti-tracklets", "kitti-360", "nuscenes", "sumo"}};
    enum class AngleUnit { radians, degrees };
    static constexpr Words<AngleUnit, 2> kAngles{{"rad", "deg"}};

    Format format = Format::automatic;
    /// CSV: unit of angle columns whose name does not end in _deg or _rad.
    AngleUnit angles = AngleUnit::radians;
    /// KITTI: how the sensors sit on the car. Tracking: R_rect and Tr_velo_cam; with OXTS poses Tr_imu_velo
    /// or calib_imu_to_velo.txt.
    std::filesystem::path calibration{};
    /// KITTI: pose of the Velodyne in the world at each frame: a trajectory with one pose a frame, the oxts
    /// folder of a raw drive, or an oxts/NNNN.txt of the tracking benchmark.
    std::filesystem::path poses{};
    /// KITTI: one time for each frame, in seconds or as date and time of day. Default: those of the poses,
    /// else ten frames a second.
    std::filesystem::path times{};
    std::string scene{};              ///< nuScenes: its name, e.g. scene-0061
    std::filesystem::path types{};    ///< SUMO: the file with vType elements, which have the sizes
    std::filesystem::path network{};  ///< SUMO: the network, whose netOffset is taken off
    /// Where the positions of a CSV file are in the object's own frame. esmini: the rear axle.
    Vec3d reference_m{0, 0, 0};
    /// Added to every position and every time, last of all.
    Vec3d position_offset_m{0, 0, 0};
    double time_offset_s = 0;
    /// What is more than two seconds outside this span, or outside the region in x and y, is left out while
    /// the file is read: gigabytes of traffic need the memory of what comes near.
    double from_s = -std::numeric_limits<double>::infinity();
    double to_s = std::numeric_limits<double>::infinity();
    std::optional<Box3d> region{};
};

struct TrackFile {
    /// In order of first appearance. An object that is absent for a while has several, one after the other,
    /// with one name.
    std::vector<Track> tracks;
    std::vector<std::string> notes;  ///< what was left out or assumed, for people
};

/// Throws InputError naming file and record, UsageError when the options lack something that the format
/// needs.
TrackFile read_tracks(const std::filesystem::path& path, const TrackOptions& options,
                      const CancelToken& cancel = {});

}  // namespace citysplat
