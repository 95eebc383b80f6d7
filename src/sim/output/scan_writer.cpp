#include "sim/output/scan_writer.hpp"

#include "core/error.hpp"
#include "io/las/laslib.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace citysplat::sim {

namespace {

std::unique_ptr<ScanFormat> format_named(const std::string& name) {
    if (auto format = make_scan_format(name == "laz" ? "las" : name)) return format;
    throw UsageError("format \"" + name + "\" is not one of las, laz, ply, pcd, kitti, xyz");
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

RunManifest manifest_of(const ScanWriterOptions& options) {
    if (options.format == "laz") io::require_laz_writing();
    format_named(options.format);
    const bool kitti = options.format == "kitti";
    RunManifest manifest{false, options.planned_scans, {}, {"poses.txt", "times.txt"}};
    if (kitti) manifest.files.push_back("calib.txt");
    if (options.accumulate) manifest.files.push_back("cloud." + (kitti ? "ply" : options.format));
    if (options.scans && kitti) manifest.parts = {"velodyne/*.bin", "labels/*.label"};
    if (options.scans && !kitti) manifest.parts = {"scans/*." + options.format};
    return manifest;
}

/// One writes as fast as several cores trace.
unsigned writer_threads() {
    return static_cast<unsigned>(std::clamp(tbb::this_task_arena::max_concurrency() / 8, 1, 4));
}

}  // namespace

ScanWriter::ScanWriter(const ScanWriterOptions& options)
    : options_(options),
      run_(options.directory, manifest_of(options), options.overwrite),
      queue_({.threads = writer_threads()}) {
    layout_.keep_all = options.keep_all;
    layout_.recorded = options.recorded;
    layout_.crs = options.crs;
    layout_.sensor_frame =
        options.frame == "sensor" ||
        (options.frame == "auto" && (options.format == "kitti" || options.format == "pcd"));
    if (layout_.sensor_frame) layout_.crs.clear();
    const bool kitti = options.format == "kitti";
    if (options.scans) {
        parts_.push_back({format_named(options.format),
                          make_directory(options.directory / (kitti ? "velodyne" : "scans"))});
        if (kitti)
            parts_.push_back(
                {make_scan_format("kitti labels"), make_directory(options.directory / "labels")});
    }
    if (options.accumulate) {
        cloud_format_ = format_named(kitti ? "ply" : options.format);
        cloud_.emplace(options.directory / ("cloud" + std::string(cloud_format_->extension())));
    }
    poses_.emplace(options.directory / "poses.txt");
    times_.emplace(options.directory / "times.txt");
    if (kitti) {
        calib_.emplace(options.directory / "calib.txt");
        calib_->writer().text("Tr: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    }
}

ScanWriter::~ScanWriter() = default;

void ScanWriter::consume(const Scan& scan) {
    for (const Part& part : parts_) write_file(part, scan);
}

void ScanWriter::write_file(const Part& part, const Scan& scan) {
    CloudLayout layout = layout_;
    if (!layout.sensor_frame) layout.offset_m = whole_metres(scan.world_from_sensor.translation);
    io::CloudSummary summary;
    const std::size_t header_bytes = part.format->header(layout, summary).size();
    FileQueue::Block block =
        queue_.take(header_bytes + scan.returns.size() * part.format->most_record_bytes());
    std::byte* end = block.data() + header_bytes;
    part.format->append(scan, layout, end, summary);
    const std::string header = part.format->header(layout, summary);
    std::memcpy(block.data(), header.data(), header_bytes);
    const auto bytes = static_cast<std::size_t>(end - block.data());
    std::filesystem::path path =
        part.directory / (scan_name(scan.index) + std::string(part.format->extension()));
    if (!is_laz()) return queue_.put(std::move(path), std::move(block), bytes);
    OutputFile file(path, OutputFile::Buffering::none);
    file.writer().write(std::span(block.data(), bytes));
    commit_laz(file);
    laz_bytes_ += bytes;
}

void ScanWriter::commit_laz(OutputFile& file) const {
    file.writer().flush();
    OutputFile laz(std::filesystem::path(file.path()).replace_extension(".laz"));
    io::compress_las(file.partial(), laz.partial());
    laz.commit();
}

void ScanWriter::conclude(const Scan& scan) {
    char time[64];
    std::snprintf(time, sizeof time, "%.9f\n", scan.time_s);
    times_->writer().text(time);
    poses_->writer().text(pose_line(scan.world_from_sensor));
    if (!cloud_) return;
    if (!cloud_layout_) {
        cloud_layout_.emplace();
        cloud_layout_->keep_all = options_.keep_all;
        cloud_layout_->recorded = options_.recorded;
        cloud_layout_->crs = options_.crs;
        cloud_layout_->offset_m = whole_metres(scan.world_from_sensor.translation);
        cloud_->writer().text(cloud_format_->header(*cloud_layout_, cloud_summary_));
    }
    cloud_records_.resize(scan.returns.size() * cloud_format_->most_record_bytes());
    std::byte* end = cloud_records_.data();
    cloud_format_->append(scan, *cloud_layout_, end, cloud_summary_);
    cloud_->writer().write({cloud_records_.data(), end});
}

void ScanWriter::finish() {
    queue_.finish();
    if (cloud_) {
        const std::string header =
            cloud_format_->header(cloud_layout_.value_or(CloudLayout{}), cloud_summary_);
        if (!header.empty()) cloud_->writer().patch(0, std::as_bytes(std::span(header)));
        is_laz() ? commit_laz(*cloud_) : cloud_->commit();
    }
    if (calib_) calib_->commit();
    poses_->commit();
    times_->commit();
    run_.complete();
}

}  // namespace citysplat::sim
