#include "help_page.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

namespace test = citysplat::test;
using test::Outcome;
using test::TempDir;

namespace {

std::size_t lines_of(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("the program explains itself") {
    const Outcome help = test::citysplat({"--help"});
    CHECK(help.exit_code == 0);
    CHECK(help.err.empty());
    CHECK_THAT(help.out, Catch::Contains("Exit codes"));
    CHECK_THAT(test::citysplat({"--version"}).out, Catch::StartsWith("citysplat "));
}

TEST_CASE("every verb has help with an example") {
    const auto names = test::all_verbs();
    for (const char* expected : {"synth", "build", "status", "verify", "gc", "info", "sensors", "simulate",
                                 "compare", "export", "render"})
        CHECK(std::find(names.begin(), names.end(), expected) != names.end());
    for (const auto& verb : names) {
        INFO(verb);
        const Outcome help = test::citysplat({verb, "--help"});
        CHECK(help.exit_code == 0);
        CHECK_THAT(help.out, Catch::Contains("Example"));
        CHECK_THAT(help.out, Catch::Contains("citysplat " + verb));
    }
}

TEST_CASE("wrong flags give one line and exit code 2") {
    const std::vector<std::vector<std::string>> wrong{
        {},
        {"frobnicate"},
        {"--nonsense"},
        {"synth", "out", "--length", "abc"},
        {"synth", "out", "--nonsense"},
        {"--memory", "lots", "status", "city"},
        {"--memory", "1", "status", "city"},
        {"--threads", "0", "status", "city"},
        {"--progress", "sparkles", "status", "city"},
        {"build"},
        {"status"},
        {"simulate", "city"},
    };
    for (const auto& arguments : wrong) {
        std::string shown;
        for (const auto& a : arguments) shown += a + " ";
        INFO(shown);
        const Outcome outcome = test::citysplat(arguments);
        CHECK(outcome.exit_code == 2);
        CHECK(outcome.out.empty());
        CHECK(lines_of(outcome.err) == 1);
    }
}

TEST_CASE("an unknown verb is named") {
    CHECK_THAT(test::citysplat({"frobnicate", "city"}).err, Catch::Contains("no verb \"frobnicate\""));
    CHECK_THAT(test::citysplat({}).err, Catch::Contains("required"));
}

TEST_CASE("missing and wrong files give one line that names them, and the right code") {
    const TempDir dir;
    const std::string missing = dir / "nowhere.las", directory = dir.path();
    const auto check = [&](const std::vector<std::string>& arguments, const std::string& named, int code) {
        std::string shown;
        for (const auto& a : arguments) shown += a + " ";
        INFO(shown);
        const Outcome outcome = test::citysplat(arguments);
        INFO(outcome.err);
        CHECK(outcome.exit_code == code);
        CHECK_THAT(outcome.err, Catch::Contains(named));
        CHECK(lines_of(outcome.err) == 1);
    };
    const std::string garbage = dir / "garbage.las";
    std::ofstream(garbage) << "this is not a point cloud";
    check({"info", missing}, missing, 74);
    check({"info", garbage, "-q"}, garbage, 65);
    check({"status", missing}, missing, 78);
    check({"verify", dir.path()}, dir.path(), 78);
    check({"build", dir / "city", missing, "-q"}, missing, 74);
    check({"build", dir / "city", garbage, "-q"}, garbage, 65);
    check({"build", dir / "city", garbage, "-q", "--classes", "martian"}, "martian", 78);
    check({"simulate", missing, "--trajectory", missing, "--out", dir / "scans", "-q"}, missing, 78);
    check({"sensors", "no-such-sensor"}, "no-such-sensor", 78);
    check({"compare", missing, "--reference", missing, "-q"}, missing, 74);
    check({"compare", garbage, "--reference", garbage, "--truth", missing, "-q"}, missing, 74);
    check({"synth", garbage + "/below", "--length", "5", "-q"}, garbage, 74);
    check({"unpack", missing, dir / "city"}, missing, 74);
    const std::string circle = dir / "circle";  // nobody, not even root, can look into it
    std::filesystem::create_symlink("circle", circle);
    for (const char* verb : {"status", "verify", "gc", "repair"})
        check({verb, circle, "-q"}, "cannot use " + circle, 74);
    check({"synth", circle, "--length", "5", "-q"}, circle, 74);
    check({"build", circle, garbage, "-q"}, "cannot use " + circle, 74);
}
