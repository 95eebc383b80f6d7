#include "citysplat/context.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "cuda/find_gpu.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/drive/scenario.hpp"
#include "tiling/store/city_reader.hpp"
#include "trace/backend.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct SimulateFlags {
    std::string city, out, scenario, sensor = "hdl-64e", trajectory, model;
    std::string noise = "on", prefetch = "on", backend = "auto", resident = "2G";
    std::vector<double> offset_m, mount_m, mount_deg;
    sim::ScenarioSensor one;
    std::uint64_t seed = 1;
    bool allow_missing = false, no_scans = false, overwrite = false;
    TrajectoryFlags how;
};

/// The flags are a shorthand for a scenario with one sensor.
sim::Scenario scenario_from(const SimulateFlags& flags) {
    if (!flags.scenario.empty()) return sim::Scenario::load(flags.scenario);
    if (flags.trajectory.empty()) throw UsageError("simulate needs --trajectory (or --scenario)");
    sim::Scenario scenario;
    scenario.trajectory = flags.trajectory;
    sim::ScenarioSensor sensor = flags.one;
    sensor.run.sensor = sim::Sensor::load(flags.sensor);
    if (!flags.model.empty()) sensor.run.sensor.model = flags.model;
    sensor.run.seed = flags.seed;
    sensor.run.noise = flags.noise == "on";
    sensor.run.body_from_sensor = sim::mount_from(flags.mount_m, flags.mount_deg, "--mount, --mount-angles");
    const Pose offset = sim::mount_from(flags.offset_m, {}, "--offset");
    sensor.run.body_from_sensor.translation = sensor.run.body_from_sensor.translation + offset.translation;
    sensor.output.scans = !flags.no_scans;
    scenario.sensors.push_back(std::move(sensor));
    return scenario;
}

nlohmann::json to_json(const std::string& name, const sim::SimulationReport& report) {
    return {{"name", name},
            {"scans", report.scans},
            {"rays", report.rays},
            {"hits", report.hits},
            {"dropped", report.dropped},
            {"missing", report.missing},
            {"scans_outside", report.scans_outside},
            {"seconds", report.seconds},
            {"rays_per_second", static_cast<double>(report.rays) / report.seconds},
            {"tiles_in_reach", report.tiles_in_reach},
            {"tiles_loaded", report.cache.tiles_loaded},
            {"tiles_evicted", report.cache.tiles_evicted},
            {"passes", report.passes},
            {"resident_peak_bytes", report.cache.peak_bytes},
            {"load_seconds", report.cache.load_s},
            {"wait_seconds", report.cache.wait_s},
            {"digest", report.digest.hex()}};
}

void say_report(Context& context, const std::string& name, const sim::SimulationReport& r) {
    const auto per_second = [&](std::uint64_t n) { return static_cast<double>(n) / r.seconds; };
    char line[320];
    std::snprintf(line, sizeof line,
                  "%s: %s scans, %s rays, %s returns in %s (%.1f scans/s, %.2f Mrays/s), %s tiles loaded, "
                  "%s resident at most, %.0f %% of loading hidden",
                  name.c_str(), format_count(r.scans).c_str(), format_count(r.rays).c_str(),
                  format_count(r.hits).c_str(), format_duration(r.seconds).c_str(), per_second(r.scans),
                  per_second(r.rays) * 1e-6, format_count(r.cache.tiles_loaded).c_str(),
                  format_bytes(r.cache.peak_bytes).c_str(),
                  r.cache.load_s > 0 ? 100 * (1 - std::min(1.0, r.cache.wait_s / r.cache.load_s)) : 100.0);
    context.say(line);
}

void run(Context& context, const SimulateFlags& flags) {
    sim::Scenario scenario = scenario_from(flags);
    const tiling::CityReader city(flags.city);
    const Trajectory trajectory = read_trajectory(scenario.trajectory, flags.how.options());
    double max_range_m = 0;
    for (const sim::ScenarioSensor& sensor : scenario.sensors)
        max_range_m = std::max(max_range_m, sensor.run.sensor.max_range_m);
    const trace::Backend backend = trace::make_backend(trace::parse_backend(flags.backend), gpu::find_gpu(),
                                                       static_cast<float>(max_range_m));
    context.say(backend.note);

    sim::SimulationOptions options;
    options.cache.budget_bytes = parse_bytes(flags.resident, "--resident");
    options.cache.prefetch = flags.prefetch == "on";
    options.cache.allow_missing = flags.allow_missing;

    for (sim::ScenarioSensor& sensor : scenario.sensors) {
        sensor.output.directory = flags.out;
        if (scenario.sensors.size() > 1) sensor.output.directory /= sensor.name;
        sensor.output.crs = city.crs();
        sensor.output.overwrite = flags.overwrite;
        sensor.output.planned_scans = sim::scan_times(sensor.run, trajectory, sensor.schedule).size();
        sim::RunDirectory::check(sensor.output.directory, flags.overwrite);
        sim::learned_pass(sensor.run);  // a model that does not fit is refused before anything is written
    }
    const Stopwatch watch;
    Hasher digest;
    std::vector<std::string> warnings;
    nlohmann::json parts = nlohmann::json::array();
    sim::SimulationReport total;
    for (sim::ScenarioSensor& sensor : scenario.sensors) {
        options.schedule = sensor.schedule;
        sim::ScanWriter writer(sensor.output);
        const sim::SimulationReport report =
            sim::simulate({city, *backend.tracer, sensor.run, trajectory, options}, writer, context.cancel(),
                          context.progress());
        const std::string name = sensor.name.empty() ? sensor.run.sensor.id : sensor.name;
        say_report(context, name, report);
        for (const std::string& warning : sim::warnings_of(report, sensor.run.sensor)) {
            warnings.push_back(name + ": " + warning);
            context.warn(warnings.back());
        }
        parts.push_back(to_json(name, report));
        digest.hash(report.digest);
        total.scans += report.scans, total.rays += report.rays, total.hits += report.hits;
        total.missing += report.missing, total.dropped += report.dropped;
        total.cache.tiles_loaded += report.cache.tiles_loaded;
        total.cache.peak_bytes = std::max(total.cache.peak_bytes, report.cache.peak_bytes);
    }
    nlohmann::json result = parts.size() == 1 ? parts[0] : nlohmann::json::object();
    const double seconds = watch.seconds();
    result.update(
        {{"scans", total.scans},
         {"rays", total.rays},
         {"hits", total.hits},
         {"dropped", total.dropped},
         {"missing", total.missing},
         {"seconds", seconds},
         {"rays_per_second", static_cast<double>(total.rays) / seconds},
         {"tiles_loaded", total.cache.tiles_loaded},
         {"resident_peak_bytes", total.cache.peak_bytes},
         {"peak_rss_bytes", peak_rss_bytes()},
         {"backend", backend.name},
         {"warnings", warnings},
         {"digest", parts.size() == 1 ? parts[0]["digest"].get<std::string>() : digest.finish().hex()}});
    if (parts.size() > 1) result["sensors"] = parts;
    context.result(result, flags.out + ": " + format_count(total.scans) + " scans, digest " +
                               result["digest"].get<std::string>() + "\n");
}

void add_output_flags(CLI::App& verb, SimulateFlags& f) {
    auto& output = f.one.output;
    verb.add_option("--format", output.format, "las, laz (with LASlib), ply, pcd, kitti or xyz")
        ->check(CLI::IsMember({"las", "laz", "ply", "pcd", "kitti", "xyz"}))
        ->capture_default_str();
    verb.add_option(
            "--frame", output.frame,
            "coordinates: world, sensor (at the beginning of the scan), auto: sensor for kitti and pcd")
        ->check(CLI::IsMember({"auto", "world", "sensor"}))
        ->capture_default_str();
    verb.add_flag("--keep-misses", output.keep_all, "write rays without return too, with their status");
    verb.add_flag("--recorded", output.recorded,
                  "las, ply, pcd: also the intensity, range and incidence with which surfaces were recorded");
    verb.add_flag("--accumulate", output.accumulate, "also write all returns into one cloud");
    verb.add_flag("--no-scans", f.no_scans, "no files for single scans");
    verb.add_flag("--overwrite", f.overwrite, "replace the scans of another run in that directory");
}

void add_sensor_flags(CLI::App& verb, SimulateFlags& f) {
    verb.add_option("--sensor", f.sensor, "a name of `citysplat sensors`, or a TOML file")
        ->capture_default_str();
    verb.add_option("--model", f.model,
                    "what learn-sensor found out about the sensor: ray drop, own car, intensity")
        ->type_name("FILE");
    verb.add_option("--mount", f.mount_m, "lever arm of the sensor on the vehicle, x,y,z in metres")
        ->delimiter(',')
        ->expected(3)
        ->check(in_range(ranges::kLever_m));
    verb.add_option("--mount-angles", f.mount_deg, "yaw,pitch,roll of the sensor on the vehicle, degrees")
        ->delimiter(',')
        ->expected(3)
        ->check(in_range(ranges::kAngle_deg));
    verb.add_option("--offset", f.offset_m, "moves the sensor in the vehicle's frame, x,y,z in metres")
        ->delimiter(',')
        ->expected(3)
        ->check(in_range(ranges::kLever_m));
    verb.add_option("--rate", f.one.schedule.rate_hz, "scans per second (default: the sensor's)")
        ->check(in_range(ranges::kScanRate_hz))
        ->type_name("HZ");
    verb.add_option("--from", f.one.schedule.from_s, "time of the first scan")
        ->check(in_range(ranges::kTime_s))
        ->type_name("S");
    verb.add_option("--to", f.one.schedule.to_s, "no scan begins after this time")
        ->check(in_range(ranges::kTime_s))
        ->type_name("S");
    verb.add_option("--hits", f.one.run.hits,
                    "average up to D hits of one surface; 1: the closest alone, faster and in front of noisy "
                    "surfaces")
        ->check(whole_from(1, static_cast<int>(trace::kMaxHits)))
        ->capture_default_str()
        ->type_name("D");
    verb.add_option("--gap", f.one.run.gap_m, "greatest distance between hits of one surface")
        ->check(in_range(ranges::kGap_m))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--noise", f.noise, "error and drop model of the sensor, and what was learned about it")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    verb.add_option("--seed", f.seed, "of the random numbers")
        ->check(whole_from(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
        ->capture_default_str();
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
    auto flags = std::make_shared<SimulateFlags>();
    SimulateFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand("simulate", "drive a simulated LiDAR through a city");
    verb.fallthrough();
    verb.add_option("city", f.city, "directory of the city")->required();
    verb.add_option("--trajectory", f.trajectory, "poses of the vehicle: TUM, KITTI, CSV or SBET");
    verb.add_option("--out", f.out, "directory for the scans")->required();
    verb.add_option("--scenario", f.scenario, "several sensors from a TOML file; replaces the sensor flags");
    f.how.add_to(verb);
    add_sensor_flags(verb, f);
    add_output_flags(verb, f);
    verb.add_option("--backend", f.backend, "auto, cpu or gpu")
        ->check(CLI::IsMember({"auto", "cpu", "gpu"}))
        ->capture_default_str();
    verb.add_option("--resident", f.resident, "memory for tiles; never changes a result")
        ->capture_default_str()
        ->type_name("SIZE");
    verb.add_option("--prefetch", f.prefetch, "load tiles ahead; never changes a result")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    verb.add_flag("--allow-missing", f.allow_missing,
                  "go on without damaged tiles; mark the rays they concern");
    verb.footer(
        "Example: citysplat simulate city --sensor hdl-64e --trajectory drive/trajectory.tum --out scans\n"
        "         citysplat simulate city --sensor vlp-16 --offset 0,0,-0.5 --hits 1 --format las \\\n"
        "             --trajectory drive/trajectory.tum --from 10 --to 20 --out scans");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
