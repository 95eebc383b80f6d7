#include "citysplat/context.hpp"
#include "citysplat/drive_report.hpp"
#include "citysplat/file_report.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/trajectory_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <tuple>

namespace citysplat::cli {

namespace {

struct Options {
    std::vector<std::string> inputs;
    std::string classes;
    bool header_only = false, list_scans = false;
    InputFlags flags;
    std::string trajectory;
    TrajectoryFlags trajectory_flags;
};

/// How files are looked at.
struct Look {
    ReadOptions read;
    bool header_only;
    const ClassMaps& maps;
    const std::optional<Trajectory>& trajectory;
};

/// Opens a file and, unless the header is enough, reads it.
FileReport look_at(const InputSource& source, const Look& look, const CancelToken& cancel) {
    const auto file = source.open(look.read);
    const auto& trajectory = look.trajectory;
    FileReport report{source.path.string(),
                      std::filesystem::file_size(source.path),
                      look.maps.of(file->info()),
                      file->info(),
                      {},
                      !look.header_only};
    if (report.info.points == 0) report.info.notes.push_back("the file holds no points");
    const Contents& c = report.contents;
    if (report.read) report.contents = read_contents(*file, trajectory ? &*trajectory : nullptr, cancel);
    note_other_bounds(report);
    note_far_points(report);
    if (c.not_covered > 0)
        report.info.notes.push_back(
            not_covered_text({c.not_covered, c.points, c.time_begin_s, c.time_end_s}, *trajectory));
    return report;
}

/// Files are looked at side by side; the reports keep their order. What cannot be read becomes an error,
/// unless it is the only one.
struct Looks {
    std::vector<FileReport> reports;
    std::vector<std::string> errors;
};
Looks look_at_all(const std::vector<InputSource>& sources, const Look& look, Context& context) {
    Looks all;
    std::vector<std::optional<FileReport>> looks(sources.size());
    std::vector<std::exception_ptr> failures(sources.size());
    {
        Progress::Stage stage(context.progress(), "reading", sources.size(), "files");
        parallel_tasks(sources.size(), [&](std::size_t i) {
            try {
                context.cancel().check();
                isolated([&] { looks[i] = look_at(sources[i], look, context.cancel()); });
            } catch (...) {
                failures[i] = std::current_exception();
            }
            stage.advance(1);
        });
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (looks[i]) {
            all.reports.push_back(std::move(*looks[i]));
            continue;
        }
        try {
            std::rethrow_exception(failures[i]);
        } catch (const Error& e) {
            if (sources.size() == 1 || e.kind() == ErrorKind::interrupted || e.kind() == ErrorKind::usage)
                throw;
            all.errors.emplace_back(e.what());
        }
    }
    return all;
}

/// A page for each file and one for all; of many files only the latter.
std::string pages(const std::vector<FileReport>& reports, const FileReport& all, bool verbose) {
    constexpr std::size_t kMostPages = 20;
    std::string text;
    if (reports.size() <= kMostPages || verbose)
        for (const FileReport& r : reports) text += page_of(r);
    else
        text += "(with -v, a page for each file)\n";
    if (reports.size() > 1) text += page_of(all);
    return text;
}

/// The paths of the inputs, a line each: drive by drive in order of time, then what is no scan of a drive.
void list_scans(std::vector<InputSource> sources, Context& context) {
    const auto drives = drives_of(sources);
    const auto key = [&](const InputSource& s) {
        const auto drive = std::find(drives.begin(), drives.end(), s.drive) - drives.begin();
        return std::tuple(drive, s.scan ? s.scan->sweep.begin_s : 0.0, s.path.string());
    };
    std::sort(sources.begin(), sources.end(),
              [&](const InputSource& a, const InputSource& b) { return key(a) < key(b); });
    nlohmann::json paths = nlohmann::json::array();
    std::string text;
    for (const InputSource& source : sources) {
        paths.push_back(source.path.string());
        text += source.path.string() + "\n";
    }
    context.result({{"scans", paths}}, text);
}

void run(const Options& o, Context& context) {
    if (o.inputs.empty() && o.trajectory.empty())
        throw UsageError("info needs files to look at, or a --trajectory");
    o.flags.read_options();  // flags that make no sense are said before anything is read
    std::optional<Trajectory> trajectory;
    if (!o.trajectory.empty()) trajectory = read_trajectory(o.trajectory, o.trajectory_flags.options());
    std::vector<InputSource> sources;
    io::DriveOptions drives = o.flags.drive_options(!o.trajectory.empty());
    drives.own_car = drives.own_car && !o.list_scans;
    if (!o.inputs.empty()) sources = expand_inputs(o.inputs, o.flags.labels(), drives, context.cancel());
    if (o.list_scans) return list_scans(std::move(sources), context);
    if (const auto missing = missing_labels(sources)) context.warn(*missing);
    const ClassMaps maps(o.classes);
    Look look{o.flags.read_options(o.trajectory, o.trajectory_flags.options()), o.header_only, maps,
              trajectory};
    if (look.read.units == ReadOptions::Units::refuse) look.read.units = ReadOptions::Units::as_is;
    const auto [reports, errors] = look_at_all(sources, look, context);
    const FileReport all = reports.empty() ? FileReport{} : together(reports);
    nlohmann::json result = json_of(reports, all, errors);
    std::string text;
    if (const auto found = drives_of(sources); !found.empty()) {
        result["drives"] = json_of(found);
        for (const auto& drive : found) text += page_of(*drive);
    }
    if (trajectory) {
        result["trajectory"] = trajectory_json(o.trajectory, *trajectory);
        text += trajectory_page(o.trajectory, *trajectory);
    }
    context.result(result, text + pages(reports, all, context.verbose()));
    for (const auto& e : errors) context.warn(e);
    if (!errors.empty())
        throw InputError(std::to_string(errors.size()) + " of " + std::to_string(sources.size()) +
                         " files cannot be read, see above");
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
    auto* verb = app.add_subcommand(
        "info", "What is in point files: format, count, bounds, classes, coordinate system");
    verb->fallthrough();
    auto options = std::make_shared<Options>();
    verb->add_option("INPUT", options->inputs, "files, folders, patterns or @lists");
    verb->add_option("--classes", options->classes,
                     "class map that names the labels (default: asprs for LAS, semantic_kitti for KITTI)");
    verb->add_flag("--header-only", options->header_only, "do not read the points");
    verb->add_flag(
        "--list-scans", options->list_scans,
        "only the paths of the inputs, those of a drive in order of time: a @list for other verbs");
    options->flags.add_to(*verb);
    verb->add_option("--trajectory", options->trajectory,
                     "a trajectory to look at, and to hold the times against")
        ->group("Trajectory");
    options->trajectory_flags.add_to(*verb);
    verb->footer("Example: citysplat info drive/*.laz --trajectory drive/sbet.out --trajectory-epsg 2154");
    verb->callback([options, &context] { run(*options, context); });
}

}  // namespace citysplat::cli
