#pragma once

#include "core/cancel.hpp"
#include "core/words.hpp"
#include "io/point_file.hpp"
#include "model/sweep.hpp"
#include "model/trajectory.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Drives as data sets have them: folders with scans, poses and calibration. docs/inputs.md lists the kinds.
namespace citysplat::io {

/// What a user may say about a drive that its folder does not. Everything here can change results.
struct DriveOptions {
    /// Whether the scans were compensated for the motion of the car, and to which moment of the turn.
    enum class Compensated { automatic, no, begin, middle, end };
    enum class Spin { automatic, clockwise, counterclockwise };
    static constexpr Words<Compensated, 5> kCompensated{{"auto", "no", "begin", "middle", "end"}};
    static constexpr Words<Spin, 3> kSpins{{"auto", "clockwise", "counterclockwise"}};

    bool recognise = true;  ///< false: files are read as they are, whatever folder they are in
    /// Clouds with times are placed by the poses.tum beside them; false when a trajectory is given for them.
    bool use_poses_tum = true;
    Compensated compensated = Compensated::automatic;
    Spin spin = Spin::automatic;
    std::optional<double> rate_hz{};  ///< turns a second
    std::string scene{};              ///< nuScenes: its name, e.g. scene-0061
    /// KITTI raw: degrees, degrees and metres that become 0, 0, 0.
    struct Geodetic {
        double latitude_deg, longitude_deg, altitude_m;
    };
    std::optional<Geodetic> origin{};
    /// Leave out what is found to be the recording car itself.
    bool own_car = true;
};

struct DriveScan {
    std::filesystem::path path;
    Sweep sweep;
    std::filesystem::path labels{};  ///< empty: none
};

/// A drive as it was understood.
struct Drive {
    std::string kind;  ///< "KITTI raw", "nuScenes", "KITTI sequence", "clouds with poses"
    std::filesystem::path folder;
    std::vector<DriveScan> scans;  ///< by path
    /// Of the sensor, on the clock of the points: the poses that place them are part of this one.
    Trajectory trajectory;
    Sweep::Frame frame = Sweep::Frame::moving;
    double rate_hz = 0;
    /// KITTI raw: what became 0, 0, 0.
    std::optional<DriveOptions::Geodetic> origin{};
    Vec3d lever_arm_m{0, 0, 0};          ///< of the sensor in the body whose poses are given, where known
    std::vector<std::uint32_t> own_car;  ///< SensorCells that are the car itself
    /// What it is, line by line: name and text. For people.
    std::vector<std::pair<std::string, std::string>> facts;
    /// What nobody said and was assumed.
    std::vector<std::string> assumptions;

    const DriveScan* find(const std::filesystem::path& scan) const;
};

/// Opens a scan as it is in its file.
using OpenScan = std::function<std::unique_ptr<PointFile>(const std::filesystem::path&)>;

/// Is this the folder of a drive, under these options?
bool is_drive(const std::filesystem::path& folder, const DriveOptions& options = {});
/// The drive that a scan belongs to, judging by the folders it is in.
std::optional<std::filesystem::path> drive_folder_of(const std::filesystem::path& scan,
                                                     const DriveOptions& options = {});
/// Reads poses, times and calibration, and looks at some of the scans. Requires is_drive(). Throws InputError
/// naming the file and the way out.
Drive read_drive(const std::filesystem::path& folder, const DriveOptions& options, const OpenScan& open,
                 const CancelToken& cancel = CancelToken());

/// What a folder that is no drive looks like, and what it would need to be one; empty when it looks like
/// none.
std::string missing_for_drive(const std::filesystem::path& folder);

}  // namespace citysplat::io
