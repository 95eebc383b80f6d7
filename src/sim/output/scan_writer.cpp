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
    if (kitti && options.recorded && !options.accumulate)
        throw UsageError(
            "--recorded: KITTI files have no place for how surfaces were recorded; take --format las, ply, "
            "pcd "
            "or xyz, or --accumulate, whose cloud has it");
    const std::string cloud = kitti ? "ply" : options.format;
    if (options.decimate_m > 0 && !options.accumulate)
        throw UsageError("--decimate is about the one cloud that --accumulate writes");
    if (options.decimate_m > 0 && cloud != "ply" && cloud != "xyz")
        throw UsageError(
            "--decimate: the cloud is PLY or XYZ; take --format ply, xyz or kitti (whose cloud is PLY)");
    if (options.decimate_m > 0 && options.keep_all)
        throw UsageError("--decimate: rays without return have no place in a cloud; leave out --keep-misses");
    RunManifest manifest{false, options.planned_scans, {}, {"poses.txt", "times.txt"}};
    if (kitti) manifest.files.push_back("calib.txt");
    if (options.accumulate) manifest.files.push_back("cloud." + (kitti ? "ply" : options.format));
    if (options.scans && kitti) manifest.parts = {"velodyne/*.bin", "labels/*.label"};
    if (options.scans && !kitti) manifest.parts = {"scans/*." + options.format};
    if (options.boxes) {
        manifest.parts.insert(manifest.parts.end(), {"boxes/*.csv", "label_02/*.txt"});
        manifest.files.insert(manifest.files.end(), {"objects.csv", "label_calib.txt"});
    }
    return manifest;
}

CloudFrame frame_named(const ScanWriterOptions& options) {
    if (options.frame == "world") return CloudFrame::world;
    if (options.frame == "sensor") return CloudFrame::sensor;
    if (options.frame == "firing") return CloudFrame::firing;
    if (options.frame != "auto")
        throw UsageError("frame \"" + options.frame + "\" is not one of auto, world, sensor, firing");
    return options.format == "kitti" || options.format == "pcd" ? CloudFrame::sensor : CloudFrame::world;
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
    layout_.several = options.several;
    layout_.crs = options.crs;
    layout_.frame = frame_named(options);
    if (layout_.frame != CloudFrame::world) layout_.crs.clear();
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
        if (options.decimate_m > 0) decimated_.emplace(options.directory, *cloud_format_, options.decimate_m);
    }
    if (options.boxes) {
        make_directory(options.directory / "boxes");
        make_directory(options.directory / "label_02");
    }
    poses_.emplace(options.directory / "poses.txt");
    times_.emplace(options.directory / "times.txt");
    if (kitti) {
        calib_.emplace(options.directory / "calib.txt");
        calib_->writer().text("Tr: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    }
}

ScanWriter::~ScanWriter() = default;

void ScanWriter::check(const ScanWriterOptions& options) {
    manifest_of(options);
    frame_named(options);
}

void ScanWriter::consume(const Scan& scan) {
    if (!parts_.empty()) write_files(scan);
    if (options_.boxes) write_boxes(scan);
}

void ScanWriter::write_boxes(const Scan& scan) {
    const std::vector<SeenBox> boxes = options_.boxes->seen_in(scan);
    const std::string name = scan_name(scan.index);
    write_text(options_.directory / "boxes" / (name + ".csv"), options_.boxes->csv(boxes));
    write_text(options_.directory / "label_02" / (name + ".txt"), options_.boxes->kitti(boxes, scan));
}

void ScanWriter::write_text(const std::filesystem::path& path, const std::string& text) {
    FileQueue::Block block = queue_.take(text.size());
    std::memcpy(block.data(), text.data(), text.size());
    queue_.put(path, std::move(block), text.size());
}

/// All files of a scan, piece by piece: what the first has read from memory the next one finds in the cache.
void ScanWriter::write_files(const Scan& scan) {
    constexpr std::size_t kPiece = 2048;
    struct Content {
        std::byte *begin, *end;
        io::CloudSummary summary{};
    };
    CloudLayout layout = layout_;
    if (layout.frame == CloudFrame::world) layout.offset_m = whole_metres(scan.world_from_sensor.translation);
    std::vector<std::size_t> header_bytes;
    std::size_t room = 0;
    for (const Part& part : parts_) {
        header_bytes.push_back(part.format->header(layout, {}).size());
        room += header_bytes.back() + scan.returns.size() * part.format->most_record_bytes();
    }
    FileQueue::Block block = queue_.take(room);
    std::vector<Content> contents;
    std::byte* at = block.data();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        contents.push_back({at, at + header_bytes[i]});
        at += header_bytes[i] + scan.returns.size() * parts_[i].format->most_record_bytes();
    }
    for (std::size_t begin = 0; begin < scan.returns.size(); begin += kPiece) {
        const ScanPiece piece{scan, begin, std::min(begin + kPiece, scan.returns.size())};
        for (std::size_t i = 0; i < parts_.size(); ++i)
            parts_[i].format->append(piece, layout, contents[i].end, contents[i].summary);
    }
    std::vector<FileQueue::File> files;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const auto& [begin, end, summary] = contents[i];
        const std::string header = parts_[i].format->header(layout, summary);
        std::memcpy(begin, header.data(), header_bytes[i]);
        files.push_back(
            {parts_[i].directory / (scan_name(scan.index) + std::string(parts_[i].format->extension())),
             {begin, end}});
    }
    if (is_laz())
        for (const FileQueue::File& las : files) write_laz(las);
    else
        queue_.put(std::move(files), std::move(block));
}

void ScanWriter::write_laz(const FileQueue::File& las) {
    OutputFile file(las.path, OutputFile::Buffering::none);
    file.writer().write(las.content);
    commit_laz(file);
    laz_bytes_ += las.content.size();
}

void ScanWriter::commit_laz(OutputFile& file) const {
    file.writer().flush();
    OutputFile laz(std::filesystem::path(file.path()).replace_extension(".laz"));
    const CancelToken never;
    io::compress_las(file.partial(), laz.partial(), options_.cancel ? *options_.cancel : never);
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
        cloud_layout_->several = options_.several;
        cloud_layout_->crs = options_.crs;
        cloud_layout_->offset_m = whole_metres(scan.world_from_sensor.translation);
        cloud_->writer().text(cloud_format_->header(*cloud_layout_, cloud_summary_));
    }
    if (decimated_) return decimated_->add(scan, *cloud_layout_);
    cloud_records_.resize(scan.returns.size() * cloud_format_->most_record_bytes());
    std::byte* end = cloud_records_.data();
    cloud_format_->append({scan, 0, scan.returns.size()}, *cloud_layout_, end, cloud_summary_);
    cloud_->writer().write({cloud_records_.data(), end});
}

void ScanWriter::finish() {
    if (options_.boxes) {
        write_text(options_.directory / "objects.csv", options_.boxes->table());
        write_text(options_.directory / "label_calib.txt", ObjectBoxes::kCalibration);
    }
    queue_.finish();
    if (decimated_)
        cloud_summary_.points = decimated_->finish([&](std::span<const std::byte> record) {
            if (options_.cancel) options_.cancel->check();
            cloud_->writer().write(record);
        });
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
