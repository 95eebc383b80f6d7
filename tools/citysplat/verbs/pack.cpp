#include "tiling/care/pack.hpp"

#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/file.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

struct PackFlags {
    std::string city, file;
    bool overwrite = false;
    GenerationFlag generation;
};

void show(Context& context, const tiling::PackReport& report) {
    context.result({{"generation", report.generation}, {"objects", report.objects}, {"bytes", report.bytes}},
                   "generation " + std::to_string(report.generation) + ", " + format_count(report.objects) +
                       " objects, " + format_bytes(report.bytes) + "\n");
}

}  // namespace

void add_pack(CLI::App& app, Context& context) {
    auto flags = std::make_shared<PackFlags>();
    CLI::App& verb = *app.add_subcommand("pack", "write a generation of a city into one file");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option("file", flags->file, "file to write")->required();
    verb.add_flag("--overwrite", flags->overwrite, "replace the file if it is a packed city");
    flags->generation.add_to(verb);
    verb.footer("Example: citysplat pack city city.pack --generation survey-2026");
    verb.callback([flags, &context] {
        show(context, tiling::pack_city(flags->city, flags->file, context.cancel(), context.progress(),
                                        {.overwrite = flags->overwrite,
                                         .generation = flags->generation.number(flags->city)}));
    });
}

void add_unpack(CLI::App& app, Context& context) {
    auto flags = std::make_shared<PackFlags>();
    CLI::App& verb = *app.add_subcommand("unpack", "make a city from a packed one");
    verb.fallthrough();
    verb.add_option("file", flags->file, "packed city")->required();
    verb.add_option("city", flags->city, "directory to create")->required();
    verb.footer("Example: citysplat unpack city.pack city");
    verb.callback([flags, &context] {
        require_file(flags->file);
        show(context, tiling::unpack_city(flags->file, flags->city, context.cancel(), context.progress()));
    });
}

}  // namespace citysplat::cli
