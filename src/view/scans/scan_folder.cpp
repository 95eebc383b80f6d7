#include "view/scans/scan_folder.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"
#include "io/input/open_point_file.hpp"
#include "io/tracks/track_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

namespace citysplat::view {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kMostTableBytes = std::uintmax_t{1} << 30;  ///< poses.txt of six million scans

constexpr double kMostNumber = 1e11;  ///< of times; of places kMaxWorld_m

std::string scan_name(std::size_t scan) {
    char text[32];
    std::snprintf(text, sizeof text, "%06zu", scan);
    return text;
}

/// `columns` numbers in each line.
std::vector<std::vector<double>> read_table(const fs::path& path, std::size_t columns) {
    require_file(path);
    if (fs::file_size(path) > kMostTableBytes) throw InputError(path.string() + ": too large for a table");
    std::vector<std::vector<double>> rows;
    const std::string text = read_text_file(path);
    for (const Line& line : Lines(text)) {
        std::vector<double> row;
        std::string_view rest = line.text;
        while (!rest.empty()) {
            const std::size_t space = rest.find(' ');
            const auto number = parse_number(rest.substr(0, space));
            if (!number || !(std::fabs(*number) <= kMostNumber))
                throw InputError(path.string() + ": line " + std::to_string(line.number) + ": not a number");
            row.push_back(*number);
            rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
        }
        if (row.size() != columns)
            throw InputError(path.string() + ": line " + std::to_string(line.number) + ": " +
                             std::to_string(row.size()) + " numbers instead of " + std::to_string(columns));
        rows.push_back(std::move(row));
    }
    return rows;
}

Vec3d apply(const PoseRows& m, Vec3d v) {
    return {m[0] * v.x + m[1] * v.y + m[2] * v.z + m[3], m[4] * v.x + m[5] * v.y + m[6] * v.z + m[7],
            m[8] * v.x + m[9] * v.y + m[10] * v.z + m[11]};
}
Vec3d translation(const PoseRows& m) { return {m[3], m[7], m[11]}; }

/// The points of a file as they are, block by block.
template <class Use>
void for_each_block(const fs::path& path, const fs::path& labels, Use use) {
    require_file(path);
    ReadOptions options;
    options.units = ReadOptions::Units::as_is;
    options.world_from_sensor = Pose{};  // placed already, as far as the reader is concerned
    options.labels = labels;
    const auto file = open_point_file(path, options);
    if (file->info().points > ScanFolder::kMostPoints)
        throw InputError(path.string() + ": more points than a scan has (" +
                         std::to_string(ScanFolder::kMostPoints) + ")");
    PointBatch batch;
    for (std::size_t block = 0; block < file->block_count(); ++block) {
        file->read_block(block, batch);
        use(batch);
    }
}

std::optional<std::pair<std::string, std::string>> files_in(const fs::path& directory) {
    for (const auto& [folder, extension] : {std::pair{"velodyne", ".bin"},
                                            {"scans", ".las"},
                                            {"scans", ".laz"},
                                            {"scans", ".ply"},
                                            {"scans", ".pcd"},
                                            {"scans", ".xyz"}})
        if (fs::is_regular_file(directory / folder / (scan_name(0) + extension)))
            return std::pair<std::string, std::string>{folder, extension};
    return std::nullopt;
}

}  // namespace

ScanFolder::ScanFolder(const fs::path& directory)
    : name_(fs::absolute(directory).lexically_normal().filename().string()) {
    if (name_.empty()) name_ = fs::absolute(directory).lexically_normal().parent_path().filename().string();
    if (!fs::is_directory(directory)) throw InputError(directory.string() + ": no such directory of scans");
    if (fs::exists(directory / "run.toml")) {
        add(directory, name_);
    } else {
        std::vector<fs::path> below;
        for (const auto& entry : fs::directory_iterator(directory))
            if (entry.is_directory() && fs::exists(entry.path() / "run.toml")) below.push_back(entry.path());
        std::sort(below.begin(), below.end());
        for (const fs::path& one : below) add(one, one.filename().string());
    }
    if (sensors_.empty())
        throw InputError(directory.string() +
                         ": neither it nor a directory in it has the run.toml that simulate writes");
}

void ScanFolder::add(const fs::path& directory, std::string name) {
    if (!fs::exists(directory / "poses.txt"))
        throw InputError(directory.string() + ": no poses.txt; did simulate come to its end?");
    const auto files = files_in(directory);
    if (!files)
        throw InputError(directory.string() +
                         ": no scan 000000 in scans/ or velodyne/; simulate --no-scans writes none");
    PlayedSensor sensor;
    sensor.name = std::move(name);
    for (const auto& row : read_table(directory / "poses.txt", 12)) {
        sensor.poses.emplace_back();
        std::copy(row.begin(), row.end(), sensor.poses.back().begin());
        for (const double v : row)
            if (std::fabs(v) > kMaxWorld_m)
                throw InputError(directory.string() + ": poses.txt leaves the Earth");
    }
    for (const auto& row : read_table(directory / "times.txt", 1)) sensor.times_s.push_back(row[0]);
    if (sensor.poses.empty() || sensor.poses.size() != sensor.times_s.size())
        throw InputError(directory.string() + ": " + std::to_string(sensor.poses.size()) + " poses and " +
                         std::to_string(sensor.times_s.size()) + " times");
    if (!std::is_sorted(sensor.times_s.begin(), sensor.times_s.end()))
        throw InputError(directory.string() + ": times.txt goes back in time");
    sensor.has_boxes = fs::is_directory(directory / "boxes");
    sensors_.push_back(std::move(sensor));
    files_.push_back({directory, files->first, files->second});
    sensors_.back().sensor_frame = is_in_sensor_frame(sensors_.size() - 1);
}

bool ScanFolder::exists(std::size_t sensor, std::size_t scan) const {
    return sensor < sensors_.size() && scan < sensors_[sensor].poses.size();
}

fs::path ScanFolder::file_of(std::size_t sensor, std::size_t scan) const {
    const Files& files = files_[sensor];
    return files.directory / files.folder / (scan_name(scan) + files.extension);
}

/// Points lie around the sensor: around zero when they are in its frame, else around its pose. Where both are
/// the same place, as simulate writes the format unless told otherwise.
bool ScanFolder::is_in_sensor_frame(std::size_t sensor) const {
    constexpr std::size_t kLooks = 4;
    const PlayedSensor& s = sensors_[sensor];
    const std::size_t scans = s.poses.size();
    double from_zero_m = 0, from_pose_m = 0, points = 0;
    for (std::size_t look = 0; look < std::min(kLooks, scans); ++look) {
        const std::size_t scan = look * scans / std::min(kLooks, scans);
        const Vec3d at = translation(s.poses[scan]);
        for_each_block(file_of(sensor, scan), {}, [&](const PointBatch& batch) {
            for (std::size_t i = 0; i < batch.size(); ++i) {
                const Vec3d p{batch.x[i], batch.y[i], batch.z[i]};
                from_zero_m += length(p);
                from_pose_m += length(p - at);
                points += 1;
            }
        });
    }
    const bool usually = files_[sensor].extension == ".bin" || files_[sensor].extension == ".pcd";
    constexpr double kClear_m = 0.5;  // between the two means
    if (std::fabs(from_zero_m - from_pose_m) <= kClear_m * points) return usually;
    return from_zero_m < from_pose_m;
}

PlayedScan ScanFolder::scan(std::size_t sensor, std::size_t scan) const {
    const PlayedSensor& s = sensors_[sensor];
    const PoseRows& pose = s.poses[scan];
    const Vec3d at = translation(pose);
    const TileFrame frame{static_cast<std::int64_t>(std::floor(at.x)),
                          static_cast<std::int64_t>(std::floor(at.y)),
                          static_cast<std::int64_t>(std::floor(at.z))};
    const LatticePoint origin = frame.origin();
    const fs::path labels = files_[sensor].directory / "labels" / (scan_name(scan) + ".label");
    const bool labelled = files_[sensor].folder == "velodyne" && fs::is_regular_file(labels);
    std::vector<Splat> splats;
    PlayedScan played;
    for_each_block(file_of(sensor, scan), labelled ? labels : fs::path(), [&](const PointBatch& batch) {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            Vec3d p{batch.x[i], batch.y[i], batch.z[i]};
            if (s.sensor_frame) p = apply(pose, p);
            const Vec3d away = p - at;
            const double range_m = length(away);
            if (!(range_m < to_metres(kMaxSplatSteps) - 1)) {  // also when it is not a number
                ++played.too_far;
                continue;
            }
            Splat splat{};
            splat.x = static_cast<std::int32_t>(to_lattice(p.x) - origin.x);
            splat.y = static_cast<std::int32_t>(to_lattice(p.y) - origin.y);
            splat.z = static_cast<std::int32_t>(to_lattice(p.z) - origin.z);
            splat.normal = pack_normal(range_m > 0 ? away * (-1 / range_m) : Vec3d{0, 0, 1});
            splat.radius = 1;
            splat.label = batch.label.empty() ? std::uint16_t{0} : batch.label[i];
            splat.intensity = batch.intensity.empty() ? std::uint16_t{0} : batch.intensity[i];
            splat.point_count = 1;
            if (!batch.instance.empty())
                splat.instance = static_cast<std::uint8_t>(std::min<int>(batch.instance[i], 255));
            splats.push_back(splat);
        }
    });
    played.points = SplatTile(frame, splats);
    return played;
}

std::vector<Track> ScanFolder::boxes(std::size_t sensor, std::size_t scan) const {
    if (!sensors_[sensor].has_boxes) return {};
    const fs::path path = files_[sensor].directory / "boxes" / (scan_name(scan) + ".csv");
    require_file(path);
    if (fs::file_size(path) > kMostTableBytes) throw InputError(path.string() + ": too large for boxes");
    // A scan that saw nothing move has a first line alone, which is no table of tracks.
    const std::string text = read_text_file(path);
    const std::size_t first = text.find('\n');
    if (first == std::string::npos || first + 1 == text.size()) return {};
    return read_tracks(path, {.format = TrackOptions::Format::csv}).tracks;
}

}  // namespace citysplat::view
