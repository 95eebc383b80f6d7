#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/drive/nuscenes_tables.hpp"
#include "io/drive/sensor_turn.hpp"

#include <algorithm>
#include <fstream>

/// A nuScenes data set: tables in v1.0-*/ and sweeps in samples/LIDAR_TOP and sweeps/LIDAR_TOP. One scene is
/// a drive. The sweeps were compensated to the end of the turn, which is their time stamp.
namespace citysplat::io {

namespace fs = std::filesystem;

namespace {

constexpr const char* kChannel = "LIDAR_TOP";
constexpr double kUsualPeriod_s = 0.05;

std::optional<fs::path> tables_in(const fs::path& folder) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.path().filename().string().starts_with("v1.0-") &&
            fs::exists(entry.path() / "sample_data.json"))
            return entry.path();
    return std::nullopt;
}

OpenTable opener_of(const fs::path& tables) {
    return [tables](const std::string& table) -> std::unique_ptr<std::istream> {
        const fs::path path = tables / (table + ".json");
        auto in = std::make_unique<std::ifstream>(path);
        if (!*in)
            throw InputError("cannot open " + path.string() +
                             "; the tables of nuScenes are complete or of no use");
        return in;
    };
}

/// The scene that is asked for, or the only one whose sweeps are on this disk.
NuscenesScene choose(std::vector<NuscenesScene> scenes, const DriveRequest& request) {
    std::string names;
    std::vector<NuscenesScene*> here;
    for (NuscenesScene& scene : scenes) {
        std::erase_if(scene.scans,
                      [&](const NuscenesScan& s) { return !fs::exists(request.folder / s.file); });
        if (scene.scans.empty()) continue;
        here.push_back(&scene);
        constexpr std::size_t kMostNamed = 20;
        if (here.size() <= kMostNamed) names += (names.empty() ? "" : ", ") + scene.name;
    }
    const std::string folder = request.folder.string();
    if (here.empty() && !request.options.scene.empty())
        throw InputError(folder + ": no sweeps of " + request.options.scene + " are in this folder");
    if (here.empty())
        throw InputError(folder + ": none of the sweeps that the tables name is in this folder");
    if (here.size() > 1)
        throw UsageError(folder + ": " + std::to_string(here.size()) +
                         " scenes; say which with --scene: " + names);
    return std::move(*here.front());
}

}  // namespace

bool is_nuscenes(const fs::path& folder) { return tables_in(folder).has_value(); }

Drive read_nuscenes(const DriveRequest& request) {
    const std::string& wanted = request.options.scene;
    const fs::path tables = *tables_in(request.folder);
    NuscenesScene scene;
    try {
        scene = choose(
            read_nuscenes_tables(opener_of(tables), kChannel,
                                 [&](const std::string& name) { return wanted.empty() || name == wanted; }),
            request);
    } catch (const InputError& e) {
        throw InputError(tables.string() + ": " + e.what());
    }

    using Compensated = DriveOptions::Compensated;
    std::vector<StampedPose> poses;
    std::vector<fs::path> files;
    std::vector<double> steps;
    for (const auto& [file, time_s, pose] : scene.scans) {
        if (!poses.empty()) steps.push_back(time_s - poses.back().time_s);
        poses.push_back({time_s, pose});
        files.push_back(request.folder / file);
    }
    const Trajectory given(std::move(poses), tables.string() + ": " + scene.name);
    const SmoothPath path(given);
    const SensorTurn turn = measure_turn(files, files.size() / 2, request);
    const double step_s = steps.empty() ? 0 : median_of(std::move(steps));
    // Keyframes alone are half a second apart; the sensor turns as fast nevertheless.
    const double period_s = request.options.rate_hz                        ? 1 / *request.options.rate_hz
                            : step_s > 0.02 && step_s < 2 * kUsualPeriod_s ? step_s
                                                                           : kUsualPeriod_s;
    const Compensated compensated = request.options.compensated == Compensated::automatic
                                        ? Compensated::end
                                        : request.options.compensated;
    Drive drive;
    drive.kind = "nuScenes";
    for (std::size_t i = 0; i < files.size(); ++i)
        drive.scans.push_back(
            {files[i], sweep_at(given.poses()[i].time_s, {compensated, period_s}, turn.order), {}});
    std::sort(drive.scans.begin(), drive.scans.end(),
              [](const DriveScan& a, const DriveScan& b) { return a.path < b.path; });
    place_scans(drive, path);
    drive.frame = drive.scans.front().sweep.frame;
    drive.rate_hz = 1 / period_s;
    drive.lever_arm_m = scene.lever_arm_m;
    drive.facts.emplace_back("scene", scene.name + " of " + tables.filename().string());
    drive.facts.emplace_back(
        "compensated",
        std::string(DriveOptions::kCompensated.of(compensated)) + " of the turn (" +
            (request.options.compensated == Compensated::automatic ? "as nuScenes documents it"
                                                                   : "given by --compensated") +
            ")");
    drive.facts.emplace_back("turn", std::string(turn.order.clockwise ? "clockwise" : "counterclockwise") +
                                         " (" + turn.from + ")");
    drive.facts.emplace_back("poses", "ego_pose.json, through calibrated_sensor.json");
    return drive;
}

}  // namespace citysplat::io
