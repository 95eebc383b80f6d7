#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/parallel.hpp"
#include "io/crs/known_crs.hpp"
#include "io/crs/map_projection.hpp"
#include "io/input/open_point_file.hpp"
#include "io/input/reading.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace citysplat;
using Catch::Contains;

namespace {

void write_text(const std::filesystem::path& path, const std::string& text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

/// A text cloud around Paris, in degrees.
std::filesystem::path write_degrees(const test::TempDir& dir) {
    std::string text = "x y z sensor_x sensor_y sensor_z\n";
    for (int i = 0; i < 500; ++i) {
        char line[160];
        std::snprintf(line, sizeof line, "%.9f %.9f %.3f %.9f %.9f 40\n", 2.30 + 1e-4 * i, 48.85 + 5e-5 * i,
                      0.1 * i, 2.31, 48.86);
        text += line;
    }
    const std::filesystem::path path = dir / "degrees.xyz";
    write_text(path, text);
    return path;
}

PointBatch read_all(const std::filesystem::path& path, const ReadOptions& options) {
    PointBatch batch;
    open_point_file(path, options)->read_block(0, batch);
    return batch;
}

}  // namespace

TEST_CASE("converted coordinates are those of our own projections") {
    const test::TempDir dir;
    const auto path = write_degrees(dir);
    ReadOptions options;
    options.crs = "EPSG:4326";
    CHECK_THROWS_WITH(open_point_file(path, options), Contains("degrees"));
    for (const int epsg : {32631, 2154}) {
        options.to_crs = "EPSG:" + std::to_string(epsg);
        const auto file = open_point_file(path, options);
        CHECK(file->info().crs == options.to_crs);
        CHECK(file->info().metres_per_unit == 1);
        CHECK_FALSE(file->info().bounds_known);
        const PointBatch batch = read_all(path, options);
        REQUIRE(batch.size() == 500);
        const io::MapProjection projection(epsg);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const double longitude = (2.30 + 1e-4 * static_cast<double>(i)) * exact::kRadPerDegree,
                         latitude = (48.85 + 5e-5 * static_cast<double>(i)) * exact::kRadPerDegree;
            const auto [x, y] = projection.project(latitude, longitude);
            CHECK(batch.x[i] == Approx(x).margin(1e-3));
            CHECK(batch.y[i] == Approx(y).margin(1e-3));
            CHECK(batch.z[i] == Approx(0.1 * static_cast<double>(i)).margin(1e-9));
        }
        const auto [x, y] = projection.project(48.86 * exact::kRadPerDegree, 2.31 * exact::kRadPerDegree);
        CHECK(batch.sensor[7].x == Approx(x).margin(1e-3));
        CHECK(batch.sensor[7].y == Approx(y).margin(1e-3));
        CHECK(batch.sensor[7].z == 40);
    }
}

TEST_CASE("ranges of a mask are metres, whatever the coordinates of a file are converted from") {
    const test::TempDir dir;
    const auto path = write_degrees(dir);
    ReadOptions options;
    options.crs = "EPSG:4326";
    options.to_crs = "EPSG:2154";
    const PointBatch all = read_all(path, options);
    std::vector<double> near_x;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (length(Vec3d{all.x[i], all.y[i], all.z[i]} - all.sensor[i]) <= 2000) near_x.push_back(all.x[i]);
    REQUIRE(near_x.size() > 100);
    REQUIRE(near_x.size() < 400);
    options.mask.min_range_m = 1;
    options.mask.max_range_m = 2000;
    const PointBatch near = read_all(path, options);
    CHECK(near.x == near_x);
    CHECK(near.masked == SensorMask::Counts{0, 500 - near_x.size(), 0, 0});
}

TEST_CASE("feet become metres of another system and back") {
    const test::TempDir dir;
    write_text(dir / "feet.xyz", "x y z\n984250 200000 30\n990000 210000 60\n");
    ReadOptions options;
    options.crs = "EPSG:2263";  // New York, US survey feet
    options.to_crs = "EPSG:32618";
    const PointBatch batch = read_all(dir / "feet.xyz", options);
    REQUIRE(batch.size() == 2);
    CHECK(batch.z[1] == Approx(60.0 * 1200 / 3937));  // heights are in feet like the rest
    std::vector<double> x = batch.x, y = batch.y;
    io::CrsConversion("EPSG:32618", "EPSG:2263").convert(x, y);
    CHECK(x[1] == Approx(990000).margin(1e-2));
    CHECK(y[1] == Approx(210000).margin(1e-2));
    // 5 750 and 10 000 feet apart, seen by another projection.
    CHECK(std::hypot(batch.x[1] - batch.x[0], batch.y[1] - batch.y[0]) ==
          Approx(std::hypot(5750, 10000) * 1200 / 3937).epsilon(1e-3));
}

TEST_CASE(
    "a scan of a drive takes the system that is assigned to it, and its empty rays are converted, too") {
    const test::TempDir dir;
    const float records[]{10, 0, 0, 0.5f, 0, 0, 0, 0};  // the second one met nothing
    write_text(dir / "scan.bin", std::string(reinterpret_cast<const char*>(records), sizeof records));
    const Pose place{{650000, 6860000, 35}, {}};
    ReadOptions options;
    options.crs = "EPSG:2154";
    options.sweep.emplace();
    options.sweep->frame = Sweep::Frame::moving;
    options.sweep->poses = {{0, place}, {1, place}};
    options.sweep->begin_s = options.sweep->reference_s = 0;
    options.sweep->end_s = 1;
    options.sweep->elevations_rad = {0, 0.1};
    CHECK(open_point_file(dir / "scan.bin", options)->info().crs == "EPSG:2154");
    const PointBatch given = read_all(dir / "scan.bin", options);
    options.to_crs = "EPSG:32631";
    const PointBatch converted = read_all(dir / "scan.bin", options);
    for (const PointBatch* batch : {&given, &converted}) {
        REQUIRE(batch->size() == 1);
        REQUIRE(batch->empty_rays.size() == 1);
    }
    const auto& [origin, direction, time_s, beam] = converted.empty_rays[0];
    CHECK(length(origin - converted.sensor[0]) < 1e-6);
    CHECK(std::fabs(origin.x - place.translation.x) > 1000);
    CHECK(length(direction) == Approx(1));
    const auto towards_point = [](const PointBatch& b) {
        return dot(b.empty_rays[0].direction, Vec3d{b.x[0], b.y[0], b.z[0]} - b.sensor[0]);
    };
    CHECK(towards_point(converted) == Approx(towards_point(given)).epsilon(0.01));
    options.crs = "EPSG:2263";
    CHECK_THROWS_WITH(open_point_file(dir / "scan.bin", options), Contains("scans are in metres"));
}

TEST_CASE("what cannot be converted is said") {
    const test::TempDir dir;
    const auto path = write_degrees(dir);
    ReadOptions options;
    options.to_crs = "EPSG:32631";
    CHECK_THROWS_WITH(open_point_file(path, options), Contains("does not say its coordinate system"));
    options.crs = "EPSG:4326";
    options.to_crs = "EPSG:2263";
    CHECK_THROWS_WITH(open_point_file(path, options), Contains("a city is in metres"));
    options.to_crs = "EPSG:4326";
    CHECK_THROWS_WITH(open_point_file(path, options), Contains("a city is in metres"));
    options.to_crs = "nonsense";
    CHECK_THROWS_AS(open_point_file(path, options), UsageError);
}

TEST_CASE("a conversion gives the same from many threads") {
    const io::CrsConversion conversion("EPSG:4326", "EPSG:2154");
    CHECK_FALSE(conversion.way().empty());
    std::vector<double> x{2.3}, y{48.85};
    conversion.convert(x, y);
    std::vector<int> same(200);
    parallel_tasks(same.size(), [&](std::size_t i) {
        std::vector<double> a{2.3}, b{48.85};
        conversion.convert(a, b);
        same[i] = a[0] == x[0] && b[0] == y[0];
    });
    CHECK(std::count(same.begin(), same.end(), 1) == 200);
}

TEST_CASE("readings are words, and those of earlier versions are understood") {
    const InputSource source{"a.las", {}};
    ReadOptions read;
    read.units = ReadOptions::Units::scale;
    read.reader = ReadOptions::Reader::native;
    read.to_crs = "EPSG:2154";
    TrajectoryOptions trajectory;
    trajectory.format = TrajectoryOptions::Format::sbet;
    trajectory.angles = TrajectoryOptions::AngleUnit::radians;
    const std::string words = io::reading_of(source, read, trajectory);
    CHECK_THAT(words, Contains("\"scale\"") && Contains("\"native\"") && Contains("\"sbet\"") &&
                          Contains("\"rad\""));
    const std::string before =
        R"({"reader":1,"units":1,"to_crs":"EPSG:2154","trajectory":{"angles":2,"format":4}})";
    for (const std::string& text : {words, before}) {
        CHECK(io::read_options_from(text).units == read.units);
        CHECK(io::read_options_from(text).reader == read.reader);
        CHECK(io::read_options_from(text).to_crs == read.to_crs);
        CHECK(io::trajectory_options_from(text).format == trajectory.format);
        CHECK(io::trajectory_options_from(text).angles == trajectory.angles);
    }
    for (const char* damaged :
         {R"({"units":3})", R"({"units":-1})", R"({"units":"feet"})", R"({"units":[]})"})
        CHECK_THROWS_AS(io::read_options_from(damaged), CorruptionError);
}
