#include "io/drive/drive.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/drive/own_car.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace citysplat::io {

namespace fs = std::filesystem;

namespace {

struct Kind {
    bool (*is_at)(const fs::path&);
    Drive (*read)(const DriveRequest&);
};
constexpr Kind kKinds[]{{is_kitti_raw, read_kitti_raw},
                        {is_nuscenes, read_nuscenes},
                        {is_kitti_sequence, read_kitti_sequence},
                        {is_posed_clouds, read_posed_clouds}};

const Kind* kind_of(const fs::path& folder) {
    const auto found =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.is_at(folder); });
    return found == std::end(kKinds) ? nullptr : found;
}

const char* frame_text(Sweep::Frame frame) {
    switch (frame) {
        case Sweep::Frame::moving:
            return "not compensated: every point is placed by the pose of its own time";
        case Sweep::Frame::fixed:
            return "compensated: points stay where the files have them, rays begin where the sensor was";
        default:
            return "points are in the world; rays begin where the sensor was";
    }
}

void add_facts(Drive& drive) {
    const Trajectory& path = drive.trajectory;
    double begin_s = 1e300, end_s = -1e300;
    for (const DriveScan& scan : drive.scans) {
        begin_s = std::min(begin_s, scan.sweep.begin_s);
        end_s = std::max(end_s, scan.sweep.end_s);
    }
    drive.facts.insert(drive.facts.begin(), {{"scans", std::to_string(drive.scans.size()) + " at " +
                                                           with_unit(drive.rate_hz, 2, "Hz")},
                                             {"motion", frame_text(drive.frame)}});
    drive.facts.emplace_back("times", format_number(begin_s) + " to " + format_number(end_s) + " s (" +
                                          with_unit(end_s - begin_s, 2, "s") + ")");
    drive.facts.emplace_back("path", with_unit(path.length_m(), 1, "m"));
}

/// A record of another place puts its scan there, and those beside it on the way.
void refuse_jumps(const Drive& drive) {
    constexpr double kFastest_m_s = 150, kCorrection_m = 10;  // of navigation that finds itself again
    const auto poses = drive.trajectory.poses();
    for (std::size_t i = 1; i < poses.size(); ++i) {
        const double seconds = poses[i].time_s - poses[i - 1].time_s;
        const double way_m =
            length(poses[i].world_from_body.translation - poses[i - 1].world_from_body.translation);
        if (way_m <= kCorrection_m + kFastest_m_s * seconds) continue;
        throw InputError(drive.folder.string() + ": its poses jump by " + with_unit(way_m, 0, "m") +
                         " between " + format_number(poses[i - 1].time_s) + " and " +
                         format_number(poses[i].time_s) +
                         " s, which nothing drives; is a record there damaged, or of another place? "
                         "--trajectory gives other poses");
    }
}

/// Between poses that are far apart in time nobody knows where the car was.
void tell_holes(Drive& drive) {
    constexpr double kNear_s = 0.25;  // of a pose
    const auto poses = drive.trajectory.poses();
    std::size_t scans = 0;
    std::string first;
    for (std::size_t i = 1; i < poses.size(); ++i) {
        const double begin_s = poses[i - 1].time_s, end_s = poses[i].time_s;
        if (end_s - begin_s <= 2 * kNear_s) continue;
        const auto inside = std::count_if(drive.scans.begin(), drive.scans.end(), [&](const DriveScan& scan) {
            const double middle_s = (scan.sweep.begin_s + scan.sweep.end_s) / 2;
            return middle_s > begin_s + kNear_s && middle_s < end_s - kNear_s;
        });
        scans += static_cast<std::size_t>(inside);
        if (inside > 0 && first.empty())
            first = format_number(begin_s) + " to " + format_number(end_s) + " s";
    }
    if (scans > 0)
        drive.assumptions.push_back(std::to_string(scans) + " scans lie where there are no poses (" + first +
                                    "): the car is taken to have driven straight and evenly there");
}

}  // namespace

const DriveScan* Drive::find(const fs::path& scan) const {
    const auto found = std::find_if(scans.begin(), scans.end(), [&](const DriveScan& s) {
        return s.path.filename() == scan.filename() && fs::equivalent(s.path, scan);
    });
    return found == scans.end() ? nullptr : &*found;
}

bool is_drive(const fs::path& folder, const DriveOptions& options) {
    const Kind* kind = options.recognise ? kind_of(folder) : nullptr;
    return kind && (options.use_poses_tum || kind->is_at != is_posed_clouds);
}

std::optional<fs::path> drive_folder_of(const fs::path& scan, const DriveOptions& options) {
    fs::path folder = fs::absolute(scan).lexically_normal().parent_path();
    constexpr int kDeepest = 3;
    for (int up = 0; up < kDeepest && folder.has_relative_path(); ++up, folder = folder.parent_path())
        if (is_drive(folder, options)) return folder;
    return std::nullopt;
}

Drive read_drive(const fs::path& folder, const DriveOptions& options, const OpenScan& open,
                 const CancelToken& cancel) {
    const Kind* kind = kind_of(folder);
    if (!kind) throw InputError(folder.string() + ": not a folder of a drive");
    Drive drive = kind->read({folder, options, open, cancel});
    drive.folder = folder;
    refuse_jumps(drive);
    tell_holes(drive);
    if (options.own_car) drive.own_car = find_own_car(drive, open, cancel);
    add_facts(drive);
    return drive;
}

std::string missing_for_drive(const fs::path& folder) {
    if (fs::is_directory(folder / "velodyne"))
        return "it has scans in velodyne/, but no poses.txt that says where each of them was";
    if (fs::is_directory(folder / "oxts"))
        return "it has oxts/ as KITTI raw has it, but no velodyne_points/ with scans";
    if (has_nuscenes_sweeps(folder))
        return "it has sweeps of nuScenes, but not its tables: sample_data.json, ego_pose.json and "
               "calibrated_sensor.json, in the folder or in one named v1.0-…";
    return "";
}

void place_scans(Drive& drive, const SmoothPath& path) {
    double begin_s = 1e300, end_s = -1e300;
    for (const auto& [file, sweep, labels] : drive.scans)
        begin_s = std::min({begin_s, sweep.begin_s, sweep.reference_s}),
        end_s = std::max({end_s, sweep.end_s, sweep.reference_s});
    const auto later = [](double t, const StampedPose& p) { return t < p.time_s; };
    const auto sooner = [](const StampedPose& p, double t) { return p.time_s < t; };
    // The poses of a data set may go on for kilometres beyond the scans that are there.
    const Trajectory whole = path.resampled(begin_s, end_s);
    const auto all = whole.poses();
    const auto from = std::upper_bound(all.begin(), all.end(), begin_s, later) - 1;
    const auto to = std::lower_bound(all.begin(), all.end(), end_s, sooner);
    drive.trajectory = Trajectory(std::vector<StampedPose>(from, to + 1));
    const auto poses = drive.trajectory.poses();
    for (auto& [file, sweep, labels] : drive.scans) {
        const double first_s = std::min(sweep.begin_s, sweep.reference_s);
        const double last_s = std::max(sweep.end_s, sweep.reference_s);
        const auto first = std::upper_bound(poses.begin(), poses.end(), first_s, later) - 1;
        const auto last = std::lower_bound(poses.begin(), poses.end(), last_s, sooner);
        sweep.poses.assign(first, last + 1);
    }
}

std::vector<fs::path> files_in(const fs::path& folder, std::initializer_list<std::string_view> extensions) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string extension = lower_case(entry.path().extension().string());
        const bool wanted = std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
        if (!wanted || entry.path().filename().string().starts_with('.')) continue;
        if (!entry.exists()) require_file(entry.path());  // a link to nothing: a scan that is not there
        if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<fs::path> numbered_files_in(const fs::path& folder,
                                        std::initializer_list<std::string_view> extensions) {
    std::vector<fs::path> files = files_in(folder, extensions);
    std::erase_if(files, [](const fs::path& f) { return !parse_whole<std::uint32_t>(f.stem().string()); });
    // "9" comes before "10", whatever their letters say.
    std::stable_sort(files.begin(), files.end(),
                     [](const fs::path& a, const fs::path& b) { return number_of(a) < number_of(b); });
    return files;
}

std::size_t number_of(const fs::path& file) {
    const auto number = parse_whole<std::uint32_t>(file.stem().string());
    if (!number) throw InputError(file.string() + ": a scan of this drive is named by its number");
    return *number;
}

void tell_missing_scans(Drive& drive) {
    std::vector<double> steps;
    for (std::size_t i = 1; i < drive.scans.size(); ++i)
        steps.push_back(static_cast<double>(number_of(drive.scans[i].path)) -
                        static_cast<double>(number_of(drive.scans[i - 1].path)));
    if (steps.empty()) return;
    const double usual = median_of(steps);  // people keep every second scan
    if (!(usual > 0)) return;
    double missing = 0;
    std::string first;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const double here = std::floor(steps[i] / usual + 0.5) - 1;
        if (!(here > 0)) continue;
        missing += here;
        if (first.empty()) first = drive.scans[i].path.filename().string();
    }
    if (missing > 0)
        drive.facts.emplace_back("missing", with_unit(missing, 0, "scans between the first and the last;") +
                                                " the first of them after " + first);
}

RawScan read_raw(const PointFile& file, const CancelToken& cancel) {
    RawScan scan;
    PointBatch batch;
    for (std::size_t block = 0; block < file.block_count(); ++block) {
        cancel.check();
        file.read_block(block, batch);
        for (std::size_t i = 0; i < batch.size(); ++i)
            scan.points.push_back({batch.x[i], batch.y[i], batch.z[i]});
        scan.times_s.insert(scan.times_s.end(), batch.gps_time.begin(), batch.gps_time.end());
    }
    return scan;
}

double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::string with_unit(double value, int decimals, const char* unit) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f %s", decimals, value, unit);
    return text;
}

}  // namespace citysplat::io
