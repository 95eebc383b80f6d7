#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/drive/sensor_turn.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <algorithm>

/// A KITTI sequence: velodyne/NNNNNN.bin, poses.txt, and maybe labels/, times.txt, calib.txt. KITTI odometry
/// and SemanticKITTI are; many other data sets are given in this form, and citysplat simulate writes it.
namespace citysplat::io {

namespace fs = std::filesystem;

namespace {

using Compensated = DriveOptions::Compensated;

constexpr double kUsualPeriod_s = 0.1;

/// poses.txt in the folder, or NN.txt in poses/ beside sequences/ as KITTI odometry has it for sequence NN;
/// empty when there is neither.
fs::path poses_of(const fs::path& folder) {
    if (fs::exists(folder / "poses.txt")) return folder / "poses.txt";
    const fs::path sequence = fs::absolute(folder / ".").lexically_normal().parent_path();
    const fs::path odometry =
        sequence.parent_path().parent_path() / "poses" / (sequence.filename().string() + ".txt");
    return sequence.parent_path().filename() == "sequences" && fs::exists(odometry) ? odometry : fs::path();
}

bool is_our_run(const fs::path& folder) {
    const fs::path manifest = folder / "run.toml";
    if (!fs::exists(manifest)) return false;
    const std::string text = read_text_file(manifest);
    return text.find("kind = \"citysplat run\"") != std::string::npos;
}

/// How long a turn takes.
struct Period {
    double seconds;
    std::string from;  ///< how it is known, or that it was assumed
    bool assumed;
};

Period period_of(const Trajectory& poses, bool times_given, const SensorTurn& turn,
                 const DriveOptions& options) {
    if (options.rate_hz) return {1 / *options.rate_hz, "given by --rate", false};
    if (times_given && poses.poses().size() > 1) {
        std::vector<double> steps;
        for (std::size_t i = 1; i < poses.poses().size(); ++i)
            steps.push_back(poses.poses()[i].time_s - poses.poses()[i - 1].time_s);
        const double step = median_of(std::move(steps));
        constexpr double kLeast_s = 0.02, kMost_s = 0.25;
        if (step >= kLeast_s && step <= kMost_s) return {step, "by times.txt", false};
    }
    if (const auto by_firings = period_by_firings_s(turn))
        return {*by_firings, "by the " + with_unit(turn.columns, 0, "firings") + " a turn of an HDL-32E",
                false};
    return {kUsualPeriod_s, "10 turns a second are assumed; --rate says otherwise", true};
}

/// The poses with the times of even turns.
Trajectory evenly_timed(const Trajectory& poses, double period_s) {
    std::vector<StampedPose> timed(poses.poses().begin(), poses.poses().end());
    for (std::size_t i = 0; i < timed.size(); ++i) timed[i].time_s = static_cast<double>(i) * period_s;
    return Trajectory(std::move(timed));
}

/// The scan during which the car moved most.
std::size_t fastest_scan(const std::vector<fs::path>& files, const Trajectory& poses) {
    std::size_t best = 0;
    double most_m = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::size_t number = number_of(files[i]);
        if (number == 0 || number + 1 >= poses.poses().size()) continue;
        const double way_m = length(poses.poses()[number + 1].world_from_body.translation -
                                    poses.poses()[number - 1].world_from_body.translation);
        if (way_m > most_m) best = i, most_m = way_m;
    }
    return best;
}

struct Compensation {
    Compensated moment;
    std::string from;
    bool assumed;
};

Compensation compensation_for(const DriveRequest& request, const std::optional<Compensated>& measured,
                              const SensorTurn& turn) {
    if (request.options.compensated != Compensated::automatic)
        return {request.options.compensated, "given by --compensated", false};
    if (is_our_run(request.folder)) return {Compensated::begin, "written by citysplat simulate", false};
    if (measured) return {*measured, "the records without a return lie on the way of the sensor", false};
    if (!turn.order.elevations_rad.empty())
        return {Compensated::end, "as nuScenes has it; --compensated says otherwise", true};
    return {Compensated::middle, "as KITTI odometry has it; --compensated says otherwise", true};
}

}  // namespace

bool is_kitti_sequence(const fs::path& folder) {
    return fs::is_directory(folder / "velodyne") && !poses_of(folder).empty();
}

Drive read_kitti_sequence(const DriveRequest& request) {
    const fs::path& folder = request.folder;
    const fs::path poses_file = poses_of(folder);
    TrajectoryOptions how{.format = TrajectoryOptions::Format::kitti, .allow_gaps = true};
    if (fs::exists(folder / "times.txt")) how.times = folder / "times.txt";
    if (fs::exists(folder / "calib.txt")) how.calibration = folder / "calib.txt";
    Trajectory poses = read_trajectory(poses_file, how);
    const std::vector<fs::path> files = files_in(folder / "velodyne", {".bin"});
    if (files.empty()) throw InputError((folder / "velodyne").string() + ": no .bin scans");
    for (const fs::path& file : files)
        if (const std::size_t number = number_of(file); number >= poses.poses().size())
            throw InputError(file.string() + ": scan " + std::to_string(number) + ", but " +
                             poses_file.filename().string() + " has only " +
                             std::to_string(poses.poses().size()) + " poses");

    Drive drive;
    drive.kind = "KITTI sequence";
    const bool times_given = fs::exists(folder / "times.txt");
    const SensorTurn turn = measure_turn(files, fastest_scan(files, poses), request);
    const Period period = period_of(poses, times_given, turn, request.options);
    if (!times_given) poses = evenly_timed(poses, period.seconds);
    const SmoothPath path(poses);
    const double looked_at_s = poses.poses()[number_of(files[turn.scan])].time_s;
    const Compensation compensation =
        compensation_for(request, compensation_of(turn, looked_at_s, period.seconds, path), turn);

    for (const fs::path& file : files) {
        const fs::path labels = folder / "labels" / (file.stem().string() + ".label");
        const double pose_s = poses.poses()[number_of(file)].time_s;
        drive.scans.push_back({file, sweep_at(pose_s, {compensation.moment, period.seconds}, turn.order),
                               fs::exists(labels) ? labels : fs::path()});
    }
    time_broken_scans(drive, turn, request);
    place_scans(drive, path);
    drive.frame = drive.scans.front().sweep.frame;
    drive.rate_hz = 1 / period.seconds;
    tell_missing_scans(drive);

    const auto say = [&drive](bool assumed, const std::string& name, const std::string& text) {
        drive.facts.emplace_back(name, text);
        if (assumed) drive.assumptions.push_back(name + ": " + text);
    };
    say(compensation.assumed, "compensated",
        std::string(DriveOptions::kCompensated.of(compensation.moment)) + " of the turn (" +
            compensation.from + ")");
    say(period.assumed || !times_given, "rate",
        period.from + (times_given ? "" : "; no times.txt, so scan 0 is at 0 s"));
    say(!turn.order.by_firing, "turn",
        std::string(turn.order.clockwise ? "clockwise" : "counterclockwise") + " (" + turn.from + ")");
    drive.facts.emplace_back(
        "poses", poses_file.filename().string() + ", of the sensor in the frame of " +
                     std::string(fs::exists(folder / "calib.txt") ? "its first scan (calib.txt: Tr)"
                                                                  : "the file (no calib.txt)"));
    return drive;
}

}  // namespace citysplat::io
