#include "citysplat/context.hpp"
#include "citysplat/run_command.hpp"
#include "core/error.hpp"
#include "help_page.hpp"
#include "small_city.hpp"

#include <set>

namespace test = citysplat::test;
using test::Outcome;
using test::TempDir;

namespace {

/// A type of six numbers, which has a test of its own.
const std::string kBox = "XMIN,YMIN,ZMIN,XMAX,YMAX,ZMAX";

/// What is not a number that anybody can mean.
const std::vector<std::string> kBadNumbers{"nan", "inf", "-inf", "1e308", "-1e308", "", "text", "1.5.5"};

/// What the program says of these arguments and ends with, without starting it.
Outcome in_this_process(std::vector<std::string> arguments) {
    citysplat::cli::Context context;
    context.embed({});
    Outcome outcome;
    try {
        outcome.exit_code = citysplat::cli::run_command(arguments, context);
    } catch (const citysplat::Error& e) {
        outcome.exit_code = static_cast<int>(e.kind());
        outcome.err = e.what();
    }
    return outcome;
}

using Run = Outcome (*)(std::vector<std::string>);

void refuses(Run run, const std::vector<std::string>& arguments, const std::string& named) {
    std::string shown;
    for (const auto& a : arguments) shown += a + " ";
    INFO(shown);
    const Outcome outcome = run(arguments);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(named));
}

void refuses(const std::vector<std::string>& arguments, const std::string& named) {
    refuses(in_this_process, arguments, named);
}

}  // namespace

TEST_CASE("no numeric flag of any verb takes NaN, infinities, absurd values or text") {
    std::size_t flags = 0;
    for (const test::HelpOption& option : test::all_options()) {
        INFO(option.verb << " " << option.name << " " << option.type);
        // A new kind of argument has a range, or its type is a word that is put here.
        static const std::set<std::string> kTexts{
            "TEXT",      "FILE",       "MAP",   "NAME", "STYLE",      "SIZE", "K/N",       "INPUT",
            "WxH",       "TRAJECTORY", "DIR",   "TIME", "N|TAG|DATE", "TAG",  "FILE.gpkg", "ID",
            "CITY.toml", "LENGTH",     "SHELL", "KIND", "KINDS",      kBox};
        CHECK((option.numeric() || option.is_flag() || kTexts.contains(option.word())));
        if (!option.numeric()) continue;
        ++flags;
        for (const std::string& bad : kBadNumbers) {
            std::vector<std::string> start;
            if (!option.verb.empty()) start.push_back(option.verb);
            // One start of the program for each flag; what else it refuses is asked in this process.
            const Run run = &bad == &kBadNumbers.front() ? test::citysplat : in_this_process;
            const auto with = [&](const std::vector<std::string>& more) {
                auto all = start;
                all.insert(all.end(), more.begin(), more.end());
                if (option.verb.empty()) all.insert(all.end(), {"status", "city"});
                return all;
            };
            if (option.name[0] != '-')
                refuses(run, with({"city", "--", bad}), "");
            else if (option.with_commas())
                refuses(run, with({option.name + "=0,0," + bad}), bad.empty() ? "" : option.name);
            else if (option.several())
                refuses(run, with({option.name, bad, "0", "0"}), bad[0] == '-' ? "" : option.name);
            else if (bad.empty())  // nothing is the default of a value that may be left out
                refuses(run, with({option.name, bad}), option.name == "--smooth" ? "" : option.name);
            else
                refuses(run, with({option.name + "=" + bad}), option.name);
        }
    }
    CHECK(flags > 40);
}

TEST_CASE("the program ends as it is told without being started") {
    for (const std::vector<std::string>& wrong :
         {std::vector<std::string>{"status"}, {"no-verb"}, {"status", "city", "--memory", "nan"}}) {
        const Outcome here = in_this_process(wrong), started = test::citysplat(wrong);
        CHECK(here.exit_code == started.exit_code);
        CHECK(started.err == "citysplat: " + here.err + "\n");
    }
}

TEST_CASE("a box of a mask takes six finite numbers, the lower ones first") {
    for (const std::string& bad : kBadNumbers)
        refuses({"info", "x", "--mask-box", "0,0,0,1,1," + bad}, "--mask-box");
    refuses({"info", "x", "--mask-box", "0,0,0,1,1"}, "--mask-box");
    refuses({"info", "x", "--mask-box", "0,0,0,1,1,1,1"}, "--mask-box");
    refuses({"info", "x", "--mask-box", "0,0,2,1,1,1"}, "--mask-box");
}

TEST_CASE("sizes, shares of tiles and picture sizes are numbers that were meant") {
    for (const std::string& bad : kBadNumbers) {
        refuses({"--memory", bad, "status", "city"}, "--memory");
        refuses({"build", "city", "--shard", bad + "/2"}, "--shard");
        refuses({"build", "city", "--shard", "1/" + bad}, "--shard");
        refuses({"work", "city", "--for", bad}, "--for");
        refuses({"work", "city", "--for", bad + "m"}, "--for");
        refuses({"render", "x", "--pose", "0,0,0", "--out", "a.png", "--size", bad + "x" + bad}, "--size");
    }
    // Numbers that would wrap around to something sensible.
    refuses({"build", "city", "--shard", "1/4294967297"}, "--shard");
    refuses({"work", "city", "--for", "1e300h"}, "--for");
    refuses({"work", "city", "--for", "-5m"}, "--for");
    refuses({"render", "x", "--pose", "0,0,0", "--out", "a.png", "--size", "4294967297x1"}, "--size");
    refuses({"render", "x", "--pose", "0,0,0", "--out", "a.png", "--size", "32768x32768"}, "--memory");
    refuses({"render", "x", "--pose", "0,0,0,1e7", "--out", "a.png"}, "--pose");
    refuses({"info", "x", "--intensity-range", "5", "5"}, "--intensity-range");
}

TEST_CASE("the number of scans is bounded before memory is taken for them") {
    const test::SmallCity c;
    const std::string slow = c.dir / "slow.tum";
    std::ofstream(slow) << "0 651000 6861000 37 0 0 0 1\n10000000000 651001 6861000 37 0 0 0 1\n";
    const Outcome outcome = test::citysplat({"simulate", c.city, "--sensor", "vlp-16", "--trajectory", slow,
                                             "--out", c.dir / "scans", "--rate", "10000"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Catch::Contains("10 000 000 scans"));
    CHECK(outcome.peak_rss_bytes < std::uint64_t{500} << 20);
    CHECK_FALSE(std::filesystem::exists(c.dir / "scans"));
}

TEST_CASE("a sensor or scenario file with an absurd number is refused with its key") {
    const test::SmallCity c;
    const auto simulate = [&](const std::string& sensor, const std::string& scenario) {
        std::ofstream(c.dir / "own.toml") << sensor;
        std::ofstream(c.dir / "drive.toml")
            << "trajectory = \"drive/trajectory.tum\"\n[[sensor]]\nsensor = \"own.toml\"\n"
            << scenario;
        return test::citysplat(
            {"simulate", c.city, "--scenario", c.dir / "drive.toml", "--out", c.dir / "scans", "-q"});
    };
    const std::string pinhole =
        "name = \"c\"\nkind = \"pinhole\"\nscan_hz = 2\n[range]\nmax_m = 20\n[pinhole]\ncolumns = 8\nrows = "
        "6\nhorizontal_deg = 60\nvertical_deg = 40\n";
    const Outcome good = simulate(pinhole, "");
    INFO(good.err);
    REQUIRE(good.exit_code == 0);
    std::string fast = pinhole;
    fast.replace(fast.find("scan_hz = 2"), 11, "scan_hz = 1e7");
    CHECK_THAT(simulate(fast, "").err, Catch::Contains("scan_hz") && Catch::Contains("10000 Hz"));
    for (const std::string bad : {"nan", "inf", "-inf", "1e300", "-5.0"})
        for (const std::string key : {"rate_hz", "gap_m", "hits"}) {
            const Outcome outcome = simulate(pinhole, key + " = " + bad + "\n");
            INFO(key << " = " << bad << ": " << outcome.err);
            CHECK(outcome.exit_code == 78);
            CHECK_THAT(outcome.err, Catch::Contains(key));
        }
}
