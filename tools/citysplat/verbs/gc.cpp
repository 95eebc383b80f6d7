#include "citysplat/context.hpp"
#include "citysplat/generations/keep_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "tiling/care/city_care.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

struct GcFlags {
    std::string city;
    KeepFlags keep;
    bool dry_run = false;
};

/// What became of each generation, and which rules decided.
nlohmann::json verdicts_json(const tiling::GarbageReport& report) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& verdict : report.verdicts)
        all.push_back(
            {{"generation", verdict.generation}, {"keep", verdict.is_kept()}, {"rules", verdict.rules}});
    return all;
}

std::string verdict_line(const tiling::Verdict& verdict) {
    std::string text = (verdict.is_kept() ? "keep   " : "forget ") + std::to_string(verdict.generation);
    for (const std::string& rule : verdict.rules) text += (&rule == &verdict.rules[0] ? "  " : ", ") + rule;
    return text;
}

void run(Context& context, const GcFlags& flags) {
    const auto report = tiling::collect_garbage(flags.city, flags.keep.retention(), flags.dry_run);
    for (const auto& verdict : report.verdicts)
        flags.dry_run ? context.say(verdict_line(verdict)) : context.detail(verdict_line(verdict));
    if (report.foreign > 0)
        context.warn(format_count(report.foreign) +
                     " files among the objects do not begin like objects of citysplat; they were left alone");
    context.result({{"freed_bytes", report.freed_bytes},
                    {"objects", report.objects},
                    {"forgotten", report.forgotten},
                    {"pinned", report.pinned},
                    {"generations", verdicts_json(report)},
                    {"foreign", report.foreign},
                    {"dry_run", flags.dry_run}},
                   std::string(flags.dry_run ? "would free " : "freed ") + format_bytes(report.freed_bytes) +
                       " in " + format_count(report.objects) + " objects, " +
                       format_count(report.forgotten.size()) + " generations forgotten, " +
                       format_count(report.pinned.size()) + " kept for readers\n");
}

}  // namespace

void add_gc(CLI::App& app, Context& context) {
    auto flags = std::make_shared<GcFlags>();
    CLI::App& verb = *app.add_subcommand("gc", "forget old generations and remove what only they used");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    flags->keep.add_to(verb);
    verb.add_flag("--dry-run", flags->dry_run, "say what would be freed, and which rule keeps what");
    verb.footer(
        "Example: citysplat gc city --keep-daily 7 --keep-weekly 4 --keep-monthly 12 --dry-run\n"
        "A generation stays when any rule keeps it; the latest always does, and a tag is a rule. Days,\n"
        "weeks, months and years are those of UTC; only those count in which a generation was made, and\n"
        "while there are fewer than asked for, the oldest generation stays.\n"
        "Generations that somebody reads at this moment stay. Work of an interrupted build goes;\n"
        "what shards have built for the next publish stays.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
