#include "citysplat/context.hpp"
#include "citysplat/file_report.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/thickness_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/input/tracked_file.hpp"
#include "io/tracks/track_file.hpp"
#include "objects/box_times.hpp"
#include "splat/recipe.hpp"
#include "splat/splat_processor.hpp"
#include "tiling/build/builder.hpp"
#include "tiling/store/city_paths.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <malloc.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace citysplat::cli {

namespace {

using nlohmann::json;

struct BuildFlags {
    std::string city, trajectory, tracks, method, classes, params, shard;
    InputFlags reading;
    TrajectoryFlags trajectory_reading;
    ThicknessGate thickness;
    std::vector<std::string> inputs, remove;
    std::int64_t tile_size_m = 0;
    bool resample = false, no_resample = false, carve = false, no_carve = false, recalibrate = false,
         measure_drift = false, dry_run = false, explain = false, keep_going = false;
};

splat::RecipeChanges changes_of(const BuildFlags& flags) {
    splat::RecipeChanges changes;
    if (!flags.method.empty()) changes.method = splat::method_from(flags.method);
    changes.classes = flags.classes;
    changes.params = flags.params;
    if (flags.resample || flags.no_resample) changes.resample = flags.resample;
    if (flags.carve || flags.no_carve) changes.carve = flags.carve;
    return changes;
}

/// The moving boxes of --tracks. Says when their times are not those at which the boxes hold: whoever draws
/// boxes around a scan gives all of them one time.
std::shared_ptr<const TrackedBoxes> tracked_boxes(const BuildFlags& flags,
                                                  const std::vector<InputSource>& sources,
                                                  const ReadOptions& reading, const Context& context) {
    auto tracked = io::read_tracked_boxes(flags.tracks);
    context.say(flags.tracks + ": " + format_count(tracked->boxes.size()) +
                " tracks move; what is in their boxes is left out");
    constexpr std::size_t kAsked = 20;
    objects::ScanInputs some;
    some.reading = reading;
    for (std::size_t i = 0; i < sources.size(); i += 1 + sources.size() / kAsked)
        if (sources[i].drive) some.sources.push_back(sources[i]);
    if (some.sources.empty() || tracked->boxes.size() == 0) return tracked;
    const auto study = objects::study_box_times(some, read_tracks(flags.tracks, {}, context.cancel()).tracks,
                                                objects::BoxTimes::automatic, context.cancel());
    const std::uint64_t exact = study.inside[0];
    const std::uint64_t best = study.inside[static_cast<std::size_t>(study.chosen) - 1];
    if (best > exact + exact / 50)
        context.warn(flags.tracks + ": its boxes hold " + format_count(exact) + " points of " +
                     format_count(some.sources.size()) + " scans if their times are exact, and " +
                     format_count(best) + " if each is around a scan that has its " +
                     objects::kBoxTimes.of(study.chosen) +
                     " then; citysplat bank build --aligned-tracks writes tracks with exact times, which are "
                     "better here");
    return tracked;
}

std::vector<tiling::BuildInput> inputs_of(const BuildFlags& flags, const Context& context) {
    std::vector<tiling::BuildInput> inputs;
    if (flags.inputs.empty()) return inputs;
    const TrajectoryOptions trajectory = flags.trajectory_reading.options();
    const ReadOptions options = flags.reading.read_options(flags.trajectory, trajectory);
    const std::vector<InputSource> sources =
        expand_inputs(flags.inputs, flags.reading.labels(),
                      flags.reading.drive_options(!flags.trajectory.empty()), context.cancel());
    if (const auto missing = missing_labels(sources)) context.warn(*missing);
    for (const auto& drive : drives_of(sources))
        for (const std::string& text : drive->assumptions)
            context.say(drive->folder.string() + " (" + drive->kind + "): " + text);
    std::shared_ptr<const TrackedBoxes> tracked;
    if (!flags.tracks.empty()) tracked = tracked_boxes(flags, sources, options, context);
    for (const InputSource& source : sources) {
        const std::string reading = io::reading_of(source, options, trajectory);
        inputs.push_back(
            {source.path, flags.trajectory, tracked ? io::with_tracks(reading, *tracked) : reading});
    }
    return inputs;
}

std::optional<tiling::Shard> parse_shard(const std::string& text) {
    if (text.empty()) return std::nullopt;
    constexpr unsigned kMostShards = 100'000;
    const std::size_t slash = std::min(text.find('/'), text.size());
    const auto k = parse_whole<unsigned>(std::string_view(text).substr(0, slash));
    const auto n = parse_whole<unsigned>(std::string_view(text).substr(std::min(slash + 1, text.size())));
    if (!k || !n || *k < 1 || *k > *n || *n > kMostShards)
        throw UsageError("--shard " + text +
                         ": expected K/N with 1 <= K <= N <= " + std::to_string(kMostShards));
    return tiling::Shard{*k, *n};
}

json to_json(const tiling::BuildReport& r, bool explain) {
    const auto& p = r.points;
    json object{{"generation", r.generation},
                {"published", r.published},
                {"crs", r.crs},
                {"points_read", p.read},
                {"points_kept", p.kept},
                {"points_dropped",
                 {{"not_finite", p.not_finite},
                  {"out_of_range", p.out_of_range},
                  {"withheld", p.withheld},
                  {"duplicates", p.duplicates},
                  {"no_return", p.no_return},
                  {"damaged", p.damaged},
                  {"far_outliers", r.far_outliers}}},
                {"points_masked", masked_json(r.masked)},
                {"points_without_sensor", p.without_sensor},
                {"points_removed", r.removed},
                {"inputs", r.inputs},
                {"inputs_read", r.inputs_read},
                {"inputs_hashed", r.inputs_hashed},
                {"tiles_total", r.tiles_total},
                {"tiles_built", r.tiles_built},
                {"tiles_reused", r.tiles_reused},
                {"tiles_empty", r.tiles_empty},
                {"tiles_checked", r.tiles_checked},
                {"halo_widened", r.halo_widened},
                {"splats", r.splats},
                {"seconds",
                 {{"partition", r.partition_s},
                  {"calibrate", r.calibrate_s},
                  {"plan", r.plan_s},
                  {"tiles", r.tiles_s},
                  {"publish", r.publish_s}}},
                {"peak_rss_bytes", peak_rss_bytes()},
                {"predicted_disk_bytes", r.predicted_disk_bytes},
                {"predicted_memory_bytes", r.predicted_memory_bytes},
                {"spilled_bytes", r.spilled_bytes},
                {"calibration",
                 {{"mean_radius_m", r.calibration.mean_radius_m},
                  {"mean_error_m", r.calibration.mean_error_m},
                  {"mean_density", r.calibration.mean_density},
                  {"samples", r.calibration.samples},
                  {"angular_step_rad", r.calibration.angular_step_rad}}},
                {"digest", r.digest.hex()},
                {"warnings", r.warnings}};
    json failed = json::array();
    for (const auto& failure : r.failures)
        failed.push_back({{"tile", failure.tile.text()}, {"message", failure.message}});
    object["tiles_failed"] = failed;
    if (explain) {
        json reasons = json::array();
        for (const auto& e : r.explanations)
            reasons.push_back({{"tile", e.tile.text()}, {"reason", tiling::text_of(e.reason)}});
        object["explain"] = reasons;
    }
    return object;
}

/// A line about the points that the splats do not have, by reason; empty when there are none.
std::string points_dropped(const tiling::BuildReport& r) {
    const auto& p = r.points;
    const std::pair<const char*, std::uint64_t> reasons[]{{"duplicates", p.duplicates},
                                                          {"withheld", p.withheld},
                                                          {"records without a return", p.no_return},
                                                          {"damaged", p.damaged},
                                                          {"not finite", p.not_finite},
                                                          {"out of range", p.out_of_range},
                                                          {"far outliers", r.far_outliers}};
    std::string text;
    for (const auto& [reason, count] : reasons)
        if (count > 0) text += (text.empty() ? "left out: " : ", ") + format_count(count) + " " + reason;
    if (!text.empty()) text += " (of " + format_count(p.read) + " points)\n";
    if (const std::string masked = masked_text(r.masked); !masked.empty()) text += "masked: " + masked + "\n";
    return text;
}

std::string points_removed(const tiling::BuildReport& r) {
    if (r.removed == 0) return "";
    return "seen through and left out: " + format_count(r.removed) + " points of things that moved (of " +
           format_count(r.points.kept) + "; export --removed shows them, --no-carve keeps them)\n";
}

std::string to_text(const tiling::BuildReport& r, const BuildFlags& flags) {
    if (flags.dry_run)
        return "would read " + format_count(r.inputs_read) + " inputs (" + format_count(r.points.read) +
               " points) and look at " + format_count(r.tiles_checked) + " of " +
               format_count(r.tiles_total) + " tiles; needs up to " + format_bytes(r.predicted_disk_bytes) +
               " of disk and " + format_bytes(r.predicted_memory_bytes) + " for the largest tile\n";
    if (!flags.shard.empty())
        return "shard " + flags.shard + ": " + format_count(r.splats) + " splats in " +
               format_count(r.tiles_total) + " tiles (" + format_count(r.tiles_built) +
               " built); citysplat publish puts the shards together\n";
    const std::string generation = "generation " + std::to_string(r.generation);
    return points_dropped(r) + points_removed(r) +
           (r.held_back ? "held back, " + generation + " stays: "
                        : generation + (r.published ? ": " : " (unchanged): ")) +
           format_count(r.splats) + " splats in " + format_count(r.tiles_total) + " tiles (" +
           format_count(r.tiles_built) + " built, " + format_count(r.tiles_reused) + " reused) from " +
           format_count(r.points.kept) + " points\ndigest " + r.digest.hex() + "\npartition " +
           format_duration(r.partition_s) + ", calibration " + format_duration(r.calibrate_s) + ", tiles " +
           format_duration(r.tiles_s) + ", publish " + format_duration(r.publish_s) + ", peak memory " +
           format_bytes(peak_rss_bytes()) + "\n";
}

/// Where the tiles' processor time went, and how much of it was neighbour search.
json stages_json(const splat::StageTimes& times) {
    json stages = json::object();
    for (std::size_t i = 0; i < splat::kStages.size(); ++i)
        stages[std::string(splat::kStages[i].name)] = times.seconds(static_cast<splat::Stage>(i));
    return {{"stages", stages}, {"neighbour_search_share", times.search_share()}};
}

std::string stages_text(const splat::StageTimes& times) {
    std::string text = "processor time of the tiles:";
    const double total = times.total_seconds();
    for (std::size_t i = 0; i < splat::kStages.size(); ++i) {
        const double s = times.seconds(static_cast<splat::Stage>(i));
        std::array<char, 96> line{};
        std::snprintf(line.data(), line.size(), "\n  %-24s %9.2f s  %4.1f %%",
                      std::string(splat::kStages[i].name).c_str(), s, total > 0 ? 100 * s / total : 0.0);
        text += line.data();
    }
    std::array<char, 64> share{};
    std::snprintf(share.data(), share.size(), "\n  neighbour search in all %20.1f %%",
                  100 * times.search_share());
    return text + share.data();
}

/// Tiles come and go with hundreds of megabytes each. Taking that from the system anew for every tile costs a
/// tenth of the time, in page faults; so it stays in one heap, most of which the next tile uses again. A heap
/// has holes, though, which count as well: with a small budget what is given back goes to the system at once.
void keep_memory_between_tiles(std::uint64_t memory_bytes) {
    const bool large = memory_bytes >= std::uint64_t{1} << 30;
    ::mallopt(M_ARENA_MAX, 1);
    ::mallopt(M_MMAP_THRESHOLD, large ? 1 << 30 : 1 << 18);
    ::mallopt(M_TRIM_THRESHOLD, large ? 256 << 20 : 4 << 20);
}

void run(Context& context, const BuildFlags& flags) {
    keep_memory_between_tiles(context.memory_bytes());
    const splat::Recipe recipe = splat::recipe_for(flags.city, changes_of(flags));
    tiling::BuildOptions options;
    options.inputs = inputs_of(flags, context);
    for (const std::string& path : flags.remove) options.remove.emplace_back(path);
    options.recalibrate = flags.recalibrate;
    options.measure_drift = flags.measure_drift;
    options.shard = parse_shard(flags.shard);
    options.parameters = recipe.text();
    options.carve = recipe.carve;
    if (!recipe.classes.classes().empty()) options.classes = recipe.classes.to_toml();
    options.tile_size_m = flags.tile_size_m;
    options.memory_bytes = context.memory_bytes();
    options.refuse_small_memory = true;
    options.threads = context.threads();
    options.dry_run = flags.dry_run;
    options.keep_going = flags.keep_going;
    options.gate = flags.thickness.gate();

    splat::SplatProcessor processor(recipe.params, recipe.classes);
    auto report = tiling::build_city(flags.city, processor, options, context.cancel(), context.progress());
    const auto thickness = kept_thickness(report.findings, report.findings_of);
    const bool measured = !processor.findings().empty();
    if (thickness && measured && !report.held_back)
        if (const auto thick = thickness_warning(*thickness)) report.warnings.push_back(*thick);
    if (const auto open = flags.thickness.why_open(report.findings); open && !flags.dry_run)
        report.warnings.push_back(*open);
    for (const std::string& line : report.warnings) context.warn(line);
    if (report.inputs_read > 0 && report.crs.empty() && !flags.dry_run)
        context.say(
            "no input says its coordinate system: they are taken to share one, in metres; --crs EPSG:n says "
            "which");
    if (flags.explain)
        for (const auto& e : report.explanations)
            context.say("tile " + e.tile.text() + ": " + tiling::text_of(e.reason));
    if (report.tiles_built > 0) context.detail(stages_text(processor.times()));
    json result = to_json(report, flags.explain);
    result["tile_cpu_seconds"] = stages_json(processor.times());
    if (thickness) result["thickness"] = *thickness;
    if (thickness && measured) context.say("between passes: " + thickness_text(*thickness));
    if (report.held_back) result["held_back"] = *report.held_back;
    context.result(result, to_text(report, flags));
    if (!report.failures.empty()) {
        for (const auto& failure : report.failures)
            context.warn("tile " + failure.tile.text() + " failed: " + failure.message);
        throw Error(ErrorKind::bad_data, std::to_string(report.failures.size()) +
                                             " tiles failed; nothing was published, what succeeded is kept");
    }
    if (report.held_back)
        throw HeldBackError(*report.held_back +
                            "; nothing was published, all that was built is kept: the same command without "
                            "--most-thick accepts it");
}

}  // namespace

void add_build(CLI::App& app, Context& context) {
    auto flags = std::make_shared<BuildFlags>();
    CLI::App& verb = *app.add_subcommand("build", "create a city from point clouds, or bring it up to date");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option(
            "inputs", flags->inputs,
            "point clouds, folders, patterns or @lists to add; without any, the known ones are checked")
        ->type_name("INPUT");
    verb.add_option("--trajectory", flags->trajectory, "where the sensor was, by GPS time, for these inputs")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--tracks", flags->tracks,
                    "boxes of objects over time (docs/scenarios.md): points of these inputs that are in the "
                    "box of something that moves, where it was at their time, are left out")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--method", flags->method,
                    "basic, adaptive or descriptors (default: what the city has, else "
                    "adaptive with a class map and descriptors without)")
        ->check(CLI::IsMember({"basic", "adaptive", "descriptors"}))
        ->type_name("NAME");
    verb.add_option("--classes", flags->classes, "class map of the labels: a built-in name or a TOML file")
        ->type_name("MAP");
    verb.add_option("--tile-size", flags->tile_size_m, "edge of a tile in whole metres; changes no splat")
        ->check(whole_from(1, 512))
        ->type_name("M");
    verb.add_option("--params", flags->params,
                    "numbers of the method: a TOML file, paper, or default (docs/parameters.md)")
        ->type_name("FILE");
    auto* no_resample = verb.add_flag("--no-resample", flags->no_resample, "one generation of splats only");
    verb.add_flag("--resample", flags->resample,
                  "even out the density and generate twice (default for a new city)")
        ->excludes(no_resample);
    auto* no_carve =
        verb.add_flag("--no-carve", flags->no_carve, "keep what moved, although rays passed through it");
    verb.add_flag(
            "--carve", flags->carve,
            "leave out points that rays of other times passed through: what moved (default for a new city; "
            "needs sensor positions and times)")
        ->excludes(no_carve);
    verb.add_flag("--recalibrate", flags->recalibrate, "measure the city-wide means again, and rebuild");
    verb.add_flag("--measure-drift", flags->measure_drift,
                  "measure the means of the present inputs, for status; changes nothing else");
    verb.add_option("--remove", flags->remove, "forget this input")
        ->type_name("INPUT")
        ->allow_extra_args(false);
    verb.add_flag("--dry-run", flags->dry_run, "say what would be done and what it needs");
    verb.add_flag("--explain", flags->explain, "say for each built tile why");
    verb.add_flag("--keep-going", flags->keep_going, "finish the other tiles when one fails");
    verb.add_option("--shard", flags->shard,
                    "build only part K of N; citysplat publish puts the parts together")
        ->type_name("K/N");
    flags->thickness.add_to(verb);
    flags->reading.add_to(verb);
    flags->trajectory_reading.add_to(verb);
    verb.footer(
        "Example: citysplat build city drive/*.las --trajectory drive/trajectory.tum --classes synthetic\n"
        "Inputs are known by their content: a touched or renamed file costs nothing, a changed one only the\n"
        "tiles it touches. An interrupted build continues where it was.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
