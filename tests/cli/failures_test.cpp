#include "help_page.hpp"
#include "small_city.hpp"

namespace test = citysplat::test;
using nlohmann::json;
using test::Outcome;
using test::TempDir;

namespace {

/// Fails with that code, and says so on stdout too.
json fails(std::vector<std::string> arguments, int code, const std::string& kind) {
    arguments.push_back("--json");
    std::string shown;
    for (const auto& a : arguments) shown += a + " ";
    INFO(shown);
    const Outcome outcome = test::citysplat(arguments);
    INFO(outcome.err << "\n" << outcome.out);
    CHECK(outcome.exit_code == code);
    const json object = json::parse(outcome.out, nullptr, false);
    REQUIRE(object.is_object());
    CHECK(object["code"] == code);
    CHECK(object["error"]["kind"] == kind);
    CHECK_THAT(outcome.err, Catch::Contains(object["error"]["message"].get<std::string>()));
    return object;
}

}  // namespace

TEST_CASE("with --json a failure is one object with its kind, message and code") {
    for (const std::string& verb : test::all_verbs()) fails({verb, "--no-such-flag"}, 2, "usage");
    const TempDir dir;
    const std::string nowhere = dir / "nowhere";
    fails({"synth", nowhere, "--length", "nan"}, 2, "usage");
    for (const char* verb : {"status", "verify", "gc", "rollback", "repair", "publish"})
        fails({verb, nowhere}, 78, "configuration");
    fails({"pack", nowhere, dir / "p"}, 78, "configuration");
    fails({"export", nowhere, "--out", dir / "x.ply"}, 78, "configuration");
    fails({"simulate", nowhere, "--trajectory", nowhere, "--out", dir / "scans"}, 78, "configuration");
    fails({"sensors", "no-such-sensor"}, 78, "configuration");
    for (const char* verb : {"info", "build"}) fails({verb, nowhere, nowhere + ".las"}, 74, "io");
    fails({"unpack", nowhere, dir / "c"}, 74, "io");
    fails({"compare", nowhere, "--reference", nowhere}, 74, "io");
    fails({"render", nowhere, "--pose", "0,0,0", "--out", dir / "x.png"}, 74, "io");
    fails({"selftest", "--backend", "gpu"}, 69, "unavailable");
}

TEST_CASE("what a verb has found is in the same object as its failure") {
    const test::SmallCity c;
    c.damage();
    CHECK(fails({"verify", c.city, "--deep"}, 65, "bad_data")["corrupt"].size() == 1);
    std::ofstream(c.dir / "a.xyz") << "1 2 3\n";
    std::ofstream(c.dir / "b.xyz") << "one two three\n";
    const json some = fails({"info", c.dir / "a.xyz", c.dir / "b.xyz"}, 65, "bad_data");
    CHECK(some["points"] == 1);
    CHECK(some["errors"].size() == 1);
}

TEST_CASE("places that cannot be written or used are named in plain words") {
    const test::SmallCity c;
    const auto fails_with = [&](const std::vector<std::string>& arguments, int code,
                                const std::string& words) {
        const Outcome outcome = test::citysplat(arguments);
        INFO(outcome.err);
        CHECK(outcome.exit_code == code);
        CHECK_THAT(outcome.err, Catch::Contains(words));
        CHECK_THAT(outcome.err, !Catch::Contains("internal error") && !Catch::Contains("database"));
    };
    fails_with({"pack", c.city, c.dir / "nodir/p"}, 2, "there is no directory");
    fails_with({"pack", c.city, c.dir.path()}, 2, "not a file");
    fails_with({"render", c.city, "--pose", "0,0,0", "--out", c.dir / "x.jpg"}, 2, ".png");
    fails_with({"render", c.city, "--pose", "0,0,0", "--out", "/dev/full"}, 2, ".png");
    fails_with({"export", c.city, "--out", "/dev/full"}, 74, "it is a device");
    const std::string with_png = c.dir / "device.png";
    std::filesystem::create_symlink("/dev/null", with_png);
    fails_with({"render", c.city, "--pose", "0,0,0", "--out", with_png}, 74, "it is a device");
    CHECK(std::filesystem::is_character_file("/dev/null"));
    for (const char* verb : {"selftest"}) {
        const Outcome outcome =
            test::run_program({"env", "TMPDIR=/nonexistent/tmp", test::program(), verb, "-q"});
        CHECK(outcome.exit_code == 74);
        CHECK_THAT(outcome.err, Catch::Contains("TMPDIR is /nonexistent/tmp"));
    }
}
