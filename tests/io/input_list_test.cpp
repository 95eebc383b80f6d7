#include "io/input/input_list.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "io/input/open_point_file.hpp"
#include "io/input/reading.hpp"
#include "io/las_image.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

void write_text(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    FileWriter out(path);
    out.text(text);
    out.finish();
}

std::vector<std::string> names(const std::vector<InputSource>& sources) {
    std::vector<std::string> out;
    for (const auto& s : sources) out.push_back(s.path.filename().string());
    return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("files, folders, patterns and lists become sorted sources, each once") {
    test::TempDir dir;
    for (const char* name : {"b.las", "a.LAZ", "sub/c.ply", "sub/readme.txt", ".hidden/d.las", "poses.csv"})
        write_text(dir / name, "x");
    const std::string root = dir.path().string();
    const auto expand = [](const std::vector<std::string>& arguments) {
        return names(expand_inputs(arguments));
    };
    CHECK(expand({root}) == Names{"a.LAZ", "b.las", "c.ply"});
    CHECK(expand({root + "/*.las"}) == Names{"b.las"});
    CHECK(expand({root + "/b.las", root + "/sub/../b.las", root}) == Names{"a.LAZ", "b.las", "c.ply"});
    write_text(dir / "list", "# what we have\nb.las\n  sub \n\n*.LAZ\r\n");
    CHECK(expand({"@" + root + "/list"}) == Names{"a.LAZ", "b.las", "c.ply"});
    CHECK_THROWS_AS(expand({root + "/nothing.las"}), IoError);
    CHECK_THROWS_WITH(expand({root + "/*.pcd"}), Contains("no file matches"));
    fs::create_directories(dir / "empty");
    CHECK_THROWS_WITH(expand({root + "/empty"}), Contains("no point files"));
    write_text(dir / "self", "@self\n");
    CHECK_THROWS_AS(expand({"@" + root + "/self"}), UsageError);
}

TEST_CASE("a link to a cloud that is not there is no cloud less") {
    test::TempDir dir;
    write_text(dir / "far/a.las", "x");
    write_text(dir / "near/b.las", "x");
    fs::create_symlink(dir / "far/a.las", dir / "near/a.las");
    fs::create_symlink("nobody", dir / "near/.a.las");  // as editors lock files
    const std::vector folder{(dir / "near").string()};
    CHECK(expand_inputs(folder).size() == 2);
    fs::remove(dir / "far/a.las");
    CHECK_THROWS_WITH(expand_inputs(folder), Contains((dir / "near/a.las").string()));
}

TEST_CASE("a folder that cannot be read is no folder without files") {
    test::TempDir dir;
    write_text(dir / "day1/a.las", "x");
    const std::string root = dir.path().string();
    CHECK(names(expand_inputs(std::vector{root + "/*/*.las"})) == Names{"a.las"});
    fs::create_symlink("day2", dir / "day2");  // a loop: the system says so to everybody, root too
    CHECK_THROWS_AS(expand_inputs(std::vector{root + "/day2/*.las"}), IoError);
    CHECK_THROWS_WITH(expand_inputs(std::vector{root + "/day2/*.las"}), Contains("day2"));
    CHECK_THROWS_WITH(expand_inputs(std::vector{root + "/day3/*.las"}), Contains("no file matches"));
}

TEST_CASE("a KITTI sequence is its scans with pose, time and labels") {
    test::TempDir dir;
    write_text(dir / "seq/velodyne/000000.bin", std::string(16, '\0'));
    std::string records;
    for (const float v : {1.f, 0.f, 0.f, 0.f, 2.f, 0.f, 0.f, 0.f})
        records.append(reinterpret_cast<const char*>(&v), sizeof v);
    write_text(dir / "seq/velodyne/000002.bin", records);
    write_text(dir / "seq/labels/000002.label", std::string("\x0a\0\0\0\x0b\0\x01\0", 8));
    write_text(dir / "seq/poses.txt",
               "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 1 0 1 0 0 0 0 1 0\n1 0 0 5 0 1 0 6 0 0 1 7\n");
    write_text(dir / "seq/times.txt", "10\n10.1\n10.2\n");
    const std::vector<std::string> arguments{(dir / "seq").string()};
    const auto sources = expand_inputs(arguments);
    REQUIRE(names(sources) == Names{"000000.bin", "000002.bin"});
    CHECK(sources[0].labels.empty());
    const auto scan = sources[1].open();
    CHECK(scan->info().has_sensor);
    PointBatch b;
    scan->read_block(0, b);
    CHECK(b.y == std::vector<double>{6, 6});
    CHECK(b.sensor[0].z == Approx(7));
    CHECK(b.gps_time[0] == Approx(10.2));
    CHECK(b.label == std::vector<std::uint16_t>{10, 11});
    CHECK(b.instance == std::vector<std::uint16_t>{0, 1});
    PointBatch alone;  // the same when only the scan is named
    open_point_file(dir / "seq/velodyne/000002.bin")->read_block(0, alone);
    CHECK(alone.y == b.y);
    CHECK(alone.label == b.label);
    CHECK(alone.sensor[0].z == b.sensor[0].z);
    CHECK(io::reading_of(sources[0], {}, {}) != io::reading_of(sources[1], {}, {}));
    write_text(dir / "seq/velodyne/000003.bin", std::string(16, '\0'));
    CHECK_THROWS_WITH(expand_inputs(arguments), Contains("scan 3") && Contains("3 poses"));
}

TEST_CASE("scans without labels in a KITTI sequence that has some are counted") {
    test::TempDir dir;
    write_text(dir / "seq/velodyne/000000.bin", std::string(16, '\0'));
    write_text(dir / "seq/velodyne/000001.bin", std::string(16, '\0'));
    write_text(dir / "seq/poses.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 1 0 1 0 0 0 0 1 0\n");
    const std::vector<std::string> arguments{(dir / "seq").string()};
    CHECK_FALSE(missing_labels(expand_inputs(arguments)));
    write_text(dir / "seq/labels/000000.label", std::string(4, '\0'));
    const auto missing = missing_labels(expand_inputs(arguments));
    REQUIRE(missing);
    CHECK_THAT(*missing, Contains("1 of 2") && Contains("velodyne/000001.bin"));
    write_text(dir / "seq/labels/000001.label", std::string(4, '\0'));
    CHECK_FALSE(missing_labels(expand_inputs(arguments)));
}

TEST_CASE("labels are found by the name of the cloud") {
    test::TempDir dir;
    test::las_image(2, 0, 2).write(dir / "a.las");
    test::las_image(2, 0, 2).write(dir / "b.las");
    write_text(dir / "labels/a.txt", "5\n6\n");
    const std::string a = (dir / "a.las").string(), b = (dir / "b.las").string();
    PointBatch batch;
    expand_inputs(std::vector{a}, dir / "labels")[0].open()->read_block(0, batch);
    CHECK(batch.label == std::vector<std::uint16_t>{5, 6});
    CHECK_THROWS_WITH(expand_inputs(std::vector{a, b}, dir / "labels"),
                      Contains("no labels for") && Contains("b.las"));
    CHECK_THROWS_AS(expand_inputs(std::vector{a, b}, dir / "labels/a.txt"), UsageError);
}
