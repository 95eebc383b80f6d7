#pragma once

#include "io/drive/drive.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The GPS/IMU records of KITTI raw: one text file a frame with at least the eleven numbers latitude,
/// longitude (degrees), altitude, roll, pitch, yaw (radians; yaw 0 is east, counter-clockwise), and the
/// velocities north, east, forward, leftward, upward (m/s).
namespace citysplat::io {

struct OxtsRecord {
    double latitude_deg, longitude_deg, altitude_m;
    double roll_rad, pitch_rad, yaw_rad;
    double north_m_s, east_m_s;
};

/// Throws InputError naming the file and the column.
OxtsRecord parse_oxts(const std::string& text, const std::string& file_name);
OxtsRecord read_oxts(const std::filesystem::path& path);

/// World from body in the plane of KITTI's development kit: a Mercator map of the sphere of 6 378 137 m, in
/// the scale of the origin's latitude; x east, y north, z up, the origin at 0, 0, 0.
class OxtsPlane {
  public:
    explicit OxtsPlane(const DriveOptions::Geodetic& origin);
    Pose world_from_body(const OxtsRecord& record) const;

  private:
    Vec3d place(double latitude_deg, double longitude_deg, double altitude_m) const;
    double scale_;
    Vec3d origin_{0, 0, 0};
};

/// A line of a KITTI timestamps file, "2011-09-26 13:02:25.594360375", as seconds since 1970 on its own
/// clock; nothing for an empty one. Throws InputError.
std::vector<std::optional<double>> read_timestamps(const std::filesystem::path& path);

/// A record with its frame, and the pose it gives.
struct OxtsFrame {
    std::size_t number;
    OxtsRecord record;
    Pose world_from_body;
};

/// Times of records without timestamps, relative to the first. The unit writes a record every 10 ms and KITTI
/// keeps the one nearest to each frame, so the steps between frames are whole hundredths of a second; speed
/// and way between two records say how many. Where the car is too slow to tell, the step is the mean of the
/// others.
struct OxtsTimes {
    std::vector<double> records_s;  ///< of each record
    std::vector<double> frames_s;   ///< evenly spaced times of the frames that the records were picked for
};
/// Nothing when ways and speeds do not agree with such steps, or the car hardly moves.
std::optional<OxtsTimes> times_by_speed(std::span<const OxtsFrame> frames);

/// A longest row of places whose values ascend, each greater than the one before.
std::vector<std::size_t> longest_ascending(std::span<const double> values);

/// Times of frames that follow each other evenly, from times that jitter: at each the straight line through
/// those of its 50 neighbours. Requires as many of one as of the other.
std::vector<double> evened(std::span<const double> times_s, std::span<const OxtsFrame> frames);

}  // namespace citysplat::io
