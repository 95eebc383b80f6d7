#include "io/trajectory/trajectory_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/points/text_table.hpp"
#include "io/trajectory/trajectory_formats.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat {

namespace {

using Format = TrajectoryOptions::Format;

constexpr std::size_t kLookBytes = 64 * 1024;

bool looks_binary(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t';
    });
}

/// By the first line that is no comment: names → CSV, 8 numbers → TUM, 12 → KITTI; bytes → SBET.
Format detect(const std::filesystem::path& path) {
    const File file(path, File::Mode::read);
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kLookBytes)), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(start.data(), start.size())));
    if (start.empty()) throw InputError(path.string() + ": the trajectory is empty");
    if (start.starts_with(kByteOrderMark)) start.erase(0, kByteOrderMark.size());
    if (looks_binary(start)) return Format::sbet;
    for (const auto& [line, number, next, ended] : Lines(start)) {
        const std::size_t first = line.find_first_not_of(" \t\r");
        if (first == std::string_view::npos || line[first] == '#') continue;
        try {
            double numbers[16];
            const std::size_t n = io::parse_row(line, numbers, path.string(), number);
            if (n == 8) return Format::tum;
            if (n == 12) return Format::kitti;
            throw InputError(
                path.string() + ": " + std::to_string(n) +
                " numbers a line; expected 8 (TUM: time x y z qx qy qz qw), 12 (KITTI matrix), or "
                "a first line that names the columns");
        } catch (const InputError&) {
            if (line.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") !=
                    std::string_view::npos &&
                line.find_first_of("xXeE") != std::string_view::npos)
                return Format::csv;
            throw;
        }
    }
    throw InputError(path.string() + ": no poses in this trajectory");
}

std::vector<StampedPose> read_poses(const std::filesystem::path& path, const TrajectoryOptions& options) {
    const Format format = options.format == Format::automatic ? detect(path) : options.format;
    switch (format) {
        case Format::kitti:
            return io::read_kitti_poses(path, options);
        case Format::csv:
            return io::read_csv_poses(path, options);
        case Format::sbet:
            return io::read_sbet_poses(path, options);
        default:
            const Trajectory tum = Trajectory::read_tum(path);
            return {tum.poses().begin(), tum.poses().end()};
    }
}

}  // namespace

std::optional<std::size_t> find_gap(const Trajectory& trajectory) {
    const auto poses = trajectory.poses();
    if (poses.size() < 3) return std::nullopt;
    std::vector<double> spacing;
    for (std::size_t i = 1; i < poses.size(); ++i) spacing.push_back(poses[i].time_s - poses[i - 1].time_s);
    std::vector<double> sorted = spacing;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    for (std::size_t i = 0; i < spacing.size(); ++i) {
        const double moved =
            length(poses[i + 1].world_from_body.translation - poses[i].world_from_body.translation);
        if (spacing[i] > std::max(10.0, 20 * *middle) && moved > 5) return i;
    }
    return std::nullopt;
}

Trajectory read_trajectory(const std::filesystem::path& path, const TrajectoryOptions& options) {
    std::vector<StampedPose> poses = read_poses(path, options);
    if (poses.empty()) throw InputError(path.string() + ": no poses in this trajectory");
    constexpr double kWeek_s = 604800;
    const double shift = (options.gps_week ? *options.gps_week * kWeek_s : 0.0) -
                         (options.adjusted_gps_time ? 1e9 : 0.0) + options.time_offset_s;
    for (std::size_t i = 0; i < poses.size(); ++i) {
        auto& [time_s, pose] = poses[i];
        if (options.gps_week && !(time_s >= 0 && time_s < 2 * kWeek_s))
            throw InputError(path.string() + ": pose " + std::to_string(i + 1) + ": time " +
                             std::to_string(time_s) + " is not a second of a GPS week");
        time_s += shift;
        pose.translation = pose.translation + options.position_offset_m;
    }
    Trajectory trajectory(std::move(poses), path.string());
    if (const auto gap = options.allow_gaps ? std::nullopt : find_gap(trajectory)) {
        const auto &a = trajectory.poses()[*gap], &b = trajectory.poses()[*gap + 1];
        throw InputError(
            path.string() + ": poses " + std::to_string(*gap + 1) + " and " + std::to_string(*gap + 2) +
            " are " + std::to_string(b.time_s - a.time_s) + " s and " +
            std::to_string(length(b.world_from_body.translation - a.world_from_body.translation)) +
            " m apart: a hole in the recording; split the file, or accept it with --allow-gaps");
    }
    return trajectory;
}

}  // namespace citysplat
