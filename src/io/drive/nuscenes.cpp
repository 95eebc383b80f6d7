#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/drive/nuscenes_tables.hpp"
#include "io/drive/sensor_turn.hpp"

#include <algorithm>

/// A nuScenes data set: tables in v1.0-*/ and sweeps in samples/LIDAR_TOP and sweeps/LIDAR_TOP. One scene is
/// a drive. The sweeps were compensated to the end of the turn, which is their time stamp.
namespace citysplat::io {

namespace fs = std::filesystem;

namespace {

using Compensated = DriveOptions::Compensated;

constexpr const char* kChannel = "LIDAR_TOP";
constexpr double kUsualPeriod_s = 0.05;

/// Folders with tables: itself, or v1.0-mini and the like, in order of their names. Only a folder that has
/// sweeps is searched for names that are not nuScenes' own.
std::vector<fs::path> tables_in(const fs::path& folder) {
    std::vector<fs::path> found;
    const auto try_one = [&found](const fs::path& place) {
        if (fs::exists(place / "sample_data.json")) found.push_back(place);
    };
    try_one(folder);
    if (has_nuscenes_sweeps(folder)) {
        std::vector<fs::path> below;
        for (const auto& entry : fs::directory_iterator(folder))
            if (entry.path().filename().string().starts_with("v1.0") && entry.is_directory())
                below.push_back(entry.path());
        std::sort(below.begin(), below.end());
        std::for_each(below.begin(), below.end(), try_one);
    } else {
        for (const char* name : {"v1.0-mini", "v1.0-test", "v1.0-trainval"}) try_one(folder / name);
    }
    return found;
}

/// Where a sweep is that the tables name "sweeps/LIDAR_TOP/x": there, or in one of the folders that excerpts
/// of the data set keep their sweeps in; empty when in none.
fs::path find_sweep(const fs::path& folder, const std::string& file) {
    const fs::path name = fs::path(file).filename(), channel = kChannel;
    for (const fs::path& place : {fs::path(file), channel / name, "samples" / channel / name,
                                  "sweeps" / channel / name, "samples" / name, "sweeps" / name, name})
        if (fs::exists(folder / place)) return place;
    return {};
}

/// The scene that is asked for, or the only one whose sweeps are on this disk; files that are not there have
/// no name any more. Nothing when there is none.
std::optional<NuscenesScene> choose(std::vector<NuscenesScene> scenes, const DriveRequest& request) {
    std::string names;
    std::vector<NuscenesScene*> here;
    for (NuscenesScene& scene : scenes) {
        bool any = false;
        for (NuscenesScan& scan : scene.scans) {
            request.cancel.check();
            scan.file = find_sweep(request.folder, scan.file).string();
            any = any || !scan.file.empty();
        }
        if (!any) continue;
        here.push_back(&scene);
        constexpr std::size_t kMostNamed = 20;
        if (here.size() <= kMostNamed) names += (names.empty() ? "" : ", ") + scene.name;
    }
    if (here.size() > 1)
        throw UsageError(request.folder.string() + ": " + std::to_string(here.size()) +
                         " scenes; say which with --scene: " + names);
    return here.empty() ? std::nullopt : std::optional(std::move(*here.front()));
}

/// A scene with the folder of its tables.
struct Found {
    NuscenesScene scene;
    fs::path tables;
};

/// Looks through the tables of the data set, one version after the other.
Found find_scene(const DriveRequest& request) {
    const std::string& wanted = request.options.scene;
    const auto is_wanted = [&](const std::string& name) { return wanted.empty() || name == wanted; };
    for (const fs::path& tables : tables_in(request.folder)) {
        try {
            auto scene = choose(
                read_nuscenes_tables(tables_in_folder(tables), kChannel, is_wanted, request.cancel), request);
            if (scene) return {std::move(*scene), tables};
        } catch (const InputError& e) {
            throw InputError(tables.string() + ": " + e.what());
        }
    }
    const std::string folder = request.folder.string();
    if (!wanted.empty()) throw InputError(folder + ": no sweeps of " + wanted + " are in this folder");
    throw InputError(folder +
                     ": none of the sweeps that the tables name is in this folder; they belong into "
                     "samples/LIDAR_TOP and sweeps/LIDAR_TOP");
}

}  // namespace

bool has_nuscenes_sweeps(const fs::path& folder) {
    const fs::path channel = kChannel;
    for (const fs::path& place : {channel, "samples" / channel, "sweeps" / channel})
        if (fs::is_directory(folder / place)) return true;
    return false;
}

bool is_nuscenes(const fs::path& folder) { return !tables_in(folder).empty(); }

Drive read_nuscenes(const DriveRequest& request) {
    const auto [scene, tables] = find_scene(request);
    // Sweeps that are not on the disk have poses nevertheless.
    std::vector<StampedPose> poses;
    std::vector<fs::path> files;
    std::vector<double> steps, times_s;
    for (const auto& [file, time_s, pose] : scene.scans) {
        if (!poses.empty()) steps.push_back(time_s - poses.back().time_s);
        poses.push_back({time_s, pose});
        if (file.empty()) continue;
        files.push_back(request.folder / file);
        times_s.push_back(time_s);
    }
    const SmoothPath path(Trajectory(std::move(poses), tables.string() + ": " + scene.name));
    const SensorTurn turn = measure_turn(files, files.size() / 2, request);
    const double step_s = steps.empty() ? 0 : median_of(std::move(steps));
    // Keyframes alone are half a second apart; the sensor turns as fast nevertheless.
    const double period_s = request.options.rate_hz                        ? 1 / *request.options.rate_hz
                            : step_s > 0.02 && step_s < 2 * kUsualPeriod_s ? step_s
                                                                           : kUsualPeriod_s;
    const auto measured = compensation_of(turn, times_s[turn.scan], period_s, path);
    const bool given = request.options.compensated != Compensated::automatic;
    const Compensated compensated = given ? request.options.compensated : measured.value_or(Compensated::end);
    Drive drive;
    drive.kind = "nuScenes";
    for (std::size_t i = 0; i < files.size(); ++i)
        drive.scans.push_back({files[i], sweep_at(times_s[i], {compensated, period_s}, turn.order), {}});
    std::sort(drive.scans.begin(), drive.scans.end(),
              [](const DriveScan& a, const DriveScan& b) { return a.path < b.path; });
    time_broken_scans(drive, turn, request);
    place_scans(drive, path);
    drive.frame = drive.scans.front().sweep.frame;
    drive.rate_hz = 1 / period_s;
    drive.lever_arm_m = scene.lever_arm_m;
    drive.facts.emplace_back("scene", scene.name + " of " + tables.filename().string() + ", " +
                                          std::to_string(scene.scans.size()) + " sweeps in the tables");
    drive.facts.emplace_back("compensated",
                             std::string(DriveOptions::kCompensated.of(compensated)) + " of the turn (" +
                                 (given      ? "given by --compensated"
                                  : measured ? "the records without a return lie on the way of the sensor"
                                             : "as nuScenes documents it") +
                                 ")");
    drive.facts.emplace_back("turn", std::string(turn.order.clockwise ? "clockwise" : "counterclockwise") +
                                         " (" + turn.from + ")");
    drive.facts.emplace_back("poses", "ego_pose.json, through calibrated_sensor.json");
    return drive;
}

}  // namespace citysplat::io
