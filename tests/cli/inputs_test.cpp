#include "core/file.hpp"
#include "io/las_image.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"
#include "tiling/store/sqlite.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

using namespace citysplat;
using Catch::Contains;
using nlohmann::json;
using test::Outcome;
using test::TempDir;

namespace {

std::string write(const std::filesystem::path& path, std::string_view content) {
    FileWriter out(path);
    out.text(content);
    out.finish();
    return path.string();
}

json json_of(const Outcome& outcome) {
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
}

/// A wavy floor of 40 × 40 points, 10 cm apart, as text with times from 100 s.
std::string floor_text(double x0) {
    std::string text = "x y z intensity time label\n";
    for (int i = 0; i < 1600; ++i) {
        const double x = x0 + 0.1 * (i % 40), y = 0.1 * (i / 40);
        text += std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(0.02 * std::sin(3 * x)) +
                " 100 " + std::to_string(100 + 0.01 * i) + " 2\n";
    }
    return text;
}

test::LasImage in_epsg(int code, std::uint32_t points = 50) {
    const std::string keys{1,
                           0,
                           1,
                           0,
                           0,
                           0,
                           2,
                           0,
                           0,
                           4,
                           0,
                           0,
                           1,
                           0,
                           1,
                           0,
                           0,
                           12,
                           0,
                           0,
                           1,
                           0,
                           static_cast<char>(code & 255),
                           static_cast<char>(code >> 8)};
    return test::las_image(2, 1, points, 0, {{"LASF_Projection", 34735, keys}});
}

}  // namespace

TEST_CASE("info prints a page that a surveyor understands") {
    const TempDir dir;
    const std::string las = in_epsg(2154, 40).write(dir / "drive.las").string();
    const Outcome page = test::citysplat({"info", las});
    INFO(page.out << page.err);
    REQUIRE(page.exit_code == 0);
    const std::string text = page.out + page.err;
    for (const char* part :
         {"drive.las", "LAS 1.2, point format 1", "40", "EPSG:2154", "metre", "100.000 to 100.390",
          "200.000 to 200.780", "-0.390 to 0.000", "points per m²", "1000.000 to 1039.000",
          "1000 to 1039 of 65535", "ground", "building", "by hand"})
        CHECK_THAT(text, Contains(part));
}

TEST_CASE("info says the same as JSON, with the keys scripts rely on") {
    const TempDir dir;
    const std::string las = in_epsg(2154, 40).write(dir / "drive.las").string();
    const json j = json_of(test::citysplat({"--json", "info", las}));
    CHECK(j["points"] == 40);
    CHECK(j["format"] == "LAS 1.2, point format 1");
    CHECK(j["crs"] == "EPSG:2154");
    CHECK(j["unit"] == "metre");
    CHECK(j["bounds"]["max"][1] == Approx(200.78));
    CHECK(j["classes"]["2"] == 2);
    CHECK(j["class_names"]["2"] == "ground");
    CHECK(j["gps_time"][1] == Approx(1039));
    CHECK(j["has_gps_time"] == true);
    CHECK(j["files"].size() == 1);
}

TEST_CASE("info gives classes no names that nobody said") {
    const TempDir dir;
    const std::string cloud = write(dir / "a.xyz", "x y z label\n1 2 3 7\n");
    CHECK_THAT(test::citysplat({"info", cloud}).out,
               Contains("class 7") && Contains("--classes") && !Contains("unlabelled"));
    CHECK_THAT(test::citysplat({"info", cloud, "--classes", "pandaset"}).out, Contains("road"));
    CHECK(json_of(test::citysplat({"--json", "info", cloud}))["class_names"].empty());
}

TEST_CASE("info of several files names the broken one, shows the others, and fails") {
    const TempDir dir;
    test::las_image(2, 1, 10).write(dir / "good.las");
    test::las_image(2, 1, 10).cut(300).write(dir / "cut.las");
    const Outcome outcome = test::citysplat({"--json", "info", dir.path().string()});
    CHECK(outcome.exit_code == 65);
    CHECK_THAT(outcome.err, Contains("cut.las") && Contains("ends after 2"));
    const json j = json::parse(outcome.out);
    CHECK(j["points"] == 10);
    CHECK(j["errors"].size() == 1);
}

TEST_CASE("info of many files is one page, of files in different systems without common bounds") {
    const TempDir dir;
    for (int i = 0; i < 30; ++i) in_epsg(2154, 40).write(dir / ("part" + std::to_string(i) + ".las"));
    const std::string folder = dir.path().string();
    const std::string page = test::citysplat({"info", folder}).out;
    CHECK_THAT(page, Contains("together: 30 files") && Contains("1 200") && Contains("EPSG:2154") &&
                         Contains("200.000 to 200.780") && !Contains("part3.las"));
    CHECK_THAT(test::citysplat({"info", folder, "-v"}).out,
               Contains("part3.las") && Contains("together: 30 files"));
    in_epsg(32631, 40).write(dir / "utm.las");
    CHECK_THAT(test::citysplat({"info", folder}).out,
               Contains("EPSG:2154) (30 files)") && Contains("EPSG:32631) (1 file)") &&
                   Contains("no common bounds") && !Contains("200.000 to 200.780"));
    const json j = json_of(test::citysplat({"--json", "info", folder}));
    CHECK(j["points"] == 31 * 40);
    CHECK(j["files"].size() == 31);
    CHECK(j["files"][3]["bounds"]["max"][1] == Approx(200.78));
    CHECK(j["bounds"].is_null());
}

TEST_CASE("an empty cloud is valid and said to be empty") {
    const TempDir dir;
    const std::string las = test::las_image(2, 1, 0).write(dir / "none.las").string();
    CHECK_THAT(json_of(test::citysplat({"--json", "info", las}))["notes"].dump(), Contains("no points"));
    const Outcome built = test::citysplat({"build", dir / "city", las});
    CHECK(built.exit_code == 0);
    CHECK_THAT(built.err, Contains("warning: the inputs hold no points that can be used (0 read)"));
}

TEST_CASE("a city has one coordinate system: others are refused, the unknown must be assigned") {
    const TempDir dir;
    const std::string city = dir / "city", lambert = in_epsg(2154).write(dir / "a.las").string(),
                      utm = in_epsg(32631).write(dir / "b.las").string(),
                      unknown = test::las_image(2, 1, 60).write(dir / "c.las").string();
    const Outcome mixed = test::citysplat({"build", city, lambert, utm});
    CHECK(mixed.exit_code == 78);
    CHECK_THAT(mixed.err, Contains("EPSG:2154") && Contains("EPSG:32631") && Contains("b.las"));
    const Outcome silent = test::citysplat({"build", city, lambert, unknown});
    CHECK(silent.exit_code == 78);
    CHECK_THAT(silent.err, Contains("c.las") && Contains("--crs"));
    const Outcome alone = test::citysplat({"build", dir / "local", unknown});
    CHECK(alone.exit_code == 0);
    CHECK_THAT(alone.err, Contains("no input says its coordinate system") && Contains("--crs EPSG:n"));
    CHECK(test::citysplat({"build", city, lambert}).exit_code == 0);
    CHECK(test::citysplat({"build", city, unknown, "--crs", "EPSG:2154"}).exit_code == 0);
    const Outcome contradicted = test::citysplat({"build", city, utm, "--crs", "EPSG:2154"});
    CHECK(contradicted.exit_code == 65);
    CHECK_THAT(contradicted.err, Contains("contradicts"));
    // What the city knows is written to its outputs.
    const std::string out = dir / "splats.las";
    REQUIRE(test::citysplat({"export", city, "--format", "las", "--out", out}).exit_code == 0);
    CHECK(json_of(test::citysplat({"--json", "info", out}))["crs"] == "EPSG:2154");
}

TEST_CASE("a system that was assigned holds also where an earlier version did not keep it with the points") {
    const TempDir dir;
    const std::string city = dir / "city", first = test::las_image(2, 1, 60).write(dir / "a.las").string(),
                      second = test::las_image(2, 1, 70).write(dir / "b.las").string();
    REQUIRE(test::citysplat({"build", city, first, "--crs", "EPSG:2154"}).exit_code == 0);
    tiling::Database(city + "/catalog.sqlite", tiling::Database::Access::read_write)
        .execute("UPDATE source SET crs = ''");
    const Outcome more = test::citysplat({"build", city, second, "--crs", "EPSG:2154"});
    INFO(more.err);
    CHECK(more.exit_code == 0);
}

TEST_CASE("feet are refused, and scaled on request, and the scaled city does not claim the system in feet") {
    const TempDir dir;
    const std::string wkt = "PROJCS[\"Oregon (ft)\",GEOGCS[\"g\"],UNIT[\"foot\",0.3048]]",
                      city = dir / "city",
                      feet = test::las_image(4, 6, 50, 0, {{"LASF_Projection", 2112, wkt}})
                                 .write(dir / "feet.las")
                                 .string();
    const Outcome refused = test::citysplat({"build", city, feet});
    CHECK(refused.exit_code == 65);
    CHECK_THAT(refused.err, Contains("feet.las") && Contains("0.3048") && Contains("--units scale"));
    CHECK(test::citysplat({"build", city, feet, "--units", "scale"}).exit_code == 0);
    const json scaled = json_of(test::citysplat({"--json", "info", feet, "--units", "scale"}));
    CHECK(scaled["unit"] == "metre");
    CHECK_THAT(scaled["crs"].get<std::string>(), Contains("LOCAL_CS") && Contains("scaled to metres"));
    CHECK(scaled["bounds"]["max"][0] == Approx(100.49 * 0.3048));
}

TEST_CASE("a trajectory that does not cover the cloud is named with both time spans") {
    const TempDir dir;
    const std::string cloud = write(dir / "floor.txt", floor_text(0)), city = dir / "city";
    const std::string half = write(dir / "half.tum", "100 2 2 2 0 0 0 1\n108 2 3 2 0 0 0 1\n");
    const json some =
        json_of(test::citysplat({"--json", "build", city, cloud, "--trajectory", half, "--method", "basic"}));
    REQUIRE(some["warnings"].size() == 1);
    CHECK_THAT(some["warnings"][0].get<std::string>(), Contains("floor.txt") && Contains("799 of 1 600") &&
                                                           Contains("100.0") && Contains("115.99") &&
                                                           Contains("108.0") && Contains("--time-offset"));
    const json info = json_of(test::citysplat({"--json", "info", cloud, "--trajectory", half}));
    CHECK(info["trajectory"]["poses"] == 2);
    CHECK(info["trajectory"]["length_m"] == Approx(1));
    CHECK_THAT(info["notes"].dump(),
               Contains("115.99") && Contains("108.000") && Contains("50 % of the points (799 of 1 600)"));
    const std::string unsorted = write(dir / "bad.tum", "108 2 2 2 0 0 0 1\n100 2 3 2 0 0 0 1\n");
    const Outcome refused = test::citysplat({"build", city, cloud, "--trajectory", unsorted});
    CHECK(refused.exit_code == 65);
    CHECK_THAT(refused.err, Contains("bad.tum") && Contains("pose 2"));
}

TEST_CASE("a changed label file dirties its tiles at the next build, even when the input is not named") {
    const TempDir dir;
    const std::string cloud = write(dir / "floor.txt", floor_text(0)), city = dir / "city";
    const auto labels = [&](int label) {
        std::string text;
        for (int i = 0; i < 1600; ++i) text += std::to_string(label) + "\n";
        return write(dir / "floor.labels", text);
    };
    const std::vector<std::string> first{"--json",   "build",   city,        cloud,
                                         "--labels", labels(2), "--classes", "asprs"};
    const json before = json_of(test::citysplat(first));
    const std::vector<std::string> nightly{"--json", "build", city};
    CHECK(json_of(test::citysplat(nightly))["published"] == false);
    labels(6);
    const json after = json_of(test::citysplat(nightly));
    CHECK(after["published"] == true);
    CHECK(after["tiles_built"] == before["tiles_built"]);
    CHECK(after["digest"] != before["digest"]);
    labels(2);
    const json back = json_of(test::citysplat(nightly));
    CHECK(back["digest"] == before["digest"]);
    CHECK(back["inputs_read"] == 0);  // both contents are known by now
}

TEST_CASE("nothing of a damaged file gets into a city, unless salvage is asked for, which counts") {
    const TempDir dir;
    auto image = test::las_image(2, 1, 100);
    image.set<std::int32_t>(image.points_offset() + 28 * 90, 2000000000);
    const std::string bad = image.write(dir / "bad.las").string(), city = dir / "city";
    const Outcome refused = test::citysplat({"build", city, bad});
    CHECK(refused.exit_code == 65);
    CHECK_THAT(refused.err, Contains("point 90") && Contains("--salvage"));
    CHECK(test::citysplat({"status", city}).exit_code != 0);
    const json salvaged = json_of(test::citysplat({"--json", "build", city, bad, "--salvage"}));
    CHECK(salvaged["points_kept"] == 99);
    CHECK(salvaged["points_dropped"]["damaged"] == 1);
}

TEST_CASE("lines of JSON progress are JSON whatever the files are called") {
    const TempDir dir;
    const std::string drive = dir / "drive", odd = dir / "odd \"name\"\\\n.las";
    REQUIRE(
        test::citysplat({"synth", drive, "--length", "5", "--points-per-metre", "300", "--files", "1", "-q"})
            .exit_code == 0);
    std::filesystem::rename(drive + "/cloud_000.las", odd);
    const Outcome built =
        test::citysplat({"build", dir / "city", odd, "--classes", "synthetic", "--progress", "json"});
    REQUIRE(built.exit_code == 0);
    std::istringstream lines(built.err);
    std::string names;
    for (std::string line; std::getline(lines, line);)
        if (line[0] == '{') names += nlohmann::json::parse(line).at("stage").get<std::string>() + ";";
    CHECK_THAT(names, Catch::Contains("read odd \"name\"\\\n.las;"));
}
