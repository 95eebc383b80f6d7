#include "io/tracks/frame_poses.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"
#include "io/drive/oxts.hpp"
#include "io/points/text_table.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace fs = std::filesystem;

namespace {

constexpr double kUsualPeriod_s = 0.1;

Quaternion rotation_of(const double (&m)[9], const std::string& where) {
    const double determinant =
        dot(Vec3d{m[0], m[1], m[2]}, cross(Vec3d{m[3], m[4], m[5]}, {m[6], m[7], m[8]}));
    if (!(std::fabs(determinant - 1) < 0.01))
        throw InputError(where + ": not a rotation (determinant " + format_number(determinant) + ")");
    Quaternion q = from_rotation_matrix(m);
    const double n = std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    if (!(std::fabs(n - 1) < 0.02)) throw InputError(where + ": not a rotation");
    return {q.x / n, q.y / n, q.z / n, q.w / n};
}

/// Numbers of the first line of a file.
std::size_t numbers_a_line(const fs::path& path) {
    const std::string text = read_text_file(path);
    for (const Line& line : Lines(text))
        if (!trimmed(line.text).empty()) return words_of(line.text).size();
    return 0;
}

struct OxtsRecords {
    std::map<std::uint64_t, OxtsRecord> by_frame;
    std::vector<double> times_s;  ///< by frame; empty: none
};

/// The folder of a raw drive, with data/NNNN.txt and timestamps.txt, or one line a frame.
OxtsRecords read_oxts_records(const fs::path& path, const CancelToken& cancel) {
    OxtsRecords records;
    if (fs::is_directory(path)) {
        for (const auto& entry : fs::directory_iterator(path / "data")) {
            cancel.check();
            const auto number = parse_whole<std::uint64_t>(entry.path().stem().string());
            if (!number || entry.path().extension() != ".txt") continue;
            if (!records.by_frame.emplace(*number, read_oxts(entry.path())).second)
                throw InputError(entry.path().string() + ": another file has the record of frame " +
                                 std::to_string(*number));
        }
        if (fs::exists(path / "timestamps.txt")) records.times_s = read_frame_times(path / "timestamps.txt");
        return records;
    }
    const std::string text = read_text_file(path);
    std::uint64_t frame = 0;
    for (const Line& line : Lines(text)) {
        cancel.check();
        if (!trimmed(line.text).empty())
            records.by_frame.emplace(
                frame++,
                parse_oxts(std::string(line.text), path.string() + ": line " + std::to_string(line.number)));
    }
    return records;
}

Pose velo_from_imu(const fs::path& labels, const TrackOptions& options) {
    if (options.calibration.empty())
        throw UsageError(labels.string() +
                         ": poses from OXTS need the calibration (Tr_imu_velo of the tracking "
                         "benchmark, or calib_imu_to_velo.txt of a raw drive)");
    const auto found = read_kitti_calibration(options.calibration);
    for (const char* name : {"Tr_imu_velo", "Tr_imu_to_velo", "RT"})
        if (const auto at = found.find(name); at != found.end()) return at->second;
    throw InputError(options.calibration.string() + ": no line Tr_imu_velo, and not R and T");
}

}  // namespace

std::vector<double> read_frame_times(const fs::path& path) {
    const std::string text = read_text_file(path);
    std::vector<double> times;
    if (text.find(':') != std::string::npos) {
        for (const auto& time_s : read_timestamps(path))
            times.push_back(time_s ? *time_s : std::numeric_limits<double>::quiet_NaN());
        return times;
    }
    for (const Line& line : Lines(text)) {
        double value[1];
        const std::size_t n = parse_row(line.text, value, path.string(), line.number);
        if (n == 0) continue;
        if (n != 1 || !ranges::kTime_s.contains(value[0]))
            throw InputError(path.string() + ": line " + std::to_string(line.number) +
                             ": expected one time in seconds");
        times.push_back(value[0]);
    }
    return times;
}

std::map<std::string, Pose> read_kitti_calibration(const fs::path& path) {
    const std::string text = read_text_file(path);
    std::map<std::string, Pose> poses;
    std::optional<Quaternion> r;
    std::optional<Vec3d> t;
    for (const Line& line : Lines(text)) {
        const auto words = words_of(line.text);
        if (words.empty()) continue;
        std::string name(words[0]);
        if (name.ends_with(':')) name.pop_back();
        const bool wanted = name == "R" || name == "T" || name.starts_with("R_rect") || name == "R0_rect" ||
                            name.starts_with("Tr_") || name == "Tr";
        if (!wanted) continue;
        const std::string where = path.string() + ": line " + std::to_string(line.number) + ": " + name;
        std::vector<double> v;
        for (std::size_t i = 1; i < words.size(); ++i) {
            const auto value = parse_number(words[i]);
            if (!value || !ranges::kPosition_m.contains(*value))
                throw InputError(where + ": not all are numbers");
            v.push_back(*value);
        }
        if (v.size() == 12)
            poses[name] = {{v[3], v[7], v[11]},
                           rotation_of({v[0], v[1], v[2], v[4], v[5], v[6], v[8], v[9], v[10]}, where)};
        else if (v.size() == 9)
            poses[name] = {{0, 0, 0},
                           rotation_of({v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]}, where)};
        else if (v.size() == 3 && name == "T")
            t = Vec3d{v[0], v[1], v[2]};
        else
            throw InputError(where + ": " + std::to_string(v.size()) + " numbers; expected 9 or 12");
    }
    if (const auto found = poses.find("R"); found != poses.end() && t)
        poses["RT"] = {*t, found->second.rotation};
    return poses;
}

FramePoses::FramePoses(const fs::path& labels, const TrackOptions& options, const CancelToken& cancel)
    : name_(options.poses.string()) {
    if (options.poses.empty())
        throw UsageError(
            labels.string() +
            ": its boxes are in the frame of the sensor; say where the Velodyne was at each frame "
            "with \"poses\": a trajectory with one pose a frame, or OXTS records");
    std::vector<double> times;
    const bool oxts = fs::is_directory(options.poses) || numbers_a_line(options.poses) >= 25;
    if (oxts) {
        const OxtsRecords records = read_oxts_records(options.poses, cancel);
        if (records.by_frame.empty()) throw InputError(name_ + ": no OXTS records");
        const OxtsRecord& first = records.by_frame.begin()->second;
        const OxtsPlane plane({first.latitude_deg, first.longitude_deg, first.altitude_m});
        const Pose imu_from_velo = inverse(velo_from_imu(labels, options));
        for (const auto& [frame, record] : records.by_frame)
            frames_[frame] = {static_cast<double>(frame) * kUsualPeriod_s,
                              plane.world_from_body(record) * imu_from_velo};
        times = records.times_s;
    } else {
        TrajectoryOptions how;
        how.allow_gaps = true;
        const Trajectory trajectory = read_trajectory(options.poses, how);
        std::uint64_t frame = 0;
        for (const StampedPose& pose : trajectory.poses()) frames_[frame++] = pose;
    }
    if (!options.times.empty()) times = read_frame_times(options.times);
    if (times.empty()) return;
    for (auto& [frame, pose] : frames_) {
        if (frame >= times.size() || !std::isfinite(times[frame]))
            throw InputError((options.times.empty() ? options.poses : options.times).string() +
                             ": no time for frame " + std::to_string(frame));
        pose.time_s = times[frame];
    }
}

const StampedPose& FramePoses::at(std::uint64_t frame, const std::string& where) const {
    const auto found = frames_.find(frame);
    if (found == frames_.end())
        throw InputError(where + ": frame " + std::to_string(frame) + " has no pose in " + name_ +
                         ", which has " + std::to_string(frames_.size()));
    return found->second;
}

}  // namespace citysplat::io
