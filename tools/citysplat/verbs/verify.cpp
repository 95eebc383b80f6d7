#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "tiling/care/city_care.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

struct VerifyFlags {
    std::string city;
    bool deep = false, set_aside = false;
    GenerationFlag generation;
};

void run(Context& context, const VerifyFlags& flags) {
    const auto report = tiling::verify_city(flags.city, flags.deep, context.cancel(), context.progress(),
                                            flags.generation.number(flags.city));
    nlohmann::json corrupt = nlohmann::json::array();
    for (const auto& damage : report.corrupt) {
        corrupt.push_back(
            {{"what", damage.what}, {"object", damage.object.hex()}, {"problem", damage.problem}});
        context.warn(damage.what + ": " + damage.problem +
                     (damage.object == Hash128{} ? "" : " (object " + damage.object.hex() + ")"));
    }
    for (const std::string& note : report.notes) context.warn(note);
    const std::uint64_t set_aside =
        flags.set_aside ? tiling::set_damaged_aside(flags.city, report.corrupt, context.cancel()) : 0;
    context.result({{"checked", report.checked},
                    {"checked_bytes", report.checked_bytes},
                    {"deep", flags.deep},
                    {"corrupt", corrupt},
                    {"notes", report.notes},
                    {"set_aside", set_aside}},
                   format_count(report.checked) + " objects checked, " + format_count(report.corrupt.size()) +
                       " damaged\n");
    if (report.corrupt.empty()) return;
    throw CorruptionError(
        flags.city + " is damaged; " +
        (flags.set_aside
             ? format_count(set_aside) + " objects were set aside, the next citysplat build makes them again"
             : std::string(
                   "citysplat verify --set-aside moves what can be made again out of the way, and the "
                   "next build makes it; citysplat repair rebuilds the catalog")));
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
    auto flags = std::make_shared<VerifyFlags>();
    CLI::App& verb = *app.add_subcommand("verify", "check the integrity of a city");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_flag("--deep", flags->deep, "read and check every byte and every row, not only names and sizes");
    verb.add_flag("--set-aside", flags->set_aside,
                  "move damaged objects that can be made again to damaged/, for the next build");
    flags->generation.add_to(verb);
    verb.footer(
        "Example: citysplat verify city --deep\n"
        "Without --set-aside nothing is changed. Nothing is ever deleted.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
