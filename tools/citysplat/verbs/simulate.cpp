#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/moving/clearance_report.hpp"
#include "citysplat/moving/scene.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/simulating/bagged_sensors.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "cuda/find_gpu.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/bag/bag_writer.hpp"
#include "sim/clearance/clearance.hpp"
#include "sim/drive/prepared_traffic.hpp"
#include "sim/drive/scenario.hpp"
#include "sim/output/object_boxes.hpp"
#include "trace/backend.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct SimulateFlags {
    std::string city, out, scenario, sensor = "hdl-64e", trajectory, model, returns;
    std::string decimate;
    std::string noise = "on", prefetch = "on", backend = "auto", resident = "2G";
    std::vector<double> offset_m, mount_m, mount_deg;
    sim::ScenarioSensor one;
    std::uint64_t seed = 1;
    bool allow_missing = false, no_scans = false, overwrite = false, intensity_noise = false,
         likely_drops = false;
    std::optional<double> most_lost_percent;
    bool clearance = false;
    double smooth_s = 0;
    std::string snapshots, clock = "unknown", compression = "none";
    TrajectoryFlags how;
    GenerationFlag generation;
    ProductFlag product;
    RegionFlags region;
    /// About the one sensor of a run without --scenario, each with the key that says it in a scenario.
    std::vector<std::pair<const CLI::Option*, std::string>> of_one_sensor;
};

/// A scenario says all of it itself: a flag that would be passed over is refused.
void refuse_sensor_flags(const SimulateFlags& flags) {
    for (const auto& [option, key] : flags.of_one_sensor)
        if (option->count() > 0)
            throw UsageError(option->get_name() + " has no meaning with --scenario: " + flags.scenario +
                             " says it itself, by " + key);
}

/// The flags are a shorthand for a scenario with one sensor.
sim::Scenario scenario_from(const SimulateFlags& flags) {
    if (!flags.scenario.empty()) {
        refuse_sensor_flags(flags);
        return sim::Scenario::load(flags.scenario);
    }
    if (flags.clearance)
        throw UsageError("--clearance is about the vehicles of a --scenario; the verb clearance takes a box");
    if (flags.trajectory.empty()) throw UsageError("simulate needs --trajectory (or --scenario)");
    sim::Scenario scenario;
    scenario.trajectory = flags.trajectory;
    sim::ScenarioSensor sensor = flags.one;
    sensor.run.sensor = sim::Sensor::load(flags.sensor);
    if (!flags.model.empty()) sensor.run.sensor.model = flags.model;
    if (flags.intensity_noise) sensor.run.sensor.intensity_noise = true;
    if (flags.likely_drops) sensor.run.sensor.likely_drops = true;
    if (flags.most_lost_percent) sensor.run.sensor.most_lost_percent = flags.most_lost_percent;
    if (!flags.returns.empty())
        sensor.run.sensor.beam.set_returns(flags.returns,
                                           "--returns, sensor \"" + sensor.run.sensor.id + "\"");
    sensor.run.seed = flags.seed;
    sensor.run.noise = flags.noise == "on";
    sensor.run.body_from_sensor = sim::mount_from(flags.mount_m, flags.mount_deg, "--mount, --mount-angles");
    const Pose offset = sim::mount_from(flags.offset_m, {}, "--offset");
    sensor.run.body_from_sensor.translation = sensor.run.body_from_sensor.translation + offset.translation;
    sensor.output.scans = !flags.no_scans;
    if (!flags.decimate.empty()) sensor.output.decimate_m = sim::parse_length(flags.decimate, "--decimate");
    scenario.smooth_s = flags.smooth_s;
    scenario.clock = flags.clock;
    scenario.compression = flags.compression;
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
            {"parts_in_reach", report.parts_in_reach},
            {"part_hits", report.part_hits},
            {"frames", report.frames},
            {"frames_loaded", report.frames_loaded},
            {"frames_resident", report.frames_resident},
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

/// The trajectories of all sensors, by path. The flags are about the one of the scenario; those of vehicles
/// are read as their bodies' are.
std::map<std::filesystem::path, Trajectory> read_ways(const SimulateFlags& flags,
                                                      const sim::Scenario& scenario) {
    std::map<std::filesystem::path, Trajectory> ways;
    TrajectoryOptions plain;
    plain.allow_gaps = true;
    for (const sim::ScenarioSensor& sensor : scenario.sensors) {
        const auto& path = scenario.trajectory_of(sensor);
        const bool on_vehicle = sensor.vehicle != sim::kNoVehicle;
        if (!ways.contains(path))
            ways.emplace(path, read_trajectory(path, on_vehicle ? plain : flags.how.options()));
    }
    return ways;
}

/// Nothing, or what single precision makes of coordinates in the world, which KITTI files have if they are
/// asked to.
std::optional<std::string> rounding_of(const sim::ScenarioSensor& sensor, const Trajectory& way) {
    if (sensor.output.format != "kitti" || sensor.output.frame != "world") return std::nullopt;
    float most_m = 0;
    for (const StampedPose& pose : way.poses())
        most_m = std::max(most_m, static_cast<float>(length(pose.world_from_body.translation)));
    constexpr float kFine_m = 0.002f;
    const float step_m = std::nextafter(most_m, std::numeric_limits<float>::infinity()) - most_m;
    if (step_m < kFine_m) return std::nullopt;
    return "KITTI files have coordinates in single precision, which in the world is " +
           format_number(static_cast<double>(step_m)) +
           " m here: take --frame sensor, whose poses.txt has the rest, or another format";
}

/// How near the vehicles come to the city and to everything else, in steps in which fast ones move by half a
/// metre.
nlohmann::json clearances(Context& context, const TileSource& city, const sim::Traffic& traffic) {
    constexpr double kLimit_m = 1, kStep_s = 0.02, kLift_m = 0.3;
    nlohmann::json all = nlohmann::json::array();
    sim::ClearanceProbe probe(city, &traffic, {.limit_m = kLimit_m});
    for (const sim::Actor& actor : traffic.actors()) {
        if (actor.vehicle == sim::kNoVehicle) continue;
        const sim::ClearanceReport r = sim::clearance_along(
            probe, sim::ClearanceBody(body_box(traffic, actor, kLift_m)),
            {actor.track.path, actor.track.begin_s, actor.track.end_s, kStep_s, actor.vehicle},
            context.cancel());
        all.push_back(clearance_json(r, kLimit_m, traffic));
        all.back()["vehicle"] = actor.name;
        const std::string line = actor.name + ": " + clearance_text(r, kLimit_m, traffic);
        if (r.touching)
            context.warn(line + ", first at " + format_number(r.touched_s.front().first) + " s");
        else
            context.say(line);
    }
    if (all.empty()) context.warn("--clearance: no vehicle of the scenario has a body");
    return all;
}

void run(Context& context, const SimulateFlags& flags) {
    sim::Scenario scenario = scenario_from(flags);
    if (!flags.snapshots.empty()) scenario.things.snapshots.push_back({flags.snapshots});
    for (sim::ScenarioSnapshots& s : scenario.things.snapshots) {
        if (s.folder.empty() && flags.city.empty())
            throw ConfigError(flags.scenario +
                              ": [[snapshots]] without a folder are those of the city, and "
                              "there is none");
        if (s.folder.empty()) s.folder = flags.city;
    }
    const auto city = open_scene({flags.city, flags.generation, flags.product, flags.region}, scenario);
    auto ways = read_ways(flags, scenario);
    const auto splines = smooth_ways(context, scenario.smooth_s, ways);
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

    sim::PreparedTraffic traffic;
    std::optional<sim::ObjectBoxes> boxes;
    if (!scenario.things.empty()) {
        std::vector<sim::SensorWay> all;
        for (const sim::ScenarioSensor& sensor : scenario.sensors)
            all.push_back({ways.at(scenario.trajectory_of(sensor)), sensor.schedule.from_s,
                           sensor.schedule.to_s, sensor.run.sensor.max_range_m,
                           sim::sweep_seconds(sensor.run.sensor)});
        trace::ResidentCity resident(*city, *backend.tracer, options.cache);
        traffic = traffic_of(scenario, all, resident, context);
        boxes.emplace(traffic.traffic, traffic.rows, traffic.frame_rows);
    }
    for (sim::ScenarioSensor& sensor : scenario.sensors) {
        const bool own_directory = scenario.sensors.size() > 1 || sensor.vehicle != sim::kNoVehicle;
        sensor.output.directory = flags.out;
        if (own_directory && !goes_into_bag(sensor)) sensor.output.directory /= sensor.name;
        sensor.output.crs = city->crs();
        sensor.output.overwrite = flags.overwrite;
        sensor.output.cancel = &context.cancel();
        sensor.output.several = sensor.run.sensor.beam.returns == sim::ReturnMode::dual;
        if (boxes) sensor.output.boxes = &*boxes;
        sensor.output.planned_scans =
            sim::scan_times(sensor.run, ways.at(scenario.trajectory_of(sensor)), sensor.schedule).size();
        if (!goes_into_bag(sensor)) sim::ScanWriter::check(sensor.output);
        sim::RunDirectory::check(sensor.output.directory, flags.overwrite);
        sim::learned_pass(sensor.run);  // a model that does not fit is refused before anything is written
    }
    std::vector<sim::BagSensor> bagged = bag_sensors(scenario, ways, splines);
    std::size_t next_bagged = 0;
    std::optional<sim::BagWriter> bag;
    if (!bagged.empty()) {
        bag.emplace(
            sim::BagOptions{flags.out, city->crs(), scenario.clock, scenario.compression, flags.overwrite},
            std::move(bagged));
        for (const std::string& note : bag->notes()) context.say(note);
    }
    const Stopwatch watch;
    Hasher digest;
    std::vector<std::string> warnings;
    nlohmann::json parts = nlohmann::json::array();
    sim::SimulationReport total;
    for (sim::ScenarioSensor& sensor : scenario.sensors) {
        options.schedule = sensor.schedule;
        if (const auto rounding = rounding_of(sensor, ways.at(scenario.trajectory_of(sensor)))) {
            warnings.push_back(name_of(sensor) + ": " + *rounding);
            context.warn(warnings.back());
        }
        std::optional<sim::ScanWriter> files;
        if (!goes_into_bag(sensor)) files.emplace(sensor.output);
        sim::ScanSink& sink = files ? *files : bag->sink(next_bagged++);
        const sim::SimulationReport report =
            sim::simulate({*city, *backend.tracer, sensor.run, ways.at(scenario.trajectory_of(sensor)),
                           options, boxes ? &traffic.traffic : nullptr, sensor.vehicle, traffic.frames},
                          sink, context.cancel(), context.progress());
        const std::string name = name_of(sensor);
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
    if (bag) bag->finish();
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
    if (boxes) result["actors"] = traffic.traffic.actors().size();
    if (flags.clearance) result["clearance"] = clearances(context, *city, traffic.traffic);
    context.result(result, flags.out + ": " + format_count(total.scans) + " scans, digest " +
                               result["digest"].get<std::string>() + "\n");
}

void add_output_flags(CLI::App& verb, SimulateFlags& f) {
    auto& output = f.one.output;
    verb.add_option("--format", output.format,
                    "las, laz (with LASlib), ply, pcd, kitti, xyz; rosbag2: one bag (MCAP) of all sensors")
        ->check(CLI::IsMember({"las", "laz", "ply", "pcd", "kitti", "xyz", "rosbag2"}))
        ->capture_default_str();
    verb.add_option("--frame", output.frame,
                    "coordinates: world, sensor (at the beginning of the scan), firing (of the sensor at the "
                    "time of each "
                    "pulse: not compensated for motion), auto: sensor for kitti and pcd")
        ->check(CLI::IsMember({"auto", "world", "sensor", "firing"}))
        ->capture_default_str();
    verb.add_option(
            "--points", output.points,
            "rosbag2: fields of the points: velodyne, ouster, ouster-u8, autoware, livox (CustomMsg), full; "
            "docs/ros.md says who reads which")
        ->check(CLI::IsMember({"velodyne", "ouster", "ouster-u8", "autoware", "livox", "full"}))
        ->capture_default_str();
    verb.add_option("--clock", f.clock,
                    "rosbag2: what the times of the trajectory are: unix, gps, gps-adjusted, gps-week:N; "
                    "unknown: the "
                    "bag begins at 0 s")
        ->capture_default_str();
    verb.add_option("--smooth", f.smooth_s,
                    "the vehicle moves along a twice differentiable spline with a knot every so many seconds "
                    "(0.1 without "
                    "a number); rosbag2 then has an IMU on the same path")
        ->expected(0, 1)
        ->default_str("0.1")
        ->check(in_range(sim::kSmooth_s))
        ->type_name("S");
    verb.add_option("--compression", f.compression, "rosbag2: none, or zstd")
        ->check(CLI::IsMember({"none", "zstd"}))
        ->capture_default_str();
    verb.add_flag("--keep-misses", output.keep_all, "write rays without return too, with their status");
    verb.add_flag(
        "--recorded", output.recorded,
        "las, ply, pcd, xyz: also the intensity, range and incidence with which surfaces were recorded");
    verb.add_flag("--accumulate", output.accumulate, "also write all returns into one cloud");
    verb.add_option(
            "--decimate", f.decimate,
            "with --accumulate, ply or xyz: one return stays in each cube of this size, e.g. 1mm; the same "
            "ones for any order of scans")
        ->type_name("LENGTH");
    verb.add_flag("--no-scans", f.no_scans, "no files for single scans");
    verb.add_flag("--overwrite", f.overwrite, "replace the scans of another run in that directory");
}

void add_sensor_flags(CLI::App& verb, SimulateFlags& f) {
    verb.add_option("--sensor", f.sensor, "a name of `citysplat sensors`, or a TOML file")
        ->capture_default_str();
    verb.add_option("--model", f.model,
                    "what learn-sensor found out about the sensor: ray drop, own car, intensity")
        ->type_name("FILE");
    verb.add_flag(
        "--intensity-noise", f.intensity_noise,
        "intensities scatter around what the model says, as real ones did; its bright tail comes back");
    verb.add_flag("--likely-drops", f.likely_drops,
                  "as many returns are lost, but the most likely ones instead of drawn ones: nearest to the "
                  "real scans ray by ray, too regular as a whole");
    verb.add_option("--most-lost", f.most_lost_percent,
                    "likely drops, as many as cost this share of the returns that the real sensor had")
        ->check(in_range(sim::Sensor::kMostLost_percent))
        ->type_name("PERCENT");
    verb.add_option("--returns", f.returns,
                    "pulses as wide as the sensor file says, and which of their echoes are reported: first, "
                    "strongest, last, dual; line: no width (default: as the file says, or line)")
        ->check(CLI::IsMember({"line", "first", "strongest", "last", "dual"}));
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

/// What a scenario calls what the flags of a sensor say.
constexpr std::pair<const char*, const char*> kScenarioKeys[]{
    {"--sensor", "sensor of a [[sensor]]"},
    {"--model", "model of a [[sensor]]"},
    {"--intensity-noise", "intensity_noise of a [[sensor]]"},
    {"--likely-drops", "likely_drops of a [[sensor]]"},
    {"--most-lost", "most_lost_percent of a [[sensor]]"},
    {"--returns", "returns of a [[sensor]]"},
    {"--mount", "mount_m of a [[sensor]]"},
    {"--mount-angles", "mount_deg of a [[sensor]]"},
    {"--offset", "mount_m of a [[sensor]]"},
    {"--rate", "rate_hz of a [[sensor]]"},
    {"--from", "from_s"},
    {"--to", "to_s"},
    {"--hits", "hits of a [[sensor]]"},
    {"--gap", "gap_m of a [[sensor]]"},
    {"--noise", "noise of a [[sensor]]"},
    {"--seed", "seed"},
    {"--format", "format of a [[sensor]]"},
    {"--frame", "frame of a [[sensor]]"},
    {"--points", "points of a [[sensor]]"},
    {"--clock", "clock"},
    {"--smooth", "smooth_s"},
    {"--compression", "compression"},
    {"--keep-misses", "keep_misses of a [[sensor]]"},
    {"--recorded", "recorded of a [[sensor]]"},
    {"--accumulate", "accumulate of a [[sensor]]"},
    {"--decimate", "decimate of a [[sensor]]"},
    {"--no-scans", "scans of a [[sensor]]"},
};

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
    auto flags = std::make_shared<SimulateFlags>();
    SimulateFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand("simulate", "drive a simulated LiDAR through a city");
    verb.fallthrough();
    verb.add_option("city", f.city,
                    "directory of the city; none: the scenario's own things are all there is");
    const CLI::Option* trajectory =
        verb.add_option("--trajectory", f.trajectory, "poses of the vehicle: TUM, KITTI, CSV or SBET");
    verb.add_option("--out", f.out, "directory for the scans")->required();
    verb.add_option("--scenario", f.scenario,
                    "several sensors, vehicles and things that move from a TOML file, which says all that "
                    "the flags of a sensor say; they are refused beside it");
    verb.add_option("--snapshots", f.snapshots,
                    "plays recorded frames of what moved: a folder that `snapshots` made, or its city")
        ->type_name("DIR");
    verb.add_flag("--clearance", f.clearance, "also say how near the scenario's vehicles come to anything");
    f.how.add_to(verb);
    add_sensor_flags(verb, f);
    add_output_flags(verb, f);
    f.of_one_sensor.emplace_back(trajectory, "trajectory");
    for (const auto& [flag, key] : kScenarioKeys) f.of_one_sensor.emplace_back(verb.get_option(flag), key);
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
    f.generation.add_to(verb);
    f.product.add_to(verb);
    f.region.add_to(verb, "what stands");
    verb.footer(
        "Example: citysplat simulate city --sensor hdl-64e --trajectory drive/trajectory.tum --out scans\n"
        "         citysplat simulate city --sensor vlp-16 --offset 0,0,-0.5 --hits 1 --format las \\\n"
        "             --trajectory drive/trajectory.tum --from 10 --to 20 --out scans");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
