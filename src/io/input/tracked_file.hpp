#pragma once

#include "core/hash.hpp"
#include "io/point_file.hpp"
#include "model/moving_boxes.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace citysplat {

/// The moving boxes of a file of tracks, with the file that says so.
struct TrackedBoxes {
    MovingBoxes boxes;
    std::filesystem::path file;
    Hash128 hash;
};

}  // namespace citysplat

namespace citysplat::io {

/// Reads tracks of any format that needs nothing but the file (io/tracks/track_file.hpp). Throws as
/// read_tracks() does.
std::shared_ptr<const TrackedBoxes> read_tracked_boxes(const std::filesystem::path& file);

/// The words of a reading (io/input/reading.hpp), which then leaves out what is in the moving boxes. The
/// boxes are in the coordinates of the city: converted and adjusted as its points are.
std::string with_tracks(const std::string& reading, const TrackedBoxes& tracked);

/// The points of a file without those that are in a moving box at their own time; they are counted with those
/// of mask boxes.
/// Throws InputError when the points have no times.
std::unique_ptr<PointFile> without_tracked(std::unique_ptr<PointFile> file,
                                           std::shared_ptr<const TrackedBoxes> tracked,
                                           const std::string& file_name);

}  // namespace citysplat::io
