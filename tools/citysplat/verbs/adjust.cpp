#include "adjust/adjust.hpp"

#include "adjust/thickness_words.hpp"
#include "citysplat/context.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/thickness_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/output_file.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

using nlohmann::json;

struct AdjustFlags {
    std::vector<std::string> inputs;
    std::string trajectory, out;
    std::vector<std::vector<std::string>> drives;
    adjust::AdjustOptions options;
    InputFlags reading;
    TrajectoryFlags trajectory_reading;
};

/// A drive on the command line.
struct DriveArguments {
    std::string trajectory, out;
    std::vector<std::string> inputs;
};

std::vector<DriveArguments> drives_of(const AdjustFlags& flags) {
    std::vector<DriveArguments> drives;
    if (!flags.inputs.empty()) {
        if (flags.out.empty()) throw UsageError("adjust needs --out, where to write the adjusted poses");
        drives.push_back({flags.trajectory, flags.out, flags.inputs});
    } else if (!flags.trajectory.empty() || !flags.out.empty()) {
        throw UsageError("adjust needs the clouds that were seen from --trajectory");
    }
    for (const auto& words : flags.drives)
        drives.push_back({words[0] == "-" ? "" : words[0], words[1], {words.begin() + 2, words.end()}});
    if (drives.empty()) throw UsageError("adjust needs clouds and --out");
    for (const DriveArguments& drive : drives)
        if (std::error_code error;
            !drive.trajectory.empty() && std::filesystem::equivalent(drive.trajectory, drive.out, error))
            throw UsageError("--out " + drive.out +
                             " is the trajectory itself; what was measured is kept, give another name");
    return drives;
}

json to_json(const adjust::AdjustReport& r, const std::vector<DriveArguments>& arguments) {
    json drives = json::array();
    for (std::size_t d = 0; d < r.drives.size(); ++d) {
        const adjust::DriveChange& c = r.drives[d];
        drives.push_back({{"trajectory", c.name},
                          {"out", arguments[d].out},
                          {"knots", c.knots},
                          {"knots_seen", c.knots_seen},
                          {"shift_mean_m", c.mean_shift_m},
                          {"shift_max_m", c.most_shift_m},
                          {"shift_max_time_s", c.most_shift_s},
                          {"turn_mean_deg", c.mean_turn_rad * exact::kDegreesPerRad},
                          {"turn_max_deg", c.most_turn_rad * exact::kDegreesPerRad},
                          {"turn_max_time_s", c.most_turn_s},
                          {"stretch", c.stretch}});
    }
    const auto& p = r.points;
    return {{"drives", drives},
            {"knots_s", r.knots_s},
            {"points_read", p.read},
            {"points_used", p.used},
            {"points_left_out",
             {{"without_time", p.without_time},
              {"outside_trajectory", p.outside_trajectory},
              {"too_near", p.too_near},
              {"too_far", p.too_far},
              {"not_sampled", p.not_sampled},
              {"invalid", p.invalid}}},
            {"cells", r.cells.cells},
            {"cells_contradictory", r.cells.contradictory},
            {"cells_moved_on", r.cells.moved_on},
            {"observations", r.cells.observations},
            {"thickness_before", json::parse(adjust::thickness_words(r.before))},
            {"thickness_after", json::parse(adjust::thickness_words(r.after))},
            {"warnings", r.warnings},
            {"peak_rss_bytes", peak_rss_bytes()}};
}

std::string to_text(const adjust::AdjustReport& r) {
    const json before = json::parse(adjust::thickness_words(r.before)),
               after = json::parse(adjust::thickness_words(r.after));
    std::string text;
    std::array<char, 256> line{};
    for (const adjust::DriveChange& c : r.drives) {
        std::snprintf(line.data(), line.size(),
                      ": moved by %.1f cm on average, %.1f cm at most (at %.3f s); turned by %.3f deg, %.3f "
                      "deg at most (at %.3f s); %zu of %zu knots seen\n",
                      100 * c.mean_shift_m, 100 * c.most_shift_m, c.most_shift_s,
                      c.mean_turn_rad * exact::kDegreesPerRad, c.most_turn_rad * exact::kDegreesPerRad,
                      c.most_turn_s, c.knots_seen, c.knots);
        text += c.name + line.data();
    }
    return text + "before: " + thickness_text(before) + "\nafter:  " + thickness_text(after) + "\n" +
           worst_text(after);
}

void write_trajectory(const Trajectory& trajectory, const std::filesystem::path& path) {
    OutputFile file(path);
    {
        TumWriter writer(file.partial());
        for (const StampedPose& pose : trajectory.poses()) writer.write(pose);
        writer.finish();
    }
    file.commit();
}

/// The clouds of a drive with the poses they were seen from: a file's, or those of the folder they are in.
adjust::AdjustDrive open_drive(const DriveArguments& arguments, const AdjustFlags& flags,
                               const CancelToken& cancel) {
    const bool has_file = !arguments.trajectory.empty();
    const auto sources = expand_inputs(arguments.inputs, flags.reading.labels(),
                                       flags.reading.drive_options(has_file), cancel);
    adjust::AdjustDrive drive;
    if (has_file) {
        drive.name = arguments.trajectory;
        drive.given = read_trajectory(arguments.trajectory, flags.trajectory_reading.options());
    } else {
        const auto of_folders = citysplat::drives_of(sources);
        const bool all = std::all_of(sources.begin(), sources.end(),
                                     [](const InputSource& source) { return source.drive != nullptr; });
        if (of_folders.size() != 1 || !all)
            throw UsageError(
                "adjust needs --trajectory, the poses as they are: these clouds are not one drive that "
                "has its own (docs/inputs.md)");
        drive.name = of_folders[0]->folder.string();
        drive.given = of_folders[0]->trajectory;
    }
    const ReadOptions read = flags.reading.read_options();
    for (const InputSource& source : sources)
        drive.clouds.push_back([source, read] { return source.open(read); });
    return drive;
}

void run(Context& context, const AdjustFlags& flags) {
    const Stopwatch watch;
    const auto arguments = drives_of(flags);
    std::vector<adjust::AdjustDrive> drives;
    for (const DriveArguments& drive : arguments)
        drives.push_back(open_drive(drive, flags, context.cancel()));
    adjust::AdjustOptions options = flags.options;
    options.memory_bytes = context.memory_bytes();
    options.scratch = scratch_root();
    const adjust::AdjustReport report = adjust::adjust(drives, options, context.cancel(), context.progress());
    for (const std::string& line : report.warnings) context.warn(line);
    json result = to_json(report, arguments);
    result["seconds"] = watch.seconds();
    result["written"] = !report.refusal.has_value();
    if (!report.refusal)
        for (std::size_t d = 0; d < arguments.size(); ++d)
            write_trajectory(report.drives[d].adjusted, arguments[d].out);
    context.result(result, to_text(report));
    if (report.refusal) throw InputError(*report.refusal + "; nothing was written");
}

}  // namespace

void add_adjust(CLI::App& app, Context& context) {
    auto flags = std::make_shared<AdjustFlags>();
    adjust::AdjustOptions& options = flags->options;
    CLI::App& verb =
        *app.add_subcommand("adjust", "correct a trajectory so that surfaces seen several times are thin");
    verb.fallthrough();
    verb.add_option("inputs", flags->inputs, "the clouds of the drive: files, folders, patterns or @lists")
        ->type_name("INPUT");
    verb.add_option(
            "--trajectory", flags->trajectory,
            "the poses as they are (default: those of the folder that the clouds are in, if it is a drive)")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--out", flags->out, "the adjusted poses, as TUM lines")->type_name("FILE");
    verb.add_option(
            "--drive", flags->drives,
            "another drive, adjusted together with the rest: its trajectory, the file to write, its clouds; "
            "may be given several times")
        ->expected(3, 1 << 20)
        ->type_name("TRAJECTORY OUT INPUT...");
    verb.add_option("--knots", options.knots_s,
                    "least time between corrections; doubled until there are at most 8192 of them")
        ->check(in_range(adjust::AdjustOptions::kKnots_s))
        ->capture_default_str()
        ->type_name("S");
    verb.add_option("--most-shift", options.most_shift_m, "refuse to move a pose by more")
        ->check(in_range(adjust::AdjustOptions::kMostShift_m))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--most-turn", options.most_turn_deg, "refuse to turn a pose by more")
        ->check(in_range(adjust::AdjustOptions::kMostTurn_deg))
        ->capture_default_str()
        ->type_name("DEG");
    flags->reading.add_to(verb);
    verb.remove_option(verb.get_option("--adjusted"));  // the poses as given are what is adjusted
    flags->trajectory_reading.add_to(verb);
    verb.footer(
        "Example: citysplat adjust drive/*.las --trajectory drive/given.tum --out drive/adjusted.tum\n"
        "         citysplat build city drive/*.las --trajectory drive/given.tum --adjusted "
        "drive/adjusted.tum\n"
        "The points are not changed. On average over the drive(s) the trajectory stays where it was: clouds "
        "know\n"
        "nothing of a shift of everything.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
