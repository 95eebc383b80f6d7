#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/output_file.hpp"
#include "io/las/laslib.hpp"
#include "io/write/export_splats.hpp"
#include "io/write/gltf/export_glb.hpp"
#include "io/write/point_sink.hpp"
#include "splat/recipe.hpp"
#include "tiling/care/own_files.hpp"
#include "tiling/carve/carved_points.hpp"
#include "tiling/store/city_reader.hpp"
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
    bool removed = false;
    GenerationFlag generation;
};

/// Through a LAS file, which does not stay.
template <class Write>
std::uint64_t write_laz(const std::filesystem::path& path, const Write& write) {
    OutputFile out(path);
    const std::filesystem::path las = std::filesystem::path(out.partial()) += ".las";
    const std::shared_ptr<const void> removal(nullptr, [&las](const void*) { ::unlink(las.c_str()); });
    const std::uint64_t splats = write("las", las);
    io::compress_las(las, out.partial());
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
    const std::uint64_t points = f.format == "laz" ? write_laz(f.out, write) : write(f.format, f.out);
    context.result(
        {{"points", points}, {"files", {f.out}}, {"seconds", watch.seconds()}},
        f.out + ": " + format_count(points) + " points, " + format_duration(watch.seconds()) + "\n");
}

/// A directory instead of a file.
void run_tileset(Context& context, const ExportFlags& f) {
    const Stopwatch watch;
    const tiling::CityReader city(f.city, f.generation.number(f.city));
    const view::WrittenTileset written =
        view::write_splat_tileset(city, f.out, context.cancel(), context.progress());
    const std::string tileset = (std::filesystem::path(f.out) / "tileset.json").string();
    context.result({{"splats", written.points},
                    {"contents", written.contents},
                    {"files", {tileset}},
                    {"seconds", watch.seconds()}},
                   tileset + ": " + format_count(written.points) + " splats, " +
                       format_count(written.contents) + " contents, " + format_duration(watch.seconds()) +
                       "\n");
}

void run(Context& context, const ExportFlags& f) {
    tiling::refuse_files_of_city(f.out);
    if (f.removed) return run_removed(context, f);
    if (f.format == "3dtiles") return run_tileset(context, f);
    const Stopwatch watch;
    const bool laz = f.format == "laz";
    if (laz) io::require_laz_writing();
    const tiling::CityReader city(f.city, f.generation.number(f.city));
    const auto write = [&](const std::string& format, const std::filesystem::path& path) {
        if (format == "glb") return io::export_glb(city, path, context.cancel(), context.progress());
        return io::export_splats(city, io::export_format_from(format), path, context.cancel(),
                                 context.progress());
    };
    const std::uint64_t splats = laz ? write_laz(f.out, write) : write(f.format, f.out);
    context.result(
        {{"splats", splats}, {"files", {f.out}}, {"seconds", watch.seconds()}},
        f.out + ": " + format_count(splats) + " splats, " + format_duration(watch.seconds()) + "\n");
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
    auto flags = std::make_shared<ExportFlags>();
    ExportFlags& f = *flags;
    CLI::App& verb =
        *app.add_subcommand("export", "splats of a city for other tools, or the points it left out");
    verb.fallthrough();
    verb.add_option("city", f.city, "directory of the city")->required();
    verb.add_option(
            "--format", f.format,
            "ply (discs), 2dgs (2-D Gaussian splatting); centres: las, laz, glb, 3dtiles (a directory, "
            "with levels of detail)")
        ->check(CLI::IsMember({"ply", "2dgs", "las", "laz", "glb", "3dtiles"}))
        ->capture_default_str();
    verb.add_option("--out", f.out, "file to write; with --format 3dtiles a directory")->required();
    verb.add_flag("--removed", f.removed,
                  "the points that were left out because rays saw through them, instead of splats");
    f.generation.add_to(verb);
    verb.footer("Example: citysplat export city --format 2dgs --out city.ply");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
