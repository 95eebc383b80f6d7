#include "citysplat/context.hpp"
#include "citysplat/thickness_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "tiling/build/shards.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

void add_publish(CLI::App& app, Context& context) {
    auto city = std::make_shared<std::string>();
    auto thickness = std::make_shared<ThicknessGate>();
    CLI::App& verb = *app.add_subcommand("publish", "make a generation of what `build --shard` has built");
    verb.fallthrough();
    verb.add_option("city", *city, "directory of the city")->required();
    thickness->add_to(verb);
    verb.footer(
        "Example: citysplat build city drive --shard 1/2 & citysplat build city drive --shard 2/2 & wait\n"
        "         citysplat publish city\n"
        "Exit code 75 when shards are missing.");
    verb.callback([city, thickness, &context] {
        const auto report = tiling::publish_shards(*city, thickness->gate());
        context.result({{"generation", report.generation},
                        {"shards", report.shards},
                        {"tiles_total", report.tiles},
                        {"splats", report.splats},
                        {"digest", report.digest.hex()}},
                       "generation " + std::to_string(report.generation) + ": " +
                           format_count(report.splats) + " splats in " + format_count(report.tiles) +
                           " tiles from " + std::to_string(report.shards) + " shards, digest " +
                           report.digest.hex() + "\n");
    });
}

}  // namespace citysplat::cli
