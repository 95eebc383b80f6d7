#include "core/error.hpp"
#include "io/drive_writer.hpp"
#include "io/tracks/track_file.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

using namespace citysplat;
using test::write_text;

namespace {

void write_scene(const std::filesystem::path& folder) {
    write_text(folder / "scene.json", R"([{"token": "s", "name": "scene-0001"}])");
    write_text(folder / "sample.json", R"([{"token": "k", "scene_token": "s", "timestamp": 1000000}])");
    write_text(folder / "category.json", R"([{"token": "c", "name": "car"}])");
    write_text(folder / "instance.json", R"([{"token": "i", "category_token": "c"}])");
    write_text(folder / "sample_annotation.json",
               R"([{"token": "a", "sample_token": "k", "instance_token": "i",
        "translation": [1, 2, 3], "size": [2, 4, 1.5], "rotation": [1, 0, 0, 0]}])");
}

}  // namespace

TEST_CASE("a table of tracks that is a FIFO or a folder is refused by name and does not wait") {
    const test::TempDir dir;
    write_scene(dir / "v1.0-mini");
    REQUIRE(read_tracks(dir / "v1.0-mini", {}).tracks.size() == 1);
    for (const char* table : {"scene", "sample", "sample_annotation"}) {
        const std::filesystem::path path = dir / ("v1.0-mini/" + std::string(table) + ".json");
        write_scene(dir / "v1.0-mini");
        std::filesystem::remove(path);
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        CHECK_THROWS_WITH(read_tracks(dir / "v1.0-mini", {}),
                          Catch::Contains(path.string()) && Catch::Contains("FIFO"));
        std::filesystem::remove(path);
        std::filesystem::create_directory(path);
        CHECK_THROWS_WITH(read_tracks(dir / "v1.0-mini", {}),
                          Catch::Contains(path.string()) && Catch::Contains("directory"));
        std::filesystem::remove(path);
        CHECK_THROWS_WITH(read_tracks(dir / "v1.0-mini", {}), Catch::Contains(path.filename().string()));
    }
}

TEST_CASE("the tables of tracks are read under cancellation") {
    const test::TempDir dir;
    write_scene(dir / "v1.0-mini");
    CancelToken cancel;
    cancel.request();
    CHECK_THROWS_AS(read_tracks(dir / "v1.0-mini", {}, cancel), Interrupted);
}

TEST_CASE("the labels and poses of KITTI are read under cancellation") {
    const test::TempDir dir;
    std::string record = "49 8 112 0 0 0.5";
    for (int i = 6; i < 30; ++i) record += " 0";
    write_text(dir / "oxts/data/0000000000.txt", record + "\n");
    write_text(dir / "poses.tum", "0 0 0 0 0 0 0 1\n1 1 0 0 0 0 0 1\n");
    write_text(dir / "calib.txt",
               "R_rect 1 0 0 0 1 0 0 0 1\nTr_velo_cam 0 -1 0 0 0 0 -1 0 1 0 0 0\n"
               "Tr_imu_velo 1 0 0 0 0 1 0 0 0 0 1 0\n");
    write_text(dir / "0000.txt", "0 1 Car 0 0 0 0 0 0 0 1.5 1.8 4 1 2 10 0\n");
    TrackOptions options;
    options.calibration = dir / "calib.txt";
    for (const char* poses : {"oxts", "poses.tum"}) {
        options.poses = dir / poses;
        CHECK(read_tracks(dir / "0000.txt", options).tracks.size() == 1);
        CancelToken cancel;
        cancel.request();
        CHECK_THROWS_AS(read_tracks(dir / "0000.txt", options, cancel), Interrupted);
    }
}
