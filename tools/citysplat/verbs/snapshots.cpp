#include "objects/snapshots.hpp"

#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "tiling/store/city_reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct SnapshotFlags {
    std::string city, trajectory;
    std::vector<std::string> inputs, classes, without;
    objects::SnapshotOptions options;
    InputFlags reading;
    TrajectoryFlags how;
    GenerationFlag generation;
};

/// Labels of the classes with these names.
std::set<std::uint16_t> labels_of(const ClassMap& classes, const std::vector<std::string>& names,
                                  const std::string& flag) {
    std::set<std::uint16_t> labels;
    for (const std::string& name : names) {
        bool known = false;
        for (const auto& [label, info] : classes.classes())
            if (lower_case(info.name) == lower_case(name)) labels.insert(label), known = true;
        if (!known)
            throw UsageError(flag + " " + name + ": the class map " + classes.name() + " has no such class");
    }
    return labels;
}

/// The dynamic classes of the city, and those that the user names.
std::set<std::uint16_t> labels_for(const ClassMap& classes, const SnapshotFlags& f) {
    std::set<std::uint16_t> labels = labels_of(classes, f.classes, "--class");
    for (const auto& [label, info] : classes.classes())
        if (info.dynamic) labels.insert(label);
    for (const std::uint16_t label : labels_of(classes, f.without, "--without")) labels.erase(label);
    return labels;
}

void run(Context& context, SnapshotFlags f) {
    const Stopwatch watch;
    const tiling::CityReader city(f.city, f.generation.number(f.city));
    objects::ScanInputs scans;
    scans.sources = expand_inputs(f.inputs, f.reading.labels(),
                                  f.reading.drive_options(!f.trajectory.empty()), context.cancel());
    scans.reading = f.reading.read_options(f.trajectory, f.how.options());
    if (!f.trajectory.empty()) scans.trajectory = read_trajectory(f.trajectory, f.how.options());
    scans.classes = city.classes();
    f.options.labels = labels_for(scans.classes, f);
    const auto folder = objects::Snapshots::folder_of(f.city);
    const objects::SnapshotReport report =
        objects::make_snapshots(folder, scans, f.options, context.cancel(), context.progress());
    if (report.frames == 0)
        context.warn("no point of a dynamic class was found: no snapshot was made (are there labels?)");
    if (report.without_sensor > 0)
        context.warn(format_count(report.without_sensor) +
                     " points were left out: nobody knows from where they were seen; give --trajectory");
    if (report.objects_uncounted > 0)
        context.warn(format_count(report.objects_uncounted) +
                     " instances are not told apart: a frame counts 255 of them");
    context.result({{"frames", report.frames},
                    {"points", report.points},
                    {"splats", report.splats},
                    {"points_without_sensor", report.without_sensor},
                    {"objects_uncounted", report.objects_uncounted},
                    {"folder", folder.string()},
                    {"seconds", watch.seconds()}},
                   folder.string() + ": " + format_count(report.frames) + " snapshots, " +
                       format_count(report.splats) + " splats, " + format_duration(watch.seconds()) + "\n");
}

}  // namespace

void add_snapshots(CLI::App& app, Context& context) {
    const auto flags = std::make_shared<SnapshotFlags>();
    SnapshotFlags& f = *flags;
    CLI::App& verb =
        *app.add_subcommand("snapshots", "what moved, scan by scan: points of dynamic classes as splats");
    verb.fallthrough();
    verb.add_option("city", f.city, "the city they belong to")->required();
    verb.add_option("inputs", f.inputs, "clouds with times and labels: files, folders, patterns or @lists")
        ->required();
    verb.add_option("--trajectory", f.trajectory, "of the sensor, for scans that do not say where it was");
    f.how.add_to(verb);
    verb.add_option("--class", f.classes, "classes to take besides the dynamic ones of the city's class map")
        ->delimiter(',')
        ->type_name("NAME");
    verb.add_option("--without", f.without,
                    "dynamic classes to leave out: what moved and is no thing, such as reflections")
        ->delimiter(',')
        ->type_name("NAME");
    verb.add_option("--period", f.options.period_s, "length of a frame of files that are not one sweep")
        ->check(in_range({0.001, 3600, "s"}))
        ->capture_default_str()
        ->type_name("S");
    f.reading.add_to(verb);
    f.generation.add_to(verb);
    verb.footer("Example: citysplat snapshots city drive --class car,bus");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
