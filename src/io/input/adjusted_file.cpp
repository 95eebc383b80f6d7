#include "io/input/adjusted_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <cmath>
#include <limits>

namespace citysplat::io {

namespace {

class AdjustedFile final : public PointFile {
  public:
    /// `own_poses`: of the scan, where the adjustment has no given ones.
    AdjustedFile(std::unique_ptr<PointFile> file, std::shared_ptr<const Adjustment> adjustment,
                 Trajectory own_poses)
        : file_(std::move(file)),
          adjustment_(std::move(adjustment)),
          own_poses_(std::move(own_poses)),
          given_(adjustment_->given.empty() ? own_poses_ : adjustment_->given),
          info_(file_->info()) {
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
        const bool timed = !out.gps_time.empty(), has_sensor = !out.sensor.empty();
        out.sensor.resize(out.size(), {kUnknown, kUnknown, kUnknown});
        std::optional<Move> move;
        for (std::size_t i = 0; i < out.size(); ++i) {
            // All beams of a column share their time.
            if (timed && (i == 0 || out.gps_time[i] != out.gps_time[i - 1])) move = move_at(out.gps_time[i]);
            Vec3d& sensor = out.sensor[i];
            if (!move) {
                sensor = {kUnknown, kUnknown, kUnknown};
                continue;
            }
            const Vec3d p = move->apply({out.x[i], out.y[i], out.z[i]});
            out.x[i] = p.x, out.y[i] = p.y, out.z[i] = p.z;
            sensor = has_sensor ? move->apply(sensor) : move->to;
        }
        for (PointBatch::EmptyRay& ray : out.empty_rays)
            if (const auto of_ray = move_at(ray.time_s)) {
                ray.origin = of_ray->apply(ray.origin);
                ray.direction = rotate(of_ray->turn, ray.direction);
            }
    }

  private:
    /// adjusted · given⁻¹ at one time; about the sensor, so that large coordinates cost no digits.
    struct Move {
        Vec3d from, to;
        Quaternion turn;
        Vec3d apply(Vec3d p) const { return rotate(turn, p - from) + to; }
    };
    std::optional<Move> move_at(double time_s) const {
        const auto given = given_.at(time_s), adjusted = adjustment_->adjusted.at(time_s);
        if (!given || !adjusted) return std::nullopt;
        return Move{given->translation, adjusted->translation,
                    adjusted->rotation * conjugate(given->rotation)};
    }

    std::unique_ptr<PointFile> file_;
    std::shared_ptr<const Adjustment> adjustment_;
    Trajectory own_poses_;
    const Trajectory& given_;
    PointFileInfo info_;
};

}  // namespace

std::shared_ptr<const Adjustment> read_adjustment(const std::filesystem::path& given_file,
                                                  const TrajectoryOptions& how,
                                                  const std::filesystem::path& adjusted_file) {
    auto result = std::make_shared<Adjustment>();
    result->adjusted = Trajectory::read_tum(adjusted_file);
    result->adjusted_file = std::filesystem::absolute(adjusted_file);
    result->adjusted_hash = hash_file(adjusted_file, CancelToken());
    if (given_file.empty()) return result;
    result->given = read_trajectory(given_file, how);
    result->given_file = std::filesystem::absolute(given_file);
    result->given_hash = hash_file(given_file, CancelToken());
    const auto given = result->given.poses(), adjusted = result->adjusted.poses();
    constexpr double kSameTime_s = 1e-6;  // TUM files have nanoseconds; a double of today has less
    bool same = given.size() == adjusted.size();
    for (std::size_t i = 0; same && i < given.size(); ++i)
        same = std::fabs(given[i].time_s - adjusted[i].time_s) <= kSameTime_s;
    if (!same)
        throw InputError(adjusted_file.string() + " is not " + given_file.string() +
                         " adjusted: its poses are of other times; citysplat adjust makes it from that file");
    return result;
}

std::unique_ptr<PointFile> with_adjusted_poses(std::unique_ptr<PointFile> file, const ReadOptions& options,
                                               const std::string& file_name) {
    Trajectory own_poses;
    if (options.adjustment->given.empty()) {
        if (options.sweep)
            own_poses = Trajectory(options.sweep->poses, file_name);
        else if (options.world_from_sensor && options.scan_time_s)
            own_poses = Trajectory({{*options.scan_time_s, *options.world_from_sensor}}, file_name);
        else
            throw InputError(file_name +
                             ": --adjusted needs the poses as they were given; --trajectory says them");
    }
    return std::make_unique<AdjustedFile>(std::move(file), options.adjustment, std::move(own_poses));
}

}  // namespace citysplat::io
