#include "tiling/care/retention.hpp"

#include "core/error.hpp"
#include "tiling/care/generations.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>

namespace citysplat::tiling {

namespace {

using namespace std::chrono;

sys_seconds time_of(const GenerationRow& row) { return sys_seconds(seconds(row.created_s)); }

year_month_day date_of(const GenerationRow& row) { return floor<days>(time_of(row)); }

std::string text_of(const char* form, int a, unsigned b = 0, unsigned c = 0) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), form, a, b, c);
    return text.data();
}

std::string day_of(const GenerationRow& row) {
    const auto date = date_of(row);
    return text_of("%04d-%02u-%02u", int(date.year()), unsigned(date.month()), unsigned(date.day()));
}

/// ISO 8601: a week belongs to the year of its Thursday.
std::string week_of(const GenerationRow& row) {
    const sys_days day = floor<days>(time_of(row));
    const sys_days thursday = day - (weekday(day) - Monday) + days(3);
    const year y = year_month_day(thursday).year();
    const auto week = (thursday - sys_days(y / January / 1)) / days(7) + 1;
    return text_of("%04d-W%02u", int(y), static_cast<unsigned>(week));
}

std::string month_of(const GenerationRow& row) {
    const auto date = date_of(row);
    return text_of("%04d-%02u", int(date.year()), unsigned(date.month()));
}

std::string year_of(const GenerationRow& row) { return text_of("%04d", int(date_of(row).year())); }

std::string number_of(const GenerationRow& row) { return std::to_string(row.id); }

/// Which part of time a generation belongs to, for one of the counting rules.
struct Bucket {
    const char* rule;
    std::uint64_t Retention::*count;
    std::string (*name_of)(const GenerationRow&);
};
constexpr std::array<Bucket, 5> kBuckets{{{"last", &Retention::last, number_of},
                                          {"daily", &Retention::daily, day_of},
                                          {"weekly", &Retention::weekly, week_of},
                                          {"monthly", &Retention::monthly, month_of},
                                          {"yearly", &Retention::yearly, year_of}}};

void apply(const Bucket& bucket, const std::vector<GenerationRow>& history, std::uint64_t count,
           std::vector<Verdict>& verdicts) {
    std::string before;
    for (std::size_t i = history.size(); i-- > 0 && count > 0;) {
        const std::string name = bucket.name_of(history[i]);
        const bool is_new = name != before;
        if (!is_new && i > 0) continue;
        before = name;
        --count;
        const std::string rule = std::string("--keep-") + bucket.rule;
        verdicts[i].rules.push_back(!is_new                              ? rule + " (the oldest)"
                                    : std::string(bucket.rule) == "last" ? rule
                                                                         : rule + " (" + name + ")");
    }
}

sys_seconds moved_back(sys_seconds from, const CalendarSpan& span) {
    const auto day = floor<days>(from);
    const year_month_day date = day;
    // A day that the earlier month does not have runs over into the next, as 31 March minus a month does.
    const auto month = year_month(date.year(), date.month()) - years(span.years) - months(span.months);
    const sys_days first = sys_days(month / 1);
    return first + (days(unsigned(date.day())) - days(1)) - days(span.days) + (from - day) -
           hours(span.hours);
}

}  // namespace

CalendarSpan parse_span(std::string_view text) {
    CalendarSpan span;
    const std::array<std::pair<char, int*>, 4> parts{
        {{'y', &span.years}, {'m', &span.months}, {'d', &span.days}, {'h', &span.hours}}};
    std::string_view rest = text;
    bool any = false;
    for (const auto& [unit, value] : parts) {
        const auto end = rest.find_first_not_of("0123456789");
        if (end == std::string_view::npos || end == 0 || rest[end] != unit) continue;
        const auto [stop, error] = std::from_chars(rest.data(), rest.data() + end, *value);
        // Years are counted from -32767 to 32767; nothing is so old.
        if (error != std::errc() || *value > (unit == 'y' ? 10'000 : 100'000)) break;
        rest.remove_prefix(end + 1);
        any = true;
    }
    if (!any || !rest.empty())
        throw UsageError("\"" + std::string(text) +
                         "\" is no span of time; write years, months, days and hours, as 14d or 1y6m");
    return span;
}

void check_tags_exist(const std::vector<GenerationRow>& history, const Retention& retention) {
    const std::vector<Verdict> verdicts = decide(history, retention);
    std::set<std::string> known;
    bool tagged_ones_go = false;
    for (std::size_t i = 0; i < history.size(); ++i)
        for (const std::string& tag : tags_of(history[i])) {
            known.insert(tag);
            tagged_ones_go = tagged_ones_go || !verdicts[i].is_kept();
        }
    if (!tagged_ones_go) return;
    for (const std::string& tag : retention.tags) {
        if (known.contains(tag)) continue;
        std::string list;
        for (const std::string& other : known) list += (list.empty() ? "" : ", ") + other;
        throw UsageError("--keep-tag " + tag + ": no generation has this tag; the tags are " + list +
                         ". Nothing was forgotten");
    }
}

std::vector<Verdict> decide(const std::vector<GenerationRow>& history, const Retention& retention) {
    std::vector<Verdict> verdicts;
    for (const GenerationRow& row : history) verdicts.push_back({row.id, {}});
    for (const Bucket& bucket : kBuckets) apply(bucket, history, retention.*bucket.count, verdicts);
    for (std::size_t i = 0; i < history.size(); ++i) {
        if (retention.within && time_of(history[i]) > moved_back(time_of(history.back()), *retention.within))
            verdicts[i].rules.push_back("--keep-within");
        for (const std::string& tag : tags_of(history[i]))
            if (retention.tags.empty() ||
                std::find(retention.tags.begin(), retention.tags.end(), tag) != retention.tags.end())
                verdicts[i].rules.push_back("tag " + tag);
    }
    if (!verdicts.empty() && !verdicts.back().is_kept()) verdicts.back().rules.push_back("the latest");
    return verdicts;
}

}  // namespace citysplat::tiling
