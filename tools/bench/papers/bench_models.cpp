/// Tables 1 to 4 of AdaSplats in shape: every model of the same drive, how long it takes to make, how large
/// it is, how fast it is seen and scanned, and how far what a LiDAR sees of it is from the drive and the
/// truth.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/papers/point_set.hpp"
#include "bench/papers/traced_model.hpp"
#include "bench/point_store.hpp"
#include "core/error.hpp"
#include "datasets/synth/truth.hpp"
#include "mesh/imls_field.hpp"
#include "mesh/tsdf_field.hpp"
#include "sim/scan/ray_batch.hpp"
#include "sim/scan/scanner.hpp"
#include "view/camera.hpp"

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>

using namespace citysplat;
using bench::TracedModel;

namespace {

struct Arguments {
    std::string drive;
    double length_m = 30, points_per_metre = 50'000;
    std::uint64_t scans = 8, seed = 1;
    std::string only;
};

constexpr std::uint16_t kFence = 2, kPole = 5, kSign = 12;
constexpr double kFarthest_m = 1;  ///< distances beyond it count as this

/// Means by class of what was hit.
class Means {
  public:
    void add(std::uint16_t label, double d) {
        for (const std::uint16_t key : {kAll, label}) sum_[key] += d, ++count_[key];
    }
    /// In centimetres; nothing where nothing was hit.
    std::optional<double> cm(std::uint16_t label) const {
        const auto n = count_.find(label);
        if (n == count_.end()) return std::nullopt;
        return 100 * sum_.at(label) / n->second;
    }
    static constexpr std::uint16_t kAll = 65535;

  private:
    std::map<std::uint16_t, double> sum_, count_;
};

struct Seen {
    Means c2c, own_c2c, truth;
    double scan_cpu_ms = 0, picture_cpu_ms = 0;
    std::uint64_t hits = 0, rays = 0;
};

/// Looks at the models of one drive.
class Judge {
  public:
    Judge(const std::filesystem::path& drive, const Arguments& arguments)
        : arguments_(arguments),
          truth_(synth::Truth::load(drive)),
          trajectory_(Trajectory::read_tum(drive / "trajectory.tum")),
          store_(bench::las_files_of(drive), trajectory_) {
        const tiling::Region all = store_.read(store_.bounds(), 0);
        std::vector<Vec3d> points;
        std::size_t number = 0;
        const std::size_t own_stride = std::max<std::size_t>(1, all.points.size() / kOwnRays);
        for (const TilePoint& p : all.points) {
            const LatticePoint o = all.frame.origin();
            points.push_back({to_metres(o.x + p.x), to_metres(o.y + p.y), to_metres(o.z + p.z)});
            if (p.has_sensor() && number++ % own_stride == 0) add_own_ray(p, points.back());
        }
        cloud_.emplace(std::move(points));
        make_scans();
        make_picture();
    }

    const bench::PointStore& store() const { return store_; }
    std::size_t points() const { return cloud_->points().size(); }

    Seen look(const TracedModel& model) const {
        Seen seen;
        std::vector<trace::Hit> hits;
        model.cast(scans_[0], hits);  // loads what is loaded once
        for (const auto& rays : scans_) {
            seen.scan_cpu_ms += 1e3 * bench::measure([&] { model.cast(rays, hits); }).cpu_s;
            judge(rays, hits, seen.c2c, &seen.truth);
            seen.rays += rays.size();
            for (const trace::Hit& hit : hits) seen.hits += hit.exists();
        }
        seen.scan_cpu_ms /= static_cast<double>(scans_.size());
        bench::require_hits(seen.hits, seen.rays, "the model is not where the drive is");
        model.cast(own_, hits);
        judge(own_, hits, seen.own_c2c, nullptr);
        seen.picture_cpu_ms = 1e3 * bench::measure([&] { model.cast(picture_, hits); }).cpu_s;
        return seen;
    }

  private:
    static constexpr std::size_t kOwnRays = 200'000, kJudgedHits = 4;
    static constexpr float kRange_m = 120;

    static trace::Ray ray(Vec3d from, Vec3d direction, float least) {
        return {from, vec_cast<float>(direction), least, kRange_m, 0};
    }
    /// From the recorded place of the scanner through a point of the drive.
    void add_own_ray(const TilePoint& p, Vec3d point) {
        const Vec3d d = Vec3d{1.0 * p.sensor_dx, 1.0 * p.sensor_dy, 1.0 * p.sensor_dz} *
                        (1.0 / TilePoint::kSensorStepsPerMetre);
        if (length(d) > 0) own_.push_back(ray(point + d, normalized(-d), 0.5f));
    }
    void make_scans() {
        sim::SensorRun run;
        run.sensor = sim::Sensor::load("hdl-64e");
        run.noise = false, run.hits = 1;
        run.body_from_sensor.translation = {1, 1, -1};  // as in the paper
        const double span = trajectory_.end_s() - trajectory_.begin_s() - 0.2;
        std::vector<sim::Firing> firings;
        for (std::uint64_t i = 0; i < arguments_.scans; ++i) {
            const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(arguments_.scans);
            const sim::ScanRays scan(run, trajectory_, i, trajectory_.begin_s() + share * span,
                                     sim::plan_firings(run.sensor, i, firings));
            sim::RayBatch batch;
            batch.generate(scan.view(), 0, scan.size());
            scans_.emplace_back(batch.rays().begin(), batch.rays().end());
        }
    }
    void make_picture() {
        const double middle = 0.5 * (trajectory_.begin_s() + trajectory_.end_s());
        const Camera camera{trajectory_.at(middle).value(), 2560, 1440, 1.3};
        // Blocks of pixels, so that neighbouring rays are next to each other.
        constexpr int kBlock = 16;
        for (int by = 0; by < camera.height; by += kBlock)
            for (int bx = 0; bx < camera.width; bx += kBlock)
                for (int y = by; y < by + kBlock; ++y)
                    for (int x = bx; x < bx + kBlock; ++x)
                        picture_.push_back(ray(camera.world_from_camera.translation,
                                               camera.direction(x + 0.5, y + 0.5), 0.1f));
    }

    /// A share of the hits.
    void judge(const std::vector<trace::Ray>& rays, const std::vector<trace::Hit>& hits, Means& c2c,
               Means* truth) const {
        std::vector<Vec3d> places;
        std::vector<std::uint16_t> labels;
        for (std::size_t i = 0; i < hits.size(); i += kJudgedHits)
            if (hits[i].exists()) {
                places.push_back(rays[i].origin + vec_cast<double>(rays[i].direction) * hits[i].range_m);
                labels.push_back(hits[i].label);
            }
        const std::vector<double> near = cloud_->distances(places);
        for (std::size_t i = 0; i < near.size(); ++i) c2c.add(labels[i], std::min(near[i], kFarthest_m));
        if (!truth) return;
        std::vector<synth::Truth::Nearest> surface(places.size());
        truth_.nearest(places, kFarthest_m, surface);
        for (std::size_t i = 0; i < surface.size(); ++i) truth->add(labels[i], surface[i].distance_m);
    }

    const Arguments& arguments_;
    synth::Truth truth_;
    Trajectory trajectory_;
    bench::PointStore store_;
    std::optional<bench::PointSet> cloud_;
    std::vector<trace::Ray> own_, picture_;
    std::vector<std::vector<trace::Ray>> scans_;
};

struct Entry {
    std::string name;
    std::function<TracedModel(const bench::PointStore&)> make;  ///< none: `missing` says why
    std::string missing{};
};

std::vector<Entry> entries() {
    using splat::Method;
    using splat::SplatParams;
    std::vector<Entry> all;
    const auto splats = [&](std::string name, SplatParams params, bool resample) {
        params.resample = resample;
        all.push_back(
            {std::move(name), [params](const auto& drive) { return TracedModel::of_splats(drive, params); }});
    };
    splats("basic splats", SplatParams::of(Method::basic), false);
    splats("descriptors, 1 generation", SplatParams::of(Method::descriptors), false);
    splats("descriptors, resampled", SplatParams::of(Method::descriptors), true);
    splats("adaptive, 1 generation", SplatParams::of(Method::adaptive), false);
    splats("adaptive, resampled", SplatParams::of(Method::adaptive), true);
    splats("surfels (LiDARsim)", SplatParams::of(Method::surfels), false);
    all.push_back({"mesh, IMLS 7 cm", [](const auto& drive) {
                       const mesh::ImlsParams params;
                       return TracedModel::of_mesh(drive, params.voxel_steps(), mesh::ImlsField(params));
                   }});
    for (const double voxel_m : {0.2, 0.1})
        all.push_back(
            {"mesh, TSDF " + bench::three_digits(100 * voxel_m) + " cm", [voxel_m](const auto& drive) {
                 mesh::MeshParams params;
                 params.voxel_m = voxel_m;
                 return TracedModel::of_mesh(drive, params.voxel_steps(), mesh::TsdfField(params));
             }});
    all.push_back({"mesh, Poisson", {}, "no Poisson reconstruction is run by this bench"});
    return all;
}

void print(const std::string& name, const TracedModel& model, const Seen& s) {
    const auto cm = [](const Means& means, std::uint16_t label) {
        const auto value = means.cm(label);
        char text[16];
        if (value)
            std::snprintf(text, sizeof text, "%.2f", *value);
        else
            std::snprintf(text, sizeof text, "-");
        return std::string(text);
    };
    std::printf("%-26s %8.2f %8.3f %9.0f %8.1f %8.1f | %6s %6s %6s %6s | %6s %6s %6s %6s | %6s\n",
                name.c_str(), model.made_cpu_s, static_cast<double>(model.primitives) * 1e-6,
                s.picture_cpu_ms, s.scan_cpu_ms,
                100 * bench::ratio(static_cast<double>(s.hits), static_cast<double>(s.rays)),
                cm(s.c2c, Means::kAll).c_str(), cm(s.c2c, kFence).c_str(), cm(s.c2c, kPole).c_str(),
                cm(s.c2c, kSign).c_str(), cm(s.own_c2c, Means::kAll).c_str(), cm(s.own_c2c, kFence).c_str(),
                cm(s.own_c2c, kPole).c_str(), cm(s.own_c2c, kSign).c_str(), cm(s.truth, Means::kAll).c_str());
    std::fflush(stdout);
}

void run(const Arguments& arguments, bench::Report& report) {
    std::optional<bench::ScratchDirectory> scratch;
    std::filesystem::path drive = arguments.drive;
    if (drive.empty()) {
        scratch.emplace();
        drive = scratch->path() / "drive";
        synth::SynthOptions options;
        options.length_m = arguments.length_m, options.points_per_metre = arguments.points_per_metre;
        options.seed = arguments.seed;
        Progress quiet;
        synth::write_drive(drive, options, quiet, CancelToken());
    }
    const Judge judge(drive, arguments);
    report.text(std::to_string(judge.points()) + " points; HDL-64E at (1, 1, -1) m without noise, " +
                std::to_string(arguments.scans) + " scans; own: the survey's own rays. Times are of CPU.");
    std::printf("%-26s %8s %8s %9s %8s %8s | %27s | %27s | %6s\n", "", "made", "Mprims", "picture", "scan",
                "returns", "C2C cm, HDL-64E", "C2C cm, own rays", "truth");
    std::printf("%-26s %8s %8s %9s %8s %8s | %6s %6s %6s %6s | %6s %6s %6s %6s | %6s\n", "", "s", "", "ms",
                "ms", "%", "all", "fence", "pole", "sign", "all", "fence", "pole", "sign", "cm");
    for (const Entry& entry : entries()) {
        if (!arguments.only.empty() && entry.name.find(arguments.only) == std::string::npos) continue;
        if (!entry.make) {
            std::printf("%-26s missing: %s\n", entry.name.c_str(), entry.missing.c_str());
            continue;
        }
        const TracedModel model = entry.make(judge.store());
        print(entry.name, model, judge.look(model));
    }
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_models",
         "Tables 1 to 4 of AdaSplats in shape: splats, surfels and meshes of one drive, made, seen and "
         "scanned.",
         [&](bench::Flags& flags) {
             flags.text("--drive", arguments.drive,
                        "a directory that citysplat synth made (default: one is made)");
             flags.number("--length", arguments.length_m, {10, 500, "m"}, "length of the drive that is made");
             flags.number("--points-per-metre", arguments.points_per_metre, {100, 1e6, ""}, "of that drive");
             flags.count("--seed", arguments.seed, 1'000'000, "of that drive");
             flags.count("--scans", arguments.scans, 1000, "scans, evenly along the drive");
             flags.text("--only", arguments.only, "models whose names contain this");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
