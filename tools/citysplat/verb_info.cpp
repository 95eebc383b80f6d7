#include "citysplat/context.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/trajectory_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/lattice.hpp"
#include "core/parallel.hpp"
#include "model/class_map.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <memory>

namespace citysplat::cli {

namespace {

/// What the points themselves say; sums and extrema, so that threads may add in any order.
struct Contents {
    std::uint64_t points = 0, no_return = 0, damaged = 0, withheld = 0;
    std::uint64_t not_covered = 0;  ///< with a time that the trajectory does not have
    std::map<std::uint16_t, std::uint64_t> classes;
    Vec3d min{1e300, 1e300, 1e300}, max{-1e300, -1e300, -1e300};
    double time_begin_s = 1e300, time_end_s = -1e300;
    std::uint16_t intensity_min = 65535, intensity_max = 0;

    void add(const PointBatch& b, const Trajectory* trajectory) {
        points += b.size();
        no_return += b.no_return;
        damaged += b.damaged;
        for (std::size_t i = 0; i < b.size(); ++i) {
            min = {std::min(min.x, b.x[i]), std::min(min.y, b.y[i]), std::min(min.z, b.z[i])};
            max = {std::max(max.x, b.x[i]), std::max(max.y, b.y[i]), std::max(max.z, b.z[i])};
        }
        for (const double t : b.gps_time)
            time_begin_s = std::min(time_begin_s, t), time_end_s = std::max(time_end_s, t);
        if (trajectory)
            for (const double t : b.gps_time) not_covered += !trajectory->covers(t);
        for (const auto v : b.intensity)
            intensity_min = std::min(intensity_min, v), intensity_max = std::max(intensity_max, v);
        for (const auto v : b.withheld) withheld += v;
        add_labels(b.label);
    }

    void add(const Contents& o) {
        points += o.points, no_return += o.no_return, damaged += o.damaged, withheld += o.withheld;
        not_covered += o.not_covered;
        min = {std::min(min.x, o.min.x), std::min(min.y, o.min.y), std::min(min.z, o.min.z)};
        max = {std::max(max.x, o.max.x), std::max(max.y, o.max.y), std::max(max.z, o.max.z)};
        time_begin_s = std::min(time_begin_s, o.time_begin_s),
        time_end_s = std::max(time_end_s, o.time_end_s);
        intensity_min = std::min(intensity_min, o.intensity_min);
        intensity_max = std::max(intensity_max, o.intensity_max);
        for (const auto& [label, count] : o.classes) classes[label] += count;
    }

  private:
    void add_labels(const std::vector<std::uint16_t>& labels) {
        for (std::size_t i = 0; i < labels.size();) {  // labels come in runs
            std::size_t end = i + 1;
            while (end < labels.size() && labels[end] == labels[i]) ++end;
            classes[labels[i]] += end - i;
            i = end;
        }
    }
};

Contents read_contents(const PointFile& file, const Trajectory* trajectory, const CancelToken& cancel) {
    tbb::enumerable_thread_specific<std::pair<Contents, PointBatch>> locals;
    parallel_ranges(file.block_count(), 1, [&](std::size_t begin, std::size_t end) {
        auto& [contents, batch] = locals.local();
        for (std::size_t i = begin; i < end; ++i) {
            cancel.check();
            file.read_block(i, batch);
            contents.add(batch, trajectory);
        }
    });
    Contents all;
    for (const auto& [contents, batch] : locals) all.add(contents);
    return all;
}

nlohmann::json vector_json(Vec3d v) { return {v.x, v.y, v.z}; }

/// The map the user names, or the usual one of the format.
class ClassMaps {
  public:
    explicit ClassMaps(const std::string& wanted) {
        if (!wanted.empty()) wanted_ = ClassMap::load(wanted);
    }
    const ClassMap* of(const PointFileInfo& info) const {
        if (wanted_) return &*wanted_;
        if (info.format.starts_with("LA")) return &asprs_;
        return info.format.starts_with("KITTI") ? &kitti_ : &none_;
    }

  private:
    std::optional<ClassMap> wanted_;
    ClassMap asprs_ = ClassMap::load("asprs"), kitti_ = ClassMap::load("semantic_kitti"), none_;
};

/// Of one file, or of several taken together.
struct FileReport {
    std::string name;
    std::uint64_t bytes = 0;
    const ClassMap* map = nullptr;  ///< belongs to ClassMaps
    PointFileInfo info;
    Contents contents;
    bool read = false;
};

/// The bounds of the points where they were read, of the header otherwise.
std::optional<Bounds> bounds_of(const FileReport& r) {
    if (r.read && r.contents.points) return Bounds{r.contents.min, r.contents.max};
    if (r.info.bounds_known) return r.info.bounds;
    return std::nullopt;
}

std::uint64_t points_of(const FileReport& r) { return r.read ? r.contents.points : r.info.points; }

nlohmann::json bounds_json(const FileReport& r) {
    const auto b = bounds_of(r);
    if (!b) return nullptr;
    return {{"min", vector_json(b->min)}, {"max", vector_json(b->max)}};
}

void add_classes(nlohmann::json& j, const Contents& contents, const ClassMap& map) {
    j["classes"] = j["class_names"] = nlohmann::json::object();
    for (const auto& [label, count] : contents.classes) {
        j["classes"][std::to_string(label)] = count;
        if (!map.classes().empty()) j["class_names"][std::to_string(label)] = map.at(label).name;
    }
}

nlohmann::json to_json(const FileReport& r) {
    nlohmann::json j{{"file", r.name},
                     {"format", r.info.format},
                     {"bytes", r.bytes},
                     {"made_by", r.info.made_by},
                     {"points", points_of(r)},
                     {"crs", r.info.crs},
                     {"crs_name", r.info.crs_name},
                     {"unit", r.info.unit},
                     {"metres_per_unit", r.info.metres_per_unit},
                     {"columns", r.info.columns},
                     {"has_gps_time", r.info.has_gps_time},
                     {"has_intensity", r.info.has_intensity},
                     {"has_label", r.info.has_label},
                     {"has_sensor", r.info.has_sensor},
                     {"has_instance", r.info.has_instance},
                     {"points_lost", r.info.points_lost + r.contents.damaged},
                     {"no_return", r.contents.no_return},
                     {"withheld", r.contents.withheld},
                     {"notes", r.info.notes}};
    j["bounds"] = bounds_json(r);
    add_classes(j, r.contents, *r.map);
    if (r.contents.time_begin_s <= r.contents.time_end_s) {
        j["gps_time"] = {r.contents.time_begin_s, r.contents.time_end_s};
        constexpr const char* kKinds[]{"unknown", "week_seconds", "adjusted_standard"};
        j["points_not_covered"] = r.contents.not_covered;
        j["gps_time_kind"] = kKinds[static_cast<std::size_t>(r.info.time_kind)];
    }
    return j;
}

std::string fixed(double v, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, std::fabs(v) < 1e15 ? "%.*f" : "%.*g", decimals, v);
    return text;
}

/// A value of several lines goes on below itself.
void line(std::string& out, std::string_view name, const std::string& value) {
    constexpr std::size_t kWidth = 14;
    out += "  " + std::string(name) + std::string(name.size() < kWidth ? kWidth - name.size() : 1, ' ');
    for (const char c : value) out += c == '\n' ? "\n  " + std::string(kWidth, ' ') : std::string(1, c);
    out += "\n";
}

std::string yes_no(std::initializer_list<std::pair<const char*, bool>> columns) {
    std::string have;
    for (const auto& [name, there] : columns)
        if (there) have += (have.empty() ? "" : ", ") + std::string(name);
    return have.empty() ? "positions only" : have;
}

/// ", from Tuesday 10:15:30", or ", from 2024-05-02 10:15:30 GPS": GPS clocks know no leap seconds.
std::string clock_text(PointFileInfo::TimeKind kind, double seconds) {
    using Kind = PointFileInfo::TimeKind;
    constexpr double kDay_s = 86400, kAdjusted_s = 1e9;
    if (kind == Kind::adjusted_standard) seconds += kAdjusted_s;
    const bool sensible = kind == Kind::adjusted_standard ? seconds < 1e10 : seconds < 7 * kDay_s;
    if (kind == Kind::unknown || !(seconds >= 0) || !sensible) return "";
    const int day = static_cast<int>(seconds / kDay_s), second = static_cast<int>(seconds - day * kDay_s);
    char text[80];
    if (kind == Kind::week_seconds) {
        constexpr const char* kDays[]{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
        std::snprintf(text, sizeof text, ", seconds of a week, from %s %02d:%02d:%02d", kDays[day],
                      second / 3600, second / 60 % 60, second % 60);
    } else {
        using namespace std::chrono;
        const year_month_day date{sys_days{year{1980} / January / 6} + days{day}};
        std::snprintf(text, sizeof text, ", from %d-%02u-%02u %02d:%02d:%02d GPS", int{date.year()},
                      unsigned{date.month()}, unsigned{date.day()}, second / 3600, second / 60 % 60,
                      second % 60);
    }
    return text;
}

void add_extent(std::string& out, const FileReport& r) {
    const auto b = bounds_of(r);
    if (!b) return;
    const Vec3d size = b->max - b->min;
    const double unit = r.info.metres_per_unit;
    const int decimals = unit == 0 ? 7 : 3;
    const auto axis = [&out](std::string_view name, double low, double high, int digits) {
        line(out, name,
             fixed(low, digits) + " to " + fixed(high, digits) + "  (" + fixed(high - low, digits) + ")");
    };
    axis("x", b->min.x, b->max.x, decimals);
    axis("y", b->min.y, b->max.y, decimals);
    axis("z", b->min.z, b->max.z, 3);
    const double area = size.x * size.y * unit * unit;
    if (area > 0 && r.contents.points)
        line(out, "density",
             fixed(static_cast<double>(r.contents.points) / area, 1) + " points per m² of the bounding box");
}

std::string page(const FileReport& r) {
    const PointFileInfo& i = r.info;
    const Contents& c = r.contents;
    std::string out = r.name + "\n";
    line(out, "format", i.format);
    line(out, "size", format_bytes(r.bytes));
    if (!i.made_by.empty()) line(out, "made by", i.made_by);
    line(out, "points", format_count(points_of(r)));
    if (const std::uint64_t lost = i.points_lost + c.damaged)
        line(out, "lost", format_count(lost) + " damaged or missing points");
    if (c.no_return) line(out, "no return", format_count(c.no_return) + " records without a position");
    if (c.withheld) line(out, "withheld", format_count(c.withheld) + " points marked as deleted");
    line(out, "system",
         i.crs.empty()        ? "not stated in the file"
         : i.crs_name.empty() ? i.crs.substr(0, 70)
                              : i.crs_name);
    line(out, "unit", i.unit == "metre" && i.crs.empty() ? "metre (assumed)" : i.unit);
    add_extent(out, r);
    if (c.time_begin_s <= c.time_end_s)
        line(out, "GPS time",
             fixed(c.time_begin_s, 3) + " to " + fixed(c.time_end_s, 3) + "  (" +
                 fixed(c.time_end_s - c.time_begin_s, 3) + " s" + clock_text(i.time_kind, c.time_begin_s) +
                 ")");
    if (i.has_intensity && c.points)
        line(out, "intensity",
             std::to_string(c.intensity_min) + " to " + std::to_string(c.intensity_max) + " of 65535");
    line(out, "has",
         yes_no({{"GPS time", i.has_gps_time},
                 {"intensity", i.has_intensity},
                 {"classes", i.has_label},
                 {"instances", i.has_instance},
                 {"sensor positions", i.has_sensor}}));
    std::string columns;
    for (const auto& name : i.columns) columns += (columns.empty() ? "" : " ") + name;
    if (!columns.empty()) line(out, "columns", columns);
    const bool named = !r.map->classes().empty();
    for (const auto& [label, count] : c.classes)
        line(out, "class " + std::to_string(label),
             format_count(count) + "  (" +
                 fixed(100 * static_cast<double>(count) / static_cast<double>(c.points), 1) + " %)" +
                 (named ? "  " + r.map->at(label).name : ""));
    if (!named && !c.classes.empty()) line(out, "note", "--classes says what the classes are called");
    for (const auto& note : i.notes) line(out, "note", note);
    return out;
}

/// How many files say what.
class Tally {
  public:
    void add(const std::string& what) { ++counts_[what]; }
    bool agree() const { return counts_.size() <= 1; }

    /// What all of them say, or a line for each of the most frequent: "LAS 1.2 (3 files)".
    std::string text(const std::string& of_empty) const {
        if (agree()) return counts_.empty() ? "" : counts_.begin()->first;
        constexpr std::size_t kMostLines = 8;
        std::vector<std::pair<std::string, std::uint64_t>> sorted(counts_.begin(), counts_.end());
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        std::string out;
        for (std::size_t i = 0; i < sorted.size() && i < kMostLines; ++i)
            out += (i ? "\n" : "") + (sorted[i].first.empty() ? of_empty : sorted[i].first) + " (" +
                   files_text(sorted[i].second) + ")";
        if (sorted.size() > kMostLines)
            out += "\nand " + std::to_string(sorted.size() - kMostLines) + " others";
        return out;
    }

    static std::string files_text(std::uint64_t n) { return format_count(n) + (n == 1 ? " file" : " files"); }

  private:
    std::map<std::string, std::uint64_t> counts_;
};

/// Several files taken together, their points as if only headers had been read. Requires at least one.
FileReport together(const std::vector<FileReport>& reports) {
    FileReport all{
        "together: " + Tally::files_text(reports.size()), 0, reports[0].map, reports[0].info, {}, false};
    Tally formats, makers, systems, units, notes;
    std::optional<Bounds> bounds;
    PointFileInfo& info = all.info;
    info.points = info.points_lost = 0;
    for (const FileReport& r : reports) {
        const PointFileInfo& own = r.info;
        formats.add(own.format), makers.add(own.made_by), units.add(own.unit);
        systems.add(own.crs_name.empty() ? own.crs.substr(0, 70) : own.crs_name);
        for (const std::string& note : own.notes) notes.add(note);
        if (const auto b = bounds_of(r)) {
            if (!bounds) bounds = b;
            bounds->min = {std::min(bounds->min.x, b->min.x), std::min(bounds->min.y, b->min.y),
                           std::min(bounds->min.z, b->min.z)};
            bounds->max = {std::max(bounds->max.x, b->max.x), std::max(bounds->max.y, b->max.y),
                           std::max(bounds->max.z, b->max.z)};
        }
        all.bytes += r.bytes;
        all.contents.add(r.contents);
        info.points += points_of(r);
        info.points_lost += own.points_lost;
        info.has_gps_time |= own.has_gps_time, info.has_intensity |= own.has_intensity;
        info.has_label |= own.has_label, info.has_instance |= own.has_instance;
        info.has_sensor |= own.has_sensor;
        if (own.time_kind != info.time_kind) info.time_kind = PointFileInfo::TimeKind::unknown;
    }
    const bool one_system = systems.agree() && units.agree();
    info.bounds_known = one_system && bounds;
    if (info.bounds_known) info.bounds = *bounds;
    info.format = formats.text("unknown");
    info.made_by = makers.text("nobody says");
    info.unit = units.text("unknown");
    if (!systems.agree()) info.crs = info.crs_name = systems.text("not stated");
    info.columns.clear();
    info.notes.clear();
    if (!one_system) info.notes.push_back("the files are in different systems and have no common bounds");
    if (!notes.text("").empty()) info.notes.push_back(notes.text(""));
    return all;
}

/// One JSON object for all, sums on top.
nlohmann::json summary(const std::vector<FileReport>& reports, const FileReport& all,
                       const std::vector<std::string>& errors) {
    nlohmann::json files = nlohmann::json::array();
    for (const FileReport& r : reports) files.push_back(to_json(r));
    const bool one_format = all.info.format.find('\n') == std::string::npos;
    nlohmann::json j = files.size() == 1 && errors.empty() ? files[0] : nlohmann::json::object();
    j["points"] = points_of(all);
    j["points_lost"] = all.info.points_lost + all.contents.damaged;
    j["format"] = one_format ? all.info.format : "several";
    j["bounds"] = bounds_json(all);
    add_classes(j, all.contents, all.map ? *all.map : ClassMap());
    j["files"] = std::move(files);
    j["errors"] = errors;
    return j;
}

/// Other verbs refuse what lies beyond the Earth; this one shows it.
void look_for_far_points(FileReport& r) {
    const auto b = bounds_of(r);
    if (!b) return;
    const double farthest = std::max({std::fabs(b->min.x), std::fabs(b->min.y), std::fabs(b->min.z),
                                      std::fabs(b->max.x), std::fabs(b->max.y), std::fabs(b->max.z)});
    const double unit = r.info.metres_per_unit > 0 ? r.info.metres_per_unit : 1;
    if (!(farthest * unit <= kMaxWorld_m))
        r.info.notes.push_back(
            "coordinates reach " + format_number(farthest) +
            ", which is not on Earth: build refuses this file (--salvage leaves such points out)");
}

/// Headers are not always right about where the points are.
void compare_bounds(FileReport& r) {
    const Bounds& h = r.info.bounds;
    const Contents& c = r.contents;
    if (!r.info.bounds_known || c.points == 0) return;
    const double out = std::max({h.min.x - c.min.x, h.min.y - c.min.y, h.min.z - c.min.z, c.max.x - h.max.x,
                                 c.max.y - h.max.y, c.max.z - h.max.z});
    if (out > 0.01 + 1e-9 * std::fabs(c.max.y))
        r.info.notes.push_back("points reach " + fixed(out, 3) + " " + r.info.unit +
                               " beyond the bounds of the header; the bounds shown are those of the points");
}

struct Options {
    std::vector<std::string> inputs;
    std::string classes;
    bool header_only = false;
    InputFlags flags;
    std::string trajectory;
    TrajectoryFlags trajectory_flags;
};

/// Opens a file and, unless the header is enough, reads it.
FileReport look_at(const InputSource& source, const ReadOptions& read, const Options& o,
                   const ClassMaps& maps, const std::optional<Trajectory>& trajectory,
                   const CancelToken& cancel) {
    const auto file = source.open(read);
    FileReport report{source.path.string(),
                      std::filesystem::file_size(source.path),
                      maps.of(file->info()),
                      file->info(),
                      {},
                      !o.header_only};
    if (report.info.points == 0) report.info.notes.push_back("the file holds no points");
    const Contents& c = report.contents;
    if (report.read) report.contents = read_contents(*file, trajectory ? &*trajectory : nullptr, cancel);
    compare_bounds(report);
    look_for_far_points(report);
    if (c.not_covered > 0)
        report.info.notes.push_back(
            not_covered_text({c.not_covered, c.points, c.time_begin_s, c.time_end_s}, *trajectory));
    return report;
}

/// Files are looked at side by side; the reports keep their order. What cannot be read becomes an error,
/// unless it is the only one.
void look_at_all(const std::vector<InputSource>& sources, const Options& o, const ClassMaps& maps,
                 const std::optional<Trajectory>& trajectory, Context& context,
                 std::vector<FileReport>& reports, std::vector<std::string>& errors) {
    ReadOptions read = o.flags.read_options();
    if (read.units == ReadOptions::Units::refuse) read.units = ReadOptions::Units::as_is;
    std::vector<std::optional<FileReport>> looks(sources.size());
    std::vector<std::exception_ptr> failures(sources.size());
    {
        Progress::Stage stage(context.progress(), "reading", sources.size(), "files");
        parallel_tasks(sources.size(), [&](std::size_t i) {
            try {
                context.cancel().check();
                isolated(
                    [&] { looks[i] = look_at(sources[i], read, o, maps, trajectory, context.cancel()); });
            } catch (...) {
                failures[i] = std::current_exception();
            }
            stage.advance(1);
        });
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (looks[i]) {
            reports.push_back(std::move(*looks[i]));
            continue;
        }
        try {
            std::rethrow_exception(failures[i]);
        } catch (const Error& e) {
            if (sources.size() == 1 || e.kind() == ErrorKind::interrupted || e.kind() == ErrorKind::usage)
                throw;
            errors.emplace_back(e.what());
        }
    }
}

/// A page for each file and one for all; of many files only the latter.
std::string pages(const std::vector<FileReport>& reports, const FileReport& all, bool verbose) {
    constexpr std::size_t kMostPages = 20;
    std::string text;
    if (reports.size() <= kMostPages || verbose)
        for (const FileReport& r : reports) text += page(r);
    else
        text += "(with -v, a page for each file)\n";
    if (reports.size() > 1) text += page(all);
    return text;
}

void run(const Options& o, Context& context) {
    if (o.inputs.empty() && o.trajectory.empty())
        throw UsageError("info needs files to look at, or a --trajectory");
    o.flags.read_options();  // flags that make no sense are said before anything is read
    std::optional<Trajectory> trajectory;
    if (!o.trajectory.empty()) trajectory = read_trajectory(o.trajectory, o.trajectory_flags.options());
    std::vector<InputSource> sources;
    if (!o.inputs.empty()) sources = expand_inputs(o.inputs, o.flags.labels());
    if (const auto missing = missing_labels(sources)) context.warn(*missing);
    std::vector<FileReport> reports;
    std::vector<std::string> errors;
    const ClassMaps maps(o.classes);
    look_at_all(sources, o, maps, trajectory, context, reports, errors);
    const FileReport all = reports.empty() ? FileReport{} : together(reports);
    nlohmann::json result = summary(reports, all, errors);
    std::string text;
    if (trajectory) {
        result["trajectory"] = trajectory_json(o.trajectory, *trajectory);
        text = trajectory_page(o.trajectory, *trajectory);
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
    options->flags.add_to(*verb);
    verb->add_option("--trajectory", options->trajectory,
                     "a trajectory to look at, and to hold the times against")
        ->group("Trajectory");
    options->trajectory_flags.add_to(*verb);
    verb->footer("Example: citysplat info drive/*.laz --trajectory drive/sbet.out --trajectory-epsg 2154");
    verb->callback([options, &context] { run(*options, context); });
}

}  // namespace citysplat::cli
