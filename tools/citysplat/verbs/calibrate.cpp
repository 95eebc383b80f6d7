#include "citysplat/cast_flags.hpp"
#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/output_file.hpp"
#include "sim/calibrate/sensor_calibration.hpp"
#include "sim/recorded/lesson.hpp"
#include "sim/recorded/ray_caster.hpp"
#include "sim/recorded/recorded_drive.hpp"
#include "tiling/care/own_files.hpp"
#include "tiling/store/city_reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct CalibrateFlags {
    std::string city, sensor, out, trajectory, table, resident = "2G";
    std::vector<std::string> scans;
    std::uint64_t most_scans = 100;
    InputFlags reading;
    TrajectoryFlags trajectory_reading;
    GenerationFlag generation;
    sim::CastOptions cast;
};

sim::CalibratedSensor from_table(const sim::Sensor& sensor, const std::string& path) {
    sim::CalibratedSensor found;
    found.range = sim::calibrate_range(sim::read_range_table(path), sensor.error);
    return found;
}

sim::CalibratedSensor from_scans(Context& context, CalibrateFlags& f, const sim::Sensor& sensor) {
    tiling::refuse_files_of_city(f.out);
    const tiling::CityReader city(f.city, f.generation.number(f.city));
    Trajectory trajectory;
    if (!f.trajectory.empty()) trajectory = read_trajectory(f.trajectory, f.trajectory_reading.options());
    sim::RecordedDrive drive(expand_inputs(f.scans, f.reading.labels(),
                                           f.reading.drive_options(!f.trajectory.empty()), context.cancel()),
                             f.reading.read_options(f.trajectory, f.trajectory_reading.options()),
                             std::move(trajectory));
    drive.find_beams(context.cancel());
    drive.use_beams(sim::beams_for(sensor, drive.beams()));
    sim::SensorCalibration calibration(sensor, sim::match_beams(sensor, drive.beams()));
    f.cast.reach_m = static_cast<float>(sensor.max_range_m);
    const auto tracer = trace::make_group_tracer();
    trace::ResidentCity model(city, *tracer, trace::CacheOptions{parse_bytes(f.resident, "--resident")});
    const std::size_t files = drive.sources().size(),
                      stride = std::max<std::size_t>(1, (files + f.most_scans - 1) / f.most_scans);
    Progress::Stage stage(context.progress(), "cast real rays", files, "files");
    for (std::size_t i = 0; i < files; i += stride) {
        drive.read(i, context.cancel(), [&](const RecordedScan& scan) {
            calibration.add(scan, sim::cast_again(scan.rays, f.cast, model, context.cancel()));
        });
        stage.advance(std::min(stride, files - i));
    }
    return calibration.result();
}

nlohmann::json to_json(const sim::CalibratedSensor& found) {
    const auto quadratic = [](const sim::Quadratic& q) { return nlohmann::json{q.a, q.b, q.c}; };
    const sim::RangeCalibration& range = *found.range;
    nlohmann::json result{{"scans", found.scans},
                          {"ranges", range.pairs},
                          {"bias_m", quadratic(range.error.bias_m)},
                          {"sigma_m", quadratic(range.error.sigma_m)},
                          {"rmse_before_m", range.rmse_before_m},
                          {"rmse_after_m", range.rmse_after_m}};
    if (found.beams) {
        result["beams_seen"] = found.beams->beams_seen;
        result["azimuths"] = found.beams->azimuths;
        result["times"] = found.beams->times;
    }
    if (found.intensity) {
        result["incidence_power"] = found.intensity->law.incidence_power;
        result["range_power"] = found.intensity->law.range_power;
        result["gain"] = found.intensity->gain;
    }
    return result;
}

std::string to_text(const sim::CalibratedSensor& found) {
    const sim::RangeCalibration& range = *found.range;
    const sim::Quadratic &b = range.error.bias_m, &s = range.error.sigma_m;
    char text[768];
    std::snprintf(text, sizeof text,
                  "ranges    %s\n"
                  "bias      %.5f %+.3e d %+.3e d² m\n"
                  "sigma     %.5f %+.3e d %+.3e d² m\n"
                  "RMSE      %.2f mm before, %.2f mm after\n",
                  format_count(range.pairs).c_str(), b.a, b.b, b.c, s.a, s.b, s.c, 1000 * range.rmse_before_m,
                  1000 * range.rmse_after_m);
    std::string out = text;
    if (found.beams) {
        std::snprintf(text, sizeof text, "beams     %u seen; azimuths %s, firing times %s\n",
                      found.beams->beams_seen, found.beams->azimuths ? "found" : "as before",
                      found.beams->times ? "found" : "as before");
        out += text;
    }
    if (found.intensity) {
        const bool told = !found.intensity->gain.empty();
        std::snprintf(text, sizeof text, "intensity incidence power %d, range power %d%s\n",
                      found.intensity->law.incidence_power, found.intensity->law.range_power,
                      told ? ", a gain for each beam" : "");
        out += told ? text : "intensity as before: too few returns with one\n";
    }
    return out;
}

void run(Context& context, CalibrateFlags& f) {
    if (f.table.empty() == f.city.empty())
        throw UsageError("calibrate needs a city with --scans, or --table with known distances");
    if (!f.city.empty() && f.scans.empty()) throw UsageError("calibrate needs --scans of the sensor");
    const sim::Sensor sensor = sim::Sensor::load(f.sensor);
    const bool is_file = std::filesystem::exists(f.sensor);
    const std::string before = is_file ? read_text_file(f.sensor) : sim::Sensor::builtin_text(f.sensor);
    OutputFile file(f.out);  // before the work: a place that cannot be written is told at once
    const Stopwatch watch;
    const sim::CalibratedSensor found =
        f.table.empty() ? from_scans(context, f, sensor) : from_table(sensor, f.table);
    const std::string note = f.table.empty()
                                 ? "Calibrated against a city with " + std::to_string(found.scans) + " scans."
                                 : "Ranges calibrated with a table of known distances.";
    const std::string text = sim::calibrated_text(before, f.sensor, found, note);
    sim::Sensor::parse(text, f.out, std::filesystem::path(is_file ? f.sensor : f.out).parent_path());
    file.writer().text(text);
    file.commit();
    nlohmann::json result = to_json(found);
    result["file"] = f.out;
    result["seconds"] = watch.seconds();
    context.result(result, to_text(found));
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
    auto flags = std::make_shared<CalibrateFlags>();
    CalibrateFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand(
        "calibrate", "beams, range error and intensities of a real sensor, as a sensor file");
    verb.fallthrough();
    verb.add_option("city", f.city, "directory of the city that the scans were taken in");
    verb.add_option("--scans", f.scans, "real scans of the sensor")->type_name("INPUT");
    verb.add_option("--table", f.table, "known distances instead: a CSV file with true_m,measured_m")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--trajectory", f.trajectory, "where the sensor was, by the times of the points")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--sensor", f.sensor,
                    "what it is by its data sheet: a name of `citysplat sensors`, or a TOML file")
        ->required();
    verb.add_option("--out", f.out, "the sensor file to write")->required()->type_name("FILE");
    verb.add_option("--most-scans", f.most_scans, "scans that are read; more are left out evenly")
        ->check(whole_from(std::uint64_t{1}, std::uint64_t{100'000}))
        ->capture_default_str()
        ->type_name("N");
    add_cast_flags(verb, f.cast);
    verb.add_option("--resident", f.resident, "memory for tiles")->capture_default_str()->type_name("SIZE");
    f.reading.add_to(verb);
    f.trajectory_reading.add_to(verb);
    f.generation.add_to(verb);
    verb.footer(
        "Example: citysplat calibrate city --scans 'left-out/*.ply' --trajectory poses.tum \\\n"
        "             --sensor hdl-64e --out my-hdl-64e.toml\n"
        "         citysplat calibrate --table distances.csv --sensor urg-04lx --out my-urg.toml");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
