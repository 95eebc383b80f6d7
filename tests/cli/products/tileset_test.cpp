#include "cli/small_city.hpp"
#include "run_program.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace fs = std::filesystem;
namespace test = citysplat::test;
using nlohmann::json;

namespace {

std::map<std::string, std::string> files_of(const fs::path& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        files[fs::relative(entry.path(), directory).string()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return files;
}

}  // namespace

TEST_CASE("a tileset has every splat and does not depend on tiles") {
    test::SmallCity c;
    const std::string out = c.dir / "tiles", again = c.dir / "again";
    const json written = test::run_json({"export", c.city, "--format", "3dtiles", "--out", out},
                                        {"splats", "contents", "files", "seconds"});
    CHECK(written["splats"] == c.built["splats"]);
    CHECK(written["files"][0] == out + "/tileset.json");
    const auto files = files_of(out);
    CHECK(written["contents"] == files.size() - 1);
    // Once more into the same directory, and from other tiles.
    test::run_json({"export", c.city, "--format", "3dtiles", "--out", out});
    CHECK(files_of(out) == files);
    c.tile_m = "16";
    test::run_json(c.build_command());
    test::run_json({"export", c.city, "--format", "3dtiles", "--out", again});
    CHECK(files_of(again) == files);
}

TEST_CASE("a tileset of a damaged city, or into a file, is refused") {
    test::SmallCity c;
    const std::string out = c.dir / "tiles", file = c.dir / "file";
    std::ofstream(file) << "of somebody else";
    CHECK(test::citysplat({"export", c.city, "--format", "3dtiles", "--out", file}).exit_code == 74);
    CHECK(test::citysplat({"export", c.city, "--removed", "--format", "3dtiles", "--out", out}).exit_code ==
          2);
    c.damage();
    const auto damaged = test::citysplat({"export", c.city, "--format", "3dtiles", "--out", out});
    CHECK(damaged.exit_code == 65);
    CHECK_THAT(damaged.err, Catch::Contains("damaged") || Catch::Contains("checksum"));
    CHECK_FALSE(fs::exists(out + "/tileset.json"));
}

TEST_CASE("a mesh as GLB and as a tileset has every triangle") {
    test::SmallCity c;
    auto build = c.build_command();
    const std::string product = GENERATE("mesh", "imls");
    build.insert(build.end(), {"--product", product, "--voxel", product == "mesh" ? "0.8" : "0.25"});
    c.city = c.dir / "mesh";
    build[1] = c.city;
    test::run_json(build);
    const auto exported = [&](const std::string& format, const std::string& out) {
        return test::run_json({"export", c.city, "--format", format, "--out", c.dir / out});
    };
    const json ply = exported("ply", "mesh.ply"), glb = exported("glb", "mesh.glb");
    CHECK(ply["triangles"] > 100);
    CHECK(glb["triangles"] == ply["triangles"]);
    CHECK(glb["vertices"] > ply["vertices"]);  // those on borders are in the parts of both tiles
    const json parts =
        test::run_json({"export", c.city, "--format", "glb", "--per-tile", "--out", c.dir / "parts"});
    CHECK(parts["triangles"] == ply["triangles"]);
    CHECK(parts["files"].size() > 1);
    const json tiles = exported("3dtiles", "tiles");
    CHECK(tiles["triangles"] == ply["triangles"]);
    const auto files = files_of(c.dir / "tiles");
    CHECK(tiles["contents"] == files.size() - 1);
    CHECK_THAT(files.at("tileset.json"), Catch::Contains("\"geometricError\": 2.0"));
    exported("3dtiles", "tiles");
    CHECK(files_of(c.dir / "tiles") == files);
    // Of other tiles the files are the same.
    const std::string city = c.city;
    c.city = build[1] = c.dir / "larger";
    *(std::find(build.begin(), build.end(), "--tile-size") + 1) = "128";
    test::run_json(build);
    exported("3dtiles", "again");
    CHECK(files_of(c.dir / "again") == files);
    c.city = city;
    const auto refused = test::citysplat({"export", c.city, "--format", "las", "--out", c.dir / "mesh.las"});
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Catch::Contains("3dtiles"));
}
