#include "citysplat/context.hpp"
#include "citysplat/generations/text_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/error.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/store/city_paths.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

struct TagFlags {
    std::string city, tag, generation;
    bool move = false, remove = false;
};

void list(Context& context, const TagFlags& flags) {
    tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(flags.city).catalog());
    nlohmann::json tags = nlohmann::json::object();
    std::string text;
    for (const auto& row : catalog.history())
        for (const std::string& tag : tiling::tags_of(row)) {
            if (tiling::find_generation(catalog, tag).id != row.id) continue;  // a move was interrupted
            tags[tag] = row.id;
            text += tag + "  generation " + std::to_string(row.id) + " of " + utc_text(row.created_s) + "\n";
        }
    context.result({{"tags", tags}}, text);
}

void run(Context& context, const TagFlags& flags) {
    if (flags.tag.empty()) return list(context, flags);
    if (flags.remove && (flags.move || !flags.generation.empty()))
        throw UsageError(
            "--delete takes a tag from whichever generation has it: name neither another nor --move");
    const auto report = flags.remove ? tiling::remove_tag(flags.city, flags.tag)
                                     : tiling::set_tag(flags.city, flags.tag, flags.generation, flags.move);
    context.result({{"tag", flags.tag},
                    {"generation", flags.remove ? nlohmann::json() : nlohmann::json(report.generation)},
                    {"before", report.before > 0 ? nlohmann::json(report.before) : nlohmann::json()}},
                   flags.tag + (flags.remove ? " is no longer generation " : " is generation ") +
                       std::to_string(report.generation) + "\n");
}

}  // namespace

void add_tag(CLI::App& app, Context& context) {
    auto flags = std::make_shared<TagFlags>();
    CLI::App& verb = *app.add_subcommand("tag", "give a generation a name, by which it is found and kept");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option("tag", flags->tag, "the name (without one: list all)")->check(not_empty());
    verb.add_option("generation", flags->generation,
                    "its number, another tag or a date (default: the latest)")
        ->check(not_empty())
        ->type_name("N|TAG|DATE");
    verb.add_flag("--move", flags->move, "take the tag from the generation that has it");
    verb.add_flag("--delete", flags->remove, "take the tag away");
    verb.footer(
        "Example: citysplat tag city survey-2026 12 && citysplat status city --generation survey-2026\n"
        "A tagged generation is kept by gc. Tags are part of what the objects say: they survive repair,\n"
        "pack and unpack.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
