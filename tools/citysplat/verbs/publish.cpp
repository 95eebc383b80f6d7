#include "citysplat/building/work_report.hpp"
#include "citysplat/context.hpp"
#include "citysplat/generations/gate_flags.hpp"
#include "citysplat/generations/text_flags.hpp"
#include "citysplat/thickness_report.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "tiling/build/publisher.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

void add_publish(CLI::App& app, Context& context) {
    struct Flags {
        std::string city, accept;
        ThicknessGate thickness;
        GateFlags gates;
        bool keep_old = false;
    };
    auto flags = std::make_shared<Flags>();
    CLI::App& verb =
        *app.add_subcommand("publish", "make a generation of what workers have made of the plan");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_flag("--keep-old-for-failed", flags->keep_old,
                  "where a tile could not be made, keep that of the latest generation");
    verb.add_option("--accept", flags->accept,
                    "publish the plan that gates held back; its name, or the first digits of it")
        ->check(not_empty())
        ->type_name("ID");
    flags->thickness.add_to(verb);
    flags->gates.add_to(verb);
    flags->gates.add_failed_to(verb);
    verb.footer(
        "Example: citysplat plan city drive && citysplat work city && citysplat publish city\n"
        "Exit code 75 while tiles are missing, 65 when tiles could not be made, 76 when a gate holds the "
        "plan\n"
        "back: then it stays open, and publish --accept ID lets it through. Nothing new makes no "
        "generation.");
    verb.callback([flags, &context] {
        tiling::PublishOptions options;
        options.keep_old_for_failed = flags->keep_old;
        options.accept = flags->accept;
        options.gate = flags->thickness.gate();
        options.gates = flags->gates.gates(context.cancel());
        if (!options.accept.empty() && (options.gate || !options.gates.empty()))
            throw UsageError("--accept lets a plan through: leave out the gates");
        const auto report = tiling::publish_plan(flags->city, options);
        const std::string plan = report.plan == Hash128{} ? "" : report.plan.hex().substr(0, 12);
        nlohmann::json kept = nlohmann::json::array();
        for (const auto& tile : report.kept_old) {
            kept.push_back({{"tile", tile.tile.text()}, {"message", tile.message}});
            context.warn("tile " + tile.tile.text() + " is the old one; the new one failed " + tile.message);
        }
        for (const auto& gate : report.gates) context.say(gate.text);
        nlohmann::json result{{"generation", report.generation},
                              {"published", report.published},
                              {"gates", gates_json(report.gates)},
                              {"plan", plan.empty() ? nlohmann::json() : nlohmann::json(plan)},
                              {"tiles_total", report.tiles},
                              {"tiles_kept_old", kept},
                              {"splats", report.splats},
                              {"triangles", report.triangles},
                              {"digest", report.digest.hex()}};
        if (report.held_back) result["held_back"] = *report.held_back;
        context.result(result, (report.held_back ? "held back, " : std::string()) + "generation " +
                                   std::to_string(report.generation) +
                                   (report.published   ? ": "
                                    : report.held_back ? " stays: "
                                                       : " (unchanged): ") +
                                   made_text(report.splats, report.triangles) + " in " +
                                   format_count(report.tiles) + " tiles, digest " + report.digest.hex() +
                                   "\n");
        if (report.held_back)
            throw HeldBackError(*report.held_back +
                                "; nothing was published, the plan stays open: citysplat publish " +
                                flags->city + " --accept " + plan + " lets it through");
    });
}

}  // namespace citysplat::cli
