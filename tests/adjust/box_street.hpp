#pragma once

#include "adjust/adjust.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

/// A street around a block of boxes, driven in circles by a car with a spinning scanner: everything about it
/// is known.
namespace citysplat::test {

struct Box {
    Vec3d low, high;
};

/// Distance along a ray to a box, if it meets it from outside.
inline double meet(const Box& box, Vec3d origin, Vec3d direction) {
    double enter = 0, leave = std::numeric_limits<double>::infinity();
    const double o[]{origin.x, origin.y, origin.z}, d[]{direction.x, direction.y, direction.z};
    const double low[]{box.low.x, box.low.y, box.low.z}, high[]{box.high.x, box.high.y, box.high.z};
    for (int i = 0; i < 3; ++i) {
        const double a = (low[i] - o[i]) / d[i], b = (high[i] - o[i]) / d[i];
        enter = std::max(enter, std::min(a, b));
        leave = std::min(leave, std::max(a, b));
    }
    return enter > 0 && enter <= leave ? enter : std::numeric_limits<double>::infinity();
}

/// Houses inside and outside the ring, a ground at height 0.
inline std::vector<Box> ring_of_houses() {
    std::vector<Box> boxes;
    for (int i = 0; i < 40; ++i) {
        const double turn = 2 * exact::kPi * i / 40 + 0.03 * rng::uniform(5, static_cast<std::uint64_t>(i));
        const double radius = i % 2 == 0 ? 10.0 : 31.0 + 3 * rng::uniform(6, static_cast<std::uint64_t>(i));
        const double size = 1.2 + rng::uniform(7, static_cast<std::uint64_t>(i));
        const Vec3d c{radius * exact::cos(turn), radius * exact::sin(turn), 0};
        boxes.push_back({{c.x - size, c.y - size, -1}, {c.x + size, c.y + size, 4 + size}});
    }
    return boxes;
}

/// The scanner's true pose: a circle of 20 m around the block, 8 m a second.
inline Pose true_pose(double time_s) {
    const double angle = 8.0 / 20.0 * time_s;
    return {{20 * exact::cos(angle), 20 * exact::sin(angle), 1.8},
            from_yaw_pitch_roll(angle + exact::kPi / 2, 0.01 * exact::sin(time_s), 0)};
}

inline Trajectory true_trajectory(double begin_s, double end_s, double hz = 20) {
    std::vector<StampedPose> poses;
    for (int i = 0; begin_s + i / hz <= end_s + 1e-9; ++i)
        poses.push_back({begin_s + i / hz, true_pose(begin_s + i / hz)});
    return Trajectory(std::move(poses));
}

/// Errors of a position and attitude as a function of time: up to 30 cm and 0.3°.
inline Pose drifted(const Pose& pose, double time_s, double phase) {
    const auto wave = [&](double amplitude, double period_s, double k) {
        return amplitude * exact::sin(2 * exact::kPi * time_s / period_s + phase + k);
    };
    constexpr double kDegree = exact::kRadPerDegree;
    return {pose.translation + Vec3d{wave(0.3, 40, 0), wave(0.25, 33, 1), wave(0.3, 27, 2)},
            adjust::rotation_from(
                {wave(0.2 * kDegree, 31, 3), wave(0.2 * kDegree, 37, 4), wave(0.3 * kDegree, 29, 5)}) *
                pose.rotation};
}

inline Trajectory drifted(const Trajectory& truth, double phase) {
    std::vector<StampedPose> poses(truth.poses().begin(), truth.poses().end());
    for (StampedPose& p : poses) p.world_from_body = drifted(p.world_from_body, p.time_s, phase);
    return Trajectory(std::move(poses));
}

/// Points in memory, in blocks of a tenth of a second.
class BlocksFile final : public PointFile {
  public:
    explicit BlocksFile(std::shared_ptr<const std::vector<PointBatch>> blocks) : blocks_(std::move(blocks)) {
        for (const PointBatch& block : *blocks_) info_.points += block.size();
        info_.has_gps_time = true;
    }
    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return blocks_->size(); }
    void read_block(std::size_t index, PointBatch& out) const override { out = (*blocks_)[index]; }

  private:
    std::shared_ptr<const std::vector<PointBatch>> blocks_;
    PointFileInfo info_;
};

struct ScanOptions {
    double begin_s = 0, end_s = 0;
    bool traffic = false;  ///< two boxes that drive along with the car and against it
    double stretch = 1;    ///< of all ranges
    bool broken = false;   ///< a sensor that sees quarters of the world too high or too low, by the second
    int beams = 24, columns = 300;
};

/// What the scanner saw, placed in the world by the trajectory `recorded`. Scans whose number modulo `parts`
/// is `part` alone.
inline std::shared_ptr<const std::vector<PointBatch>> scan(const ScanOptions& o, const Trajectory& recorded,
                                                           int parts = 1, int part = 0) {
    const std::vector<Box> houses = ring_of_houses();
    auto blocks = std::make_shared<std::vector<PointBatch>>();
    for (int turn = 0; o.begin_s + (turn + 1) * 0.1 <= o.end_s + 1e-9; ++turn) {
        if (turn % parts != part) continue;
        PointBatch batch;
        for (int column = 0; column < o.columns; ++column) {
            const double t = o.begin_s + 0.1 * (turn + static_cast<double>(column) / o.columns);
            const Pose pose = true_pose(t);
            const auto placed = recorded.at(t);
            if (!placed) continue;
            std::vector<Box> boxes = houses;
            if (o.traffic)
                for (const double along : {0.3 + 0.5 * t, 2.0 - 0.45 * t}) {
                    const Vec3d c{25 * exact::cos(along), 25 * exact::sin(along), 0};
                    boxes.push_back({{c.x - 1, c.y - 1, 0.2}, {c.x + 1, c.y + 1, 1.9}});
                }
            for (int beam = 0; beam < o.beams; ++beam) {
                const double azimuth = 2 * exact::kPi * column / o.columns;
                const double elevation = (-24.0 + 32.0 * beam / o.beams) * exact::kRadPerDegree;
                const Vec3d u{exact::cos(elevation) * exact::cos(azimuth),
                              exact::cos(elevation) * exact::sin(azimuth), exact::sin(elevation)};
                const Vec3d d = rotate(pose.rotation, u);
                double range = d.z < 0 ? -pose.translation.z / d.z : 1e9;
                for (const Box& box : boxes) range = std::min(range, meet(box, pose.translation, d));
                if (range > 50) continue;
                const auto ray = static_cast<std::uint64_t>((turn * o.columns + column) * o.beams + beam);
                range = o.stretch * range + 0.01 * rng::gaussian(11, ray);
                Vec3d p = placed->apply(range * u);
                if (o.broken) p.z += (4 * column / o.columns + static_cast<int>(t)) % 2 == 0 ? 0.4 : 0.1;
                batch.x.push_back(p.x), batch.y.push_back(p.y), batch.z.push_back(p.z);
                batch.gps_time.push_back(t);
            }
        }
        blocks->push_back(std::move(batch));
    }
    return blocks;
}

inline adjust::OpenCloud cloud_of(std::shared_ptr<const std::vector<PointBatch>> blocks) {
    return [blocks] { return std::make_unique<BlocksFile>(blocks); };
}

/// Root mean square distance of adjusted positions from the true ones, and the largest, after one shift and
/// turn of all of them was taken out: the datum, which clouds cannot know. Mean shift and mean turn define
/// it.
struct Residual {
    double rms_m = 0, most_m = 0;
};
inline Residual residual_of(std::span<const Trajectory> adjusted) {
    struct Error {
        Vec3d at, shift, turn;
    };
    std::vector<Error> errors;
    for (const Trajectory& trajectory : adjusted)
        for (const StampedPose& p : trajectory.poses()) {
            const Pose truth = true_pose(p.time_s);
            Quaternion q = p.world_from_body.rotation * conjugate(truth.rotation);
            if (q.w < 0) q = {-q.x, -q.y, -q.z, -q.w};
            errors.push_back({truth.translation,
                              p.world_from_body.translation - truth.translation,
                              {2 * q.x, 2 * q.y, 2 * q.z}});
        }
    Vec3d at{0, 0, 0}, shift{0, 0, 0}, turn{0, 0, 0};
    const double each = 1 / static_cast<double>(errors.size());
    for (const Error& e : errors)
        at = at + each * e.at, shift = shift + each * e.shift, turn = turn + each * e.turn;
    Residual residual;
    for (const Error& e : errors) {
        const double left = length(e.shift - shift - cross(turn, e.at - at));
        residual.rms_m += each * left * left;
        residual.most_m = std::max(residual.most_m, left);
    }
    residual.rms_m = std::sqrt(residual.rms_m);
    return residual;
}

}  // namespace citysplat::test
