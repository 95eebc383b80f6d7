#include "io/drive/drive.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"
#include "io/drive/drive_formats.hpp"
#include "io/drive/own_car.hpp"

#include <algorithm>
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
