#include "citysplat/context.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "tiling/city_care.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

struct VerifyFlags {
    std::string city;
    bool deep = false;
};

void run(Context& context, const VerifyFlags& flags) {
    const auto report = tiling::verify_city(flags.city, flags.deep, context.cancel(), context.progress());
    nlohmann::json corrupt = nlohmann::json::array();
    for (const auto& damage : report.corrupt) {
        corrupt.push_back(
            {{"what", damage.what}, {"object", damage.object.hex()}, {"problem", damage.problem}});
        context.warn(damage.what + ": " + damage.problem + " (object " + damage.object.hex() + ")");
    }
    context.result({{"checked", report.checked},
                    {"checked_bytes", report.checked_bytes},
                    {"deep", flags.deep},
                    {"corrupt", corrupt},
                    {"set_aside", report.set_aside}},
                   format_count(report.checked) + " objects checked, " + format_count(report.corrupt.size()) +
                       " damaged\n");
    if (!report.corrupt.empty())
        throw CorruptionError(flags.city + " has damaged objects; " +
                              (report.set_aside
                                   ? "they were taken out, the next citysplat build makes them again"
                                   : "run verify again when the city can be written and nobody builds"));
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
    auto flags = std::make_shared<VerifyFlags>();
    CLI::App& verb = *app.add_subcommand("verify", "check the integrity of a city");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_flag("--deep", flags->deep, "read and check every byte, not only names and sizes");
    verb.footer("Example: citysplat verify city --deep\nThe next build repairs what verify finds damaged.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
