#include "sim/drive/scenario.hpp"

#include "core/file.hpp"
#include "core/toml_section.hpp"

#include <set>

namespace citysplat::sim {

Pose mount_from(const std::vector<double>& lever_m, const std::vector<double>& yaw_pitch_roll_deg,
                const std::string& what) {
    Pose pose;
    if (!lever_m.empty()) {
        if (lever_m.size() != 3) throw UsageError(what + ": a position has three numbers");
        pose.translation = {lever_m[0], lever_m[1], lever_m[2]};
    }
    if (!yaw_pitch_roll_deg.empty()) {
        if (yaw_pitch_roll_deg.size() != 3) throw UsageError(what + ": angles are yaw, pitch and roll");
        pose.rotation = from_yaw_pitch_roll(yaw_pitch_roll_deg[0] * exact::kRadPerDegree,
                                            yaw_pitch_roll_deg[1] * exact::kRadPerDegree,
                                            yaw_pitch_roll_deg[2] * exact::kRadPerDegree);
    }
    return pose;
}

namespace {

ScenarioSensor read_sensor(Section& s, const std::filesystem::path& directory, std::uint64_t seed,
                           std::uint64_t stream) {
    ScenarioSensor result;
    const std::string sensor = s.text("sensor");
    const bool is_file = sensor.ends_with(".toml");
    result.run.sensor = Sensor::load(is_file ? (directory / sensor).string() : sensor);
    if (s.has("model")) result.run.sensor.model = directory / s.text("model");
    result.run.sensor.intensity_noise = s.flag("intensity_noise", result.run.sensor.intensity_noise);
    result.run.sensor.likely_drops = s.flag("likely_drops", result.run.sensor.likely_drops);
    if (s.has("most_lost_percent"))
        result.run.sensor.most_lost_percent = s.number("most_lost_percent", Sensor::kMostLost_percent);
    if (s.has("returns")) result.run.sensor.beam.set_returns(s.text("returns"), s.where());
    result.name = s.text("name", result.run.sensor.id);
    if (result.name.empty() || result.name.find('/') != std::string::npos || result.name[0] == '.')
        s.fail("name", "is a directory below the output and may not contain '/' nor begin with '.'");
    result.run.body_from_sensor = mount_from(s.numbers("mount_m", ranges::kLever_m),
                                             s.numbers("mount_deg", ranges::kAngle_deg), s.where());
    result.run.seed = seed;
    result.run.stream = stream;
    result.run.noise = s.flag("noise", true);
    result.run.hits = static_cast<std::uint32_t>(s.whole("hits", 1, trace::kMaxHits, double{kUsualHits}));
    result.run.gap_m = static_cast<float>(s.number("gap_m", ranges::kGap_m, double{kUsualGap_m}));
    result.schedule.rate_hz = s.number("rate_hz", ranges::kScanRate_hz, 0.0);
    result.output.format = s.text("format", "kitti");
    result.output.frame = s.text("frame", "auto");
    result.output.points = s.text("points", result.output.points);
    result.output.keep_all = s.flag("keep_misses", false);
    result.output.recorded = s.flag("recorded", false);
    result.output.accumulate = s.flag("accumulate", false);
    if (s.has("decimate"))
        result.output.decimate_m = parse_length(s.text("decimate"), s.where() + ": decimate");
    result.output.scans = s.flag("scans", true);
    s.finish();
    return result;
}

}  // namespace

Scenario Scenario::load(const std::filesystem::path& path, Ways ways) {
    const toml::table table = parse_toml(read_text_file(path), path.string());
    Section root(table, path.string());
    const auto directory = path.parent_path();
    Scenario scenario;
    if (root.has("trajectory")) scenario.trajectory = directory / root.text("trajectory");
    const std::uint64_t seed = root.whole("seed", 0, std::uint64_t{1} << 53, 1.0);
    Schedule schedule;
    schedule.from_s = root.number("from_s", ranges::kTime_s, schedule.from_s);
    schedule.to_s = root.number("to_s", ranges::kTime_s, schedule.to_s);
    scenario.classes = root.text("classes", "");
    if (scenario.classes.ends_with(".toml")) scenario.classes = (directory / scenario.classes).string();
    scenario.smooth_s = root.number("smooth_s", kSmooth_s, scenario.smooth_s);
    scenario.clock = root.text("clock", scenario.clock);
    scenario.compression = root.text("compression", scenario.compression);
    std::set<std::string> names;
    const auto add = [&](Section& section, std::uint32_t vehicle, const std::string& folder) {
        ScenarioSensor sensor = read_sensor(section, directory, seed, scenario.sensors.size());
        sensor.name = folder + sensor.name;
        sensor.vehicle = vehicle;
        sensor.schedule.from_s = schedule.from_s;
        sensor.schedule.to_s = schedule.to_s;
        if (!names.insert(sensor.name).second)
            throw ConfigError(path.string() + ": two sensors are named \"" + sensor.name + "\"");
        scenario.sensors.push_back(std::move(sensor));
    };
    for (Section& section : root.sections("sensor")) add(section, kNoVehicle, "");
    if (!scenario.sensors.empty() && scenario.trajectory.empty() && ways == Ways::known)
        root.fail("trajectory", "is missing: a [[sensor]] that is on no [[vehicle]] needs it");
    for (Section& section : root.sections("vehicle")) {
        const auto number = static_cast<std::uint32_t>(scenario.things.vehicles.size());
        scenario.things.vehicles.push_back(read_vehicle(section, directory));
        if (scenario.things.vehicles.back().trajectory.empty() && ways == Ways::known)
            section.fail("trajectory", "is missing: only a session can do without it");
        for (Section& sensor : section.sections("sensor"))
            add(sensor, number, scenario.things.vehicles.back().name + "/");
        section.finish();
    }
    read_things(root, directory, scenario.things);
    scenario.things.seed = seed;
    root.finish();
    if (scenario.sensors.empty()) throw ConfigError(path.string() + ": no [[sensor]]");
    check_things(scenario.things, path.string());
    return scenario;
}

}  // namespace citysplat::sim
