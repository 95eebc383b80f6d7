#include "io/points/kitti_scan.hpp"

#include "core/error.hpp"
#include "io/crs/crs.hpp"
#include "io/points/binary_table.hpp"

namespace citysplat::io {

namespace {

class PosedScan : public PointFile {
  public:
    PosedScan(std::unique_ptr<PointFile> scan, const Pose& world_from_sensor, std::optional<double> time_s)
        : scan_(std::move(scan)),
          world_from_sensor_(world_from_sensor),
          time_s_(time_s),
          info_(scan_->info()) {
        info_.has_sensor = true;
        info_.has_gps_time = info_.has_gps_time || time_s_.has_value();
        info_.bounds_known = false;
    }

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return scan_->block_count(); }
    void read_block(std::size_t index, PointBatch& out) const override {
        scan_->read_block(index, out);
        const std::size_t n = out.size();
        for (std::size_t i = 0; i < n; ++i) {
            const Vec3d p = world_from_sensor_.apply({out.x[i], out.y[i], out.z[i]});
            out.x[i] = p.x, out.y[i] = p.y, out.z[i] = p.z;
        }
        out.sensor.assign(n, world_from_sensor_.translation);
        if (out.gps_time.empty() && time_s_) out.gps_time.assign(n, *time_s_);
    }

  private:
    std::unique_ptr<PointFile> scan_;
    Pose world_from_sensor_;
    std::optional<double> time_s_;
    PointFileInfo info_;
};

/// Records of float32 columns and nothing else.
struct FloatRecords {
    std::vector<std::string> columns;
    const char* kind;
    const char* format;
};

std::unique_ptr<PointFile> open_floats(File file, const ReadOptions& options, const FloatRecords& records) {
    const std::size_t stride = 4 * records.columns.size();
    const std::string name = file.path().string();
    const std::uint64_t size = file.size();
    if (size % stride != 0 && !options.salvage)
        throw InputError(name + ": " + std::to_string(size) + " bytes are not a whole number of " +
                         records.kind + " points of " + std::to_string(stride) +
                         " bytes; --salvage reads the " + std::to_string(size / stride) + " whole ones");
    Crs crs;
    crs.assign(options, name);
    if (crs.metres_per_unit != 1 || crs.vertical_metres_per_unit != 1)
        throw InputError(name + ": scans are in metres, and " + crs.label() + " (--crs) is not");
    const BinaryTable table{0, size / stride, stride, false};
    std::vector<Column> columns;
    for (const std::string& column : records.columns)
        columns.push_back({column, Scalar::f32, 4 * columns.size()});
    TableDecoder decoder(std::move(columns), name, options);
    decoder.use_labels(table.records);
    inspect_first_records(file, table, decoder);
    PointFileInfo info;
    info.format = records.format;
    info.points = table.records;
    info.points_lost = size % stride != 0;
    crs.describe(info);
    if (size == 0) info.notes.push_back("the file is empty");
    if (!options.sweep && !options.world_from_sensor)
        info.notes.push_back("coordinates are relative to the sensor; poses place them in the world");
    decoder.describe(info);
    return make_binary_table_file(std::move(file), table, std::move(decoder), std::move(info));
}

}  // namespace

std::unique_ptr<PointFile> open_kitti_scan(File file, const ReadOptions& options) {
    return open_floats(
        std::move(file), options,
        {{"x", "y", "z", "reflectance"}, "KITTI", "KITTI scan (float32 x, y, z, reflectance)"});
}

std::unique_ptr<PointFile> open_nuscenes_scan(File file, const ReadOptions& options) {
    return open_floats(std::move(file), options,
                       {{"x", "y", "z", "intensity", "ring"},
                        "nuScenes",
                        "nuScenes sweep (float32 x, y, z, intensity, ring)"});
}

std::unique_ptr<PointFile> at_pose(std::unique_ptr<PointFile> scan, const ReadOptions& options) {
    if (!options.world_from_sensor) return scan;
    return std::make_unique<PosedScan>(std::move(scan), *options.world_from_sensor, options.scan_time_s);
}

}  // namespace citysplat::io
