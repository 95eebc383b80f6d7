#include "cli/run_json.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "temp_dir.hpp"
#include "tiling/store/sqlite.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace test = citysplat::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// A folder into which drives come: walls and ground of a street, each file a piece of it.
struct NightCity {
    test::TempDir dir;
    fs::path drives = dir / "drives", first = dir / "first", toml = dir / "city.toml",
             reports = dir / "reports", metrics = dir / "metrics.prom", junit = dir / "junit.xml";
    std::string city = dir / "city";

    NightCity() {
        fs::create_directory(drives);
        for (int i = 0; i < 4; ++i) put("d" + std::to_string(i), i, 1);
        fs::copy(drives, first);
        write_toml();
    }
    void put(const std::string& name, int piece, std::uint64_t seed, double shift_m = 0) const {
        std::ofstream out(drives / (name + ".xyz"));
        out.precision(9);
        for (std::uint64_t i = 0; i < 3000; ++i) {
            const auto u = [&](std::uint64_t c, double low, double high) {
                return citysplat::rng::uniform(
                    citysplat::rng::key(seed * 100 + static_cast<std::uint64_t>(piece), i), c, low, high);
            };
            const double x = 12.0 * piece + u(0, 0, 12), along = u(1, 0, 8);
            const bool wall = i % 2 == 1;
            out << x << ' ' << (wall ? 8 + u(2, -0.01, 0.01) + shift_m : along) << ' '
                << (wall ? along : u(2, -0.01, 0.01) + shift_m) << '\n';
        }
    }
    void write_toml(const std::string& more = "") const {
        std::ofstream(toml)
            << "city = \"city\"\ninputs = [\"drives/*.xyz\"]\ncolumns = \"x y z\"\n"
               "no_resample = true\ntile_size_m = 16\nmemory = \"512M\"\n"
               "[gate]\nmost_distance_m = 0.1\n[keep]\nlast = 2\n[report]\ndir = \"reports\"\n"
               "[metrics]\nprometheus = \"metrics.prom\"\njunit = \"junit.xml\"\n"
            << more;
    }
    test::Outcome run() const { return test::citysplat({"--json", "-q", "nightly", toml.string()}); }
    json night(int code = 0) const {
        const test::Outcome outcome = run();
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == code);
        return json::parse(outcome.out);
    }
    std::string digest() const { return test::run_json({"status", city})["digest"]; }
    /// Of a plain build that begins with the same drives, so that its means are the same, and ends with those
    /// that are there now.
    std::string clean_digest() const {
        const std::string clean = dir / "clean";
        fs::remove_all(clean);
        const std::vector<std::string> how{"--columns", "x y z", "--no-resample", "--tile-size", "16"};
        const auto build = [&](const fs::path& from, std::vector<std::string> more) {
            std::vector<std::string> words{"build", clean, from.string()};
            words.insert(words.end(), how.begin(), how.end());
            words.insert(words.end(), more.begin(), more.end());
            return test::run_json(words)["digest"].get<std::string>();
        };
        build(first, {});
        return build(drives, {"--exactly", "--most-gone", "100"});
    }
    bool metrics_say(const std::string& line) const {
        return citysplat::read_text_file(metrics).find(line) != std::string::npos;
    }
};

}  // namespace

TEST_CASE("a night builds, reports and forgets, and the next one has nothing to do") {
    const NightCity n;
    const json first = n.night();
    CHECK(first["status"] == "published");
    CHECK(first["generation"] == 1);
    CHECK(n.digest() == n.clean_digest());
    const std::string page = citysplat::read_text_file(n.reports / "report.html");
    CHECK(page.find("http") == std::string::npos);
    CHECK(page.find("<script") == std::string::npos);
    CHECK(page.find("<svg") != std::string::npos);
    const std::string summary = citysplat::read_text_file(n.reports / "summary.txt");
    CHECK(std::count(summary.begin(), summary.end(), '\n') <= 25);
    CHECK(json::parse(citysplat::read_text_file(n.reports / "report.json"))["generation"] == 1);
    CHECK(n.metrics_say("citysplat_success{city=\"" + n.city + "\"} 1"));
    CHECK(citysplat::read_text_file(n.junit).find("failures=\"0\"") != std::string::npos);

    const json second = n.night();
    CHECK(second["status"] == "unchanged");
    CHECK(second["generation"] == 1);
    CHECK(second["diff"].is_null());
    CHECK(n.metrics_say("citysplat_success{city=\"" + n.city + "\"} 1"));

    n.put("d4", 4, 1);
    const json third = n.night();
    CHECK(third["status"] == "published");
    CHECK(third["generation"] == 2);
    CHECK(third["diff"]["inputs"].size() == 1);
    CHECK(third["tiles"]["added"] > 0);
    const auto layer = [&](const std::string& sql) {
        citysplat::tiling::Database gpkg(n.reports / "changes.gpkg",
                                         citysplat::tiling::Database::Access::read_only);
        return gpkg.integer(sql);
    };
    CHECK(layer("SELECT count(*) FROM tile_changes WHERE change = 'added'") == third["tiles"]["added"]);
    CHECK(layer("SELECT count(*) FROM inputs") == 5);
    CHECK(n.digest() == n.clean_digest());
    n.put("d5", 5, 1);
    CHECK(n.night()["generation"] == 3);
    CHECK(test::run_json({"status", n.city, "--history"})["history"].size() == 2);  // [keep] last = 2
}

TEST_CASE("a shifted drive is held back, and accepted it gives the city of a plain build") {
    const NightCity n;
    n.night();
    const std::string before = n.digest();
    n.put("shifted", 1, 9, 0.3);
    const json held = n.night(76);
    CHECK(held["status"] == "held_back");
    CHECK(held["code"] == 76);
    CHECK(held["gates"][0]["holds"] == true);
    CHECK(n.digest() == before);
    CHECK(n.metrics_say("citysplat_success{city=\"" + n.city + "\"} 0"));
    CHECK(citysplat::read_text_file(n.junit).find("<failure") != std::string::npos);
    const json again = n.night(76);  // the next night is held back as well
    const std::string plan = again["steps"][0]["result"]["plan"];
    CHECK(test::run_json({"publish", n.city, "--accept", plan})["published"] == true);
    CHECK(n.digest() == n.clean_digest());
    const json next = n.night();  // tells what was accepted since the last report
    CHECK(next["diff"]["inputs"].size() == 1);
}

TEST_CASE("inputs that vanish end the night with 78, and nothing changes") {
    const NightCity n;
    n.night();
    const std::string before = n.digest();
    const fs::path away = n.dir / "unmounted";
    SECTION("half of them") {
        fs::create_directory(away);
        for (const char* name : {"d0.xyz", "d1.xyz"}) fs::rename(n.drives / name, away / name);
    }
    SECTION("all of them") { fs::rename(n.drives, away); }
    const json night = n.night(78);
    CHECK(night["status"] == "failed");
    CHECK(n.digest() == before);
    CHECK(test::run_json({"status", n.city})["generation"] == 1);
    CHECK(n.metrics_say("citysplat_exit_code{city=\"" + n.city + "\"} 78"));
    if (fs::exists(n.drives)) {  // a few may go when the file says so
        n.write_toml("[removed]\nmost_gone_percent = 60\n");
        CHECK(n.night()["status"] == "published");
        CHECK(n.digest() == n.clean_digest());
    }
}

TEST_CASE("a night killed in any step is completed by the next one, with one report") {
    NightCity n;
    n.write_toml("[time]\nwait_lock = \"5m\"\n");  // the step that ran goes on alone
    n.night();
    int piece = 4;
    for (const fs::path& once : {n.reports / "inputs-0.list", fs::path(n.city) / "plans/current",
                                 n.reports / "report.html", n.reports / "summary.txt"}) {
        INFO(once);
        n.put("d" + std::to_string(piece), piece, 1);
        ++piece;
        fs::remove(once);
        const auto killed =
            test::citysplat_with_signal({"--json", "-q", "nightly", n.toml.string()}, SIGKILL, once);
        CHECK(killed.exit_code == 128 + SIGKILL);
        const json night = n.night();
        const json last = json::parse(citysplat::read_text_file(n.reports / "report.json"));
        CHECK(last["generation"] == test::run_json({"status", n.city})["generation"]);
        CHECK(last["generation"] == piece - 3);
        if (night["status"] == "published") CHECK(night["diff"]["inputs"].size() == 1);
    }
    CHECK(n.digest() == n.clean_digest());
}

TEST_CASE("a report that cannot be written does not undo the city") {
    const NightCity n;
    n.night();
    n.put("d4", 4, 1);
    const fs::path name = n.reports / GENERATE("report.html", "changes.gpkg");
    fs::remove(name);
    fs::create_directory(name);  // nothing can have that name now
    const json night = n.night(74);
    CHECK(test::run_json({"status", n.city})["generation"] == 2);
    CHECK(n.digest() == n.clean_digest());
    CHECK(n.metrics_say("citysplat_success{city=\"" + n.city + "\"} 0"));
    CHECK(n.metrics_say("citysplat_exit_code{city=\"" + n.city + "\"} 74"));
    if (name.filename() == "changes.gpkg")
        CHECK(citysplat::read_text_file(n.reports / "report.html").find("could not be told") !=
              std::string::npos);
    fs::remove(name);
    CHECK(n.night()["diff"]["inputs"].size() == 1);  // told now
}

TEST_CASE("a wrong file is refused with its line before anything is done") {
    const NightCity n;
    for (const char* more : {"[gate2]\nx = 1\n", "[removed]\nmost_gone_percent = 101\n",
                             "[time]\nstop_after = 5\n", "[time]\nwait_lock = \"soon\"\n",
                             "[[drive]]\ntrajectory = \"t\"\n", "[after]\ncommand = \"true\"\n"}) {
        n.write_toml(more);
        INFO(more);
        CHECK(n.run().exit_code == 78);
    }
    std::ofstream(n.toml) << "city = \"c\"\n";
    CHECK(n.run().exit_code == 78);
    CHECK_FALSE(fs::exists(n.city));
    CHECK(test::citysplat({"nightly", n.dir / "nowhere.toml"}).exit_code != 0);
}

TEST_CASE("the command after the night gets the summary, and its failure is told") {
    const NightCity n;
    const fs::path told = n.dir / "told";
    n.write_toml("[after]\ncommand = [\"cp\", \"{summary}\", \"" + told.string() + "\"]\n");
    n.night();
    CHECK(citysplat::read_text_file(told) == citysplat::read_text_file(n.reports / "summary.txt"));
    n.write_toml("[after]\ncommand = [\"/nowhere/at/all\"]\n");
    CHECK(n.run().exit_code == 0);
}
