#include "cli/run_json.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <string>
#include <vector>

namespace test = citysplat::test;
using nlohmann::json;

namespace {

/// A square of ground, then a second one beside it: two generations.
struct TwoSquares {
    test::TempDir dir;
    std::string city = dir / "city";

    TwoSquares() {
        for (const int x : {0, 40}) {
            std::ofstream out(dir / ("at" + std::to_string(x) + ".xyz"));
            for (int i = 0; i < 60; ++i)
                for (int j = 0; j < 60; ++j) out << x + i * 0.1 << ' ' << j * 0.1 << " 0.01\n";
        }
        build(0, {"--note", "the first square"});
        build(40, {});
    }
    json build(int x, std::vector<std::string> more) const {
        std::vector<std::string> words{"build",       city,    dir / ("at" + std::to_string(x) + ".xyz"),
                                       "--columns",   "x y z", "--no-resample",
                                       "--tile-size", "32"};
        words.insert(words.end(), more.begin(), more.end());
        return test::run_json(words);
    }
    int code(std::vector<std::string> words) const { return test::citysplat(words).exit_code; }
};

}  // namespace

TEST_CASE("every verb that reads a city reads the generation that is asked for") {
    const TwoSquares s;
    CHECK(test::run_json({"tag", s.city, "one", "1"})["generation"] == 1);
    const json first = test::run_json({"status", s.city, "--generation", "one"});
    CHECK(first["generation"] == 1);
    CHECK(first["note"] == "the first square");
    CHECK(first["tags"] == json::array({"one"}));
    CHECK(first["inputs"].size() == 1);
    const json second = test::run_json({"status", s.city});
    CHECK(second["generation"] == 2);
    CHECK(second["note"] == "build");
    CHECK(first["splats"] < second["splats"]);
    CHECK(test::run_json({"tag", s.city})["tags"] == json{{"one", 1}});

    for (const char* name : {"1", "one"}) {
        const json exported = test::run_json(
            {"export", s.city, "--generation", name, "--format", "ply", "--out", s.dir / "one.ply"});
        CHECK(exported["splats"] == first["splats"]);
    }
    const json picture = test::run_json({"render", s.city, "--generation", "one", "--pose", "43,3,20,0,-89",
                                         "--size", "16x16", "--out", s.dir / "p.png"});
    CHECK(picture["hits"] == 0);  // the second square is not there yet
    CHECK(test::run_json({"render", s.city, "--pose", "43,3,20,0,-89", "--size", "16x16", "--out",
                          s.dir / "p.png"})["hits"] > 0);
    CHECK(test::run_json({"pack", s.city, s.dir / "one.pack", "--generation", "one"})["generation"] == 1);
    CHECK(test::run_json({"verify", s.city, "--generation", "one", "--deep"})["checked"] <
          test::run_json({"verify", s.city, "--deep"})["checked"]);
    std::ofstream(s.dir / "way.tum") << "0 43 3 0.5 0 0 0 1\n0.2 43.1 3 0.5 0 0 0 1\n";
    const auto simulate = [&](const std::vector<std::string>& more) {
        std::vector<std::string> words{"simulate", s.city,          "--sensor",
                                       "vlp-16",   "--trajectory",  s.dir / "way.tum",
                                       "--out",    s.dir / "scans", "--overwrite"};
        words.insert(words.end(), more.begin(), more.end());
        return test::run_json(words)["hits"].get<int>();
    };
    CHECK(simulate({"--generation", "1"}) < simulate({}) / 2);
    CHECK(test::run_json({"clearance", s.city, "--generation", "one", "--trajectory", s.dir / "way.tum",
                          "--box", "1,1,2", "--place", "0,0,-0.6", "--lift", "0"})["touching"] == 0);
    CHECK(test::run_json({"rollback", s.city, "one"})["generation"] == 3);
    CHECK(test::run_json({"status", s.city})["digest"] == first["digest"]);
}

TEST_CASE("a generation that nobody knows is a mistake of the command line, with what there is") {
    const TwoSquares s;
    test::run_json({"tag", s.city, "one", "1"});
    for (const char* name : {"3", "two", "2000-01-01", "2026-99-99", "nan", "-1"}) {
        CHECK(s.code({"status", s.city, "--generation", name}) == 2);
        CHECK(s.code({"export", s.city, "--generation", name, "--out", s.dir / "x.ply"}) == 2);
    }
    const auto said = test::citysplat({"status", s.city, "--generation", "two"});
    CHECK(said.err.find("there are one") != std::string::npos);
    CHECK(s.code({"tag", s.city, "2026-11-16"}) == 2);
    CHECK(s.code({"tag", s.city, "one", "2"}) == 2);
    CHECK(s.code({"tag", s.city, "one", "2", "--move"}) == 0);
    CHECK(s.code({"tag", s.city, "one", "--delete", "--move"}) == 2);
    CHECK(s.code({"tag", s.dir / "nowhere", "one"}) == 78);
    CHECK(s.code({"build", s.city, "--note", "two\nlines"}) == 2);
    CHECK(s.code({"build", s.city, "--note", ""}) == 2);
}

TEST_CASE("a variable of a script that is not set is no flag that was left out") {
    const TwoSquares s;
    const std::vector<std::vector<std::string>> lines{{"status", s.city, "--generation", ""},
                                                      {"rollback", s.city, ""},
                                                      {"tag", s.city, ""},
                                                      {"tag", s.city, "name", ""},
                                                      {"diff", s.city, ""},
                                                      {"diff", s.city, "1", ""},
                                                      {"gc", s.city, "--keep-within", ""},
                                                      {"gc", s.city, "--keep-tag", ""},
                                                      {"publish", s.city, "--accept", ""}};
    for (const auto& line : lines) {
        INFO(line[0] << " " << line[2]);
        const test::Outcome outcome = test::citysplat(line);
        CHECK(outcome.exit_code == 2);
        CHECK_FALSE(outcome.err.empty());
    }
    CHECK(test::run_json({"status", s.city})["generation"] == 2);
}

TEST_CASE("gc says which rule keeps a generation") {
    const TwoSquares s;
    test::run_json({"tag", s.city, "one", "1"});
    const json kept = test::run_json({"gc", s.city, "--keep-daily", "1", "--dry-run"});
    CHECK(kept["forgotten"].empty());
    CHECK(kept["generations"][0]["rules"] == json::array({"tag one"}));
    CHECK(kept["generations"][1]["keep"] == true);
    CHECK(s.code({"gc", s.city, "--keep-daily", "1", "--keep-tag", "other"}) == 2);
    test::run_json({"tag", s.city, "other", "2"});
    const json less = test::run_json({"gc", s.city, "--keep-daily", "1", "--keep-tag", "other", "--dry-run"});
    CHECK(less["forgotten"] == json::array({1}));
    const auto said = test::citysplat({"gc", s.city, "--keep-last", "1", "--keep-tag", "other", "--dry-run"});
    CHECK(said.err.find("forget 1") != std::string::npos);
    CHECK(said.err.find("keep   2  --keep-last") != std::string::npos);
    for (const char* bad : {"0", "-1", "nan", "all"})
        CHECK(s.code({"gc", s.city, "--keep-weekly", bad}) == 2);
    CHECK(s.code({"gc", s.city, "--keep-within", "fortnight"}) == 2);
    CHECK(s.code({"gc", s.city, "--keep-within", "14d", "--dry-run"}) == 0);
    CHECK(test::run_json({"status", s.city, "--generation", "1"})["generation"] == 1);
}
