#include "small_city.hpp"

#include <cmath>
#include <fstream>

namespace test = citysplat::test;
using nlohmann::json;
using test::Outcome;

namespace {

/// A small city and scans that were simulated in it without noise: as if they were real, with everything
/// known.
struct RecordedCity : test::SmallCity {
    std::string scans = dir / "scans";

    explicit RecordedCity(std::string tile_size_m = "32") : SmallCity(std::move(tile_size_m)) {
        test::run_json({"simulate", city, "--sensor", "vlp-16", "--trajectory", trajectory, "--out", scans,
                        "--rate", "2", "--noise", "off", "--format", "ply", "--frame", "world"});
    }
    std::vector<std::string> command(const std::vector<std::string>& more = {}) const {
        std::vector<std::string> all{"compare", "--rays", scans, "--city", city, "--trajectory", trajectory};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    json judge(const std::vector<std::string>& more = {}) const { return test::run_json(command(more)); }
};

json without_time(json report) {
    report.erase("seconds");
    return report;
}

}  // namespace

TEST_CASE("scans that were simulated in a city agree with it, ray by ray") {
    const RecordedCity d;
    const json report = d.judge();
    CHECK(report["scans"] > 1);
    CHECK(report["returns"] > 10'000);
    CHECK(report["within_5cm"] > 0.9999);
    CHECK(report["normal_within_5cm"] > 0.9999);
    CHECK(report["holes"] < 0.0005);
    CHECK(report["front"] < 0.0005);
    CHECK(report["median_m"] < 0.001);
    CHECK(std::abs(report["bias_m"].get<double>()) < 0.001);
    CHECK(report["beams"].size() == 16);
    CHECK(report["beams"][0]["elevation_deg"].get<double>() == Approx(15).margin(0.1));
    CHECK(report["intensity"]["pearson"] > 0.999);
    CHECK(report["intensity"]["mean_error"] < 0.001);
    CHECK(report["classes"].contains("road"));
    CHECK(report["points_without_sensor"] == 0);
    // What the simulated sensor got no answer to, it does not get one to now.
    CHECK(report["empty"] > 1000);
    CHECK(report["extra"] < 0.03);
    CHECK(report["agreement"] > 0.99);
    CHECK(report["rays"] == report["returns"].get<int>() + report["empty"].get<int>());
    std::uint64_t by_range = 0, by_beam = 0;
    for (const json& row : report["ranges"]) by_range += row["returns"].get<std::uint64_t>();
    for (const json& row : report["beams"]) by_beam += row["returns"].get<std::uint64_t>();
    CHECK(by_range == report["returns"]);
    CHECK(by_beam == report["returns"]);

    SECTION("and the report depends on neither threads nor memory") {
        const std::string one_tile = std::to_string(8 * std::filesystem::file_size(d.largest_payload()));
        CHECK(without_time(d.judge({"--threads", "1"})) == without_time(report));
        CHECK(without_time(d.judge({"--resident", one_tile})) == without_time(report));
    }
    SECTION("nor on the tiles of the city") {
        const std::string other = d.dir / "other";
        test::run_json({"build", other, d.drive, "--trajectory", d.trajectory, "--classes", "synthetic",
                        "--tile-size", "64"});
        auto command = d.command();
        command[4] = other;
        CHECK(without_time(test::run_json(command)) == without_time(report));
    }
    SECTION("without empty rays nothing is said about them") {
        const json returns = d.judge({"--no-empty"});
        CHECK(returns["empty"] == 0);
        CHECK_FALSE(returns.contains("extra"));
        CHECK(returns["beams"].empty());
        CHECK(returns["within_5cm"] == report["within_5cm"]);
    }
    SECTION("a picture is written on request") {
        const std::string picture = d.dir / "image.png";
        d.judge({"--picture", picture, "--picture-scan", "1"});
        char magic[4] = {};
        std::ifstream(picture).read(magic, 4);
        CHECK(std::string(magic + 1, 3) == "PNG");
    }
    SECTION("a learned model of the sensor is applied, if it is for this sensor") {
        // Nothing was lost when these scans were made: a model learned from them loses next to nothing.
        const std::string model = d.dir / "model.toml";
        test::run_json({"learn-sensor", d.city, "--scans", d.scans, "--trajectory", d.trajectory, "--sensor",
                        "vlp-16", "--out", model});
        const json learned = d.judge({"--sensor", "vlp-16", "--model", model});
        CHECK(learned.value("dropped", 0.0) < 0.02);
        CHECK(learned["holes"].get<double>() <
              report["holes"].get<double>() + learned.value("dropped", 0.0) + 0.001);
        CHECK(learned["extra"] <= report["extra"]);
        CHECK(test::citysplat(d.command({"--sensor", "hdl-32e", "--model", model, "-q"})).exit_code == 78);
        CHECK(test::citysplat(d.command({"--model", model, "-q"})).exit_code == 2);
        // Beside it the table is that of the city alone.
        const json beside = d.judge({"--sensor", "vlp-16", "--model", model, "--model-beside"});
        for (const char* key : {"holes", "within_5cm", "extra", "empty"}) CHECK(beside[key] == report[key]);
        for (const char* key : {"holes", "within_5cm", "extra", "empty"})
            CHECK(beside["with_model"][key] == learned[key]);
        CHECK(beside["with_likely_drops"]["empty"] == report["empty"]);
        CHECK(beside["with_likely_drops"].value("dropped", 0.0) < 0.02);
        // Who allows more losses gets more, and no more than that.
        json most = d.judge({"--sensor", "vlp-16", "--model", model, "--most-lost", "5"});
        CHECK(most.value("dropped", 0.0) <= 0.055);
        CHECK(most.value("dropped", 0.0) >= beside["with_likely_drops"].value("dropped", 0.0));
        CHECK(most["extra"] <= beside["with_likely_drops"]["extra"]);
        most = d.judge({"--sensor", "vlp-16", "--model", model, "--model-beside", "--most-lost", "5"});
        CHECK(most["with_likely_drops"]["most_lost_percent"] == 5);
        CHECK(most["holes"] == report["holes"]);
        CHECK(test::citysplat(d.command({"--most-lost", "5", "-q"})).exit_code == 2);
        CHECK(beside["with_model"]["extra_rays"].get<std::uint64_t>() +
                  beside["with_model"]["extra_taken_away"].get<std::uint64_t>() <=
              report["extra_rays"].get<std::uint64_t>());
        CHECK(test::citysplat(d.command({"--model-beside", "-q"})).exit_code == 2);
    }
    SECTION("people get a table") {
        const Outcome outcome = test::citysplat(d.command({"-q"}));
        CHECK(outcome.exit_code == 0);
        CHECK_THAT(outcome.out, Catch::Contains("<5 cm") && Catch::Contains("road") &&
                                    Catch::Contains("did not come back"));
    }
}

TEST_CASE("scans from elsewhere and trajectories of another time are refused or counted") {
    const RecordedCity d;
    SECTION("without a trajectory nobody knows where the sensor was") {
        const Outcome outcome = test::citysplat({"compare", "--rays", d.scans, "--city", d.city, "-q"});
        CHECK(outcome.exit_code == 65);
        CHECK_THAT(outcome.err, Catch::Contains(".ply") && Catch::Contains("--trajectory"));
    }
    SECTION("a trajectory of another time") {
        const Outcome outcome = test::citysplat(d.command({"--time-offset", "5000", "-q"}));
        CHECK(outcome.exit_code == 65);
        CHECK_THAT(outcome.err, Catch::Contains("not covered") && Catch::Contains("--time-offset"));
    }
    SECTION("a file that is no cloud") {
        const std::string wrong = d.dir / "wrong.ply";
        std::ofstream(wrong) << "nothing";
        const Outcome outcome = test::citysplat({"compare", "--rays", wrong, "--city", d.city, "-q"});
        CHECK(outcome.exit_code == 65);
        CHECK_THAT(outcome.err, Catch::Contains("wrong.ply"));
    }
    SECTION("flags that belong together") {
        for (const std::vector<std::string>& wrong : std::initializer_list<std::vector<std::string>>{
                 {"compare", "--rays", d.scans},
                 {"compare", "--rays", d.scans, "--city", d.city, "--truth", d.drive},
                 {"compare", d.scans, "--reference", d.drive, "--hits", "3"},
                 {"compare", d.scans, "--reference", d.drive, "--picture", "a.png"},
                 d.command({"--picture", d.dir / "a.png", "--picture-scan", "1000"}),
                 d.command({"--hits", "99"}),
                 d.command({"--reach", "nan"})}) {
            const Outcome outcome = test::citysplat(wrong);
            INFO(outcome.err);
            CHECK(outcome.exit_code == 2);
            CHECK_THAT(outcome.err, Catch::Contains("--"));
        }
    }
}
