#include "citysplat/context.hpp"
#include "citysplat/generations/text_flags.hpp"
#include "citysplat/verbs.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/generations.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

void add_rollback(CLI::App& app, Context& context) {
    struct Flags {
        std::string city, generation;
    };
    auto flags = std::make_shared<Flags>();
    CLI::App& verb = *app.add_subcommand("rollback", "make an earlier generation the current one again");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option("generation", flags->generation,
                    "its number, a tag or a date (default: the one before the latest)")
        ->check(not_empty())
        ->type_name("N|TAG|DATE");
    verb.footer(
        "Example: citysplat rollback city 12\n"
        "The old content becomes a new generation; nothing is lost. The next build reads inputs that have\n"
        "changed since then again: remove or restore the ones you rolled back from.");
    verb.callback([flags, &context] {
        const std::int64_t generation =
            tiling::roll_back(flags->city, tiling::generation_number(flags->city, flags->generation));
        context.result({{"generation", generation}}, "generation " + std::to_string(generation) + "\n");
    });
}

}  // namespace citysplat::cli
