#pragma once

#include "core/cancel.hpp"
#include "core/output_file.hpp"
#include "sim/output/decimated_cloud.hpp"
#include "sim/output/file_queue.hpp"
#include "sim/output/object_boxes.hpp"
#include "sim/output/run_directory.hpp"
#include "sim/output/scan_format.hpp"
#include "sim/scan/scan_sink.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::sim {

struct ScanWriterOptions {
    std::filesystem::path directory;
    std::string format = "kitti";  ///< las, laz (with LASlib), ply, pcd, kitti or xyz; rosbag2
    /// world, sensor, firing (CloudFrame); auto: sensor for kitti and pcd, world for the others.
    std::string frame = "auto";
    std::string points = "velodyne";  ///< of a bag: make_bag_format(); rosbag2 is written by a BagWriter
    bool keep_all = false;            ///< rays without return too
    bool recorded = false;            ///< how surfaces were recorded, too: kRecordedFields
    bool several = false;             ///< the sensor reports several returns of a pulse
    bool scans = true;                ///< one file per scan
    bool accumulate = false;          ///< all returns in one file, world frame
    double decimate_m = 0;            ///< one of them stays in each cube of this size; 0: all of them
    std::string crs;
    /// Also write which objects there are, and where each scan saw them. Must outlive the writer.
    const ObjectBoxes* boxes = nullptr;
    std::uint64_t planned_scans = 0;  ///< no scan has a higher index; see scan_times()
    bool overwrite = false;           ///< replace the scans of another run
    /// finish() asks it when it makes one cloud of all scans, which takes minutes. Must outlive the writer.
    const CancelToken* cancel = nullptr;
};

/// Writes scans into a directory (RunDirectory says which ones it takes):
///
///   scans/000000.las …                 las, ply, pcd, xyz
///   velodyne/000000.bin, labels/000000.label …   kitti
///   cloud.las                          with `accumulate` (kitti: cloud.ply)
///   poses.txt, times.txt               pose of the sensor (3 × 4, rows) and time, when each scan begins
///   calib.txt                          kitti: Tr is the identity, the poses are those of the sensor
///   objects.csv                        with `boxes`: all things that stand or move besides the city
///   boxes/000000.csv, label_02/000000.txt …      with `boxes`: those that the scan saw, at the mean time of
///   their
///                                      returns, in our form and in KITTI's; label_calib.txt belongs to the
///                                      latter
///   run.toml                           what of all this was written
///
/// Every file appears when it is whole: those of scans one by one, the others in finish().
///
/// Threads: as ScanSink says. consume() makes the content of the files of a scan; a FileQueue writes them
/// meanwhile, so that a failure may be thrown by a later call than the one whose file it concerns. Only LAZ
/// is compressed and written by the caller: that is work for all threads.
class ScanWriter final : public ScanSink {
  public:
    explicit ScanWriter(const ScanWriterOptions& options);
    ~ScanWriter() override;
    /// Throws what the constructor would because of a format or frame, and changes nothing.
    static void check(const ScanWriterOptions& options);

    void consume(const Scan& scan) override;
    void conclude(const Scan& scan) override;
    /// Completes headers, poses and times. Throws Interrupted, too.
    void finish() override;
    /// Of the files of scans that are written so far.
    std::uint64_t bytes() const { return queue_.written_bytes() + laz_bytes_; }

  private:
    struct Part {
        std::unique_ptr<ScanFormat> format;
        std::filesystem::path directory;
    };

    void write_files(const Scan& scan);
    void write_laz(const FileQueue::File& las);
    void write_boxes(const Scan& scan);
    void write_text(const std::filesystem::path& path, const std::string& text);
    void commit_laz(OutputFile& file) const;
    bool is_laz() const { return options_.format == "laz"; }  ///< LAS first, then compressed

    ScanWriterOptions options_;
    RunDirectory run_;
    CloudLayout layout_;
    std::vector<Part> parts_;
    std::unique_ptr<ScanFormat> cloud_format_;
    std::optional<OutputFile> cloud_, poses_, times_, calib_;
    std::optional<CloudLayout> cloud_layout_;
    io::CloudSummary cloud_summary_;
    std::vector<std::byte> cloud_records_;  ///< memory that is used again
    std::optional<DecimatedCloud> decimated_;
    std::atomic<std::uint64_t> laz_bytes_{0};
    FileQueue queue_;
};

}  // namespace citysplat::sim
