#include "adjust/thickness.hpp"
#include "citysplat/building/work_report.hpp"
#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/thickness_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/city_paths.hpp"
#include "tiling/store/product_kinds.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

using nlohmann::json;

struct StatusFlags {
    std::string city;
    bool history = false, plan = false;
    GenerationFlag generation;
};

/// How far the means of the present inputs are from the frozen ones, as a share.
json drift_of(const tiling::GenerationRow& g) {
    const auto share = [](double now, double frozen) { return frozen > 0 ? now / frozen - 1 : 0; };
    return {{"mean_radius", share(g.measured.mean_radius_m, g.calibration.mean_radius_m)},
            {"mean_error", share(g.measured.mean_error_m, g.calibration.mean_error_m)},
            {"mean_density", share(g.measured.mean_density, g.calibration.mean_density)},
            {"angular_step", share(g.measured.angular_step_rad, g.calibration.angular_step_rad)}};
}

/// The words of what a generation has.
json products_of(const tiling::GenerationRow& g) {
    json words = json::array();
    for (const tiling::KindKey& kind : tiling::kinds_of(g)) words.push_back(kProductKinds.of(kind.kind));
    return words;
}

json generation_json(const tiling::GenerationRow& g) {
    return {{"generation", g.id},
            {"created", utc_text(g.created_s)},
            {"note", g.note},
            {"tiles", g.tiles},
            {"splats", g.splats},
            {"triangles", g.triangles},
            {"products", products_of(g)},
            {"points", g.points},
            {"digest", g.digest.hex()},
            {"tags", tiling::tags_of(g)}};
}

json status_json(tiling::Catalog& catalog, const tiling::GenerationRow& g) {
    json status = generation_json(g);
    status["tile_size_m"] = g.tile_size_m;
    status["crs"] = g.crs;
    json parameters = json::parse(g.parameters, nullptr, false);
    status["parameters"] = parameters.is_discarded() ? json(as_utf8(g.parameters)) : parameters;
    status["calibration"] = {{"mean_radius_m", g.calibration.mean_radius_m},
                             {"mean_error_m", g.calibration.mean_error_m},
                             {"mean_density", g.calibration.mean_density},
                             {"samples", g.calibration.samples},
                             {"angular_step_rad", g.calibration.angular_step_rad}};
    status["drift"] = drift_of(g);
    if (auto thickness = kept_thickness(g.findings, g.findings_of))
        status["thickness"] = std::move(*thickness);
    std::uint64_t payload_bytes = 0, removed = 0;
    for (const auto& tile : catalog.tiles(g.id)) {
        payload_bytes += tile.object_bytes;
        if (tile.tile.kind == tiling::kinds_of(g).front().kind) removed += tile.removed;
    }
    status["payload_bytes"] = payload_bytes;
    status["points_removed"] = removed;
    status["inputs"] = json::array();
    for (const auto& input : catalog.inputs(g.id)) {
        const tiling::SourceRow source = catalog.source(input.source);
        const tiling::PointCounts& c = source.counts;
        status["inputs"].push_back({{"path", input.path},
                                    {"trajectory", input.trajectory},
                                    {"format", source.format},
                                    {"content", source.content.hex()},
                                    {"archive_bytes", source.object_bytes},
                                    {"points_read", c.read},
                                    {"points_kept", c.kept},
                                    {"points_without_sensor", c.without_sensor},
                                    {"points_dropped",
                                     {{"not_finite", c.not_finite},
                                      {"out_of_range", c.out_of_range},
                                      {"withheld", c.withheld},
                                      {"duplicates", c.duplicates},
                                      {"no_return", c.no_return},
                                      {"damaged", c.damaged}}}});
    }
    return status;
}

/// What was measured between passes, with the worst places when they are worse than anybody would like.
std::string between_passes(const json& status) {
    if (!status.contains("thickness")) return "";
    const json& t = status["thickness"];
    const bool earlier = t["generation"] != status["generation"];
    const bool thick = t["thick_share"].get<double>() > adjust::kMostThick;
    return "between passes" + (earlier ? " (generation " + t["generation"].dump() + ")" : std::string()) +
           ": " + thickness_text(t) + "\n" + (thick ? worst_text(t) : "");
}

/// ", tagged a b" of the names of a generation, in JSON; empty when it has none.
std::string tags_text(const json& tags) {
    std::string text = tags.empty() ? "" : ", tagged";
    for (const json& tag : tags) text += " " + tag.get<std::string>();
    return text;
}

std::string status_text(const json& s) {
    char drift[96];
    std::snprintf(drift, sizeof drift, "radius %+.1f %%, error %+.1f %%, density %+.1f %%",
                  100 * s["drift"]["mean_radius"].get<double>(), 100 * s["drift"]["mean_error"].get<double>(),
                  100 * s["drift"]["mean_density"].get<double>());
    return "generation " + s["generation"].dump() + " of " + s["created"].get<std::string>() + " (" +
           s["note"].get<std::string>() + ")" + tags_text(s["tags"]) + "\n" +
           made_text(s["splats"], s["triangles"]) + " in " + format_count(s["tiles"]) + " tiles of " +
           s["tile_size_m"].dump() + " m, " + format_bytes(s["payload_bytes"]) + ", from " +
           format_count(s["points"]) + " points in " + format_count(s["inputs"].size()) + " inputs\n" +
           (s["points_removed"] == 0
                ? ""
                : format_count(s["points_removed"]) + " points of things that moved left out\n") +
           "parameters " + s["parameters"].dump() + "\ndrift since calibration: " + drift + "\n" +
           between_passes(s) + "digest " + s["digest"].get<std::string>() + "\n";
}

std::string history_line(const tiling::GenerationRow& g) {
    return std::to_string(g.id) + "  " + utc_text(g.created_s) + "  " + made_text(g.splats, g.triangles) +
           ", " + format_count(g.tiles) + " tiles, digest " + g.digest.hex().substr(0, 12) + "  " + g.note +
           tags_text(tiling::tags_of(g)) + "\n";
}

void show_plan(Context& context, const std::string& city) {
    const tiling::ObjectStore store{tiling::CityPaths(city)};
    const auto open = tiling::read_open_plan(store);
    if (!open) {
        context.result({{"plan", json()}}, "nothing is planned\n");
        return;
    }
    const tiling::PlanStatus status = tiling::status_of(store, *open);
    json object = plan_json(*open);
    object["tiles_done"] = status.tiles_done;
    object["core_seconds_spent"] = status.core_seconds_spent;
    object["core_seconds_left"] = status.core_seconds_left;
    json claims = json::array(), failed = json::array();
    std::uint64_t working = 0;
    for (const auto& claim : status.claims) {
        claims.push_back({{"chunk", claim.chunk}, {"age_s", claim.age_s}, {"ended", claim.ended}});
        working += !claim.ended;
    }
    for (const auto& tile : status.failed)
        failed.push_back({{"tile", tile.tile.text()}, {"host", tile.host}, {"message", tile.message}});
    object["claims"] = claims;
    object["tiles_failed"] = failed;
    const auto held = tiling::PlanFolder(store, open->name).held_back();
    if (held) object["held_back"] = *held;
    // As many cores as there are claims, at least one.
    const double eta_s = status.core_seconds_left / static_cast<double>(std::max<std::uint64_t>(1, working));
    object["eta_s"] = eta_s;
    std::string text = "plan " + open->name.hex().substr(0, 12) + " of " + utc_text(open->plan.created_s) +
                       ": " + format_count(status.tiles_done) + " of " + format_count(status.tiles) +
                       " tiles are made, " + format_count(working) + " chunks are worked on, about " +
                       format_duration(eta_s) + " left\n";
    for (const auto& tile : status.failed)
        text += "tile " + tile.tile.text() + " failed on " + tile.host + ": " + tile.message + "\n";
    if (held)
        text += "held back: " + *held + "\ncitysplat publish " + city + " --accept " +
                open->name.hex().substr(0, 12) + " lets it through\n";
    context.result(object, text);
}

void run(Context& context, const StatusFlags& flags) {
    const tiling::CityPaths paths(flags.city);
    if (flags.plan) return show_plan(context, flags.city);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(paths.catalog());
    const auto number = flags.generation.number(flags.city);
    const auto row = number ? catalog.generation(*number) : catalog.latest();
    if (!row) throw ConfigError(flags.city + ": nothing has been built yet");
    json status = status_json(catalog, *row);
    std::string text = status_text(status);
    for (const json& input : status["inputs"]) context.detail("input " + input["path"].get<std::string>());
    if (flags.history) {
        status["history"] = json::array();
        text.clear();
        for (const auto& generation : catalog.history()) {
            status["history"].push_back(generation_json(generation));
            text += history_line(generation);
        }
    }
    context.result(status, text);
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
    auto flags = std::make_shared<StatusFlags>();
    CLI::App& verb = *app.add_subcommand("status", "what a city holds, and from what");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    flags->generation.add_to(verb);
    verb.add_flag("--history", flags->history, "list the generations");
    verb.add_flag("--plan", flags->plan, "how far the workers of the open plan are");
    verb.footer(
        "Example: citysplat status city --history\nWith -v, or in JSON, also the inputs and what became of "
        "their points.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
