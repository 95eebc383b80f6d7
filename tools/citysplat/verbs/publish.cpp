#include "citysplat/context.hpp"
#include "citysplat/thickness_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "tiling/build/publisher.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

void add_publish(CLI::App& app, Context& context) {
    struct Flags {
        std::string city;
        ThicknessGate thickness;
        bool keep_old = false;
    };
    auto flags = std::make_shared<Flags>();
    CLI::App& verb =
        *app.add_subcommand("publish", "make a generation of what workers have made of the plan");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_flag("--keep-old-for-failed", flags->keep_old,
                  "where a tile could not be made, keep that of the latest generation");
    flags->thickness.add_to(verb);
    verb.footer(
        "Example: citysplat plan city drive && citysplat work city && citysplat publish city\n"
        "Exit code 75 while tiles are missing, 65 when tiles could not be made. Nothing new makes no\n"
        "generation.");
    verb.callback([flags, &context] {
        const auto report = tiling::publish_plan(flags->city, {flags->thickness.gate(), flags->keep_old});
        nlohmann::json kept = nlohmann::json::array();
        for (const auto& tile : report.kept_old) {
            kept.push_back({{"tile", tile.tile.text()}, {"message", tile.message}});
            context.warn("tile " + tile.tile.text() + " is the old one; the new one failed " + tile.message);
        }
        context.result({{"generation", report.generation},
                        {"published", report.published},
                        {"tiles_total", report.tiles},
                        {"tiles_kept_old", kept},
                        {"splats", report.splats},
                        {"digest", report.digest.hex()}},
                       "generation " + std::to_string(report.generation) +
                           (report.published ? ": " : " (unchanged): ") + format_count(report.splats) +
                           " splats in " + format_count(report.tiles) + " tiles, digest " +
                           report.digest.hex() + "\n");
    });
}

}  // namespace citysplat::cli
