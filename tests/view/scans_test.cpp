#include "core/error.hpp"
#include "temp_dir.hpp"
#include "view/scans/scan_folder.hpp"
#include "view/server/cube_message.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::view;
namespace fs = std::filesystem;

namespace {

using Row = std::array<float, 4>;

void write_text(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

void write_scan(const fs::path& path, const std::vector<Row>& rows) {
    std::string bytes(rows.size() * sizeof(Row), '\0');
    std::memcpy(bytes.data(), rows.data(), bytes.size());
    write_text(path, bytes);
}

/// One scan in a sensor that looks north at x = 651000: its x axis is the world's y.
void write_run(const fs::path& directory) {
    write_text(directory / "run.toml", "complete = true\n");
    write_text(directory / "poses.txt", "0 -1 0 651000.5 1 0 0 6861000 0 0 1 36\n");
    write_text(directory / "times.txt", "302400.000000000\n");
    write_scan(directory / "velodyne/000000.bin",
               {{10, 0, 0, 0.5f}, {0, 3, -1, 1.0f}, {2000, 0, 0, 0.1f}, {0, -700, 2, 0.0f}});
}

}  // namespace

TEST_CASE("a scan in the frame of its sensor comes into the world by its pose") {
    const TempDir dir;
    write_run(dir.path());
    const ScanFolder folder(dir.path());
    REQUIRE(folder.sensors().size() == 1);
    CHECK(folder.sensors()[0].sensor_frame);
    CHECK(folder.exists(0, 0));
    CHECK_FALSE(folder.exists(0, 1));
    CHECK_FALSE(folder.exists(1, 0));
    const PlayedScan scan = folder.scan(0, 0);
    REQUIRE(scan.points.size() == 3);
    CHECK(scan.too_far == 1);  // at 2 km
    const std::array<Vec3d, 3> expected{
        Vec3d{651000.5, 6861010, 36}, {650997.5, 6861000, 35}, {651700.5, 6861000, 38}};
    const LatticePoint origin = scan.points.frame().origin();
    for (std::size_t i = 0; i < 3; ++i) {
        const Splat s = scan.points.splat(i);
        const Vec3d at{to_metres(origin.x + s.x), to_metres(origin.y + s.y), to_metres(origin.z + s.z)};
        INFO(i << ": " << at.x << " " << at.y << " " << at.z);
        CHECK(length(at - expected[i]) < 2e-4);
        const Vec3d to_sensor = normalized(Vec3d{651000.5, 6861000, 36} - expected[i]);
        CHECK(length(vec_cast<double>(unpack_normal(s.normal)) - to_sensor) < 1e-3);
    }
    CHECK(std::abs(int{scan.points.intensity()[0]} - 32768) <= 1);
    CHECK(folder.boxes(0, 0).empty());

    const splat::LevelCubePtr cube = cube_of_points(folder.scan(0, 0));
    CHECK(cube->incomplete);
    REQUIRE(cube->pieces.size() == 1);
    CHECK(cube->pieces[0].count == 3);
}

TEST_CASE("several sensors lie in directories of their own, in the order of their names") {
    const TempDir dir;
    for (const char* name : {"roof", "bumper", "notes"}) write_run(dir.path() / name);
    fs::remove(dir.path() / "notes/run.toml");
    // Points of the world.
    write_scan(dir.path() / "roof/velodyne/000000.bin", {{651010, 6861000, 36, 0}, {651000, 6860990, 36, 0}});
    const ScanFolder folder(dir.path());
    REQUIRE(folder.sensors().size() == 2);
    CHECK(folder.sensors()[0].name == "bumper");
    CHECK(folder.sensors()[0].sensor_frame);
    CHECK(folder.sensors()[1].name == "roof");
    CHECK_FALSE(folder.sensors()[1].sensor_frame);
    const PlayedScan scan = folder.scan(1, 0);
    REQUIRE(scan.points.size() == 2);
    CHECK(std::fabs(to_metres(scan.points.frame().origin().x + scan.points.splat(0).x) - 651010) < 2e-4);
}

TEST_CASE("a directory that is no complete run is refused with a word") {
    const TempDir dir;
    const auto refused = [&](const std::string& word) {
        try {
            const ScanFolder folder(dir.path());
            FAIL("was read, though: " << word);
        } catch (const Error& e) {
            INFO(e.what());
            CHECK(std::string(e.what()).find(word) != std::string::npos);
        }
        write_run(dir.path());
    };
    refused("run.toml");
    fs::remove(dir.path() / "poses.txt");
    refused("poses.txt");
    write_text(dir.path() / "poses.txt", "1 0 0 0 0 1 0 0 0 0 1\n");
    refused("line 1: 11 numbers");
    write_text(dir.path() / "poses.txt", "1 0 0 nan 0 1 0 0 0 0 1 0\n");
    refused("line 1: not a number");
    write_text(dir.path() / "poses.txt", "1 0 0 1e10 0 1 0 0 0 0 1 0\n");
    refused("Earth");
    write_text(dir.path() / "times.txt", "1\n2\n");
    refused("1 poses and 2 times");
    fs::remove_all(dir.path() / "velodyne");
    refused("no scan 000000");
    // A scan that is there at first and is something else later is told when it is asked for.
    const ScanFolder folder(dir.path());
    fs::remove(dir.path() / "velodyne/000000.bin");
    REQUIRE(::mkfifo((dir.path() / "velodyne/000000.bin").c_str(), 0600) == 0);
    CHECK_THROWS_AS(folder.scan(0, 0), Error);
}
