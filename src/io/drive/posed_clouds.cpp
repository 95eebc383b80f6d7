#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <algorithm>
#include <cmath>

/// Scans as PLY or PCD files with the time of every point, in the folder or in scans/, and poses.tum: the
/// poses of the sensor on the same clock. The points are in the world or in the frame of the sensor.
namespace citysplat::io {

namespace fs = std::filesystem;

namespace {

/// Larger clouds are no scans.
constexpr std::uint64_t kMostPoints = 1 << 20;

std::vector<fs::path> clouds_in(const fs::path& folder) {
    const fs::path scans = folder / "scans";
    return files_in(fs::is_directory(scans) ? scans : folder, {".ply", ".pcd"});
}

/// When a scan was, and how far its points are from the sensor in both readings.
struct CloudLook {
    double begin_s = 0, end_s = 0;
    double from_sensor_m = 0, from_zero_m = 0;
};

CloudLook look_at(const fs::path& file, const DriveRequest& request, const SmoothPath& path) {
    request.cancel.check();
    const auto cloud = request.open(file);
    if (cloud->info().points > kMostPoints)
        throw InputError(file.string() + ": " + format_count(cloud->info().points) +
                         " points are more than a scan has; give poses.tum with --trajectory");
    const RawScan raw = read_raw(*cloud, request.cancel);
    CloudLook look{1e300, -1e300};
    std::vector<double> from_sensor, from_zero;
    for (std::size_t i = 0; i < raw.points.size(); ++i) {
        const double t = raw.times_s[i];
        look.begin_s = std::min(look.begin_s, t), look.end_s = std::max(look.end_s, t);
        constexpr std::size_t kEvery = 16;
        if (i % kEvery != 0) continue;
        from_sensor.push_back(length(raw.points[i] - path.at(t).translation));
        from_zero.push_back(length(raw.points[i]));
    }
    if (!from_zero.empty())
        look.from_sensor_m = median_of(std::move(from_sensor)),
        look.from_zero_m = median_of(std::move(from_zero));
    return look;
}

}  // namespace

bool is_posed_clouds(const fs::path& folder) {
    return fs::exists(folder / "poses.tum") && fs::is_directory(folder) && !clouds_in(folder).empty();
}

Drive read_posed_clouds(const DriveRequest& request) {
    const fs::path& folder = request.folder;
    const std::vector<fs::path> files = clouds_in(folder);
    const Trajectory given =
        read_trajectory(folder / "poses.tum", {.format = TrajectoryOptions::Format::tum, .allow_gaps = true});
    const SmoothPath path(given);
    for (const fs::path& file : files) {
        request.cancel.check();
        if (!request.open(file)->info().has_gps_time)
            throw InputError(file.string() +
                             ": no times of the points, which poses.tum beside it needs; "
                             "--no-drive reads the clouds as they are");
    }
    std::vector<CloudLook> looks(files.size());
    parallel_for(files.size(), [&](std::size_t i) { looks[i] = look_at(files[i], request, path); });

    double in_world = 0, in_sensor = 0;
    for (const CloudLook& look : looks) in_world += look.from_sensor_m, in_sensor += look.from_zero_m;
    const bool world = in_world <= 1.02 * in_sensor;
    using Compensated = DriveOptions::Compensated;
    const Compensated compensated = request.options.compensated;
    if (compensated != Compensated::automatic && compensated != Compensated::no)
        throw UsageError("--compensated " + std::string(DriveOptions::kCompensated.of(compensated)) +
                         ": the points of " + folder.string() + " have times of their own");

    Drive drive;
    drive.kind = "clouds with poses";
    drive.frame = world ? Sweep::Frame::world : Sweep::Frame::moving;
    std::vector<double> turns;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const CloudLook& look = looks[i];
        if (look.begin_s > look.end_s) continue;
        constexpr double kFar_s = 1;
        if (look.begin_s < given.begin_s() - kFar_s || look.end_s > given.end_s() + kFar_s)
            throw InputError(files[i].string() + ": its times, " + format_number(look.begin_s) + " to " +
                             format_number(look.end_s) + " s, are not those of poses.tum (" +
                             format_number(given.begin_s()) + " to " + format_number(given.end_s()) +
                             " s): another clock?");
        Sweep sweep;
        sweep.frame = drive.frame;
        sweep.begin_s = sweep.reference_s = look.begin_s;
        sweep.end_s = look.end_s;
        drive.scans.push_back({files[i], sweep, {}});
        turns.push_back(look.end_s - look.begin_s);
    }
    if (drive.scans.empty()) throw InputError(folder.string() + ": no points in its clouds");
    place_scans(drive, path);
    const double turn_s = median_of(std::move(turns));
    drive.rate_hz = turn_s > 0 ? 1 / turn_s : 0;
    drive.facts.emplace_back("frame", world ? "world: the points lie around the poses of their times"
                                            : "sensor: the points lie around 0, 0, 0");
    drive.facts.emplace_back("clock", "the times of the points and of poses.tum");
    drive.facts.emplace_back("poses", std::to_string(given.poses().size()) + " of the sensor, poses.tum");
    return drive;
}

}  // namespace citysplat::io
