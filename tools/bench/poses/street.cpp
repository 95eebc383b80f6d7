#include "bench/poses/street.hpp"

#include "adjust/correction.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

namespace citysplat::bench {

namespace {

constexpr double kDegree = exact::kRadPerDegree;

/// A spinning scanner with the beams of a Velodyne HDL-64E, or of an HDL-32E.
synth::Scanner upright_scanner(int beams, double hz) {
    synth::Scanner s{"hdl-" + std::to_string(beams), {}, 0, hz, 80};
    for (int i = 0; i < beams; ++i)
        s.elevations_rad.push_back(kDegree * (beams == 32 ? -30.67 + 41.34 / 31 * i
                                              : i < 32    ? -24.33 + i / 2.0
                                                          : -8.33 + (i - 32) / 3.0));
    return s;
}

double wave(double amplitude, double t, double period_s, double phase) {
    return amplitude * exact::sin(2 * exact::kPi * t / period_s + phase);
}

/// Of a car, in its own axes from the scanner.
struct Box {
    Vec3d low, high;
};

/// Distance to a box along a ray from the origin, which is outside.
double meet(const Box& box, Vec3d d) {
    double enter = 0, leave = std::numeric_limits<double>::infinity();
    const double dir[]{d.x, d.y, d.z}, l[]{box.low.x, box.low.y, box.low.z},
        h[]{box.high.x, box.high.y, box.high.z};
    for (int i = 0; i < 3; ++i) {
        const double a = l[i] / dir[i], b = h[i] / dir[i];
        enter = std::max(enter, std::min(a, b));
        leave = std::min(leave, std::max(a, b));
    }
    return enter > 0 && enter <= leave ? enter : std::numeric_limits<double>::infinity();
}

std::vector<Box> boxes_at(Traffic traffic, double since_s) {
    std::vector<Box> boxes;
    if (traffic == Traffic::bus || traffic == Traffic::buses)
        boxes.push_back({{-7, 1.9, -1.6}, {5, 4.4, 1.2}});
    if (traffic == Traffic::buses) {
        const double behind = -14 + 1.5 * since_s;
        boxes.push_back({{behind, -4.3, -1.6}, {behind + 16, -1.8, 2.0}});
    }
    if (traffic == Traffic::queue) {
        const auto car = [&](double x, double y) {
            boxes.push_back({{x - 2.2, y - 0.9, -1.6}, {x + 2.2, y + 0.9, -0.3}});
        };
        const double nearer = wave(1, since_s, 6, 0);
        car(9 + nearer, 0), car(16.5 + 2 * nearer, 0.2), car(-9 - nearer, 0), car(-17, -0.2);
        for (int i = -9; i < 9; ++i) {
            car(7.3 * i + 1.7 * since_s, 3.2);        // the next lane is a little faster
            car(11 * i + 3.0 - 13.0 * since_s, 6.6);  // and they come from in front
        }
    }
    return boxes;
}

/// Height of the hills, and how they lean.
struct Hill {
    double height_m = 0;
    Vec3d lean_rad{0, 0, 0};
};
Hill hill_at(double amplitude_m, double x, double y) {
    if (amplitude_m == 0) return {};
    constexpr double kWave = 2 * exact::kPi / 80;
    const double slope_x = amplitude_m * kWave * exact::cos(kWave * x),
                 slope_y = amplitude_m * kWave * exact::cos(kWave * y + 1);
    return {amplitude_m * (exact::sin(kWave * x) + exact::sin(kWave * y + 1)), {slope_y, -slope_x, 0}};
}

/// Points in memory.
class BlocksFile final : public PointFile {
  public:
    explicit BlocksFile(const PointFile& file) : blocks_(file.block_count()), info_(file.info()) {
        parallel_for(blocks_.size(), [&](std::size_t i) { file.read_block(i, blocks_[i]); });
        info_.points = 0;
        for (const PointBatch& block : blocks_) info_.points += block.size();
    }
    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return blocks_.size(); }
    void read_block(std::size_t index, PointBatch& out) const override { out = blocks_[index]; }

  private:
    std::vector<PointBatch> blocks_;
    PointFileInfo info_;
};

}  // namespace

Pose believed(const Pose& truth, const Case& c, double t, double phase) {
    const double since = t - c.begin_s, whole = c.end_s - c.begin_s;
    Pose pose = truth;
    const auto err = [&](Vec3d shift, Vec3d turn) {
        pose.translation = pose.translation + shift;
        pose.rotation = adjust::rotation_from(turn) * pose.rotation;
    };
    const auto jitter = [&](std::uint64_t channel) {
        return rng::gaussian(rng::key(99, channel), static_cast<std::uint64_t>(std::llround(t * 1000)));
    };
    switch (c.errors) {
        case Errors::none:
            break;
        case Errors::slow:
            err({wave(0.3, t, 40, phase), wave(0.25, t, 33, phase + 1), wave(0.3, t, 27, phase + 2)},
                {wave(0.2 * kDegree, t, 31, phase + 3), wave(0.2 * kDegree, t, 37, phase + 4),
                 wave(0.3 * kDegree, t, 29, phase + 5)});
            break;
        case Errors::oxts:
            err({wave(0.05, t, 9, 1) + 0.005 * jitter(1), wave(0.05, t, 7, 2) + 0.005 * jitter(2),
                 0.7 * since / whole + wave(0.05, t, 4, 3) + 0.01 * jitter(3)},
                {wave(0.1 * kDegree, t, 6, 4), wave(0.1 * kDegree, t, 5, 5), wave(0.1 * kDegree, t, 8, 6)});
            break;
        case Errors::wandering:
            err({0.3 * since / whole + 0.01 * jitter(1), wave(0.15, t, 9, 2) + 0.01 * jitter(2),
                 wave(0.2, t, 8, 3) + 0.01 * jitter(3)},
                {wave(0.1 * kDegree, t, 6, 4), wave(0.1 * kDegree, t, 5, 5), wave(0.2 * kDegree, t, 8, 6)});
            break;
        case Errors::ramp: {
            const double u = since / whole;
            err({0.3 * u * u, -0.3 * u, 0.3 * u * u},
                {0.1 * kDegree * u, 0.3 * kDegree * u * u, 0.3 * kDegree * u});
            break;
        }
        case Errors::flat: {
            const Vec3d ahead = rotate(pose.rotation, {1, 0, 0});
            pose.translation.z = 0;
            pose.rotation = from_yaw_pitch_roll(exact::atan2(ahead.y, ahead.x), 0, 0);
            break;
        }
    }
    return pose;
}

struct Street::Scenes {
    explicit Scenes(std::uint64_t seed) : cache(seed) {}
    std::mutex one_at_a_time;
    synth::BlockCache cache;
};

/// Fires when it is read. The street must outlive it.
class Street::Seen final : public PointFile {
  public:
    Seen(const Street& street, double begin_s, double end_s)
        : street_(street), begin_s_(begin_s), end_s_(end_s) {
        const Case& c = street.case_;
        const double columns = static_cast<double>(synth::Survey::kRaysPerChunk / c.beams);
        const double chunk_s = columns / (c.columns * c.hz);
        first_ = static_cast<std::int64_t>(begin_s / chunk_s);
        blocks_ = static_cast<std::size_t>(static_cast<std::int64_t>(end_s / chunk_s) + 1 - first_);
        info_.points = blocks_ * synth::Survey::kRaysPerChunk;  // at most
        info_.has_gps_time = true;
    }
    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return blocks_; }
    void read_block(std::size_t index, PointBatch& out) const override {
        const std::int64_t chunk = first_ + static_cast<std::int64_t>(index);
        const auto around = street_.survey_->surroundings(chunk);
        std::shared_ptr<const synth::CityScene> scene;
        {
            // Making blocks waits for other threads, which must not come back for another scene.
            const std::lock_guard lock(street_.scenes_->one_at_a_time);
            isolated([&] { scene = street_.scenes_->cache.scene(around.centre, around.cells); });
        }
        street_.survey_->fire(chunk, *scene, out);
        street_.refine(out, begin_s_, end_s_);
    }

  private:
    const Street& street_;
    double begin_s_, end_s_;
    std::int64_t first_;
    std::size_t blocks_;
    PointFileInfo info_;
};

Street::Street(const Case& c)
    : case_(c),
      drive_({c.seed, c.length_m, 1.9, 0}),
      actors_(c.seed),
      scenes_(std::make_unique<Scenes>(c.seed)) {
    const synth::SurveyParams params{.noise_m = 0.012, .columns_per_s = c.columns * c.hz};
    survey_ = std::make_unique<synth::Survey>(drive_, actors_, upright_scanner(c.beams, c.hz), params,
                                              Vec3d{0, 0, 0});
}

Street::~Street() = default;

Pose Street::true_pose_at(double time_s) const {
    Pose pose = drive_.true_pose_at(time_s);
    const Hill hill = hill_at(case_.hills_m, pose.translation.x, pose.translation.y);
    pose.translation.z += hill.height_m;
    pose.rotation = adjust::rotation_from(hill.lean_rad) * pose.rotation;
    return pose;
}

Trajectory Street::truth(double begin_s, double end_s, double hz) const {
    std::vector<StampedPose> poses;
    for (std::int64_t i = 0; begin_s + static_cast<double>(i) / hz <= end_s + 1e-9; ++i) {
        const double t = begin_s + static_cast<double>(i) / hz;
        poses.push_back({synth::Drive::kBegin_s + t, true_pose_at(t)});
    }
    return Trajectory(std::move(poses));
}

std::unique_ptr<PointFile> Street::see(double begin_s, double end_s) const {
    auto seen = std::make_unique<Seen>(*this, begin_s, end_s);
    if (!case_.in_memory) return seen;
    return std::make_unique<BlocksFile>(*seen);
}

/// Takes out what was not asked for, and puts in traffic, a wrong scale and hills.
void Street::refine(PointBatch& block, double begin_s, double end_s) const {
    std::vector<std::uint8_t> unwanted(block.size());
    const bool other_ranges = case_.traffic != Traffic::usual || case_.stretch != 1;
    for (std::size_t i = 0; i < block.size(); ++i) {
        const double t = block.gps_time[i] - synth::Drive::kBegin_s;
        const auto turn = static_cast<std::int64_t>(std::floor(t * case_.hz));
        unwanted[i] = t < begin_s || t > end_s || (case_.every_second && turn % 2 != 0);
        if (unwanted[i]) continue;
        Vec3d p{block.x[i], block.y[i], block.z[i]};
        if (other_ranges) {
            const Pose pose = drive_.true_pose_at(t);
            const Vec3d in_body = rotate(conjugate(pose.rotation), p - pose.translation);
            double range = length(in_body);
            const Vec3d d = (1 / range) * in_body;
            double nearest = range;
            for (const Box& box : boxes_at(case_.traffic, t - case_.begin_s))
                nearest = std::min(nearest, meet(box, d));
            if (nearest < range)
                range = nearest + 0.01 * rng::gaussian(17, static_cast<std::uint64_t>(i) +
                                                               static_cast<std::uint64_t>(t * 1e5));
            p = pose.apply(case_.stretch * range * d);
        }
        block.x[i] = p.x, block.y[i] = p.y, block.z[i] = p.z + hill_at(case_.hills_m, p.x, p.y).height_m;
    }
    block.remove(unwanted);
}

}  // namespace citysplat::bench
