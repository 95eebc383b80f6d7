#include "io/drive/sweep_file.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "io/drive/sweep_clock.hpp"
#include "io/points/binary_table.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

Vec3d into(const Pose& frame, Vec3d world) {
    return rotate(conjugate(frame.rotation), world - frame.translation);
}

/// Which points go, and why.
class Removal {
  public:
    Removal(const SensorMask& mask, PointBatch& out) : mask_(mask), out_(out), gone_(out.size()) {}

    void test(std::size_t i, Vec3d in_sensor) {
        const auto reason = mask_.reason(in_sensor);
        if (!reason) return;
        ++out_.masked[static_cast<std::size_t>(*reason)];
        remove(i);
    }
    void without_return(std::size_t i) {
        ++out_.no_return;
        remove(i);
    }
    void finish() {
        if (any_) out_.remove(gone_);
    }

  private:
    void remove(std::size_t i) {
        gone_[i] = 1;
        any_ = true;
    }

    const SensorMask& mask_;
    PointBatch& out_;
    std::vector<std::uint8_t> gone_;
    bool any_ = false;
};

class SweepFile final : public PointFile {
  public:
    SweepFile(std::unique_ptr<PointFile> scan, const ReadOptions& options, const std::string& name)
        : scan_(std::move(scan)),
          name_(name),
          frame_(options.sweep->frame),
          elevations_rad_(options.sweep->elevations_rad),
          mask_(options.mask),
          clock_(*options.sweep, name),
          info_(scan_->info()) {
        const std::size_t beams = elevations_rad_.size();
        if (beams > 0 && (scan_->info().points % beams != 0 || kBlockRecords % beams != 0))
            throw InputError(name + ": " + std::to_string(info_.points) +
                             " records are not whole firings of " + std::to_string(beams) +
                             " beams, as the other scans of the drive have");
        info_.has_sensor = info_.has_gps_time = true;
        info_.bounds_known = info_.bounds_known && frame_ == Sweep::Frame::world;
    }

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return scan_->block_count(); }

    void read_block(std::size_t index, PointBatch& out) const override {
        scan_->read_block(index, out);
        // The direction of a record without a return is that of nothing, and so is its time.
        const bool by_direction = frame_ == Sweep::Frame::fixed && out.gps_time.empty() && !knows_beams(out);
        set_times(index, out);
        const bool sensor_known = !out.sensor.empty();
        if (!sensor_known) out.sensor.resize(out.size());
        Removal removal(mask_, out);
        std::vector<std::uint8_t> met_nothing(elevations_rad_.empty() ? 0 : out.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Pose pose = clock_.world_from_sensor(out.gps_time[i]);
            const Vec3d given{out.x[i], out.y[i], out.z[i]};
            const Vec3d world = frame_ == Sweep::Frame::moving  ? pose.apply(given)
                                : frame_ == Sweep::Frame::fixed ? clock_.world_from_reference().apply(given)
                                                                : given;
            const Vec3d in_sensor = frame_ == Sweep::Frame::moving ? given : into(pose, world);
            out.x[i] = world.x, out.y[i] = world.y, out.z[i] = world.z;
            if (!sensor_known) out.sensor[i] = pose.translation;
            const bool nothing =
                frame_ != Sweep::Frame::world && given.x == 0 && given.y == 0 && given.z == 0;
            if (nothing ||
                (by_direction ? clock_.passes(world, kNoReturn_m) : length(in_sensor) < kNoReturn_m)) {
                removal.without_return(i);
                if (!met_nothing.empty()) met_nothing[i] = 1;
            } else {
                removal.test(i, in_sensor);
            }
        }
        if (knows_beams(out)) add_rays(index, met_nothing, out);
        removal.finish();
    }

  private:
    /// Are the points still the records of the file, one for one?
    bool knows_beams(const PointBatch& out) const { return !elevations_rad_.empty() && out.damaged == 0; }

    void set_times(std::size_t index, PointBatch& out) const {
        if (!out.gps_time.empty()) {
            for (std::size_t i = 0; i < out.size(); ++i)
                if (!clock_.covers(out.gps_time[i]))
                    throw InputError(name_ + ": point " + std::to_string(index * kBlockRecords + i) +
                                     " has the time " + format_number(out.gps_time[i]) +
                                     " s, for which the drive has no pose");
            return;
        }
        out.gps_time.resize(out.size());
        const double records = static_cast<double>(std::max<std::uint64_t>(1, info_.points));
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Vec3d p{out.x[i], out.y[i], out.z[i]};
            const double in_file = static_cast<double>(index * kBlockRecords + i) / records;
            out.gps_time[i] = knows_beams(out)
                                  ? clock_.time_of_record(index * kBlockRecords + i, info_.points)
                              : frame_ == Sweep::Frame::fixed ? clock_.time_of_fixed(p, in_file)
                                                              : clock_.time_towards(p, in_file);
        }
    }

    /// Numbers the beams, and makes rays of the records without a return. A column of firings looks where its
    /// returns are; one without any where the even turn has it.
    void add_rays(std::size_t index, const std::vector<std::uint8_t>& met_nothing, PointBatch& out) const {
        const std::size_t beams = elevations_rad_.size(), n = out.size();
        const bool number_beams = out.beam.empty();
        if (number_beams) out.beam.resize(n);
        std::vector<double> turned;
        for (std::size_t column = 0; column < n; column += beams) {
            const double time_s = clock_.time_of_record(index * kBlockRecords + column, info_.points);
            const Pose pose = clock_.world_from_sensor(time_s);
            const double expected = clock_.azimuth_at(time_s);
            turned.clear();
            for (std::size_t i = column; i < column + beams; ++i) {
                if (number_beams) out.beam[i] = static_cast<std::uint16_t>(i - column);
                if (met_nothing[i]) continue;
                const Vec3d p = into(pose, {out.x[i], out.y[i], out.z[i]});
                const double off = (exact::atan2(p.y, p.x) - expected) / (2 * exact::kPi);
                turned.push_back((off - std::floor(off + 0.5)) * (2 * exact::kPi));
            }
            constexpr std::size_t kFewest = 3;
            double azimuth = expected;
            if (turned.size() >= kFewest) {
                const auto middle = turned.begin() + static_cast<std::ptrdiff_t>(turned.size() / 2);
                std::nth_element(turned.begin(), middle, turned.end());
                azimuth += *middle;
            }
            const auto flat = exact::sin_cos(azimuth);
            for (std::size_t i = column; i < column + beams; ++i) {
                if (!met_nothing[i]) continue;
                const auto up = exact::sin_cos(elevations_rad_[i - column]);
                const Vec3d direction{up.cos * flat.cos, up.cos * flat.sin, up.sin};
                out.empty_rays.push_back(
                    {pose.translation, rotate(pose.rotation, direction), time_s, out.beam[i]});
            }
        }
    }

    std::unique_ptr<PointFile> scan_;
    std::string name_;
    Sweep::Frame frame_;
    std::vector<double> elevations_rad_;
    SensorMask mask_;
    SweepClock clock_;
    PointFileInfo info_;
};

class RangedFile final : public PointFile {
  public:
    RangedFile(std::unique_ptr<PointFile> cloud, const SensorMask& mask)
        : cloud_(std::move(cloud)), mask_(mask) {}

    const PointFileInfo& info() const override { return cloud_->info(); }
    std::size_t block_count() const override { return cloud_->block_count(); }
    void read_block(std::size_t index, PointBatch& out) const override {
        cloud_->read_block(index, out);
        Removal removal(mask_, out);
        for (std::size_t i = 0; i < out.size(); ++i)
            removal.test(i, Vec3d{out.x[i], out.y[i], out.z[i]} - out.sensor[i]);
        removal.finish();
    }

  private:
    std::unique_ptr<PointFile> cloud_;
    SensorMask mask_;
};

}  // namespace

std::unique_ptr<PointFile> in_the_world(std::unique_ptr<PointFile> scan, const ReadOptions& options,
                                        const std::string& file_name) {
    return std::make_unique<SweepFile>(std::move(scan), options, file_name);
}

std::unique_ptr<PointFile> without_masked(std::unique_ptr<PointFile> cloud, const SensorMask& mask,
                                          const std::string& file_name) {
    if (!mask.only_ranges())
        throw UsageError("--mask-box: " + file_name +
                         " is not a scan of a drive, so the sensor's axes are not known");
    if (!cloud->info().has_sensor)
        throw InputError(file_name +
                         ": --min-range and --max-range need to know where the sensor was; the file has no "
                         "sensor positions and is not a scan of a drive (docs/inputs.md, Drives)");
    return std::make_unique<RangedFile>(std::move(cloud), mask);
}

}  // namespace citysplat::io
