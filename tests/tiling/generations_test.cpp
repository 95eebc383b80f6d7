#include "tiling/care/generations.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/mirror.hpp"
#include "tiling/care/pack.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_paths.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <sys/resource.h>
#include <thread>

using namespace citysplat;
using namespace citysplat::tiling;
using namespace citysplat::test;

namespace {

using Rules = std::map<std::int64_t, std::set<std::string>>;

std::string in_utc(std::int64_t time_s, const char* form) {
    const std::time_t time = time_s;
    std::tm utc{};
    ::gmtime_r(&time, &utc);
    char text[40];
    std::strftime(text, sizeof text, form, &utc);
    return text;
}

/// The rules said another way: of each kind of time the newest N names that occur, and of each name its
/// newest generation; if there are fewer names, the oldest generation as well.
std::set<std::int64_t> newest_of(const std::vector<GenerationRow>& history, std::uint64_t count,
                                 const char* form) {
    std::map<std::string, std::int64_t> newest;
    for (const GenerationRow& row : history) newest[in_utc(row.created_s, form)] = row.id;
    std::set<std::int64_t> kept;
    for (auto name = newest.rbegin(); name != newest.rend() && kept.size() < count; ++name)
        kept.insert(name->second);
    if (kept.size() < count) kept.insert(history.front().id);
    return kept;
}

std::set<std::int64_t> oracle(const std::vector<GenerationRow>& history, const Retention& r) {
    std::set<std::int64_t> kept{history.back().id};
    for (std::size_t i = 0; i < history.size(); ++i)
        if (history.size() - i <= r.last) kept.insert(history[i].id);
    if (r.daily > 0) kept.merge(newest_of(history, r.daily, "%Y-%m-%d"));
    if (r.weekly > 0) kept.merge(newest_of(history, r.weekly, "%G-%V"));
    if (r.monthly > 0) kept.merge(newest_of(history, r.monthly, "%Y-%m"));
    if (r.yearly > 0) kept.merge(newest_of(history, r.yearly, "%Y"));
    for (const GenerationRow& row : history) {
        if (r.within) {  // the C library does the calendar
            const std::time_t latest = history.back().created_s;
            std::tm t{};
            ::gmtime_r(&latest, &t);
            t.tm_year -= r.within->years, t.tm_mon -= r.within->months;
            t.tm_mday -= r.within->days, t.tm_hour -= r.within->hours;
            if (row.created_s > ::timegm(&t)) kept.insert(row.id);
        }
        if (!row.tags.empty() &&
            (r.tags.empty() || std::find(r.tags.begin(), r.tags.end(), row.tags) != r.tags.end()))
            kept.insert(row.id);
    }
    return kept;
}

/// Nights with none, one or several generations each, some of them tagged, from a given day on.
std::vector<GenerationRow> synthetic_days(int days, std::int64_t begin_s, std::uint64_t seed) {
    std::vector<GenerationRow> history;
    for (int day = 0; day < days; ++day) {
        const auto draw = [&](std::uint64_t what, double below) {
            return rng::uniform(rng::key(seed, static_cast<std::uint64_t>(day)), what, 0, below);
        };
        const int builds = draw(0, 1) < 0.2 ? 0 : draw(0, 1) < 0.9 ? 1 : 3;
        for (int i = 0; i < builds; ++i) {
            GenerationRow row;
            row.id = static_cast<std::int64_t>(history.size()) + 1;
            row.created_s = begin_s + day * 86'400 + i * 28'000 + static_cast<std::int64_t>(draw(1, 20'000));
            if (draw(2, 1) < 0.02) row.tags = draw(3, 1) < 0.5 ? "survey" : "release";
            history.push_back(row);
        }
    }
    return history;
}

struct TwoGenerations {
    TempDir dir;
    std::filesystem::path city = dir / "city";
    BuildReport first, second;

    TwoGenerations() {
        write_cloud(dir / "a.cloud", street(1, 1000, 2000, 30, 4));
        write_cloud(dir / "b.cloud", street(5, 1030, 2010, 30, 4));
        first = build_toy(city, toy_options({dir / "a.cloud"}));
        second = build_toy(city, toy_options({dir / "b.cloud"}));
    }
    std::int64_t number(const std::string& name) const { return *generation_number(city, name); }
    std::vector<Damage> damage() const {
        CancelToken cancel;
        Progress progress;
        return verify_city(city, true, cancel, progress).corrupt;
    }
};

}  // namespace

TEST_CASE("what is kept of 400 days equals an oracle of the rules, night after night") {
    // From a November into the January after next: years end in the middle of weeks, and one is a leap year.
    const auto all = synthetic_days(400, 1'699'920'000, 7);
    REQUIRE(all.size() > 350);
    CHECK(in_utc(all.front().created_s, "%Y-%m") == "2023-11");
    std::vector<Retention> policies(7);
    policies[0].last = 3;
    policies[1].daily = 7, policies[1].weekly = 4, policies[1].monthly = 12;
    policies[2].last = 2, policies[2].yearly = 3, policies[2].within = parse_span("14d");
    policies[3].within = parse_span("1y2m3d4h");
    policies[4].weekly = 100, policies[4].tags = {"survey"};
    policies[5].daily = 1000;
    policies[6].monthly = 2, policies[6].within = parse_span("1m");
    for (std::size_t policy = 0; policy < policies.size(); ++policy) {
        std::vector<GenerationRow> kept;  // as nightly runs of gc leave it
        for (const GenerationRow& row : all) {
            kept.push_back(row);
            std::set<std::int64_t> decided;
            for (const Verdict& verdict : decide(kept, policies[policy]))
                if (verdict.is_kept()) decided.insert(verdict.generation);
            INFO("policy " << policy << ", generation " << row.id);
            REQUIRE(decided == oracle(kept, policies[policy]));
            std::erase_if(kept, [&](const GenerationRow& g) { return !decided.contains(g.id); });
        }
        // And all at once.
        std::set<std::int64_t> decided;
        for (const Verdict& verdict : decide(all, policies[policy]))
            if (verdict.is_kept()) decided.insert(verdict.generation);
        CHECK(decided == oracle(all, policies[policy]));
    }
}

TEST_CASE("a verdict names the rules that keep a generation") {
    const auto history = synthetic_days(60, 1'699'920'000, 3);
    Retention r;
    r.last = 1, r.weekly = 2;
    const auto verdicts = decide(history, r);
    REQUIRE(verdicts.back().rules.size() == 2);
    CHECK(verdicts.back().rules[0] == "--keep-last");
    CHECK(verdicts.back().rules[1] == "--keep-weekly (" + in_utc(history.back().created_s, "%G-W%V") + ")");
    CHECK(std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.is_kept(); }) >= 2);
    CHECK(decide({}, r).empty());
}

TEST_CASE("spans of time are years, months, days and hours in this order") {
    const CalendarSpan span = parse_span("1y6m14d12h");
    CHECK(span.years == 1);
    CHECK(span.months == 6);
    CHECK(span.days == 14);
    CHECK(span.hours == 12);
    for (const char* bad :
         {"", "d", "14", "14d1y", "1.5d", "-1d", "14 d", "99999999999d", "7w", "1d1d", "40000y"})
        CHECK_THROWS_AS(parse_span(bad), UsageError);
}

TEST_CASE("a span that is longer than all of history keeps all of it") {
    const auto all = synthetic_days(400, 1'699'920'000, 7);
    for (const char* span : {"10000y", "100000m", "100000d", "10000y100000m100000d100000h"}) {
        INFO(span);
        Retention retention;
        retention.within = parse_span(span);
        for (const Verdict& verdict : decide(all, retention)) REQUIRE(verdict.is_kept());
    }
}

TEST_CASE("a generation is found by number, tag and date") {
    TwoGenerations c;
    set_tag(c.city, "before", "1", false);
    CHECK(c.number("before") == 1);
    CHECK(c.number("latest") == 2);
    CHECK(c.number("2") == 2);
    CHECK(c.number("2999-01-01") == 2);
    CHECK(c.number("2999-01-01T00:00Z") == 2);
    CHECK_FALSE(generation_number(c.city, "").has_value());
    for (const char* bad :
         {"3", "0", "99999999999999999999", "after", "2000-01-01", "2026-13-01", "2026-02-30", "2026-1-1",
          "2026-01-01T24:00", "before ", "-1", "2026-11-16T08:00+01"})
        CHECK_THROWS_AS(c.number(bad), UsageError);
    CHECK_THROWS_WITH(c.number("after"), Catch::Contains("before"));
    CHECK(CityReader(c.city, c.number("before")).generation().digest == c.first.digest);
}

TEST_CASE("a tag belongs to one generation and can be moved and taken away") {
    TwoGenerations c;
    for (const char* bad : {"", "12", "2026-11-16", "latest", "-x", "a b", "a/b", "ä"})
        CHECK_THROWS_AS(set_tag(c.city, bad, "", false), UsageError);
    CHECK_THROWS_AS(set_tag(c.city, std::string(65, 'a'), "", false), UsageError);
    set_tag(c.city, "good", "1", false);
    set_tag(c.city, "good", "1", false);  // again: nothing happens
    set_tag(c.city, "also.good", "1", false);
    CHECK_THROWS_WITH(set_tag(c.city, "good", "2", false), Catch::Contains("--move"));
    CHECK(set_tag(c.city, "good", "2", true).before == 1);
    CHECK(c.number("good") == 2);
    CHECK(c.number("also.good") == 1);
    CHECK(remove_tag(c.city, "good").generation == 2);
    CHECK_THROWS_AS(c.number("good"), UsageError);
    CHECK_THROWS_AS(remove_tag(c.city, "good"), UsageError);
    CHECK(c.damage().empty());
}

TEST_CASE("notes and tags survive repair, pack, a touched input and rollback") {
    TwoGenerations c;
    BuildOptions noted = toy_options({c.dir / "a.cloud"});
    noted.remove = {c.dir / "b.cloud"};
    noted.note = "without b";
    CHECK(build_toy(c.city, noted).published);
    set_tag(c.city, "old", "1", false);
    set_tag(c.city, "moved", "1", false);
    set_tag(c.city, "moved", "3", true);
    const auto catalog = CityPaths(c.city).catalog();
    SECTION("the catalog is lost") {
        std::filesystem::remove(catalog);
        CHECK(repair_city(c.city, CancelToken()).generations == 3);
    }
    SECTION("an input was touched, and the catalog is lost") {
        std::filesystem::last_write_time(c.dir / "a.cloud", std::filesystem::file_time_type::clock::now());
        CHECK_FALSE(build_toy(c.city, toy_options()).published);
        std::filesystem::remove(catalog);
        repair_city(c.city, CancelToken());
    }
    SECTION("packed and unpacked") {
        CancelToken cancel;
        Progress progress;
        pack_city(c.city, c.dir / "p", cancel, progress, {.generation = 3});
        c.city = c.dir / "again";
        unpack_city(c.dir / "p", c.city, cancel, progress);
    }
    SECTION("rolled back: the new generation has no name of the old one") {
        roll_back(c.city, 1);
        CHECK(tags_of(CityReader(c.city).generation()).empty());
    }
    CHECK(c.number("moved") == 3);
    CHECK(CityReader(c.city, 3).generation().note == "without b");
    if (c.city.filename() == "city") CHECK(c.number("old") == 1);
    CHECK(c.damage().empty());
}

TEST_CASE("a tagged generation is kept by gc until its tag is taken away") {
    TwoGenerations c;
    set_tag(c.city, "survey", "1", false);
    const GarbageReport kept = collect_garbage(c.city, Retention::newest(1), false);
    CHECK(kept.forgotten.empty());
    REQUIRE(kept.verdicts.size() == 2);
    CHECK(kept.verdicts[0].rules == std::vector<std::string>{"tag survey"});
    Retention others = Retention::newest(1);
    others.tags = {"release"};
    CHECK_THROWS_WITH(collect_garbage(c.city, others, false), Catch::Contains("the tags are survey"));
    Retention both = Retention::newest(2);
    both.tags = {"release"};  // no generation with another tag would go
    CHECK(collect_garbage(c.city, both, true).forgotten.empty());
    CHECK(c.number("survey") == 1);
    set_tag(c.city, "release", "2", false);
    CHECK(collect_garbage(c.city, others, true).forgotten == std::vector<std::int64_t>{1});
    remove_tag(c.city, "survey");
    CHECK(collect_garbage(c.city, Retention::newest(1), false).forgotten == std::vector<std::int64_t>{1});
    CHECK(c.damage().empty());
}

TEST_CASE("more generations than files may be open are mirrored, verified and forgotten") {
    TwoGenerations c;
    for (int i = 0; i < 45; ++i) roll_back(c.city, {});
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit few{48, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    CancelToken cancel;
    Progress progress;
    CHECK_NOTHROW(mirror_city(c.city, c.dir / "copy", cancel, progress));
    CHECK_NOTHROW(pack_city(c.city, c.dir / "pack", cancel, progress));
    CHECK_NOTHROW(unpack_city(c.dir / "pack", c.dir / "unpacked", cancel, progress));
    CHECK(c.damage().empty());
    CHECK_NOTHROW(collect_garbage(c.city, Retention::newest(1), false));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(Catalog::open_to_read(CityPaths(c.city).catalog()).history().size() == 1);
}

TEST_CASE("what is being verified is not forgotten meanwhile") {
    TwoGenerations c;
    std::atomic<bool> pinned = false, ended = false;
    std::thread verifier([&] {
        while (!pinned && !ended) CHECK(c.damage().empty());
    });
    const auto begin = std::chrono::steady_clock::now();
    while (!pinned && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30))
        pinned = CityLock::is_pinned(CityPaths(c.city), 1);
    ended = true;
    verifier.join();
    CHECK(pinned);
    CHECK(collect_garbage(c.city, Retention::newest(1), false).forgotten == std::vector<std::int64_t>{1});
}

TEST_CASE("one generation can be verified alone") {
    TwoGenerations c;
    CancelToken cancel;
    Progress progress;
    const std::uint64_t all = verify_city(c.city, true, cancel, progress).checked;
    const std::uint64_t one = verify_city(c.city, true, cancel, progress, 1).checked;
    CHECK(one > 0);
    CHECK(one < all);
    // A payload of the second generation alone is damaged.
    Catalog catalog = Catalog::open_to_read(CityPaths(c.city).catalog());
    std::set<Hash128> in_first;
    for (const ProductRow& tile : catalog.tiles(1))
        if (tile.object) in_first.insert(*tile.object);
    for (const ProductRow& tile : catalog.tiles(2))
        if (tile.object && !in_first.contains(*tile.object)) {
            std::filesystem::resize_file(CityPaths(c.city).object(*tile.object), 10);
            break;
        }
    CHECK(verify_city(c.city, true, cancel, progress, 1).corrupt.empty());
    CHECK(verify_city(c.city, true, cancel, progress, 2).corrupt.size() == 1);
}
