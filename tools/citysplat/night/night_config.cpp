#include "citysplat/night/night_config.hpp"

#include "citysplat/building/work_report.hpp"
#include "core/file.hpp"
#include "core/toml_section.hpp"

#include <limits>

namespace citysplat::cli {

namespace {

using Words = std::vector<std::string>;

/// A key of a table that is a flag of a verb.
class Flags {
  public:
    Flags(Section& section, Words& words) : section_(section), words_(words) {}

    void text(const char* key, const char* flag) const {
        if (section_.has(key)) add(flag, section_.text(key));
    }
    void number(const char* key, const char* flag, const NumberRange& range) const {
        if (section_.has(key)) add(flag, format_number(section_.number(key, range)));
    }
    void whole(const char* key, const char* flag) const {
        if (section_.has(key)) add(flag, std::to_string(section_.whole(key, 0, 1'000'000'000)));
    }
    /// A flag without a value.
    bool yes(const char* key, const char* flag) const {
        const bool wanted = section_.flag(key, false);
        if (wanted) words_.emplace_back(flag);
        return wanted;
    }

  private:
    void add(const char* flag, const std::string& value) const {
        words_.emplace_back(flag);
        words_.push_back(value);
    }
    Section& section_;
    Words& words_;
};

/// Relative to the file that names it, except patterns and lists of other kinds.
std::string beside(const std::filesystem::path& file, const std::string& name) {
    if (name.empty() || std::filesystem::path(name).is_absolute()) return name;
    const auto folder = std::filesystem::absolute(file).parent_path();
    return name[0] == '@' ? "@" + (folder / name.substr(1)).string() : (folder / name).string();
}

Words beside(const std::filesystem::path& file, Words names) {
    for (std::string& name : names) name = beside(file, name);
    return names;
}

/// A text, or a list of texts.
Words one_or_more(Section& section, const char* key) {
    if (!section.has(key)) section.fail(key, "is missing");
    try {
        return {section.text(key)};
    } catch (const ConfigError&) {
        return section.texts(key);
    }
}

/// 0 when it is not there.
double seconds(Section& section, const char* key) {
    if (!section.has(key)) return 0;
    const std::string text = section.text(key);
    const auto parsed = parse_duration(text);
    if (!parsed) section.fail(key, "is \"" + text + "\"; expected a time like 90s, 50m or 2h");
    return *parsed;
}

void read_gates(Section gate, NightConfig& config) {
    constexpr NumberRange kPercent{0, 100, "%"}, kAny_percent{0, 1e6, "%"}, kDistance_m{0, 1, "m"};
    const Flags publish(gate, config.publish), plan(gate, config.plan);
    publish.number("most_changed_percent", "--most-changed", kPercent);
    publish.number("most_splat_change_percent", "--most-splat-change", kAny_percent);
    publish.number("most_distance_m", "--most-distance", kDistance_m);
    publish.number("most_thick_percent", "--most-thick", kPercent);
    plan.number("most_thick_percent", "--most-thick", kPercent);  // which measures it
    if (gate.has("most_failed_tiles")) {
        config.publish.emplace_back("--keep-old-for-failed");
        publish.whole("most_failed_tiles", "--most-failed");
    }
    gate.finish();
}

void read_keep(Section keep, NightConfig& config) {
    const Flags gc(keep, config.gc);
    gc.whole("last", "--keep-last");
    gc.whole("daily", "--keep-daily");
    gc.whole("weekly", "--keep-weekly");
    gc.whole("monthly", "--keep-monthly");
    gc.whole("yearly", "--keep-yearly");
    gc.text("within", "--keep-within");
    for (const std::string& tag : keep.texts("tags")) {
        config.gc.emplace_back("--keep-tag");
        config.gc.push_back(tag);
    }
    keep.finish();
    config.gc_wanted = !config.gc.empty();
}

void read_drives(Section& top, const std::filesystem::path& path, NightConfig& config) {
    config.drives.push_back({beside(path, top.texts("inputs")), beside(path, top.text("trajectory", ""))});
    for (Section& drive : top.sections("drive")) {
        config.drives.push_back(
            {beside(path, one_or_more(drive, "inputs")), beside(path, drive.text("trajectory", ""))});
        drive.finish();
    }
    bool any = false;
    for (const NightConfig::Drive& drive : config.drives) any = any || !drive.inputs.empty();
    if (!any) top.fail("inputs", "is missing: name clouds here, or in [[drive]] tables");
}

}  // namespace

NightConfig NightConfig::load(const std::filesystem::path& path) {
    require_file(path);
    const toml::table table = parse_toml(read_text_file(path), path.string());
    Section top(table, path.string());
    NightConfig config;
    config.city = beside(path, top.text("city"));
    read_drives(top, path, config);
    const Flags plan(top, config.plan), common(top, config.common);
    plan.text("classes", "--classes");
    plan.text("method", "--method");
    plan.text("params", "--params");
    plan.text("crs", "--crs");
    plan.text("columns", "--columns");
    plan.whole("tile_size_m", "--tile-size");
    plan.yes("no_carve", "--no-carve");
    plan.yes("no_resample", "--no-resample");
    plan.text("note", "--note");
    common.text("memory", "--memory");
    common.whole("threads", "--threads");
    config.plan.emplace_back("--exactly");
    Section removed = top.section("removed");
    Flags(removed, config.plan).number("most_gone_percent", "--most-gone", {0, 100, "%"});
    removed.finish();
    Section time = top.section("time");
    Flags(time, config.work).text("stop_after", "--for");
    config.wait_lock_s = seconds(time, "wait_lock");
    time.finish();
    read_gates(top.section("gate"), config);
    read_keep(top.section("keep"), config);
    Section report = top.section("report");
    config.report_directory = beside(path, report.text("dir"));
    config.pictures = report.whole("pictures", 0, 100, 0.0);
    config.surfaces = Flags(report, config.diff).yes("surfaces", "--surfaces");
    Flags(report, config.diff).number("registration_m", "--registration", {0, 0.4, "m"});
    report.finish();
    Section metrics = top.section("metrics");
    config.prometheus = beside(path, metrics.text("prometheus", ""));
    config.junit = beside(path, metrics.text("junit", ""));
    metrics.finish();
    Section after = top.section("after");
    config.after = after.texts("command");
    after.finish();
    top.finish();
    return config;
}

}  // namespace citysplat::cli
