#include "citysplat/places/geopackage.hpp"

#include "citysplat/context.hpp"
#include "citysplat/generations/surface_changes.hpp"
#include "citysplat/generations/text_flags.hpp"
#include "core/bytes.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/store/city_reader.hpp"

#include <nlohmann/json.hpp>

namespace citysplat::cli {

namespace {

/// The generation that changes are told from: the one that was named, else the one before, if there is one.
std::optional<std::int64_t> changes_from(tiling::Catalog& catalog, const GeoPackageFlags& flags,
                                         std::int64_t to) {
    if (!flags.from.empty()) return tiling::find_generation(catalog, flags.from).id;
    if (catalog.history().front().id == to && !flags.surfaces) return std::nullopt;
    return generation_before(catalog, to);
}

}  // namespace

void GeoPackageFlags::add_to(CLI::App& verb) {
    options.push_back(verb.add_option("--from", from,
                                      "gpkg: the generation that changes are told from (default: the one "
                                      "before)")
                          ->check(not_empty())
                          ->type_name("N|TAG|DATE"));
    options.push_back(verb.add_flag(
        "--surfaces", surfaces, "gpkg: also the surfaces that are gone, new or moved, as diff finds them"));
}

gis::LayerReport write_layers(Context& context, tiling::Catalog& catalog, const gis::LayerWish& wish,
                              const std::string& out) {
    gis::LayerReport report = gis::write_city_layers(catalog, wish, out, context.cancel());
    for (const std::string& warning : report.warnings) context.warn(warning);
    return report;
}

void export_geopackage(Context& context, const GeoPackageFlags& flags, const std::string& city,
                       std::optional<std::int64_t> generation, const std::string& out) {
    const Stopwatch watch;
    const tiling::CityReader to(city, generation);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(city).catalog());
    gis::LayerWish wish{to.generation(), to.classes(), {}};
    if (const auto from_id = changes_from(catalog, flags, to.generation().id)) {
        const tiling::CityReader from(city, *from_id);
        auto& changes = wish.changes.emplace();
        changes.from = *from_id;
        changes.from_tile_size_m = from.generation().tile_size_m;
        changes.catalog = diff::compare_catalog(catalog, from.generation(), to.generation());
        if (flags.surfaces) changes.surfaces = surfaces_between(context, catalog, {city, from, to}, {});
    }
    const gis::LayerReport report = write_layers(context, catalog, wish, out);
    const gis::LayerCounts& n = report.counts;
    context.result({{"files", {out}},
                    {"generation", to.generation().id},
                    {"changes_from", wish.changes ? nlohmann::json(wish.changes->from) : nlohmann::json()},
                    {"layers",
                     {{"tiles", n.tiles},
                      {"inputs", n.inputs},
                      {"trajectories", n.trajectories},
                      {"tile_changes", n.tile_changes},
                      {"changes", n.changes}}},
                    {"warnings", report.warnings},
                    {"seconds", watch.seconds()}},
                   out + ": " + format_count(n.tiles) + " tiles, " + format_count(n.inputs) + " inputs, " +
                       format_count(n.trajectories) + " trajectories, " + format_count(n.tile_changes) +
                       " tiles changed, " + format_count(n.changes) + " surfaces changed, " +
                       format_duration(watch.seconds()) + "\n");
}

}  // namespace citysplat::cli
