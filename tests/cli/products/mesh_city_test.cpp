#include "cli/small_city.hpp"

#include <filesystem>

namespace fs = std::filesystem;
namespace test = citysplat::test;
using nlohmann::json;

TEST_CASE("two meshes beside the splats of a city are driven through, pictured and compared") {
    test::SmallCity c;
    auto build = c.build_command();
    build.insert(build.end(), {"--product", "splats,mesh,imls", "--voxel", "0.25"});
    const json built = test::run_json(build);
    CHECK(built["splats"] == c.built["splats"]);
    CHECK(test::run_json({"status", c.city})["products"] == json{"splats", "mesh", "imls"});
    std::string scans;
    std::uint64_t triangles = 0;
    for (const std::string product : {"mesh", "imls"}) {
        INFO(product);
        scans = c.dir / product;
        const json run = test::run_json({"simulate", c.city, "--product", product, "--sensor", "vlp-16",
                                         "--trajectory", c.trajectory, "--rate", "2", "--out", scans});
        CHECK(run["hits"] > 5000);
        const json compared = test::run_json({"compare", scans, "--reference", c.city, "--city", c.city,
                                              "--product", product, "--truth", c.drive});
        CHECK(compared["c2c_mean_m"] < 0.2);
        const std::string picture = c.dir / (product + ".png");
        test::run_json({"render", c.city, "--product", product, "--pose", "8,0,4,0,0,0", "--size", "64x48",
                        "--out", picture});
        CHECK(fs::file_size(picture) > 100);
        const json exported = test::run_json(
            {"export", c.city, "--product", product, "--format", "ply", "--out", c.dir / "mesh.ply"});
        triangles += exported["triangles"].get<std::uint64_t>();
    }
    CHECK(built["triangles"] == triangles);
    // A damaged tile of one is found and made again.
    const json wrong = test::run_json({"verify", c.city, "--deep"});
    CHECK(wrong["corrupt"].empty());
    // What the city has is remembered.
    CHECK(test::run_json({"build", c.city})["tiles_built"] == 0);
    const auto mistaken = test::citysplat({"build", c.city, "--mesh-param", "imls.depth=3"});
    CHECK(mistaken.exit_code == 2);
    CHECK_THAT(mistaken.err, Catch::Contains("imls has voxel_m, sigma"));
}

TEST_CASE("what needs splats says so of a city that has none") {
    test::SmallCity c;
    c.city = c.dir / "mesh";
    auto build = c.build_command();
    build.insert(build.end(), {"--product", "imls,mesh", "--voxel", "0.25"});
    test::run_json(build);
    for (const std::string format : {"ept", "gpkg"}) {
        INFO(format);
        const auto refused = test::citysplat({"export", c.city, "--format", format, "--out", c.dir / format});
        CHECK(refused.exit_code == 78);
        CHECK_THAT(refused.err, Catch::Contains("has no splats, only mesh,imls") &&
                                    Catch::Contains("--product mesh,imls,splats"));
        CHECK_FALSE(fs::exists(c.dir / format));
    }
}

TEST_CASE("a build without sensor positions has no mesh, and does not speak of splats") {
    test::SmallCity c;
    const auto built = test::citysplat({"build", c.dir / "blind", c.drive, "--classes", "synthetic",
                                        "--no-carve", "--product", "mesh", "--voxel", "0.5"});
    CHECK(built.exit_code == 0);
    CHECK_THAT(built.err, Catch::Contains("there is no mesh: nobody knows where the sensor was"));
    CHECK_THAT(built.out, Catch::Contains(": nothing in ") && !Catch::Contains("splats"));
}
