#include "citysplat/building/build_flags.hpp"
#include "citysplat/building/work_report.hpp"
#include "citysplat/context.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/filesystem_check.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

using nlohmann::json;

struct PlanWish {
    BuildFlags flags;
    double price = 0;
    bool discard = false;
};

/// The directory itself, or the one in which it will be made.
std::filesystem::path nearest_directory(const std::filesystem::path& city) {
    std::filesystem::path path = std::filesystem::absolute(city);
    while (!std::filesystem::is_directory(path) && path.has_relative_path()) path = path.parent_path();
    return path;
}

void discard(Context& context, const std::string& city) {
    const tiling::CityPaths paths(city);
    tiling::require_city(paths);
    const auto lock = tiling::CityLock::builder(paths, "plan --discard");
    const auto open = tiling::name_of_open_plan(paths);
    tiling::close_plan(paths);
    context.result({{"discarded", open ? json(open->hex()) : json()}},
                   open ? "plan " + open->hex().substr(0, 12) + " is forgotten; gc removes what was made\n"
                        : "nothing is planned\n");
}

void run(Context& context, const PlanWish& wish) {
    const std::string& city = wish.flags.city();
    if (wish.discard) return discard(context, city);
    tiling::require_safe_filesystem(nearest_directory(city));
    const mesh::CityRecipe recipe = wish.flags.recipe();
    const tiling::BuildOptions options = wish.flags.options(recipe, context);
    const auto processor = mesh::make_processor(recipe);
    const auto report = tiling::plan_city(city, *processor, options, context.cancel(), context.progress());
    for (const std::string& line : report.build.warnings) context.warn(line);
    if (!report.open) {
        context.result({{"plan", json()}, {"tiles_planned", 0}, {"generation", report.build.generation}},
                       "generation " + std::to_string(report.build.generation) +
                           " is up to date: there is nothing to do\n");
        return;
    }
    json plan = plan_json(*report.open);
    plan["joined"] = report.joined;
    plan["generation"] = report.open->plan.draft.generation.id;
    std::string text = plan_text(report) + ", " + format_bytes(plan["bytes_written"]) + " to write; up to " +
                       format_count(plan["workers"]) + " workers pay\n";
    if (wish.price > 0) {
        plan["cost"] = plan["core_seconds"].get<double>() / 3600 * wish.price;
        char cost[64];
        std::snprintf(cost, sizeof cost, "about %.2f at %g a core-hour\n", plan["cost"].get<double>(),
                      wish.price);
        text += cost;
    }
    context.result(plan, text + "citysplat work makes the tiles, citysplat publish the generation\n");
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
    auto wish = std::make_shared<PlanWish>();
    CLI::App& verb = *app.add_subcommand(
        "plan", "read the inputs of a city and freeze the work for any number of workers");
    verb.fallthrough();
    wish->flags.add_to(verb);
    verb.add_option("--price", wish->price, "of a core-hour: prints what the plan will cost")
        ->check(in_range({0, 1e6}))
        ->type_name("PRICE");
    verb.add_flag("--discard", wish->discard, "forget the open plan instead");
    verb.footer(
        "Example: citysplat plan city drive/*.las --trajectory drive/trajectory.tum\n"
        "         citysplat work city (as often, and on as many hosts, as you like)\n"
        "         citysplat publish city\n"
        "What workers of an earlier plan have made is used again. Inputs that change later are for the next\n"
        "plan.");
    verb.callback([wish, &context] { run(context, *wish); });
}

}  // namespace citysplat::cli
