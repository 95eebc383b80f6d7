#include "citysplat/generations/keep_flags.hpp"

#include "citysplat/generations/text_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "tiling/care/generations.hpp"

#include <CLI/CLI.hpp>

namespace citysplat::cli {

namespace {

constexpr std::uint64_t kKeptByDefault = 3;

}  // namespace

void KeepFlags::add_to(CLI::App& verb) {
    const auto count = [&verb](const char* name, std::uint64_t& value, const char* help) {
        verb.add_option(name, value, help)
            ->check(whole_from(std::uint64_t{1}, std::uint64_t{1'000'000}))
            ->type_name("N");
    };
    count("--keep-last,--keep", counts_.last, "the newest N (default: 3, when no other --keep is given)");
    count("--keep-daily", counts_.daily, "the newest of each of the last N days that have one");
    count("--keep-weekly", counts_.weekly, "the same for weeks (Monday to Sunday)");
    count("--keep-monthly", counts_.monthly, "the same for months");
    count("--keep-yearly", counts_.yearly, "the same for years");
    verb.add_option("--keep-within", within_,
                    "those that are at most so much older than the latest, as 14d or 1y6m")
        ->check(not_empty())
        ->type_name("TIME");
    verb.add_option("--keep-tag", counts_.tags,
                    "those with this tag, and no other tag keeps one (default: any tag does)")
        ->type_name("TAG")
        ->allow_extra_args(false);
}

tiling::Retention KeepFlags::retention() const {
    tiling::Retention retention = counts_;
    if (!within_.empty()) retention.within = tiling::parse_span(within_);
    for (const std::string& tag : retention.tags) tiling::check_tag(tag);
    if (retention.is_empty()) retention.last = kKeptByDefault;
    return retention;
}

}  // namespace citysplat::cli
