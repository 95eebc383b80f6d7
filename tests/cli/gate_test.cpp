#include "core/math/rng_hd.hpp"
#include "run_json.hpp"
#include "temp_dir.hpp"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

/// How thick surfaces are between passes: warned about, remembered, and a gate.
namespace test = citysplat::test;
using nlohmann::json;

namespace {

/// Two squares of ground that a scanner saw twice, half a second before its clock was started and four
/// seconds after; the second time it believed one of them, beside the other, to be too high by `error_m`.
struct SeenTwice {
    test::TempDir dir;
    std::string city = dir / "city", trajectory = dir / "drive.tum";

    SeenTwice() {
        std::ofstream(trajectory) << "-10 5 5 3 0 0 0 1\n10 5.5 5 3 0 0 0 1\n";
        write("thin.xyz", 0, 0);
        write("thick.xyz", 0.3, 20);
    }
    void write(const std::string& name, double error_m, double x_m) const {
        std::ofstream out(dir / name);
        for (std::uint64_t i = 0; i < 12'000; ++i) {
            const auto u = [&](std::uint64_t c, double low, double high) {
                return citysplat::rng::uniform(citysplat::rng::key(1, i), c, low, high);
            };
            const bool again = i % 2 == 1;
            out << x_m + u(0, 0, 10) << ' ' << u(1, 0, 10) << ' ' << u(2, 0.1, 0.11) + (again ? error_m : 0)
                << ' ' << (again ? u(3, 4.0, 4.9) : u(3, -0.9, -0.1)) << '\n';
        }
    }
    std::vector<std::string> build(const std::string& name, const std::vector<std::string>& more = {}) const {
        std::vector<std::string> words{
            "build",        city,       dir / name,      "--columns",   "x y z gps_time",
            "--trajectory", trajectory, "--no-resample", "--tile-size", "32"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    test::Outcome run(std::vector<std::string> words, bool as_json = true) const {
        if (as_json) words.insert(words.begin(), {"--json", "-q"});
        return test::citysplat(words);
    }
};

}  // namespace

TEST_CASE("thickness between passes is remembered, with the worst places and both times") {
    const SeenTwice s;
    const json built = test::run_json(s.build("thick.xyz"));
    REQUIRE(built["warnings"].size() == 1);
    CHECK(built["warnings"][0].get<std::string>().find("between -0.") != std::string::npos);
    CHECK(built["thickness"]["cells"] > 100);
    CHECK(built["thickness"]["thick_share"] > 0.9);
    const json status = test::run_json({"status", s.city});
    CHECK(status["thickness"] == built["thickness"]);
    CHECK(status["thickness"]["generation"] == 1);
    REQUIRE_FALSE(status["thickness"]["worst"].empty());
    const json& times = status["thickness"]["worst"][0]["times_s"];
    CHECK(times[0] > -1.0);
    CHECK(times[0] < 0.0);
    CHECK(times[1] > 4.0);
    const std::string text = s.run({"status", s.city}, false).out;
    CHECK(text.find("flat cells thicker than 10 cm") != std::string::npos);
    CHECK(text.find(" cm at ") != std::string::npos);

    // A later build does not measure: it says of which generation the figure is.
    CHECK(test::run_json(s.build("thin.xyz"))["thickness"]["generation"] == 1);
    CHECK(s.run({"status", s.city}, false).out.find("between passes (generation 1)") != std::string::npos);
}

TEST_CASE("a city with thick surfaces is held back by --most-thick, and accepted without it") {
    const SeenTwice s;
    const json first = test::run_json(s.build("thin.xyz", {"--most-thick", "2"}));
    CHECK(first["published"] == true);
    CHECK(first["thickness"]["thick_share"] == 0);

    const test::Outcome held = s.run(s.build("thick.xyz", {"--most-thick", "2"}));
    CHECK(held.exit_code == 76);
    const json said = json::parse(held.out);
    CHECK(said["code"] == 76);
    CHECK(said["error"]["kind"] == "held_back");
    CHECK(said["published"] == false);
    CHECK(said["generation"] == 1);
    CHECK(said["tiles_built"] > 0);
    CHECK(said["thickness"]["thick_share"] > 0.2);
    CHECK(said["held_back"].get<std::string>().find(" s and 4.") != std::string::npos);
    const json status = test::run_json({"status", s.city});
    CHECK(status["generation"] == 1);
    CHECK(status["digest"] == first["digest"]);
    CHECK(status["inputs"].size() == 1);
    CHECK(test::run_json({"verify", s.city, "--deep"})["corrupt"].empty());

    // A limit that it keeps.
    CHECK(s.run(s.build("thick.xyz", {"--most-thick", "100", "--dry-run"})).exit_code == 0);
    const json accepted = test::run_json(s.build("thick.xyz"));
    CHECK(accepted["published"] == true);
    CHECK(accepted["generation"] == 2);
    CHECK(accepted["inputs_read"] == 0);
    CHECK(accepted["tiles_built"] == 0);
    CHECK(accepted["digest"] == said["digest"]);
}

TEST_CASE("a gate says when it has nothing to judge by, and refuses what is no share") {
    const SeenTwice s;
    std::ofstream(s.dir / "few.xyz") << "1 1 0 1\n1.1 1 0 1\n1 1.1 0 1\n";
    const json built = test::run_json(s.build("few.xyz", {"--most-thick", "2"}));
    CHECK(built["published"] == true);
    REQUIRE(built["warnings"].size() == 1);
    CHECK(built["warnings"][0].get<std::string>().find("nothing to judge by") != std::string::npos);
    for (const char* nonsense : {"nan", "inf", "-1", "101", "2%", "", "two"})
        CHECK(s.run(s.build("thin.xyz", {"--most-thick", nonsense})).exit_code == 2);
}
