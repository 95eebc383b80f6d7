#include "citysplat/context.hpp"
#include "citysplat/generations/diff_report.hpp"
#include "citysplat/generations/product_flag.hpp"
#include "citysplat/generations/surface_changes.hpp"
#include "citysplat/generations/text_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/places/geopackage.hpp"
#include "citysplat/verbs.hpp"
#include "core/error.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/care/own_files.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/product_kinds.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

using nlohmann::json;

struct DiffFlags {
    std::string city, from, to = "latest", layers;
    bool splats = false, surfaces = false;
    diff::SurfaceDiffOptions options;
};

json side(const tiling::GenerationRow& g) {
    return {{"generation", g.id}, {"created", utc_text(g.created_s)},
            {"note", g.note},     {"tags", tiling::tags_of(g)},
            {"tiles", g.tiles},   {"splats", g.splats},
            {"points", g.points}, {"digest", g.digest.hex()}};
}

void run(Context& context, const DiffFlags& f) {
    const Stopwatch watch;
    if (!f.layers.empty()) tiling::refuse_files_of_city(f.layers);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(f.city).catalog());
    const std::int64_t to_id = tiling::find_generation(catalog, f.to).id;
    const std::int64_t from_id =
        f.from.empty() ? generation_before(catalog, to_id) : tiling::find_generation(catalog, f.from).id;
    // Both stay pinned while they are read.
    // What both have; splats if they do.
    const ProductFlag any;
    const bool both_have_splats =
        any.kind(f.city, from_id) == ProductKind::splats && any.kind(f.city, to_id) == ProductKind::splats;
    if ((f.splats || f.surfaces || !f.layers.empty()) && !both_have_splats)
        throw UsageError(
            f.city +
            ": --splats, --surfaces and --layers are about splats, and one of the generations has none");
    const tiling::CityReader from(f.city, from_id, any.kind(f.city, from_id)),
        to(f.city, to_id, any.kind(f.city, to_id));
    gis::LayerChanges changes{from_id, from.generation().tile_size_m,
                              diff::compare_catalog(catalog, from.generation(), to.generation()),
                              std::nullopt};
    json result = diff_json(changes.catalog);
    result["from"] = side(from.generation());
    result["to"] = side(to.generation());
    if (f.splats) {
        const tiling::ObjectStore store{tiling::CityPaths(f.city)};
        result["splat_diff"] = diff_json(
            diff::compare_splats(store, tiling::of_kind(catalog.tiles(from_id), ProductKind::splats),
                                 tiling::of_kind(catalog.tiles(to_id), ProductKind::splats),
                                 context.memory_bytes(), context.cancel()),
            to.classes());
    }
    if (f.surfaces) {
        changes.surfaces = surfaces_between(context, catalog, {f.city, from, to}, f.options);
        result["surfaces"] = diff_json(*changes.surfaces, to.classes());
    }
    if (!f.layers.empty()) {
        write_layers(context, catalog, {to.generation(), to.classes(), std::move(changes)}, f.layers);
        result["files"] = {f.layers};
    }
    result["seconds"] = watch.seconds();
    context.result(result, diff_text(result));
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
    auto flags = std::make_shared<DiffFlags>();
    CLI::App& verb = *app.add_subcommand("diff", "what differs between two generations of a city");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option("from", flags->from, "the earlier generation (default: the one before the other)")
        ->check(not_empty())
        ->type_name("N|TAG|DATE");
    verb.add_option("to", flags->to, "the later generation")
        ->check(not_empty())
        ->capture_default_str()
        ->type_name("N|TAG|DATE");
    verb.add_flag("--splats", flags->splats,
                  "also count splats that only one of them has, by class and tile");
    verb.add_flag(
        "--surfaces", flags->surfaces,
        "also find surfaces that are gone, new or moved: where rays of the new inputs pass through what "
        "was there, and rays of the old ones through what is there now");
    verb.add_option("--registration", flags->options.registration_m,
                    "with --surfaces: how far one surface may be from itself because poses are not exact")
        ->check(in_range({0, 0.4, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--least-area", flags->options.least_area_m2,
                    "with --surfaces: leave out smaller changes")
        ->check(in_range({0, 1e6, "m²"}))
        ->capture_default_str()
        ->type_name("M2");
    verb.add_option("--layers", flags->layers,
                    "also write what export --format gpkg writes, with these changes, to this file")
        ->check(not_empty())
        ->type_name("FILE.gpkg");
    verb.footer(
        "Example: citysplat diff city 2026-11-01 latest --surfaces\n"
        "Without flags only the catalog is read: inputs, tiles and why they changed, in less than a second.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
