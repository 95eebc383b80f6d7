#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/points/text_table.hpp"
#include "io/trajectory/trajectory_formats.hpp"

#include <cmath>

namespace citysplat::io {

namespace {

/// Lines of exactly `columns` numbers.
std::vector<std::vector<double>> read_numbers(const std::filesystem::path& path, std::size_t columns,
                                              const char* what) {
    const std::string text = read_text_file(path);
    std::vector<std::vector<double>> rows;
    for (const auto& [line, number, next, ended] : Lines(text)) {
        std::vector<double> row(columns);
        const std::size_t got = parse_row(line, row, path.string(), number);
        if (got == 0) continue;
        if (got != columns)
            throw InputError(path.string() + ": line " + std::to_string(number) + ": " + std::to_string(got) +
                             " numbers; expected " + std::to_string(columns) + " (" + what + ")");
        rows.push_back(std::move(row));
    }
    return rows;
}

Pose pose_of(const std::vector<double>& m, const std::string& where) {
    const Vec3d r[3]{{m[0], m[1], m[2]}, {m[4], m[5], m[6]}, {m[8], m[9], m[10]}};
    const double determinant = dot(r[0], cross(r[1], r[2]));
    if (!(std::fabs(determinant - 1) < 0.01))
        throw InputError(where + ": the first three columns are not a rotation (determinant " +
                         std::to_string(determinant) + ")");
    return {{m[3], m[7], m[11]},
            from_rotation_matrix({m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]})};
}

/// "Tr: 12 numbers": camera from sensor.
Pose read_calibration(const std::filesystem::path& path) {
    const std::string text = read_text_file(path);
    for (const auto& [line, number, next, ended] : Lines(text)) {
        if (!line.starts_with("Tr:")) continue;
        std::vector<double> row(12);
        if (parse_row(line.substr(3), row, path.string(), number) != 12)
            throw InputError(path.string() + ": line " + std::to_string(number) +
                             ": expected 12 numbers after Tr:");
        return pose_of(row, path.string() + ": line " + std::to_string(number));
    }
    throw InputError(
        path.string() +
        ": no line \"Tr:\", which says where the scanner is on the camera whose poses these are. "
        "Without the file the poses are taken for those of the scanner");
}

std::filesystem::path beside(const std::filesystem::path& poses, const std::filesystem::path& given,
                             const char* name) {
    if (!given.empty()) return given;
    const auto path = poses.parent_path() / name;
    return std::filesystem::exists(path) ? path : std::filesystem::path();
}

}  // namespace

std::vector<StampedPose> read_kitti_poses(const std::filesystem::path& path,
                                          const TrajectoryOptions& options) {
    const auto rows = read_numbers(path, 12, "a 3 × 4 matrix, row by row");
    std::vector<std::vector<double>> times;
    if (const auto file = beside(path, options.times, "times.txt"); !file.empty()) {
        times = read_numbers(file, 1, "one time per pose");
        if (times.size() != rows.size())
            throw InputError(file.string() + ": " + std::to_string(times.size()) + " times for " +
                             std::to_string(rows.size()) + " poses of " + path.string());
        for (std::size_t i = 1; i < times.size(); ++i)
            if (!(times[i][0] > times[i - 1][0]))
                throw InputError(file.string() + ": time " + std::to_string(i + 1) + " is " +
                                 std::to_string(times[i][0]) + ", not after the " +
                                 std::to_string(times[i - 1][0]) + " before it");
    }
    // With a calibration the poses are those of a camera in the frame of the first one; we give those of the
    // sensor in the frame of its first scan, z up.
    std::optional<Pose> camera_from_sensor;
    if (const auto file = beside(path, options.calibration, "calib.txt"); !file.empty())
        camera_from_sensor = read_calibration(file);
    std::vector<StampedPose> poses;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        Pose pose = pose_of(rows[i], path.string() + ": pose " + std::to_string(i + 1));
        if (camera_from_sensor) pose = inverse(*camera_from_sensor) * pose * *camera_from_sensor;
        poses.push_back({times.empty() ? static_cast<double>(i) * 0.1 : times[i][0], pose});
    }
    return poses;
}

}  // namespace citysplat::io
