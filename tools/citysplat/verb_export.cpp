#include "citysplat/context.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/formats/laz/laslib.hpp"
#include "sim/export.hpp"
#include "tiling/city_reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

struct ExportFlags {
    std::string city, format = "ply", out;
};

void run(Context& context, const ExportFlags& f) {
    const Stopwatch watch;
    const bool laz = f.format == "laz";
    if (laz) formats::require_laz_writing();
    const tiling::CityReader city(f.city);
    std::filesystem::path path = f.out;
    if (laz) path.replace_extension(".las");
    const std::uint64_t splats = sim::export_splats(city, sim::export_format_from(laz ? "las" : f.format),
                                                    path, context.cancel(), context.progress());
    if (laz) std::filesystem::rename(formats::replace_by_laz(path), f.out);
    context.result(
        {{"splats", splats}, {"files", {f.out}}, {"seconds", watch.seconds()}},
        f.out + ": " + format_count(splats) + " splats, " + format_duration(watch.seconds()) + "\n");
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
    auto flags = std::make_shared<ExportFlags>();
    ExportFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand("export", "splats of a city for other tools");
    verb.fallthrough();
    verb.add_option("city", f.city, "directory of the city")->required();
    verb.add_option("--format", f.format, "ply (discs), 2dgs (2-D Gaussian splatting), las or laz (centres)")
        ->check(CLI::IsMember({"ply", "2dgs", "las", "laz"}))
        ->capture_default_str();
    verb.add_option("--out", f.out, "file to write")->required();
    verb.footer("Example: citysplat export city --format 2dgs --out city.ply");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
