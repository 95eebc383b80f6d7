#include "run_json.hpp"
#include "temp_dir.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace test = citysplat::test;
namespace fs = std::filesystem;

namespace {

/// A city that version 0.1 wrote: two clouds of 240 points 61 m apart, `second` removed and added again, so
/// that it has three generations. The files it was made from lie beside it; their names in the city are
/// /street/….
const std::string kGolden = CITYSPLAT_GOLDEN;
const std::string kDigestOfBoth = "388478833e004ffb872c72063a0137a8";

struct GoldenCity {
    test::TempDir dir;
    std::string city = dir / "city";
    GoldenCity() { test::run_json({"unpack", kGolden + "/city-0.1.pack", city}); }

    /// As SQLite's header has it.
    int catalog_version() const {
        std::ifstream file(city + "/catalog.sqlite", std::ios::binary);
        file.seekg(63);
        return file.get();
    }
    std::string digest() const { return test::run_json({"status", city})["digest"]; }
};

std::vector<std::string> build(const std::string& city, const std::vector<std::string>& clouds) {
    std::vector<std::string> command{"build", city};
    command.insert(command.end(), clouds.begin(), clouds.end());
    command.insert(command.end(),
                   {"--columns", "x y z intensity gps_time", "--trajectory", kGolden + "/trajectory.tum",
                    "--method", "descriptors", "--no-resample", "--tile-size", "32"});
    return command;
}

}  // namespace

TEST_CASE("a city of version 0.1 is read, verified and driven through without being changed") {
    const GoldenCity golden;
    REQUIRE(golden.catalog_version() == 1);
    const auto status = test::run_json({"status", golden.city});
    CHECK(status["digest"] == kDigestOfBoth);
    CHECK(status["splats"] == 256);
    CHECK(status["calibration"]["angular_step_rad"] == 0);
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());
    const auto run =
        test::run_json({"simulate", golden.city, "--trajectory", kGolden + "/trajectory.tum", "--sensor",
                        "vlp-16", "--out", golden.dir / "scans", "--from", "99.9", "--to", "100.3"});
    CHECK(run["hits"] > 20);
    CHECK(golden.catalog_version() == 1);
}

TEST_CASE("a city of version 0.1 is built further and becomes what a new city would be") {
    const GoldenCity golden;
    const std::string fresh = golden.dir / "fresh", first_alone = golden.dir / "first";
    const auto of_both = test::run_json(build(fresh, {kGolden + "/first.xyz", kGolden + "/second.xyz"}));
    const auto of_first = test::run_json(build(first_alone, {kGolden + "/first.xyz"}));

    // The algorithm has changed since: every tile is made again, once.
    const auto same = test::run_json({"build", golden.city});
    CHECK(same["digest"] == of_both["digest"]);
    CHECK(same["tiles_built"] == 2);
    CHECK(same["generation"] == 4);
    CHECK(test::run_json({"build", golden.city})["tiles_built"] == 0);
    CHECK(golden.catalog_version() == 3);
    CHECK(test::run_json({"build", golden.city, "--remove", "/street/second.xyz"})["digest"] ==
          of_first["digest"]);
    test::run_json({"rollback", golden.city});
    CHECK(golden.digest() == of_both["digest"]);
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());

    // A third cloud at the edge of the first one: new points with times beside old ones without.
    const std::string third = golden.dir / "third.xyz";
    {
        std::ifstream first(kGolden + "/first.xyz");
        std::ofstream moved(third);
        double x, y, z, intensity, time;
        while (first >> x >> y >> z >> intensity >> time)
            moved << std::fixed << x + 3.5 << " " << y << " " << z << " " << intensity << " " << time + 0.5
                  << "\n";
    }
    const auto in_fresh = test::run_json(build(fresh, {third}));
    const auto in_golden = test::run_json(build(golden.city, {third}));
    CHECK(in_golden["digest"] == in_fresh["digest"]);
    CHECK(in_golden["splats"] > 256);
    CHECK(in_golden["tiles_built"] == 1);

    // The same files, read by this version: points that were written without time are replaced.
    const auto moved_in =
        test::run_json(build(golden.city, {kGolden + "/first.xyz", kGolden + "/second.xyz"}));
    CHECK(moved_in["digest"] == in_fresh["digest"]);
    const std::vector<std::string> without_old{
        "build", golden.city, "--remove", "/street/first.xyz", "--remove", "/street/second.xyz"};
    CHECK(test::run_json(without_old)["digest"] == in_fresh["digest"]);
}

TEST_CASE("a city of version 0.1 that lost its catalog is rebuilt from its objects") {
    const GoldenCity golden;
    fs::remove(golden.city + "/catalog.sqlite");
    test::run_json({"repair", golden.city});
    CHECK(golden.digest() == kDigestOfBoth);
    CHECK(golden.catalog_version() == 3);
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());
    CHECK(test::run_json({"build", golden.city})["tiles_built"] == 2);
}
