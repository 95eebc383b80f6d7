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
    explicit GoldenCity(const std::string& pack = "city-0.1.pack") {
        test::run_json({"unpack", kGolden + "/" + pack, city});
    }

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
                    "--method", "descriptors", "--no-resample", "--no-carve", "--tile-size", "32"});
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

TEST_CASE("a city of version 0.1 is built further, in whatever order, to the same city") {
    const GoldenCity golden;
    // Newer algorithms make other splats of the same points and means.
    const std::string both = test::run_json({"build", golden.city})["digest"];
    CHECK(golden.catalog_version() == 6);
    CHECK(test::run_json({"build", golden.city})["tiles_built"] == 0);
    CHECK(test::run_json({"build", golden.city, "--remove", "/street/second.xyz"})["tiles_total"] == 1);
    test::run_json({"rollback", golden.city});
    CHECK(golden.digest() == both);
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
    const auto later = test::run_json(build(golden.city, {third}));
    CHECK(later["tiles_built"] == 1);
    CHECK(later["digest"] != both);
    const GoldenCity other;
    CHECK(test::run_json(build(other.city, {third}))["digest"] == later["digest"]);

    // The same files, read by this version: points that were written without time are replaced.
    const auto again = build(golden.city, {kGolden + "/first.xyz", kGolden + "/second.xyz"});
    CHECK(test::run_json(again)["digest"] == later["digest"]);
    const std::vector<std::string> without_old{
        "build", golden.city, "--remove", "/street/first.xyz", "--remove", "/street/second.xyz"};
    CHECK(test::run_json(without_old)["digest"] == later["digest"]);
}

TEST_CASE("a city of version 0.1 that lost its catalog is rebuilt from its objects") {
    const GoldenCity golden;
    fs::remove(golden.city + "/catalog.sqlite");
    test::run_json({"repair", golden.city});
    CHECK(golden.digest() == kDigestOfBoth);
    CHECK(golden.catalog_version() == 6);
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());
    test::run_json({"build", golden.city});
    CHECK(test::run_json({"build", golden.city})["tiles_built"] == 0);
}

TEST_CASE(
    "a city whose catalog has version 3 remembers nothing of its surfaces, and is measured for a gate") {
    // The same two clouds, one after the other, carved, by a version between 0.1 and the next.
    const GoldenCity golden("city-catalog-3.pack");
    REQUIRE(golden.catalog_version() == 3);
    const auto status = test::run_json({"status", golden.city});
    CHECK(status["digest"] == "c4cb148452fabc0ac30241e565669f17");
    CHECK_FALSE(status.contains("thickness"));
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());
    CHECK(golden.catalog_version() == 3);

    // Rules that came later make its tiles anew, with the splats they had.
    const int latest = test::run_json({"build", golden.city})["generation"];
    CHECK(golden.catalog_version() == 6);
    CHECK(golden.digest() == status["digest"]);
    const auto gated = test::run_json({"build", golden.city, "--most-thick", "2"});
    CHECK(gated["tiles_built"] == 0);
    CHECK(gated["generation"] == latest + 1);
    CHECK(gated["thickness"]["generation"] == latest + 1);
    CHECK(test::run_json({"status", golden.city})["thickness"] == gated["thickness"]);
    CHECK(test::run_json({"rollback", golden.city})["generation"] == latest + 2);
    CHECK_FALSE(test::run_json({"status", golden.city}).contains("thickness"));
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());
    CHECK(golden.digest() == status["digest"]);
}

TEST_CASE("a city whose catalog has version 5 has splats and nothing else, until a mesh is asked for") {
    // The same two clouds; generation 2 of it is called july.
    const std::string digest = "c4cb148452fabc0ac30241e565669f17";
    const GoldenCity golden("city-catalog-5.pack");
    REQUIRE(golden.catalog_version() == 5);
    const auto status = test::run_json({"status", golden.city});
    CHECK(status["digest"] == digest);
    CHECK(status["tags"] == nlohmann::json{"july"});
    CHECK(status["products"] == nlohmann::json{"splats"});
    CHECK(status["triangles"] == 0);
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());
    CHECK(golden.catalog_version() == 5);

    const auto same = test::run_json({"build", golden.city});
    CHECK(same["tiles_built"] == 0);
    CHECK(same["digest"] == digest);
    CHECK(golden.catalog_version() == 6);
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());

    const auto both = test::run_json({"build", golden.city, "--product", "splats,mesh", "--voxel", "1"});
    CHECK(both["splats"] == status["splats"]);
    CHECK(test::run_json({"status", golden.city})["products"] == nlohmann::json{"splats", "mesh"});
    fs::remove(golden.city + "/catalog.sqlite");
    test::run_json({"repair", golden.city});
    CHECK(golden.digest() == both["digest"]);
    CHECK(test::run_json({"status", golden.city, "--generation", "july"})["digest"] == digest);
    CHECK(test::run_json({"verify", golden.city, "--deep"})["corrupt"].empty());
}
