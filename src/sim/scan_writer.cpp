#include "sim/scan_writer.hpp"

#include "core/error.hpp"
#include "core/formats/laz/laslib.hpp"

#include <cmath>
#include <cstdio>

namespace citysplat::sim {

namespace {

std::unique_ptr<ScanFormat> format_named(const std::string& name) {
    if (name == "las" || name == "laz") return make_las_format();
    if (name == "ply") return make_ply_format();
    if (name == "pcd") return make_pcd_format();
    if (name == "kitti") return make_kitti_format();
    if (name == "xyz") return make_xyz_format();
    throw UsageError("format \"" + name + "\" is not one of las, laz, ply, pcd, kitti, xyz");
}

std::string scan_name(std::uint64_t index) {
    char name[32];
    std::snprintf(name, sizeof name, "%06llu", static_cast<unsigned long long>(index));
    return name;
}

std::filesystem::path make_directory(const std::filesystem::path& path) {
    std::error_code ec;
    std::filesystem::create_directories(path, ec);
    if (ec) throw IoError("cannot create directory " + path.string() + ": " + ec.message());
    return path;
}

Vec3d whole_metres(Vec3d v) { return {std::floor(v.x), std::floor(v.y), std::floor(v.z)}; }

std::string pose_line(const Pose& pose) {
    const Vec3d x = rotate(pose.rotation, {1, 0, 0}), y = rotate(pose.rotation, {0, 1, 0}),
                z = rotate(pose.rotation, {0, 0, 1}), t = pose.translation;
    char line[512];
    std::snprintf(line, sizeof line, "%.12f %.12f %.12f %.6f %.12f %.12f %.12f %.6f %.12f %.12f %.12f %.6f\n",
                  x.x, y.x, z.x, t.x, x.y, y.y, z.y, t.y, x.z, y.z, z.z, t.z);
    return line;
}

}  // namespace

ScanWriter::ScanWriter(const ScanWriterOptions& options) : options_(options) {
    if (is_laz()) formats::require_laz_writing();
    layout_.keep_all = options.keep_all;
    layout_.crs = options.crs;
    layout_.sensor_frame =
        options.frame == "sensor" ||
        (options.frame == "auto" && (options.format == "kitti" || options.format == "pcd"));
    if (layout_.sensor_frame) layout_.crs.clear();
    make_directory(options.directory);
    const bool kitti = options.format == "kitti";
    if (options.scans) {
        parts_.push_back({format_named(options.format),
                          make_directory(options.directory / (kitti ? "velodyne" : "scans"))});
        if (kitti)
            parts_.push_back({make_kitti_label_format(), make_directory(options.directory / "labels")});
    }
    if (options.accumulate) {
        cloud_format_ = format_named(kitti ? "ply" : options.format);
        const auto path = options.directory / ("cloud" + std::string(cloud_format_->extension()));
        cloud_.emplace(path);
        cloud_path_ = path;
        files_.push_back((is_laz() ? std::filesystem::path(path).replace_extension(".laz") : path).string());
    }
    poses_.emplace(options.directory / "poses.txt");
    times_.emplace(options.directory / "times.txt");
    files_.push_back((options.directory / "poses.txt").string());
    files_.push_back((options.directory / "times.txt").string());
    if (kitti) {
        FileWriter calib(options.directory / "calib.txt");
        calib.text("Tr: 1 0 0 0 0 1 0 0 0 0 1 0\n");
        calib.finish();
    }
}

ScanWriter::~ScanWriter() = default;

void ScanWriter::consume(const Scan& scan) {
    for (const Part& part : parts_) write_file(part, scan);
}

void ScanWriter::write_file(const Part& part, const Scan& scan) {
    CloudLayout layout = layout_;
    if (!layout.sensor_frame) layout.offset_m = whole_metres(scan.world_from_sensor.translation);
    CloudSummary summary;
    std::vector<std::byte> records;
    part.format->append(scan, layout, records, summary);
    const auto path = part.directory / (scan_name(scan.index) + std::string(part.format->extension()));
    File file(path, File::Mode::truncate);
    const std::string header = part.format->header(layout, summary);
    if (!header.empty()) file.append(std::as_bytes(std::span(header)));
    file.append(records);
    file.close();
    if (is_laz()) formats::replace_by_laz(path);
    bytes_ += header.size() + records.size();
}

void ScanWriter::conclude(const Scan& scan) {
    char time[64];
    std::snprintf(time, sizeof time, "%.9f\n", scan.time_s);
    times_->text(time);
    poses_->text(pose_line(scan.world_from_sensor));
    if (!cloud_) return;
    if (!cloud_layout_) {
        cloud_layout_.emplace();
        cloud_layout_->keep_all = options_.keep_all;
        cloud_layout_->crs = options_.crs;
        cloud_layout_->offset_m = whole_metres(scan.world_from_sensor.translation);
        cloud_->text(cloud_format_->header(*cloud_layout_, cloud_summary_));
    }
    std::vector<std::byte> records;
    cloud_format_->append(scan, *cloud_layout_, records, cloud_summary_);
    cloud_->write(records);
}

void ScanWriter::finish() {
    if (cloud_) {
        const std::string header =
            cloud_format_->header(cloud_layout_.value_or(CloudLayout{}), cloud_summary_);
        if (!header.empty()) cloud_->patch(0, std::as_bytes(std::span(header)));
        cloud_->finish();
        if (is_laz()) formats::replace_by_laz(cloud_path_);
    }
    poses_->finish();
    times_->finish();
}

}  // namespace citysplat::sim
