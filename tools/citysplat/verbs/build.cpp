#include "citysplat/building/build_flags.hpp"
#include "citysplat/building/work_report.hpp"
#include "citysplat/context.hpp"
#include "citysplat/file_report.hpp"
#include "citysplat/generations/gate_flags.hpp"
#include "citysplat/thickness_report.hpp"
#include "citysplat/verbs.hpp"
#include "citysplat/viewing/kept_levels.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "mesh/city_recipe.hpp"
#include "tiling/build/builder.hpp"
#include "tiling/store/city_reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace citysplat::cli {

namespace {

using nlohmann::json;

struct BuildWish {
    BuildFlags flags;
    GateFlags gates;
    std::string shard;
    bool dry_run = false, explain = false, keep_going = false, lod = false;
    LevelFlags levels;
};

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
                {"triangles", r.triangles},
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
    object["gates"] = gates_json(r.gates);
    object["inputs_forgotten"] = r.inputs_forgotten;
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

std::string no_mesh_text(const tiling::PointCounts& points) {
    if (points.without_sensor == points.kept)
        return "there is no mesh: nobody knows where the sensor was, so no surface has a front; give the "
               "trajectory with --trajectory";
    return "there is no mesh: nowhere are points dense enough for voxels of this size; a larger --voxel may "
           "help";
}

std::string to_text(const tiling::BuildReport& r, bool dry_run) {
    if (dry_run)
        return "would read " + format_count(r.inputs_read) + " inputs (" + format_count(r.points.read) +
               " points) and look at " + format_count(r.tiles_checked) + " of " +
               format_count(r.tiles_total) + " tiles; needs up to " + format_bytes(r.predicted_disk_bytes) +
               " of disk and " + format_bytes(r.predicted_memory_bytes) + " for the largest tile\n";
    const std::string generation = "generation " + std::to_string(r.generation);
    return points_dropped(r) + points_removed(r) +
           (r.held_back ? "held back, " + generation + " stays: "
                        : generation + (r.published ? ": " : " (unchanged): ")) +
           made_text(r.splats, r.triangles) + " in " + format_count(r.tiles_total) + " tiles (" +
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

void run_shard(Context& context, const BuildWish& wish, const mesh::CityRecipe& recipe,
               const tiling::BuildOptions& options) {
    const auto shard = parse_shard(wish.shard);
    const auto processor = mesh::make_processor(recipe);
    const auto plan =
        tiling::join_or_plan(wish.flags.city(), *processor, options, context.cancel(), context.progress());
    for (const std::string& line : plan.build.warnings) context.warn(line);
    if (plan.open) context.say(plan_text(plan));
    tiling::WorkOptions work = work_options(context);
    work.begin_with = shard;
    do_work(context, wish.flags.city(), work);
}

/// The levels of detail of the latest generation, for `view`.
json keep_levels(Context& context, const BuildWish& wish) {
    std::optional<splat::LevelStore> store = wish.levels.store();
    if (!store) throw UsageError("--lod needs a directory for levels: --levels DIR");
    const tiling::CityReader city(wish.flags.city());
    view::CityFacts facts;
    facts.digest = city.generation().digest.hex();
    const MadeLevels made = make_levels({city, facts}, {.store = &*store}, context);
    return {{"levels_key", made.key},
            {"columns_read", made.columns_read},
            {"missing", made.missing},
            {"kept_bytes", made.kept_bytes}};
}

void run(Context& context, const BuildWish& wish) {
    if (wish.lod && (wish.dry_run || !wish.shard.empty()))
        throw UsageError("--lod makes levels of what is published; view --make-levels makes them afterwards");
    keep_memory_between_tiles(context.memory_bytes());
    const BuildFlags& flags = wish.flags;
    const mesh::CityRecipe recipe = flags.recipe();
    const bool has_splats = recipe.makes(ProductKind::splats);
    if (wish.lod && !has_splats)
        throw UsageError(
            "--lod makes levels of splats, and this city is to have none; add --product splats,mesh");
    tiling::BuildOptions options = flags.options(recipe, context);
    if (!wish.shard.empty()) return run_shard(context, wish, recipe, options);
    options.dry_run = wish.dry_run;
    options.keep_going = wish.keep_going;
    options.gates = wish.gates.gates(context.cancel());

    const auto processor = mesh::make_processor(recipe);
    const splat::SplatProcessor* splats = mesh::splats_of(*processor);
    auto report = tiling::build_city(flags.city(), *processor, options, context.cancel(), context.progress());
    const auto thickness = kept_thickness(report.findings, report.findings_of);
    const bool measured = !processor->findings().empty();
    if (thickness && measured && !report.held_back)
        if (const auto thick = thickness_warning(*thickness)) report.warnings.push_back(*thick);
    if (const auto open = flags.thickness().why_open(report.findings); open && !wish.dry_run)
        report.warnings.push_back(*open);
    if (flags.has_note() && !report.published && !report.held_back && !wish.dry_run)
        report.warnings.push_back("nothing has changed: there is no new generation that could have the note");
    if (recipe.makes_triangles() && report.triangles == 0 && report.points.kept > 0 && !wish.dry_run)
        report.warnings.push_back(no_mesh_text(report.points));
    for (const std::string& line : report.warnings) context.warn(line);
    if (report.inputs_read > 0 && report.crs.empty() && !wish.dry_run)
        context.say(
            "no input says its coordinate system: they are taken to share one, in metres; --crs EPSG:n says "
            "which");
    if (wish.explain)
        for (const auto& e : report.explanations)
            context.say("tile " + e.tile.text() + ": " + tiling::text_of(e.reason));
    if (report.tiles_built > 0 && splats) context.detail(stages_text(splats->times()));
    json result = to_json(report, wish.explain);
    if (splats) result["tile_cpu_seconds"] = stages_json(splats->times());
    if (thickness) result["thickness"] = *thickness;
    if (thickness && measured) context.say("between passes: " + thickness_text(*thickness));
    for (const auto& gate : report.gates) context.say(gate.text);
    if (report.held_back) result["held_back"] = *report.held_back;
    if (wish.lod && report.failures.empty() && !report.held_back)
        result["levels"] = keep_levels(context, wish);
    context.result(result, to_text(report, wish.dry_run));
    if (!report.failures.empty()) {
        for (const auto& failure : report.failures)
            context.warn("tile " + failure.tile.text() + " failed: " + failure.message);
        throw Error(ErrorKind::bad_data, std::to_string(report.failures.size()) +
                                             " tiles failed; nothing was published, what succeeded is kept");
    }
    if (report.held_back)
        throw HeldBackError(*report.held_back +
                            "; nothing was published, all that was built is kept: the same command without "
                            "the gate accepts it");
}

}  // namespace

void add_build(CLI::App& app, Context& context) {
    auto wish = std::make_shared<BuildWish>();
    CLI::App& verb = *app.add_subcommand("build", "create a city from point clouds, or bring it up to date");
    verb.fallthrough();
    wish->flags.add_to(verb);
    wish->gates.add_to(verb);
    verb.add_flag("--dry-run", wish->dry_run, "say what would be done and what it needs");
    verb.add_flag("--explain", wish->explain, "say for each built tile why");
    verb.add_flag("--keep-going", wish->keep_going, "finish the other tiles when one fails");
    verb.add_flag("--lod", wish->lod,
                  "also make the levels of detail that view shows, so that its first picture reads no splat");
    wish->levels.add_to(verb);
    verb.add_option(
            "--shard", wish->shard,
            "one of N processes that share the work (K/N, or auto for the index of an array of jobs): "
            "plan or join the plan, then work; citysplat publish makes the generation")
        ->type_name("K/N");
    verb.footer(
        "Example: citysplat build city drive/*.las --trajectory drive/trajectory.tum --classes synthetic\n"
        "Inputs are known by their content: a touched or renamed file costs nothing, a changed one only the\n"
        "tiles it touches. An interrupted build continues where it was.");
    verb.callback([wish, &context] { run(context, *wish); });
}

}  // namespace citysplat::cli
