#include "citysplat/context.hpp"
#include "citysplat/verbs.hpp"
#include "tiling/care/city_care.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

void add_repair(CLI::App& app, Context& context) {
    auto city = std::make_shared<std::string>();
    CLI::App& verb = *app.add_subcommand("repair", "rebuild a lost or damaged catalog from the objects");
    verb.fallthrough();
    verb.add_option("city", *city, "directory of the city")->required();
    verb.footer(
        "Example: citysplat repair city && citysplat build city\n"
        "Nothing is deleted: the old catalog stays beside the new one, damaged objects go to damaged/.");
    verb.callback([city, &context] {
        const auto report = tiling::repair_city(*city, context.cancel());
        for (const std::string& note : report.notes) context.warn(note);
        for (const std::string& path : report.lost_inputs)
            context.warn("the points of " + path +
                         " are lost: the next build reads the file again, or must be told to --remove it");
        if (report.latest == 0)
            context.warn("no generation could be recovered, only points: build with the inputs again");
        context.result({{"generation", report.latest},
                        {"generations", report.generations},
                        {"sources", report.sources},
                        {"damaged_objects", report.damaged_objects},
                        {"set_aside", report.set_aside},
                        {"lost_inputs", report.lost_inputs},
                        {"notes", report.notes},
                        {"old_catalog", report.old_catalog}},
                       "catalog rebuilt: " + std::to_string(report.generations) + " generations, " +
                           std::to_string(report.sources) + " sources; " +
                           std::to_string(report.damaged_objects) + " damaged objects, " +
                           std::to_string(report.set_aside) + " of them set aside to be made again\n");
    });
}

}  // namespace citysplat::cli
