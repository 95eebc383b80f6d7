#pragma once

#include "tiling/store/catalog.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which generations `gc` keeps. The rules, and how they are spelled, are those of restic's `forget`: a
/// generation stays when any rule wants it.
namespace citysplat::tiling {

/// A span of time in the calendar: "1y6m14d12h". Months and years have the length that the calendar gives
/// them at that place.
struct CalendarSpan {
    int years = 0, months = 0, days = 0, hours = 0;
};
/// Throws UsageError unless the text is a row of numbers with y, m, d or h behind each, in this order.
CalendarSpan parse_span(std::string_view text);

struct Retention {
    /// Of all generations, and of the days, ISO weeks, months and years (UTC) in which one was made: the
    /// newest so many, each with the newest generation in it. While there are fewer than so many, the oldest
    /// generation stays, too: history is as long as it can be.
    std::uint64_t last = 0, daily = 0, weekly = 0, monthly = 0, yearly = 0;
    /// Not older than that when the latest one was made.
    std::optional<CalendarSpan> within;
    /// With one of these tags; empty: with any.
    std::vector<std::string> tags;

    /// No rule: only tags, and the latest generation, which always stays.
    bool is_empty() const { return last + daily + weekly + monthly + yearly == 0 && !within; }

    static Retention newest(std::uint64_t count) {
        Retention retention;
        retention.last = count;
        return retention;
    }
};

/// What becomes of a generation, and why.
struct Verdict {
    std::int64_t generation = 0;
    std::vector<std::string> rules;  ///< that keep it, in words; empty: it is forgotten
    bool is_kept() const { return !rules.empty(); }
};

/// Throws UsageError when a tag of the rules names no generation and generations with other tags would be
/// forgotten for it: a word spelled wrongly is no order to delete.
void check_tags_exist(const std::vector<GenerationRow>& history, const Retention& retention);

/// For every generation of a history (oldest first), in its order. A pure function.
std::vector<Verdict> decide(const std::vector<GenerationRow>& history, const Retention& retention);

}  // namespace citysplat::tiling
