#include "citysplat/cast_flags.hpp"
#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/output_file.hpp"
#include "sim/learn/sensor_learner.hpp"
#include "sim/recorded/lesson.hpp"
#include "sim/recorded/ray_caster.hpp"
#include "sim/recorded/recorded_drive.hpp"
#include "sim/recorded/seen_sensor.hpp"
#include "tiling/care/own_files.hpp"
#include "tiling/store/city_reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct LearnFlags {
    std::string city, sensor, out, trajectory, resident = "2G";
    std::vector<std::string> scans;
    std::uint64_t most_rays = 4'000'000;
    InputFlags reading;
    TrajectoryFlags trajectory_reading;
    GenerationFlag generation;
    sim::CastOptions cast;
    sim::learn::LearnOptions learning;
};

/// Every how many-th scan is taken so that no more rays than that are kept.
std::size_t scan_stride(std::size_t scans, std::uint32_t rays, std::uint64_t most_rays) {
    const std::uint64_t all = std::uint64_t{scans} * rays;
    return static_cast<std::size_t>(std::max<std::uint64_t>(1, (all + most_rays - 1) / most_rays));
}

nlohmann::json to_json(const sim::learn::SensorModel& model, double seconds) {
    nlohmann::json held_out{{"rays", model.metrics.rays}};
    for_each_metric(model.metrics, [&](const char* name, double value) { held_out[name] = value; });
    return {{"sensor", model.sensor},
            {"beams", model.beams},
            {"training_rays", model.training_rays},
            {"training_digest", model.training_digest},
            {"noise_shares", {{"scan", model.noise.scan}, {"place", model.noise.place}}},
            {"held_out", held_out},
            {"seconds", seconds}};
}

std::string to_text(const sim::learn::SensorModel& model) {
    const sim::learn::DropMetrics& m = model.metrics;
    char text[1024];
    std::snprintf(text, sizeof text,
                  "learned from      %s rays\n"
                  "judged on         %s rays of later scans\n"
                  "log-loss          %.4f (a constant: %.4f), AUC %.3f, Brier %.4f\n"
                  "calibration error %.4f\n"
                  "empty rays        %.1f %% come back empty\n"
                  "real returns      %.2f %% are lost\n"
                  "returns a scan    off by %.2f %%\n"
                  "left neighbours   of lost rays are lost in %.3f, really in %.3f\n"
                  "intensity         RMSE %.4f (as recorded: %.4f)\n",
                  format_count(model.training_rays).c_str(), format_count(m.rays).c_str(), m.log_loss,
                  m.constant_loss, m.auc, m.brier, m.calibration_error, m.empty_percent, m.wrong_percent,
                  m.count_percent, m.left_model, m.left_real, m.intensity_rmse, m.recorded_rmse);
    return text;
}

/// "model.toml" → "model.sensor.toml".
std::filesystem::path sensor_file_beside(std::filesystem::path model) {
    return model.replace_extension(".sensor.toml");
}

void write_text(const std::filesystem::path& path, const std::string& text) {
    OutputFile file(path);
    file.writer().text(text);
    file.commit();
}

void run(Context& context, LearnFlags& f) {
    // Before the long work: what is wrong with it is said at once.
    std::optional<sim::Sensor> named;
    if (!f.sensor.empty()) named = sim::Sensor::load(f.sensor);
    tiling::refuse_files_of_city(f.out);
    const tiling::CityReader city(f.city, f.generation.number(f.city));
    Trajectory trajectory;
    if (!f.trajectory.empty()) trajectory = read_trajectory(f.trajectory, f.trajectory_reading.options());
    sim::RecordedDrive drive(expand_inputs(f.scans, f.reading.labels(),
                                           f.reading.drive_options(!f.trajectory.empty()), context.cancel()),
                             f.reading.read_options(f.trajectory, f.trajectory_reading.options()),
                             std::move(trajectory));
    OutputFile file(f.out);
    const Stopwatch watch;
    drive.find_beams(context.cancel());
    if (named) drive.use_beams(sim::beams_for(*named, drive.beams()));
    const std::filesystem::path sensor_file = sensor_file_beside(f.out);
    const std::string seen = named ? std::string() : sim::seen_sensor_text(drive, context.cancel());
    const sim::Sensor sensor = named ? *named : sim::Sensor::parse(seen, sensor_file.string());
    const sim::LessonMaker lessons(sensor, drive.beams());
    f.cast.reach_m = static_cast<float>(sensor.max_range_m);
    const auto tracer = trace::make_group_tracer();
    trace::ResidentCity model(city, *tracer, trace::CacheOptions{parse_bytes(f.resident, "--resident")});
    sim::learn::LearningSet set(sensor);
    const std::size_t stride = scan_stride(drive.sources().size(), lessons.grid().rays(), f.most_rays);
    {
        Progress::Stage stage(context.progress(), "cast real rays", drive.sources().size(), "files");
        for (std::size_t i = 0; i < drive.sources().size(); i += stride) {
            drive.read(i, context.cancel(), [&](const RecordedScan& scan) {
                set.add(lessons.lesson(scan, sim::cast_again(scan.rays, f.cast, model, context.cancel())));
            });
            stage.advance(std::min(stride, drive.sources().size() - i));
        }
    }
    const sim::learn::SensorModel learned =
        sim::learn::learn_sensor(set, sensor, f.learning, context.cancel(), context.progress());
    file.writer().text(learned.text());
    if (!named) write_text(sensor_file, seen);
    file.commit();
    nlohmann::json result = to_json(learned, watch.seconds());
    result["scans"] = set.scans();
    result["file"] = f.out;
    std::string text = to_text(learned);
    if (!named) {
        result["sensor_file"] = sensor_file.string();
        text += "the sensor as the scans show it is in " + sensor_file.string() + "\n";
    }
    context.result(result, text);
}

}  // namespace

void add_learn_sensor(CLI::App& app, Context& context) {
    auto flags = std::make_shared<LearnFlags>();
    LearnFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand(
        "learn-sensor", "learn from real scans which returns a sensor loses, and how bright it sees them");
    verb.fallthrough();
    verb.add_option("city", f.city, "directory of the city")->required();
    verb.add_option("--scans", f.scans, "real scans of the sensor in that city, in order of time")
        ->required()
        ->type_name("INPUT");
    verb.add_option("--trajectory", f.trajectory, "where the sensor was, by the times of the points")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--sensor", f.sensor,
                    "a name of `citysplat sensors`, or a TOML file (default: as the scans show it; it is "
                    "written beside the model, as OUT.sensor.toml)");
    verb.add_option("--out", f.out, "file of the model, for simulate --model")->required()->type_name("FILE");
    verb.add_option("--mask-below", f.learning.mask_below_deg,
                    "elevation below which the own car is looked for")
        ->check(in_range({-90, 90, "degrees"}))
        ->capture_default_str()
        ->type_name("DEG");
    verb.add_option("--train-share", f.learning.train_share,
                    "share of the scans that teach; the last ones judge")
        ->check(in_range({0.1, 0.95}))
        ->capture_default_str()
        ->type_name("SHARE");
    verb.add_option("--effort", f.learning.effort, "how long networks are trained; less is quicker and worse")
        ->check(in_range({0.01, 100}))
        ->capture_default_str()
        ->type_name("FACTOR");
    verb.add_option("--most-rays", f.most_rays,
                    "rays that are kept, at 130 bytes each; scans are left out evenly")
        ->check(whole_from(std::uint64_t{10'000}, std::uint64_t{100'000'000}))
        ->capture_default_str()
        ->type_name("N");
    add_cast_flags(verb, f.cast);
    verb.add_option("--resident", f.resident, "memory for tiles")->capture_default_str()->type_name("SIZE");
    f.reading.add_to(verb);
    f.trajectory_reading.add_to(verb);
    f.generation.add_to(verb);
    verb.footer(
        "Example: citysplat learn-sensor city --scans 'left-out/*.ply' --trajectory poses.tum \\\n"
        "             --sensor hdl-64e --out model.toml\n"
        "         citysplat simulate city --sensor hdl-64e --model model.toml \\\n"
        "             --trajectory poses.tum --out scans");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
