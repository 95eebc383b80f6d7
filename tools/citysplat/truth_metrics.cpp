#include "citysplat/truth_metrics.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "trace/resident_city.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <unordered_map>

namespace citysplat::cli {

namespace {

constexpr double kFarthest_m = 1.0;

/// The recorded return must agree with the static truth this well; else the ray met something that moves, or
/// two surfaces at once.
constexpr double kSameSurface_m = 0.15;

std::vector<std::unique_ptr<PointFile>> open_all(std::span<const InputSource> sources,
                                                 std::uint64_t& points) {
    std::vector<std::unique_ptr<PointFile>> files;
    points = 0;
    for (const InputSource& source : sources) {
        files.push_back(source.open());
        points += files.back()->info().points;
    }
    return files;
}

/// A ray of the survey, from where the trajectory says it was fired, and the true surface it met. The model
/// lies where the trajectory put the points; range and angle of the encounter are the same there as in truth.
struct SurveyRay {
    trace::Ray ray;
    Vec3d recorded;  ///< the return
    double range_m, cosine;
    std::uint16_t label;
};

/// Truth::intersect(), some rays at a time: all of a block would keep a user waiting who wants to stop.
std::vector<synth::Truth::Hit> intersect(const synth::Truth& truth,
                                         std::span<const synth::Truth::WorldRay> rays,
                                         const CancelToken& cancel) {
    constexpr std::size_t kAtOnce = 8192;
    constexpr double kReach_m = 200;
    std::vector<synth::Truth::Hit> hits(rays.size());
    for (std::size_t begin = 0; begin < rays.size(); begin += kAtOnce) {
        cancel.check();
        const std::size_t count = std::min(kAtOnce, rays.size() - begin);
        truth.intersect(rays.subspan(begin, count), kReach_m, std::span(hits).subspan(begin, count));
    }
    return hits;
}

std::vector<SurveyRay> survey_rays(const PointBatch& batch, double share, std::uint64_t key,
                                   const synth::Truth& truth, const CancelToken& cancel) {
    std::vector<synth::Truth::WorldRay> rays, recorded_rays;
    std::vector<double> recorded;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (rng::uniform(key, i) >= share) continue;
        const double time = batch.gps_time[i];
        const Vec3d point{batch.x[i], batch.y[i], batch.z[i]};
        const Vec3d origin = truth.true_pose(time).translation,
                    recorded_origin = truth.recorded_pose(time).translation;
        const Vec3d to = truth.without_localisation_error(point, time) - origin;
        const double range = length(to);
        if (!(range > 0.5 && range < 200)) continue;
        rays.push_back({origin, to * (1 / range)});
        recorded_rays.push_back({recorded_origin, normalized(point - recorded_origin)});
        recorded.push_back(range);
    }
    const std::vector<synth::Truth::Hit> hits = intersect(truth, rays, cancel);
    std::vector<SurveyRay> result;
    for (std::size_t i = 0; i < rays.size(); ++i) {
        if (!hits[i].found || std::fabs(hits[i].range_m - recorded[i]) > kSameSurface_m) continue;
        const double cosine = std::fabs(dot(hits[i].normal, rays[i].direction));
        result.push_back({{recorded_rays[i].origin, vec_cast<float>(recorded_rays[i].direction), 0.0f,
                           static_cast<float>(hits[i].range_m + 5)},
                          recorded_rays[i].origin + recorded_rays[i].direction * recorded[i],
                          hits[i].range_m,
                          cosine,
                          hits[i].label});
    }
    return result;
}

/// Counts the returns of the drive around sampled points. Memory follows the sample, not the drive.
class ReturnCounter {
  public:
    /// Requires that all points are added before any are counted.
    void add(Vec3d point) {
        cells_[cell_of(point)].push_back(static_cast<std::uint32_t>(points_.size()));
        points_.push_back(point);
    }
    void count(const PointBatch& batch) {
        if (counts_.empty()) counts_ = std::vector<std::atomic<std::uint32_t>>(points_.size());
        parallel_ranges(batch.size(), 4096, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) count_one({batch.x[i], batch.y[i], batch.z[i]});
        });
    }
    bool seen(std::size_t i) const { return counts_[i] >= kSeenReturns; }

  private:
    static constexpr double kCell_m = 2 * kSeen_m;
    using Cell = std::array<std::int64_t, 3>;
    struct HashCell {
        std::size_t operator()(const Cell& c) const {
            return static_cast<std::size_t>(
                rng::key(rng::key(static_cast<std::uint64_t>(c[0]), static_cast<std::uint64_t>(c[1])),
                         static_cast<std::uint64_t>(c[2])));
        }
    };
    static Cell cell_of(Vec3d p) {
        const auto index = [](double v) { return static_cast<std::int64_t>(std::floor(v / kCell_m)); };
        return {index(p.x), index(p.y), index(p.z)};
    }
    /// A ball is no wider than a cell: it reaches into the nearer neighbour only, along each axis.
    void count_one(Vec3d p) {
        const auto nearer = [](double v, std::int64_t c) {
            return v / kCell_m - static_cast<double>(c) < 0.5 ? c - 1 : c + 1;
        };
        const Cell own = cell_of(p);
        const Cell other{nearer(p.x, own[0]), nearer(p.y, own[1]), nearer(p.z, own[2])};
        for (int corner = 0; corner < 8; ++corner) {
            const auto found =
                cells_.find({(corner & 1) != 0 ? other[0] : own[0], (corner & 2) != 0 ? other[1] : own[1],
                             (corner & 4) != 0 ? other[2] : own[2]});
            if (found == cells_.end()) continue;
            for (const std::uint32_t i : found->second) {
                const Vec3d d = points_[i] - p;
                if (dot(d, d) <= kSeen_m * kSeen_m) ++counts_[i];
            }
        }
    }

    std::vector<Vec3d> points_;
    std::unordered_map<Cell, std::vector<std::uint32_t>, HashCell> cells_;
    std::vector<std::atomic<std::uint32_t>> counts_;
};

/// What became of a ray of the survey.
struct Verdict {
    std::uint16_t label;
    bool covered, met, hidden, met_in_truth;

    void add_to(Coverage& c, bool seen) const {
        ++c.rays;
        if (!seen) return;
        ++c.seen;
        c.covered += covered, c.met += met, c.hidden += hidden, c.met_in_truth += met_in_truth;
    }
};

void judge(std::span<const SurveyRay> survey, const CoverageSubject& subject, trace::ResidentCity& model,
           const CancelToken& cancel, std::vector<Verdict>& verdicts) {
    std::vector<trace::Ray> rays, short_rays;
    std::vector<synth::Truth::WorldRay> true_rays;
    for (const SurveyRay& s : survey) {
        rays.push_back(s.ray);
        // Only around the surface: from kCovered_m before it to kCovered_m behind.
        const double around_m = kCovered_m / std::max(s.cosine, 1e-3);
        trace::Ray close = s.ray;
        close.t_min = static_cast<float>(std::max(0.0, s.range_m - around_m));
        close.t_max = static_cast<float>(s.range_m + around_m);
        short_rays.push_back(close);
        true_rays.push_back({s.ray.origin, normalized(vec_cast<double>(s.ray.direction))});
    }
    std::vector<trace::Hit> first(rays.size()), near(rays.size());
    model.closest(rays, first, cancel);
    model.closest(short_rays, near, cancel);
    const std::vector<synth::Truth::Hit> in_truth = intersect(subject.truth, true_rays, cancel);
    for (std::size_t i = 0; i < survey.size(); ++i) {
        const SurveyRay& s = survey[i];
        const auto off_m = [&](double range_m) { return (range_m - s.range_m) * s.cosine; };
        Verdict v{s.label, near[i].exists(), false, false, false};
        if (first[i].exists()) {
            v.met = std::fabs(off_m(first[i].range_m)) <= kCovered_m;
            v.hidden = off_m(first[i].range_m) < -kCovered_m;
        }
        v.met_in_truth = in_truth[i].found && std::fabs(off_m(in_truth[i].range_m)) <= kCovered_m;
        verdicts.push_back(v);
    }
}

}  // namespace

compare::DistancesByClass distance_to_truth(std::span<const InputSource> simulated, const synth::Truth& truth,
                                            const CancelToken& cancel, Progress& progress) {
    std::uint64_t total;
    const auto files = open_all(simulated, total);
    Progress::Stage stage(progress, "distance to truth", total, "points");
    compare::DistancesByClass result;
    PointBatch batch;
    for (const auto& file : files)
        for (std::size_t block = 0; block < file->block_count(); ++block) {
            cancel.check();
            file->read_block(block, batch);
            std::vector<Vec3d> points;
            for (std::size_t i = 0; i < batch.size(); ++i)
                points.push_back({batch.x[i], batch.y[i], batch.z[i]});
            std::vector<synth::Truth::Nearest> nearest(points.size());
            truth.nearest(points, kFarthest_m, nearest);
            for (std::size_t i = 0; i < points.size(); ++i)
                result.add(batch.label.empty() ? std::uint16_t{0} : batch.label[i], nearest[i].distance_m);
            stage.advance(points.size());
        }
    return result;
}

CoverageByClass coverage(const CoverageSubject& subject, std::uint64_t wanted, std::uint64_t budget_bytes,
                         const CancelToken& cancel, Progress& progress) {
    std::uint64_t total;
    const auto files = open_all(subject.drive, total);
    const double share = static_cast<double>(wanted) / static_cast<double>(std::max<std::uint64_t>(total, 1));
    Progress::Stage stage(progress, "coverage", total, "points");
    trace::ResidentCity model(subject.city, subject.tracer, trace::CacheOptions{budget_bytes});
    std::vector<Verdict> verdicts;
    ReturnCounter returns;
    PointBatch batch;
    std::uint64_t key = 1;
    for (const auto& file : files)
        for (std::size_t block = 0; block < file->block_count(); ++block) {
            cancel.check();
            file->read_block(block, batch);
            if (batch.gps_time.empty())
                throw InputError("coverage needs the GPS times of the drive; the cloud has none");
            const std::vector<SurveyRay> survey = survey_rays(batch, share, ++key, subject.truth, cancel);
            judge(survey, subject, model, cancel, verdicts);
            for (const SurveyRay& r : survey) returns.add(r.recorded);
            stage.advance(batch.size());
        }
    Progress::Stage counting(progress, "returns nearby", total, "points");
    for (const InputSource& source : subject.drive) {
        const auto file = source.open();
        for (std::size_t block = 0; block < file->block_count(); ++block) {
            cancel.check();
            file->read_block(block, batch);
            returns.count(batch);
            counting.advance(batch.size());
        }
    }
    CoverageByClass result;
    for (std::size_t i = 0; i < verdicts.size(); ++i)
        for (Coverage* c : {&result.all, &result.classes[verdicts[i].label]})
            verdicts[i].add_to(*c, returns.seen(i));
    return result;
}

}  // namespace citysplat::cli
