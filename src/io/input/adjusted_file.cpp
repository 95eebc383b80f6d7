#include "io/input/adjusted_file.hpp"

#include <limits>

namespace citysplat::io {

namespace {

class AdjustedFile final : public PointFile {
  public:
    AdjustedFile(std::unique_ptr<PointFile> file, std::shared_ptr<const Adjustment> adjustment)
        : file_(std::move(file)), adjustment_(std::move(adjustment)), info_(file_->info()) {
        info_.bounds_known = false;
        info_.has_sensor = true;
        info_.notes.push_back(info_.has_gps_time
                                  ? "points are moved to where the adjusted trajectory puts them"
                                  : "the points have no times: none of them can be adjusted");
    }

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return file_->block_count(); }

    void read_block(std::size_t index, PointBatch& out) const override {
        constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
        file_->read_block(index, out);
        const bool has_sensor = !out.sensor.empty();
        out.sensor.resize(out.size(), {kUnknown, kUnknown, kUnknown});
        std::optional<Pose> given, adjusted;
        for (std::size_t i = 0; i < out.size(); ++i) {
            const bool timed = !out.gps_time.empty();
            // All beams of a column share their time.
            if (!timed || i == 0 || out.gps_time[i] != out.gps_time[i - 1]) {
                given = timed ? adjustment_->given.at(out.gps_time[i]) : std::nullopt;
                adjusted = timed ? adjustment_->adjusted.at(out.gps_time[i]) : std::nullopt;
            }
            Vec3d& sensor = out.sensor[i];
            if (!given || !adjusted) {
                sensor = {kUnknown, kUnknown, kUnknown};
                continue;
            }
            const Quaternion turn = adjusted->rotation * conjugate(given->rotation);
            const auto moved = [&](Vec3d p) {
                return rotate(turn, p - given->translation) + adjusted->translation;
            };
            const Vec3d p = moved({out.x[i], out.y[i], out.z[i]});
            out.x[i] = p.x, out.y[i] = p.y, out.z[i] = p.z;
            sensor = has_sensor ? moved(sensor) : adjusted->translation;
        }
    }

  private:
    std::unique_ptr<PointFile> file_;
    std::shared_ptr<const Adjustment> adjustment_;
    PointFileInfo info_;
};

}  // namespace

std::unique_ptr<PointFile> with_adjusted_poses(std::unique_ptr<PointFile> file,
                                               std::shared_ptr<const Adjustment> adjustment) {
    return std::make_unique<AdjustedFile>(std::move(file), std::move(adjustment));
}

}  // namespace citysplat::io
