#pragma once

#include "model/splat_tile.hpp"
#include "model/track.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace citysplat::view {

/// World from sensor when a scan began: a 3 × 4 matrix by rows, as poses.txt has it.
using PoseRows = std::array<double, 12>;

/// What one sensor of a run recorded.
struct PlayedSensor {
    std::string name;
    std::vector<double> times_s;  ///< when the scans began, increasing
    std::vector<PoseRows> poses;  ///< as many
    bool sensor_frame = false;  ///< the files have their points in the frame of the sensor, else in the world
    bool has_boxes = false;
};

/// The returns of one scan in the world.
struct PlayedScan {
    /// Points as splats of the smallest radius; their normals point to where the sensor was when the scan
    /// began.
    SplatTile points;
    std::uint64_t too_far = 0;  ///< left out: farther from the sensor than columns can say
};

/// A directory that `citysplat simulate` wrote: one run, or a directory of runs, one for each sensor. Scans
/// are named by their numbers; nothing that a browser says becomes part of a path. Reads files when they are
/// asked for. Immutable; safe to use from several threads.
class ScanFolder {
  public:
    static constexpr std::uint64_t kMostPoints = std::uint64_t{1} << 22;  ///< of one scan

    /// Throws InputError when there is no complete run.
    explicit ScanFolder(const std::filesystem::path& directory);

    const std::string& name() const { return name_; }
    std::span<const PlayedSensor> sensors() const { return sensors_; }
    bool exists(std::size_t sensor, std::size_t scan) const;

    /// Requires that it exists. Throws InputError or IoError when the file cannot be read.
    PlayedScan scan(std::size_t sensor, std::size_t scan) const;
    /// What moved in it, with its box, each with one pose. None where the run has no boxes.
    std::vector<Track> boxes(std::size_t sensor, std::size_t scan) const;

  private:
    struct Files {
        std::filesystem::path directory;
        std::string folder, extension;  ///< of the scans
    };
    void add(const std::filesystem::path& directory, std::string name);
    std::filesystem::path file_of(std::size_t sensor, std::size_t scan) const;
    bool is_in_sensor_frame(std::size_t sensor) const;

    std::string name_;
    std::vector<PlayedSensor> sensors_;
    std::vector<Files> files_;  ///< of each sensor
};

}  // namespace citysplat::view
