/// Table III of MARSIM: a renderer of depth images with occlusion culling, with and without plane correction,
/// against splats, on the Livox Avia.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/papers/depth_image.hpp"
#include "bench/point_store.hpp"
#include "datasets/synth/truth.hpp"
#include "model/class_map.hpp"
#include "sim/scan/ray_batch.hpp"
#include "sim/scan/scanner.hpp"
#include "splat/splat_processor.hpp"
#include "trace/tracer.hpp"

#include <cstdio>
#include <functional>
#include <optional>

using namespace citysplat;

namespace {

struct Arguments {
    double length_m = 60, points_per_metre = 50'000, pixel_deg = 0.1;
    std::uint64_t scans = 10;
    std::string drive;
};

/// What one way of simulating is worth.
struct Outcome {
    std::uint64_t points = 0;
    double error_m = 0, scan_cpu_ms = 0, built_cpu_s = 0;
};

class DepthBench {
  public:
    DepthBench(std::filesystem::path drive, const Arguments& arguments)
        : drive_(std::move(drive)),
          arguments_(arguments),
          truth_(synth::Truth::load(drive_)),
          trajectory_(Trajectory::read_tum(drive_ / "trajectory.tum")) {
        run_.sensor = sim::Sensor::load("avia");
        run_.noise = false;
        run_.hits = 1;
        const double begin = trajectory_.begin_s(), span = trajectory_.end_s() - begin - 0.2;
        for (std::uint64_t i = 0; i < arguments.scans; ++i)
            times_.push_back(begin +
                             span * (static_cast<double>(i) + 0.5) / static_cast<double>(arguments.scans));
    }

    Outcome depth_images(double cube_m, bool plane_correction) {
        Outcome outcome;
        std::optional<bench::DepthMap> map;
        outcome.built_cpu_s = bench::measure([&] { map = bench::make_depth_map(cloud(), cube_m); }).cpu_s;
        const auto& pattern = std::get<sim::RosettePattern>(run_.sensor.rays);
        bench::DepthImage image(
            {pattern.half_horizontal_rad, pattern.half_vertical_rad, arguments_.pixel_deg * exact::kPi / 180,
             static_cast<float>(run_.sensor.min_range_m), static_cast<float>(run_.sensor.max_range_m)});
        judge(outcome, [&](std::size_t i, std::vector<Vec3d>& points) {
            std::vector<sim::Firing> firings;
            sim::fire(run_.sensor, i, firings);
            const Pose pose = trajectory_.at(times_[i]).value();
            outcome.scan_cpu_ms += 1e3 * bench::measure([&] {
                                             image.render(*map, pose, plane_correction);
                                             image.read(firings, pose, points);
                                         }).cpu_s;
        });
        return outcome;
    }

    Outcome splats(splat::Method method) {
        Outcome outcome;
        const bench::PointStore store(bench::las_files_of(drive_), trajectory_);
        const auto tracer = trace::make_group_tracer();
        std::vector<trace::TracerTilePtr> tiles;
        outcome.built_cpu_s =
            bench::measure([&] {
                splat::SplatProcessor processor(splat::SplatParams::of(method), ClassMap::load("synthetic"));
                Progress quiet;
                processor.set_calibration(processor.calibrate(store, CancelToken(), quiet));
                // The whole drive as one tile: nothing outside could matter.
                const auto out = processor.process(store.read(store.bounds(), processor.initial_halo_steps()),
                                                   CancelToken());
                if (!out.certified()) throw InputError("the drive does not fit one tile");
                tiles.push_back(tracer->load(out.splats));
            }).cpu_s;
        const trace::TileSetPtr set = tracer->bind(tiles);
        judge(outcome, [&](std::size_t i, std::vector<Vec3d>& points) {
            outcome.scan_cpu_ms += 1e3 * bench::measure([&] { cast(*tracer, *set, i, points); }).cpu_s;
        });
        return outcome;
    }

  private:
    void cast(const trace::Tracer& tracer, const trace::TileSet& set, std::size_t i,
              std::vector<Vec3d>& points) {
        const sim::ScanRays scan(run_, trajectory_, i, times_[i],
                                 sim::plan_firings(run_.sensor, i, firings_));
        batch_.generate(scan.view(), 0, scan.size());
        const auto hits = batch_.empty_hits();
        tracer.closest(set, batch_.rays(), hits);
        points.clear();
        for (std::size_t r = 0; r < hits.size(); ++r)
            if (hits[r].exists())
                points.push_back(batch_.rays()[r].origin + vec_cast<double>(batch_.rays()[r].direction) *
                                                               static_cast<double>(hits[r].t));
    }

    /// Mean distance of the points to the nearest true surface; those beyond 1 m count as 1 m.
    void judge(Outcome& outcome, const std::function<void(std::size_t, std::vector<Vec3d>&)>& simulate) {
        constexpr double kFarthest_m = 1;
        std::vector<Vec3d> points;
        simulate(0, points);  // loads what is loaded once
        outcome.scan_cpu_ms = 0;
        double sum = 0;
        for (std::size_t i = 0; i < times_.size(); ++i) {
            simulate(i, points);
            std::vector<synth::Truth::Nearest> nearest(points.size());
            truth_.nearest(points, kFarthest_m, nearest);
            for (const auto& n : nearest) sum += n.distance_m;
            outcome.points += points.size();
        }
        outcome.error_m = bench::ratio(sum, static_cast<double>(outcome.points));
        outcome.scan_cpu_ms /= static_cast<double>(times_.size());
    }

    const std::vector<Vec3d>& cloud() {
        if (!cloud_.empty()) return cloud_;
        PointBatch batch;
        for (const auto& path : bench::las_files_of(drive_)) {
            const auto file = open_point_file(path);
            for (std::size_t block = 0; block < file->block_count(); ++block) {
                file->read_block(block, batch);
                for (std::size_t i = 0; i < batch.size(); ++i)
                    cloud_.push_back({batch.x[i], batch.y[i], batch.z[i]});
            }
        }
        return cloud_;
    }

    std::filesystem::path drive_;
    const Arguments& arguments_;
    synth::Truth truth_;
    Trajectory trajectory_;
    sim::SensorRun run_;
    std::vector<double> times_;
    std::vector<Vec3d> cloud_;
    std::vector<sim::Firing> firings_;
    sim::RayBatch batch_;
};

void run(const Arguments& arguments, bench::Report& report) {
    std::optional<bench::ScratchDirectory> scratch;
    std::filesystem::path drive = arguments.drive;
    if (drive.empty()) {
        scratch.emplace();
        drive = scratch->path() / "drive";
        synth::SynthOptions options;
        options.length_m = arguments.length_m, options.points_per_metre = arguments.points_per_metre;
        options.localisation_m = 0;  // the map is judged, not the poses
        Progress quiet;
        synth::write_drive(drive, options, quiet, CancelToken());
    }
    DepthBench bench(drive, arguments);
    report.text("Livox Avia, " + std::to_string(arguments.scans) +
                " scans; error: mean distance to the true surface");
    std::printf("%-44s %10s %9s %12s %10s\n", "", "points", "error", "CPU ms/scan", "made in");
    const auto print = [](const char* name, const Outcome& o) {
        std::printf("%-44s %10llu %6.2f cm %12.1f %8.1f s\n", name, static_cast<unsigned long long>(o.points),
                    100 * o.error_m, o.scan_cpu_ms, o.built_cpu_s);
    };
    const Outcome plain = bench.depth_images(0.1, false), corrected = bench.depth_images(0.1, true),
                  fine_plain = bench.depth_images(0.01, false), fine = bench.depth_images(0.01, true);
    print("depth image, 10 cm, only occlusion culling", plain);
    print("depth image, 10 cm, with plane correction", corrected);
    print("depth image, 1 cm, only occlusion culling", fine_plain);
    print("depth image, 1 cm, with plane correction", fine);
    const Outcome splats = bench.splats(splat::Method::adaptive);
    print("splats, adaptive", splats);
    report.text("");
    report.detail({"plane correction, 10 cm: error less by",
                   100 * (1 - bench::ratio(corrected.error_m, plain.error_m)),
                   "%",
                   {},
                   false});
    report.detail({"splats: error", 100 * splats.error_m, "cm",
                   bench::Ratio{bench::ratio(splats.error_m, fine.error_m), "the depth image of 1 cm"},
                   false});
    // At equal accuracy: the most accurate depth image is still held against splats that err less.
    report.detail(
        {"splats: an Avia scan", splats.scan_cpu_ms, "CPU ms",
         bench::Ratio{bench::ratio(splats.scan_cpu_ms, fine.scan_cpu_ms), "the depth image of 1 cm"}});
    report.detail(
        {"splats: an Avia scan", splats.scan_cpu_ms, "CPU ms",
         bench::Ratio{bench::ratio(splats.scan_cpu_ms, corrected.scan_cpu_ms), "the depth image of 10 cm"}});
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_depth_image",
         "Table III of MARSIM: depth images with occlusion culling, with and without plane correction, "
         "against "
         "splats.",
         [&](bench::Flags& flags) {
             flags.text("--drive", arguments.drive,
                        "a directory that citysplat synth made (default: one is made)");
             flags.number("--length", arguments.length_m, {10, 2000, "m"},
                          "length of the drive that is made");
             flags.number("--points-per-metre", arguments.points_per_metre, {100, 1e6, ""}, "of that drive");
             flags.number("--pixel", arguments.pixel_deg, {0.01, 2, "degrees"}, "angle of a pixel");
             flags.count("--scans", arguments.scans, 1000, "scans, evenly along the drive");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
