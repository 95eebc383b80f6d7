/// Ray casting: the bare Embree loop on the rays of one sensor against the tracers and the whole simulation,
/// then the tracer against Embree's on every sensor, in one run. Ratios are of CPU time.
#include "bench/bare_embree_loop.hpp"
#include "bench/bench_city.hpp"
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/tracer_duel.hpp"
#include "core/error.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/bag/bag_writer.hpp"
#include "sim/drive/simulation.hpp"
#include "sim/output/scan_writer.hpp"
#include "sim/scan/ray_batch.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

constexpr int kRounds = 3;
/// A third of them warms up, and there must be two moments between which time passes.
constexpr std::size_t kFewestScans = 6;

struct Arguments {
    std::string city, trajectory;
    std::uint64_t splats = 2'000'000, scans = 60;
    bench::DuelOptions duel;
    bool duel_only = false;
};

struct Speed {
    double scans_per_s = 0, cpu_ms = 1e9;  ///< CPU time of one scan
};

template <class Work>
Speed speed_of(std::size_t scans, const Work& work) {
    const bench::Elapsed best = bench::best_of(kRounds, work);
    const auto n = static_cast<double>(scans);
    return {n / best.wall_s, best.cpu_s * 1e3 / n};
}

class NoSink : public ScanSink {
  public:
    void consume(const Scan&) override {}
    void conclude(const Scan&) override {}
};

/// Measures the last two thirds of the scans: by then all tiles are loaded.
class TimedSink : public ScanSink {
  public:
    TimedSink(ScanSink& sink, std::size_t scans) : sink_(sink), first_(scans / 3), last_(scans - 1) {}
    void consume(const Scan& scan) override { sink_.consume(scan); }
    void conclude(const Scan& scan) override {
        sink_.conclude(scan);
        if (scan.index == first_) begin_ = {bench::wall_now_s(), bench::cpu_now_s()};
        if (scan.index == last_) end_ = {bench::wall_now_s(), bench::cpu_now_s()};
    }
    double scans_per_s() const { return static_cast<double>(last_ - first_) / (end_.wall_s - begin_.wall_s); }
    double cpu_ms() const { return (end_.cpu_s - begin_.cpu_s) * 1e3 / static_cast<double>(last_ - first_); }

  private:
    ScanSink& sink_;
    std::size_t first_, last_;
    bench::Elapsed begin_, end_;
};

class TraceBench {
  public:
    TraceBench(const TileSource& city, const Trajectory& trajectory, std::uint64_t scans,
               bench::Report& report)
        : city_(city), trajectory_(trajectory), report_(report), run_{Sensor::load("hdl-64e"), {}, 1} {
        schedule_.to_s = trajectory.begin_s() + static_cast<double>(scans) / 10 - 0.05;
        scans_ = scan_times(run_, trajectory, schedule_).size();
        if (scans_ < kFewestScans)
            throw InputError("the trajectory is long enough for " + std::to_string(scans_) + " scans only; " +
                             std::to_string(kFewestScans) + " are needed");
        make_rays();
    }

    void run() {
        report_.text(std::to_string(bench::count_splats(city_)) + " splats in " +
                     std::to_string(city_.tiles().size()) +
                     " tiles; HDL-64E: " + std::to_string(rays_[0].size()) + " rays a scan, " +
                     std::to_string(scans_) + " scans. Ratios are of CPU time.");
        bare_loop();
        report_.row(rays_at_tiles("HDL-64E, rays at tiles in memory", *make_group_tracer()));
        for (const unsigned splats_per_leaf : {1u, 4u})
            report_.detail(rays_at_tiles("  by Embree, " + std::to_string(splats_per_leaf) + " splats a leaf",
                                         *make_embree_tracer({"", true, splats_per_leaf})));
        simulations();
    }

  private:
    void make_rays() {
        std::vector<Firing> firings;
        fire(run_.sensor, 0, firings);
        const auto times = scan_times(run_, trajectory_, schedule_);
        for (std::size_t i = 0; i < times.size(); ++i) {
            const ScanRays scan(run_, trajectory_, i, times[i], plan_of(firings));
            RayBatch batch;
            batch.generate(scan.view(), 0, scan.size());
            rays_.emplace_back(batch.rays().begin(), batch.rays().end());
        }
    }

    /// The first: refuses rays that meet nothing before any figure is printed.
    void bare_loop() {
        const double begin = bench::cpu_now_s();
        const bench::BareEmbreeLoop loop(city_, trajectory_.poses()[0].world_from_body.translation);
        const double built_s = bench::cpu_now_s() - begin;
        const auto count = [&] {
            bare_hits_ = 0;
            for (const auto& rays : rays_) bare_hits_ += loop.count_hits(rays);
        };
        count();
        bench::require_hits(bare_hits_, rays_.size() * rays_[0].size(),
                            "give the trajectory of the drive that the city was built from");
        bare_ = speed_of(scans_, count);
        report_.detail(
            row("the bare Embree loop", bare_, "built in " + bench::three_digits(built_s) + " CPU s"));
    }

    bench::Row rays_at_tiles(const std::string& what, const Tracer& tracer) const {
        const double begin = bench::cpu_now_s();
        std::vector<TracerTilePtr> tiles(city_.tiles().size());
        for (std::uint32_t i = 0; i < tiles.size(); ++i) tiles[i] = tracer.load(city_.load(i));
        const double built_s = bench::cpu_now_s() - begin;
        const TileSetPtr set = tracer.bind(tiles);
        std::size_t hits = 0;
        const Speed speed = speed_of(scans_, [&] {
            hits = 0;
            for (const auto& rays : rays_) hits += count_hits(tracer, *set, rays);
        });
        const double bytes_a_splat = bench::ratio(static_cast<double>(tracer.resident_bytes()),
                                                  static_cast<double>(bench::count_splats(city_)));
        const double more_hits = bench::ratio(static_cast<double>(hits), static_cast<double>(bare_hits_)) - 1;
        char note[120];
        std::snprintf(note, sizeof note, "built in %.2f CPU s, %.0f B/splat, hits %+.4f %%", built_s,
                      bytes_a_splat, 100 * more_hits);
        return row(what, speed, note);
    }

    static std::size_t count_hits(const Tracer& tracer, const TileSet& set, std::span<const Ray> rays) {
        constexpr std::size_t kPart = 1024;
        std::atomic<std::size_t> hits{0};
        tbb::parallel_for(std::size_t{0}, (rays.size() + kPart - 1) / kPart, [&](std::size_t i) {
            const auto part = rays.subspan(i * kPart, std::min(kPart, rays.size() - i * kPart));
            std::vector<Hit> out(part.size());
            tracer.closest(set, part, out);
            hits += static_cast<std::size_t>(
                std::count_if(out.begin(), out.end(), [](const Hit& h) { return h.exists(); }));
        });
        return hits;
    }

    void simulations() {
        NoSink none;
        run_.hits = 1;
        run_.noise = false;
        const Speed closest = simulation(none);
        report_.row(row("HDL-64E, simulated, closest hit", closest));
        run_.noise = true;
        report_.detail(row("HDL-64E, simulated, with noise", simulation(none)));
        for (const char* format : {"kitti", "ply", "las"}) {
            const bench::ScratchDirectory scratch;
            ScanWriterOptions out;
            out.directory = scratch.path() / "scans";
            out.format = format;
            ScanWriter writer(out);
            const auto with_files =
                row(std::string("HDL-64E, simulated, with noise, ") + format + " files", simulation(writer));
            if (out.format == "kitti")
                report_.row(with_files);
            else
                report_.detail(with_files);
        }
        for (const char* compression : {"none", "zstd"}) {
            const bench::ScratchDirectory scratch;
            BagOptions out;
            out.directory = scratch.path() / "bag";
            out.compression = compression;
            BagWriter bag(out, {{"hdl_64e", "", run_, trajectory_, schedule_, nullptr, {}}});
            report_.detail(row(std::string("HDL-64E, simulated, with noise, rosbag2, chunks: ") + compression,
                               simulation(bag.sink(0))));
        }
        run_.hits = kUsualHits;
        run_.noise = false;
        const Speed five = simulation(none);
        report_.detail(row("HDL-64E, simulated, D = 5 hits", five,
                           bench::three_digits(closest.cpu_ms / five.cpu_ms) + " of closest hit"));
    }

    Speed simulation(ScanSink& sink) const {
        const auto tracer = make_group_tracer();
        SimulationOptions options;
        options.schedule = schedule_;
        options.cache.budget_bytes = std::uint64_t{16} << 30;
        Speed best;
        for (int round = 0; round < kRounds; ++round) {
            TimedSink timed(sink, scans_);
            CancelToken cancel;
            Progress progress;
            simulate({city_, *tracer, run_, trajectory_, options}, timed, cancel, progress);
            best = {std::max(best.scans_per_s, timed.scans_per_s()), std::min(best.cpu_ms, timed.cpu_ms())};
        }
        return best;
    }

    bench::Row row(const std::string& what, const Speed& speed, const std::string& note = "") const {
        return {what,
                speed.scans_per_s,
                "scans/s",
                bench::Ratio{bench::ratio(bare_.cpu_ms, speed.cpu_ms), "the bare Embree loop"},
                true,
                bench::three_digits(speed.cpu_ms) + " CPU ms a scan" + (note.empty() ? "" : "; " + note)};
    }

    const TileSource& city_;
    const Trajectory& trajectory_;
    bench::Report& report_;
    SensorRun run_;
    Schedule schedule_;
    std::size_t scans_ = 0;
    std::vector<std::vector<Ray>> rays_;  ///< of all scans
    Speed bare_;
    std::size_t bare_hits_ = 0;
};

void run(const Arguments& arguments, bench::Report& report) {
    if (!arguments.city.empty() && arguments.trajectory.empty())
        throw UsageError("a city needs a trajectory through it: bench_trace " + arguments.city +
                         " DRIVE/trajectory.tum");
    const auto city = bench::open_or_make_city(arguments.city, arguments.splats);
    const Trajectory trajectory =
        arguments.trajectory.empty()
            ? bench::drive_through_made_city(static_cast<double>(arguments.scans) / 10 + 0.01)
            : read_trajectory(arguments.trajectory);
    if (!arguments.duel_only) TraceBench(*city, trajectory, arguments.scans, report).run();
    bench::compare_tracers(*city, trajectory, arguments.duel, report);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_trace",
         "Casts the rays of an HDL-64E at a city: the tracer and the whole simulation against the bare "
         "Embree loop; then those of every sensor, by the tracer and by Embree's in turns. Without a city, a "
         "street of 400 m is made in memory.",
         [&](bench::Flags& flags) {
             flags.text("CITY", arguments.city, "a city that citysplat build made");
             flags.text("TRAJECTORY", arguments.trajectory, "the way through it");
             flags.count("--splats", arguments.splats, 1'000'000'000, "splats of the street made in memory");
             flags.count("--scans", arguments.scans, 10'000, "scans, a tenth of a second each, 6 at least");
             flags.texts("--sensor", arguments.duel.sensors,
                         "sensor of the comparison with Embree, or \"scattered\": rays from anywhere to "
                         "anywhere; all of them if none is given");
             flags.count("--duel-scans", arguments.duel.scans, 10'000,
                         "scans of each, spread over the drive");
             flags.count("--rounds", arguments.duel.rounds, 1000, "times that each scan is traced");
             flags.text("--instruction-set", arguments.duel.instruction_set,
                        "of the tracer; the best of the machine if none is given");
             flags.flag("--duel-only", arguments.duel_only, "leave out the bare loop and the simulation");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
