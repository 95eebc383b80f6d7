/// What a learned model costs: the second pass over finished scans, on one thread.
///
/// Scans are simulated once without it; each round copies them and lets the model look at the copies. The
/// baseline is the copying alone, which is taken off.
#include "bench/bench_clock.hpp"
#include "bench/bench_main.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/drive/simulation.hpp"
#include "tiling/store/city_reader.hpp"

#include <string>
#include <vector>

using namespace citysplat;

namespace {

constexpr int kRounds = 7;

class Keeper : public sim::ScanSink {
  public:
    void consume(const sim::Scan&) override {}
    void conclude(const sim::Scan& scan) override { scans.push_back(scan.returns); }
    std::vector<std::vector<sim::Return>> scans;
};

struct Arguments {
    std::string city, trajectory, model, sensor = "hdl-64e";
    std::uint64_t scans = 10;
};

/// Processor time of the model alone.
double nanoseconds_a_ray(const Keeper& keeper, const sim::learn::LearnedPass& pass) {
    sim::learn::PassScratch scratch;
    std::vector<sim::Return> copy;
    std::uint64_t rays = 0;
    for (const auto& scan : keeper.scans) rays += scan.size();
    const auto round = [&](bool look) {
        std::uint64_t index = 0;
        for (const auto& scan : keeper.scans) {
            copy = scan;
            if (look) pass.apply(copy, {sim::scan_key(1, 0, index++), sim::learn::place_key(1)}, scratch);
        }
    };
    const auto with = bench::best_of(kRounds, [&] { round(true); });
    const auto without = bench::best_of(kRounds, [&] { round(false); });
    return 1e9 * bench::ratio(with.cpu_s - without.cpu_s, static_cast<double>(rays));
}

void run(const Arguments& a, bench::Report& report) {
    const tiling::CityReader city(a.city);
    const Trajectory trajectory = read_trajectory(a.trajectory);
    const auto tracer = trace::make_embree_tracer();
    const sim::SensorRun run{sim::Sensor::load(a.sensor), {}, 1};
    sim::SimulationOptions options;
    const double begin_s = trajectory.begin_s();
    options.schedule.to_s = begin_s + (static_cast<double>(a.scans) - 0.5) / run.sensor.scan_hz;
    Keeper keeper;
    CancelToken cancel;
    Progress progress;
    const sim::SimulationReport drive =
        sim::simulate({city, *tracer, run, trajectory, options}, keeper, cancel, progress);
    bench::require_hits(drive.hits, drive.rays, "is the trajectory that of the city?");
    sim::learn::SensorModel model = sim::learn::SensorModel::load(a.model);
    report.text(std::to_string(drive.scans) + " scans, " + std::to_string(drive.rays) + " rays, " +
                std::to_string(drive.hits) + " returns");
    if (model.intensity)
        report.detail({"learned drop and intensity, one thread",
                       nanoseconds_a_ray(keeper, sim::learn::LearnedPass(model, run.sensor)), "ns a ray"});
    model.intensity.reset();
    report.detail({"learned drop, one thread",
                   nanoseconds_a_ray(keeper, sim::learn::LearnedPass(model, run.sensor)), "ns a ray"});
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    return bench::run_bench({"bench_learned", "What a learned model of a sensor costs a ray, on one thread.",
                             [&](bench::Flags& flags) {
                                 flags.required("CITY", a.city, "a city that citysplat build made");
                                 flags.required("TRAJECTORY", a.trajectory, "poses of the drive");
                                 flags.required("MODEL", a.model, "a model that learn-sensor made");
                                 flags.text("--sensor", a.sensor, "the sensor of the model");
                                 flags.count("--scans", a.scans, 1000, "scans to look at");
                             },
                             [&](bench::Report& report) { run(a, report); }},
                            argc, argv);
}
