#include "citysplat/context.hpp"
#include "citysplat/verbs.hpp"
#include "tiling/city_care.hpp"

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
    verb.footer("Example: citysplat repair city && citysplat build city");
    verb.callback([city, &context] {
        const auto report = tiling::repair_city(*city, context.cancel());
        for (const std::string& path : report.lost_inputs)
            context.warn("the points of " + path + " are lost: build with it again");
        context.result({{"generation", report.latest},
                        {"generations", report.generations},
                        {"sources", report.sources},
                        {"damaged_objects", report.damaged_objects},
                        {"lost_inputs", report.lost_inputs}},
                       "catalog rebuilt: " + std::to_string(report.generations) + " generations, " +
                           std::to_string(report.sources) + " sources; " +
                           std::to_string(report.damaged_objects) + " damaged objects removed\n");
    });
}

}  // namespace citysplat::cli
