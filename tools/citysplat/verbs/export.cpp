#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/generations/product_flag.hpp"
#include "citysplat/places/ept.hpp"
#include "citysplat/places/geopackage.hpp"
#include "citysplat/places/region_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/file.hpp"
#include "core/output_file.hpp"
#include "io/las/laslib.hpp"
#include "io/write/export_mesh.hpp"
#include "io/write/export_splats.hpp"
#include "io/write/gltf/export_glb.hpp"
#include "io/write/point_sink.hpp"
#include "model/region/region_source.hpp"
#include "splat/recipe.hpp"
#include "tiling/care/own_files.hpp"
#include "tiling/carve/carved_points.hpp"
#include "tiling/store/city_reader.hpp"
#include "view/tiles3d/mesh_tileset.hpp"
#include "view/tiles3d/splat_tileset.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>

namespace citysplat::cli {

namespace {

struct ExportFlags {
    std::string city, format = "ply", out;
    bool removed = false, per_tile = false, no_extra_bytes = false;
    GenerationFlag generation;
    ProductFlag product;
    RegionFlags region;
    GeoPackageFlags layers;
};

/// Through a LAS file, which does not stay.
template <class Write>
std::uint64_t write_laz(const std::filesystem::path& path, const CancelToken& cancel, const Write& write) {
    OutputFile out(path);
    const std::filesystem::path las = std::filesystem::path(out.partial()) += ".las";
    const std::shared_ptr<const void> removal(nullptr, [&las](const void*) { ::unlink(las.c_str()); });
    const std::uint64_t splats = write("las", las);
    io::compress_las(las, out.partial(), cancel);
    out.commit(true);
    return splats;
}

/// The points that carving left out, as a cloud.
std::uint64_t write_removed(Context& context, const ExportFlags& f, const std::string& format,
                            const std::filesystem::path& path) {
    const auto cloud = tiling::open_removed_cloud(f.city, f.generation.number(f.city));
    OutputFile out(path);
    const SinkOptions options{.crs = cloud->info().crs, .wide_labels = true};
    const auto sink =
        format == "las" ? create_las(out.partial(), options) : create_ply(out.partial(), options);
    PointBatch batch;
    Progress::Stage stage(context.progress(), "removed points", cloud->block_count(), "blocks");
    for (std::size_t block = 0; block < cloud->block_count(); ++block) {
        context.cancel().check();
        cloud->read_block(block, batch);
        if (batch.size() > 0) sink->write(batch);
        stage.advance(1);
    }
    sink->finish();
    out.commit(true);
    return sink->points();
}

void run_removed(Context& context, const ExportFlags& f) {
    const Stopwatch watch;
    const auto recipe = splat::remembered_recipe(f.city, f.generation.number(f.city));
    if (recipe && !recipe->carve)
        throw UsageError(f.city + " was built without carving: nothing was left out; build --carve does it");
    if (f.format != "ply" && f.format != "las" && f.format != "laz")
        throw UsageError("--removed are points: --format ply, las or laz");
    const auto write = [&](const std::string& format, const std::filesystem::path& path) {
        return write_removed(context, f, format, path);
    };
    if (f.format == "laz") io::require_laz_writing();
    const std::uint64_t points =
        f.format == "laz" ? write_laz(f.out, context.cancel(), write) : write(f.format, f.out);
    context.result(
        {{"points", points}, {"files", {f.out}}, {"seconds", watch.seconds()}},
        f.out + ": " + format_count(points) + " points, " + format_duration(watch.seconds()) + "\n");
}

/// What went into files; of a city of splats their number is that of the vertices.
using Written = io::GlbCounts;

Written write_file(Context& context, const ExportFlags& f, const TileSource& city,
                   const std::filesystem::path& path) {
    if (f.format == "glb") return io::export_glb(city, path, context.cancel(), context.progress());
    if (has_triangles(city.kind())) {
        const io::ExportedMesh made = io::export_mesh_ply(city, path, context.cancel(), context.progress());
        return {made.vertices, made.triangles};
    }
    const auto write = [&](const std::string& format, const std::filesystem::path& file) {
        const io::ExportFormat how =
            f.no_extra_bytes ? io::ExportFormat::plain_las : io::export_format_from(format);
        return io::export_splats(city, how, file, context.cancel(), context.progress());
    };
    return {f.format == "laz" ? write_laz(path, context.cancel(), write) : write(f.format, path), 0};
}

void check_plain_las(Context& context, const ExportFlags& f, const ClassMap& classes) {
    if (!f.no_extra_bytes) return;
    if (f.format != "las" && f.format != "laz")
        throw UsageError("--no-extra-bytes is about LAS files: --format las or laz");
    if (!classes.classes().empty() && classes.classes().rbegin()->first > 255)
        context.warn("a LAS point without extra bytes has no room for labels above 255: they become 0");
}

std::shared_ptr<const TileSource> open_city(const ExportFlags& f) {
    const auto generation = f.generation.number(f.city);
    return f.region.cut(
        std::make_shared<tiling::CityReader>(f.city, generation, f.product.kind(f.city, generation)));
}

/// A directory instead of a file.
void run_tileset(Context& context, const ExportFlags& f) {
    const Stopwatch watch;
    const auto city = open_city(f);
    const bool is_mesh = has_triangles(city->kind());
    const view::WrittenTileset written =
        is_mesh ? view::write_mesh_tileset(*city, f.out, context.cancel(), context.progress())
                : view::write_splat_tileset(*city, f.out, context.cancel(), context.progress());
    const std::string tileset = (std::filesystem::path(f.out) / "tileset.json").string();
    const char* what = is_mesh ? "triangles" : "splats";
    const std::uint64_t count = is_mesh ? written.triangles : written.points;
    context.result(
        {{what, count}, {"contents", written.contents}, {"files", {tileset}}, {"seconds", watch.seconds()}},
        tileset + ": " + format_count(count) + " " + what + ", " + format_count(written.contents) +
            " contents, " + format_duration(watch.seconds()) + "\n");
}

void run(Context& context, const ExportFlags& f) {
    tiling::refuse_files_of_city(f.out);
    if (f.removed && (f.region.given() || f.per_tile || f.no_extra_bytes))
        throw UsageError("--removed has neither a region nor tiles, and its points have no extra bytes");
    const bool layers = f.format == "gpkg";
    for (const CLI::Option* option : f.layers.options)
        if (option->count() > 0 && !layers)
            throw UsageError(option->get_name() + " belongs to --format gpkg");
    if (layers || f.format == "ept") {
        if (f.removed || f.region.given() || f.per_tile || f.no_extra_bytes)
            throw UsageError("--format " + f.format +
                             " is about a whole generation: neither a region, --per-tile, --removed nor "
                             "--no-extra-bytes");
        const auto generation = f.generation.number(f.city);
        return layers ? export_geopackage(context, f.layers, f.city, generation, f.out)
                      : export_ept(context, f.city, generation, f.out);
    }
    if (f.format == "3dtiles" && (f.per_tile || f.no_extra_bytes))
        throw UsageError("--format 3dtiles is one tileset: neither --per-tile nor --no-extra-bytes");
    if (f.removed) return run_removed(context, f);
    if (f.format == "3dtiles") return run_tileset(context, f);
    const Stopwatch watch;
    if (f.format == "laz") io::require_laz_writing();
    const auto city = open_city(f);
    const bool is_mesh = has_triangles(city->kind());
    if (is_mesh && f.format != "ply" && f.format != "glb")
        throw UsageError("--format " + f.format +
                         " holds no triangles; a mesh is exported with --format ply, glb or 3dtiles");
    check_plain_las(context, f, city->classes());
    std::vector<std::string> files;
    Written written;
    if (!f.per_tile) {
        written = write_file(context, f, *city, f.out);
        files.push_back(f.out);
    } else {
        create_directories_durably(f.out);
        const std::string extension = f.format == "2dgs" ? ".ply" : "." + f.format;
        for (std::size_t i = 0; i < city->tiles().size(); ++i) {
            const std::filesystem::path file =
                std::filesystem::path(f.out) / (file_name_of(city->tiles()[i].key) + extension);
            const Written more = write_file(context, f, OneTile(*city, i), file);
            written.vertices += more.vertices;
            written.triangles += more.triangles;
            files.push_back(file.string());
        }
    }
    const std::string where =
        files.size() == 1 ? files[0] : format_count(files.size()) + " files in " + f.out;
    nlohmann::json result{{"files", files}, {"seconds", watch.seconds()}};
    if (is_mesh)
        result["triangles"] = written.triangles, result["vertices"] = written.vertices;
    else
        result["splats"] = written.vertices;
    const std::string what = is_mesh ? format_count(written.triangles) + " triangles, " +
                                           format_count(written.vertices) + " vertices"
                                     : format_count(written.vertices) + " splats";
    context.result(result, where + ": " + what + ", " + format_duration(watch.seconds()) + "\n");
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
    auto flags = std::make_shared<ExportFlags>();
    ExportFlags& f = *flags;
    CLI::App& verb =
        *app.add_subcommand("export", "splats or mesh of a city for other tools, or the points it left out");
    verb.fallthrough();
    verb.add_option("city", f.city, "directory of the city")->required();
    verb.add_option(
            "--format", f.format,
            "ply (discs, or the triangles of a mesh), 2dgs (2-D Gaussian splatting); centres, or triangles: "
            "glb, 3dtiles (a directory, with levels of detail); centres: las, laz, ept (a "
            "directory of octree nodes, of which the next export "
            "rewrites what changed); gpkg: no splats, but tiles, inputs, trajectories and changes for "
            "map programs")
        ->check(CLI::IsMember({"ply", "2dgs", "las", "laz", "glb", "3dtiles", "ept", "gpkg"}))
        ->capture_default_str();
    verb.add_option("--out", f.out, "file to write; 3dtiles, ept and --per-tile: a directory")->required();
    verb.add_flag("--per-tile", f.per_tile, "a file for each tile, named after it: 0_12_-7.ply");
    verb.add_flag("--no-extra-bytes", f.no_extra_bytes,
                  "las, laz: places, intensities and classes alone, for readers that stumble over more");
    f.region.add_to(verb, "splats");
    f.layers.add_to(verb);
    verb.add_flag("--removed", f.removed,
                  "the points that were left out because rays saw through them, instead of splats");
    f.generation.add_to(verb);
    f.product.add_to(verb);
    verb.footer("Example: citysplat export city --format 2dgs --out city.ply");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
