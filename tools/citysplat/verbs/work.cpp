#include "citysplat/building/build_flags.hpp"
#include "citysplat/building/work_report.hpp"
#include "citysplat/context.hpp"
#include "citysplat/verbs.hpp"
#include "tiling/store/city_paths.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

std::string why_not_duration(const std::string& text) {
    return parse_duration(text) ? "" : "\"" + text + "\" is not a time like 90s, 50m or 2h, a year at most";
}

}  // namespace

void add_work(CLI::App& app, Context& context) {
    struct Flags {
        std::string city, time, shard;
    };
    auto flags = std::make_shared<Flags>();
    CLI::App& verb = *app.add_subcommand("work", "make tiles of the plan of a city, beside other workers");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option("--for", flags->time, "begin no tile after this time, as 90s, 50m or 2h")
        ->check(why_not_duration)
        ->type_name("TIME");
    verb.add_option("--shard", flags->shard, "where to begin: K/N, or auto; others may do it all the same")
        ->type_name("K/N");
    verb.footer(
        "Example: citysplat plan city drive && citysplat work city & citysplat work city & wait\n"
        "         citysplat publish city\n"
        "Any number of workers, on any number of hosts that see the directory, at any time. They need\n"
        "neither the inputs nor the catalog. Exit code 75: run it again (tiles are left); 65: tiles failed.");
    verb.callback([flags, &context] {
        tiling::require_city(tiling::CityPaths(flags->city));
        keep_memory_between_tiles(context.memory_bytes());
        tiling::WorkOptions options = work_options(context);
        if (!flags->shard.empty()) options.begin_with = parse_shard(flags->shard);
        if (!flags->time.empty())
            options.until = std::chrono::steady_clock::now() +
                            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                std::chrono::duration<double>(*parse_duration(flags->time)));
        do_work(context, flags->city, options);
    });
}

}  // namespace citysplat::cli
