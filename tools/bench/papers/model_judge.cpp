#include "bench/papers/model_judge.hpp"

#include "bench/bench_clock.hpp"
#include "bench/bench_report.hpp"
#include "core/text.hpp"
#include "sim/scan/ray_batch.hpp"
#include "sim/scan/scanner.hpp"
#include "view/camera.hpp"

#include <algorithm>

namespace citysplat::bench {

namespace {

constexpr std::size_t kOwnRays = 200'000;
constexpr std::size_t kJudgedHits = 4;  ///< every fourth
constexpr float kRange_m = 120;
constexpr double kFarthest_m = 1;  ///< distances beyond it count as this

trace::Ray ray(Vec3d from, Vec3d direction, float least) {
    return {from, vec_cast<float>(direction), least, kRange_m, 0};
}

std::map<std::uint16_t, Thin> thin_classes(const ClassMap& classes) {
    std::map<std::uint16_t, Thin> thin;
    for (const auto& [label, info] : classes.classes())
        for (std::size_t i = 0; i < kThinWords.size(); ++i)
            if (lower_case(info.name).find(kThinWords[i]) != std::string::npos)
                thin.emplace(label, static_cast<Thin>(i));
    return thin;
}

}  // namespace

std::optional<double> ThinMeans::average_cm() const {
    Mean mean;
    for (const Mean& thing : thin_)
        if (const auto value = thing.cm()) mean.add(*value / 100);
    return mean.cm();
}

ModelJudge::ModelJudge(const PaperDrive& drive, std::uint64_t scans)
    : drive_(drive), thin_(thin_classes(drive.classes)) {
    take_points();
    make_scans(scans);
    make_picture();
}

void ModelJudge::take_points() {
    const tiling::Region all = drive_.store.read(drive_.store.bounds(), 0);
    const LatticePoint o = all.frame.origin();
    std::vector<Vec3d> points;
    std::size_t number = 0;
    const std::size_t own_stride = std::max<std::size_t>(1, all.points.size() / kOwnRays);
    for (const TilePoint& p : all.points) {
        if (drive_.classes.at(p.label).dynamic) continue;
        points.push_back({to_metres(o.x + p.x), to_metres(o.y + p.y), to_metres(o.z + p.z)});
        if (p.has_sensor() && number++ % own_stride == 0) add_own_ray(p, points.back());
    }
    cloud_.emplace(std::move(points));
}

/// From the recorded place of the scanner through a point of the drive.
void ModelJudge::add_own_ray(const TilePoint& p, Vec3d point) {
    const Vec3d d = Vec3d{1.0 * p.sensor_dx, 1.0 * p.sensor_dy, 1.0 * p.sensor_dz} *
                    (1.0 / TilePoint::kSensorStepsPerMetre);
    if (length(d) > 0) own_.push_back(ray(point + d, normalized(-d), 0.5f));
}

void ModelJudge::make_scans(std::uint64_t count) {
    sim::SensorRun run;
    run.sensor = sim::Sensor::load("hdl-64e");
    run.noise = false, run.hits = 1;
    run.body_from_sensor.translation = {1, 1, -1};  // as in the paper
    const double begin = drive_.trajectory.begin_s(), span = drive_.trajectory.end_s() - begin - 0.2;
    std::vector<sim::Firing> firings;
    for (std::uint64_t i = 0; i < count; ++i) {
        const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
        const sim::ScanRays scan(run, drive_.trajectory, i, begin + share * span,
                                 sim::plan_firings(run.sensor, i, firings));
        sim::RayBatch batch;
        batch.generate(scan.view(), 0, scan.size());
        scans_.emplace_back(batch.rays().begin(), batch.rays().end());
    }
}

void ModelJudge::make_picture() {
    const double middle = 0.5 * (drive_.trajectory.begin_s() + drive_.trajectory.end_s());
    const Camera camera{drive_.trajectory.at(middle).value(), 2560, 1440, 1.3};
    // Blocks of pixels, so that neighbouring rays are next to each other.
    constexpr int kBlock = 16;
    for (int by = 0; by < camera.height; by += kBlock)
        for (int bx = 0; bx < camera.width; bx += kBlock)
            for (int y = by; y < by + kBlock; ++y)
                for (int x = bx; x < bx + kBlock; ++x)
                    picture_.push_back(
                        ray(camera.world_from_camera.translation, camera.direction(x + 0.5, y + 0.5), 0.1f));
}

Seen ModelJudge::look(const TracedModel& model) const {
    Seen seen;
    std::vector<trace::Hit> hits;
    model.cast(scans_[0], hits);  // loads what is loaded once
    for (const auto& rays : scans_) {
        seen.scan_cpu_s += measure([&] { model.cast(rays, hits); }).cpu_s;
        judge(rays, hits, seen.c2c, &seen.truth);
        seen.rays += rays.size();
        for (const trace::Hit& hit : hits) seen.hits += hit.exists();
    }
    seen.scan_cpu_s /= static_cast<double>(scans_.size());
    require_hits(seen.hits, seen.rays, "the model is not where the drive is");
    model.cast(own_, hits);
    judge(own_, hits, seen.own_c2c, nullptr);
    seen.picture_cpu_s = measure([&] { model.cast(picture_, hits); }).cpu_s;
    return seen;
}

/// A share of the hits.
void ModelJudge::judge(const std::vector<trace::Ray>& rays, const std::vector<trace::Hit>& hits,
                       ThinMeans& c2c, ThinMeans* truth) const {
    std::vector<Vec3d> places;
    std::vector<std::optional<Thin>> things;
    for (std::size_t i = 0; i < hits.size(); i += kJudgedHits) {
        if (!hits[i].exists()) continue;
        places.push_back(rays[i].origin + vec_cast<double>(rays[i].direction) * hits[i].range_m);
        const auto thin = thin_.find(hits[i].label);
        things.push_back(thin == thin_.end() ? std::nullopt : std::optional(thin->second));
    }
    const std::vector<double> near = cloud_->distances(places);
    for (std::size_t i = 0; i < near.size(); ++i) c2c.add(things[i], std::min(near[i], kFarthest_m));
    if (!truth || !drive_.truth) return;
    std::vector<synth::Truth::Nearest> surface(places.size());
    drive_.truth->nearest(places, kFarthest_m, surface);
    for (std::size_t i = 0; i < surface.size(); ++i) truth->add(things[i], surface[i].distance_m);
}

}  // namespace citysplat::bench
