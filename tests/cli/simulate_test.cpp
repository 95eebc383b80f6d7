#include "small_city.hpp"

#include <algorithm>

namespace test = citysplat::test;
using nlohmann::json;
using test::Outcome;

namespace {

struct Drive : test::SmallCity {
    using SmallCity::SmallCity;
    int runs = 0;

    std::string out() const { return dir / ("scans" + std::to_string(runs)); }
    std::vector<std::string> command(const std::vector<std::string>& more,
                                     const std::string& sensor = "vlp-16") {
        ++runs;
        std::vector<std::string> all{"simulate",     city,       "--sensor", sensor,
                                     "--trajectory", trajectory, "--out",    out()};
        if (std::find(more.begin(), more.end(), "--rate") == more.end())
            all.insert(all.end(), {"--rate", "2"});
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    json simulate(const std::vector<std::string>& more = {}) { return test::run_json(command(more)); }
};

}  // namespace

TEST_CASE("scans depend on neither threads nor memory nor prefetching, and repeat") {
    Drive d("16");
    // About what the largest tile takes with its hierarchy.
    const std::string one_tile = std::to_string(4 * std::filesystem::file_size(d.largest_payload()));
    for (const std::string hits : {"1", "5"}) {
        const json reference = d.simulate({"--hits", hits});
        CHECK(reference["scans"] > 1);
        CHECK(reference["hits"] > 10'000);
        for (const std::vector<std::string>& more :
             std::initializer_list<std::vector<std::string>>{{},
                                                             {"--threads", "1"},
                                                             {"--resident", one_tile},
                                                             {"--resident", one_tile, "--prefetch", "off"},
                                                             {"--resident", "1M"},
                                                             {"--prefetch", "off"}}) {
            auto flags = more;
            flags.insert(flags.end(), {"--hits", hits});
            const json again = d.simulate(flags);
            INFO((more.empty() ? "once more" : more[0] + " " + more[1]) << ", " << hits << " hits");
            CHECK(again["digest"] == reference["digest"]);
            if (!more.empty() && more[0] == "--resident" && more[1] == one_tile)
                CHECK(again["passes"] > again["scans"]);
        }
    }
}

namespace {

struct Survey {
    std::string length_m, points_per_metre, origin, sensor;
};

/// Builds one drive into cities of several tile sizes; all must give the same scans, with room for all tiles
/// and with little.
void check_tile_sizes(const Survey& survey) {
    const test::TempDir dir;
    const std::string drive = dir / "drive", trajectory = drive + "/trajectory.tum";
    test::run_json({"synth", drive, "--length", survey.length_m, "--points-per-metre",
                    survey.points_per_metre, "--origin", survey.origin});
    json reference[2], city_digest;
    for (const std::string tile_m : {"16", "32", "64", "128"}) {
        const std::string city = dir / ("city" + tile_m);
        const json built = test::run_json({"build", city, drive, "--trajectory", trajectory, "--classes",
                                           "synthetic", "--tile-size", tile_m});
        if (city_digest.is_null()) city_digest = built["digest"];
        REQUIRE(built["digest"] == city_digest);
        // About what the largest tile takes with its hierarchy.
        const std::string one_tile =
            std::to_string(4 * std::filesystem::file_size(test::largest_payload_of(city)));
        for (const std::string& resident : {std::string("1G"), one_tile})
            for (const int several : {0, 1}) {
                const json run =
                    test::run_json({"simulate", city, "--sensor", survey.sensor, "--trajectory", trajectory,
                                    "--out", dir / "scans", "--no-scans", "--overwrite", "--rate", "2",
                                    "--hits", several ? "5" : "1", "--resident", resident});
                if (reference[several].is_null()) reference[several] = run;
                CAPTURE(survey.origin, tile_m, resident, several);
                CHECK(run["hits"] > 10'000);
                CHECK(run["digest"] == reference[several]["digest"]);
                if (tile_m == "16") CHECK((run["passes"] > run["scans"]) == (resident == one_tile));
            }
    }
}

}  // namespace

TEST_CASE("scans do not depend on the tile size of the city") {
    check_tile_sizes({"16", "3000", "0,0", "vlp-16"});
}

TEST_CASE("scans of a longer drive do not depend on the tile size, at UTM coordinates either", "[slow]") {
    check_tile_sizes({"100", "10000", "0,0", "hdl-64e"});
    check_tile_sizes({"100", "10000", "651000,6861000", "hdl-64e"});
}

TEST_CASE("noise follows the seed, and is off with --noise off") {
    Drive d;
    const auto digest = [&](const std::vector<std::string>& more) { return d.simulate(more)["digest"]; };
    CHECK(digest({"--seed", "1"}) != digest({"--seed", "2"}));
    CHECK(digest({"--seed", "1", "--noise", "off"}) == digest({"--seed", "2", "--noise", "off"}));
}

TEST_CASE("a damaged tile stops a simulation by name, and --allow-missing marks the rays") {
    Drive d;
    const json whole = d.simulate();
    d.damage();
    const Outcome stopped = test::citysplat(d.command({"-q"}));
    CHECK(stopped.exit_code == 65);
    CHECK_THAT(stopped.err, Catch::Contains("tile "));
    CHECK_THAT(stopped.err, Catch::Contains("checksum") || Catch::Contains("damaged") ||
                                Catch::Contains("does not match"));
    const json some = d.simulate({"--allow-missing"});
    CHECK(some["missing"] > 100);
    CHECK(some["hits"] < whole["hits"]);

    const Outcome found = test::citysplat({"verify", d.city, "--deep", "--set-aside", "--json", "-q"});
    CHECK(found.exit_code == 65);
    CHECK(json::parse(found.out)["corrupt"].size() == 1);
    CHECK(json::parse(found.out)["set_aside"] == 1);
    CHECK(test::run_json(d.build_command())["tiles_built"] == 1);
    CHECK(d.simulate()["digest"] == whole["digest"]);

    std::filesystem::remove(d.largest_payload());
    const Outcome missing = test::citysplat(d.command({"-q"}));
    CHECK(missing.exit_code == 65);
    CHECK_THAT(missing.err, Catch::Contains("tile "));
    CHECK(test::run_json(d.build_command())["tiles_built"] == 1);
    CHECK(d.simulate()["digest"] == whole["digest"]);
}

TEST_CASE("every format of scans is read back whole") {
    Drive d;
    for (const std::string format : {"las", "ply", "pcd", "xyz", "kitti"}) {
        INFO(format);
        // A KITTI sequence is read with its poses, the others as they are.
        const json run = d.simulate({"--format", format, "--frame", format == "kitti" ? "sensor" : "world"});
        CHECK(test::run_json({"info", d.out()})["points"] == run["hits"]);
        CHECK(test::run_json({"compare", d.out(), "--reference", d.drive})["c2c_mean_m"] < 0.2);
    }
    const json kept = d.simulate({"--format", "las", "--keep-misses"});
    CHECK(test::run_json({"info", d.out()})["points"] == kept["rays"]);
    const json cloud = d.simulate({"--format", "las", "--accumulate", "--no-scans", "--overwrite"});
    CHECK(test::run_json({"info", d.out() + "/cloud.las"})["points"] == cloud["hits"]);
}

TEST_CASE("a mistake in the table of the last sensor is found before the first one is driven") {
    Drive d;
    for (const std::string mistake :
         {"frame = \"wolrd\"", "format = \"pyl\"", "recorded = true", "decimate = \"1cm\""}) {
        std::ofstream(d.dir / "s.toml") << "trajectory = \"" << d.trajectory
                                        << "\"\n[[sensor]]\nname = \"a\"\nsensor = \"vlp-16\"\n"
                                           "[[sensor]]\nname = \"b\"\nsensor = \"vlp-16\"\n"
                                        << mistake << "\n";
        const Outcome outcome =
            test::citysplat({"simulate", d.city, "--scenario", d.dir / "s.toml", "--out", d.out()});
        INFO(mistake << "\n" << outcome.err);
        CHECK(outcome.exit_code != 0);
        CHECK_FALSE(std::filesystem::exists(d.out()));
    }
}

TEST_CASE("who asks for KITTI files in the world is told what single precision leaves of them") {
    Drive d;
    const auto is_told = [](const json& run) {
        return std::any_of(run["warnings"].begin(), run["warnings"].end(), [](const json& warning) {
            return warning.get<std::string>().find("single precision, which in the world is 0.5 m here") !=
                   std::string::npos;
        });
    };
    CHECK(is_told(d.simulate({"--format", "kitti", "--frame", "world"})));
    CHECK_FALSE(is_told(d.simulate({"--format", "kitti"})));
    CHECK_FALSE(is_told(d.simulate({"--format", "ply", "--frame", "world"})));
}

TEST_CASE("the city itself is a reference to compare with") {
    Drive d;
    d.simulate({"--format", "las"});
    const json files = test::run_json({"compare", d.out(), "--reference", d.drive});
    const json city = test::run_json({"compare", d.out(), "--reference", d.city});
    CHECK(city["points"] == files["points"]);
    // The city knows what its labels are called; of files alone nobody says so.
    CHECK(city["classes"].contains("road"));
    CHECK_FALSE(files["classes"].contains("road"));
    // Points in the city are on the lattice: a quarter of a millimetre at most.
    CHECK(city["c2c_mean_m"].get<double>() == Approx(files["c2c_mean_m"].get<double>()).margin(0.0002));
}

TEST_CASE("a scenario drives several sensors, each with output of its own") {
    Drive d;
    std::ofstream(d.dir / "own.toml") << test::citysplat({"sensors", "vlp-16", "-q"}).out;
    std::ofstream(d.dir / "drive.toml") << "trajectory = \"drive/trajectory.tum\"\nseed = 9\n"
                                           "[[sensor]]\nname = \"roof\"\nsensor = \"vlp-16\"\nrate_hz = 2\n"
                                           "[[sensor]]\nname = \"own\"\nsensor = \"own.toml\"\nrate_hz = 2\n"
                                           "mount_m = [1.0, 0.0, -0.5]\nnoise = false\nformat = \"pcd\"\n";
    const json run = test::run_json(
        {"simulate", d.city, "--scenario", d.dir / "drive.toml", "--out", d.dir / "both"}, {"sensors"});
    REQUIRE(run["sensors"].size() == 2);
    CHECK(run["sensors"][0]["digest"] == d.simulate({"--seed", "9"})["digest"]);
    CHECK(test::run_json({"info", d.dir / "both/own"})["points"] == run["sensors"][1]["hits"]);
}

TEST_CASE("what a simulation cannot use is named") {
    Drive d;
    const auto fails = [&](const std::vector<std::string>& more, int code, const std::string& word) {
        const Outcome outcome = test::citysplat(d.command(more));
        INFO(outcome.err);
        CHECK(outcome.exit_code == code);
        CHECK_THAT(outcome.err, Catch::Contains(word));
    };
    CHECK_THAT(test::citysplat(d.command({}, "nosuch")).err, Catch::Contains("nosuch"));
    fails({"--backend", "gpu"}, 69, "gpu");
    fails({"--from", "1e9"}, 2, "no scan");
    fails({"--resident", "lots"}, 2, "lots");
    fails({"--hits", "99"}, 2, "99");
}
