#include "citysplat/context.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "tiling/care/city_care.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

struct GcFlags {
    std::string city;
    std::size_t keep = 3;
    bool dry_run = false;
};

void run(Context& context, const GcFlags& flags) {
    const auto report = tiling::collect_garbage(flags.city, flags.keep, flags.dry_run);
    if (report.foreign > 0)
        context.warn(format_count(report.foreign) +
                     " files among the objects do not begin like objects of citysplat; they were left alone");
    context.result({{"freed_bytes", report.freed_bytes},
                    {"objects", report.objects},
                    {"forgotten", report.forgotten},
                    {"pinned", report.pinned},
                    {"foreign", report.foreign},
                    {"dry_run", flags.dry_run}},
                   std::string(flags.dry_run ? "would free " : "freed ") + format_bytes(report.freed_bytes) +
                       " in " + format_count(report.objects) + " objects, " +
                       format_count(report.forgotten.size()) + " generations forgotten, " +
                       format_count(report.pinned.size()) + " kept for readers\n");
}

}  // namespace

void add_gc(CLI::App& app, Context& context) {
    auto flags = std::make_shared<GcFlags>();
    CLI::App& verb = *app.add_subcommand("gc", "forget old generations and remove what only they used");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option("--keep", flags->keep, "generations to keep")
        ->check(whole_from(1, 1'000'000))
        ->capture_default_str()
        ->type_name("N");
    verb.add_flag("--dry-run", flags->dry_run, "say what would be freed");
    verb.footer(
        "Example: citysplat gc city --keep 1\n"
        "Generations that somebody reads at this moment stay. Work of an interrupted build goes;\n"
        "what shards have built for the next publish stays.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
