#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/open_point_file.hpp"
#include "io/write/point_sink.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <thread>

using namespace citysplat;

namespace {

enum Columns { plain, all };

/// Points around a place in Lambert-93, `n` of them from number `first` on.
PointBatch some_points(std::size_t first, std::size_t n, Columns columns) {
    PointBatch b;
    for (std::size_t i = first; i < first + n; ++i) {
        b.x.push_back(651'000 + rng::uniform(1, i, -500, 500));
        b.y.push_back(6'860'000 + rng::uniform(2, i, -500, 500));
        b.z.push_back(35 + rng::uniform(3, i, -5, 30));
        if (columns == plain) continue;
        b.gps_time.push_back(300'000 + static_cast<double>(i) * 1e-5);
        b.intensity.push_back(static_cast<std::uint16_t>(rng::bits(4, i)));
        b.label.push_back(static_cast<std::uint16_t>(rng::bits(5, i) % 256));
        b.instance.push_back(static_cast<std::uint16_t>(rng::bits(6, i)));
        b.scan_angle_deg.push_back(static_cast<float>(rng::uniform(7, i, -180, 180)));
        b.sensor.push_back({651'000 + static_cast<double>(i) * 0.001, 6'860'000.5, 37});
        b.withheld.push_back(rng::bits(8, i) % 7 == 0);
    }
    return b;
}

/// All blocks in file order.
PointBatch read_all(const PointFile& file) {
    PointBatch whole, block;
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (std::size_t i = 0; i < file.block_count(); ++i) {
        file.read_block(i, block);
        block.check();
        append(whole.x, block.x), append(whole.y, block.y), append(whole.z, block.z);
        append(whole.gps_time, block.gps_time), append(whole.intensity, block.intensity);
        append(whole.label, block.label), append(whole.instance, block.instance);
        append(whole.scan_angle_deg, block.scan_angle_deg), append(whole.sensor, block.sensor);
        append(whole.withheld, block.withheld);
    }
    whole.check();
    return whole;
}

const SinkOptions kParis{.scale_m = 0.0001, .offset_m = Vec3d{651'000, 6'860'000, 0}};

void write_batches(PointSink& sink, Columns columns, std::size_t points) {
    for (std::size_t at = 0; at < points;) {
        const std::size_t n = std::min<std::size_t>(points - at, 30'000);
        sink.write(some_points(at, n, columns));
        at += n;
    }
    sink.finish();
}

}  // namespace

TEST_CASE("LAS written by us comes back within half a step, with every column") {
    test::TempDir dir;
    constexpr std::size_t kPoints = 70'001;  // more than one block
    const auto path = dir / "a.las";
    write_batches(*create_las(path, kParis), all, kPoints);
    const auto file = open_point_file(path);
    const PointFileInfo& info = file->info();
    CHECK(info.format == "LAS 1.4, point format 6");
    REQUIRE(info.points == kPoints);
    CHECK(info.has_gps_time);
    CHECK(info.has_sensor);
    CHECK(info.has_instance);
    CHECK(file->block_count() == 2);
    const PointBatch got = read_all(*file), want = some_points(0, kPoints, all);
    REQUIRE(got.size() == kPoints);
    double worst = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
        worst = std::max({worst, std::fabs(got.x[i] - want.x[i]), std::fabs(got.y[i] - want.y[i]),
                          std::fabs(got.z[i] - want.z[i]), length(got.sensor[i] - want.sensor[i])});
        REQUIRE(std::fabs(static_cast<double>(got.scan_angle_deg[i] - want.scan_angle_deg[i])) < 0.0031);
    }
    CHECK(worst < 0.000051 * std::sqrt(3.0));
    CHECK(got.gps_time == want.gps_time);
    CHECK(got.intensity == want.intensity);
    CHECK(got.label == want.label);
    CHECK(got.instance == want.instance);
    CHECK(got.withheld == want.withheld);
    CHECK(info.bounds.min.x == *std::min_element(got.x.begin(), got.x.end()));
    CHECK(info.bounds.max.z == *std::max_element(got.z.begin(), got.z.end()));
}

TEST_CASE("PLY written by us comes back bit for bit, with every column") {
    test::TempDir dir;
    constexpr std::size_t kPoints = 70'001;
    const auto path = dir / "a.ply";
    SinkOptions options;
    options.crs = "PROJCS[\"RGF93 / Lambert-93\",UNIT[\"metre\",1],AUTHORITY[\"EPSG\",\"2154\"]]";
    write_batches(*create_ply(path, options), all, kPoints);
    const auto file = open_point_file(path);
    REQUIRE(file->info().points == kPoints);
    CHECK(file->info().crs == options.crs);
    CHECK(file->info().crs_name == "RGF93 / Lambert-93 (EPSG:2154)");
    const PointBatch got = read_all(*file), want = some_points(0, kPoints, all);
    CHECK(got.x == want.x);
    CHECK(got.y == want.y);
    CHECK(got.z == want.z);
    CHECK(got.gps_time == want.gps_time);
    CHECK(got.intensity == want.intensity);
    CHECK(got.label == want.label);
    CHECK(got.instance == want.instance);
    CHECK(got.scan_angle_deg == want.scan_angle_deg);
    CHECK(got.withheld == want.withheld);
    bool same = true;
    for (std::size_t i = 0; i < kPoints; ++i) same = same && length(got.sensor[i] - want.sensor[i]) == 0;
    CHECK(same);
}

TEST_CASE("columns that were not written are not there") {
    test::TempDir dir;
    write_batches(*create_las(dir / "a.las", kParis), plain, 10);
    write_batches(*create_ply(dir / "a.ply"), plain, 10);
    const PointBatch ply = read_all(*open_point_file(dir / "a.ply"));
    CHECK(ply.size() == 10);
    CHECK(ply.intensity.empty());
    CHECK(ply.sensor.empty());
    const auto las = open_point_file(dir / "a.las");
    CHECK_FALSE(las->info().has_sensor);
    CHECK(read_all(*las).instance.empty());
}

TEST_CASE("an empty cloud is a valid file") {
    test::TempDir dir;
    create_las(dir / "a.las")->finish();
    create_ply(dir / "a.ply")->finish();
    for (const char* name : {"a.las", "a.ply"}) {
        const auto file = open_point_file(dir / name);
        CHECK(file->info().points == 0);
        CHECK(file->block_count() == 0);
    }
}

TEST_CASE("a sink that was not finished leaves a file that is refused") {
    test::TempDir dir;
    {
        auto las = create_las(dir / "a.las", kParis);
        auto ply = create_ply(dir / "a.ply");
        for (int i = 0; i < 4; ++i) {
            las->write(some_points(0, 50'000, all));
            ply->write(some_points(0, 50'000, all));
        }
    }
    CHECK_THROWS_AS(open_point_file(dir / "a.las"), InputError);
    CHECK_THROWS_AS(open_point_file(dir / "a.ply"), InputError);
}

TEST_CASE("the coordinate system travels through LAS") {
    test::TempDir dir;
    SinkOptions options = kParis;
    options.crs = "PROJCS[\"RGF93 / Lambert-93\",UNIT[\"metre\",1],AUTHORITY[\"EPSG\",\"2154\"]]";
    write_batches(*create_las(dir / "a.las", options), all, 5);
    const auto file = open_point_file(dir / "a.las");
    CHECK(file->info().crs == options.crs);
    CHECK(file->info().crs_name == "RGF93 / Lambert-93 (EPSG:2154)");
}

TEST_CASE("labels above 255 need wide labels in LAS, and are kept with them") {
    test::TempDir dir;
    PointBatch b = some_points(0, 2, all);
    b.label = {259, 7};
    CHECK_THROWS_WITH(create_las(dir / "a.las", kParis)->write(b),
                      Catch::Contains("label 259") && Catch::Contains("point 0"));
    SinkOptions options = kParis;
    options.wide_labels = true;
    const auto sink = create_las(dir / "b.las", options);
    sink->write(b);
    sink->finish();
    CHECK(read_all(*open_point_file(dir / "b.las")).label == b.label);
}

TEST_CASE("a coordinate that does not fit the resolution of LAS is an error that names it") {
    test::TempDir dir;
    PointBatch far = some_points(0, 3, plain);
    write_batches(*create_las(dir / "near.las"), plain, 3);
    CHECK(std::fabs(read_all(*open_point_file(dir / "near.las")).y[2] - far.y[2]) < 0.00006);
    far.y[2] = 9'860'000;
    CHECK_THROWS_WITH(create_las(dir / "far.las")->write(far), Catch::Contains("point 2") &&
                                                                   Catch::Contains("y = 9860000") &&
                                                                   Catch::Contains("offset"));
}

TEST_CASE("blocks of one file may be read by several threads at once") {
    test::TempDir dir;
    constexpr std::size_t kPoints = 400'000;
    write_batches(*create_las(dir / "a.las", kParis), all, kPoints);
    const auto file = open_point_file(dir / "a.las");
    const PointBatch whole = read_all(*file);
    std::vector<PointBatch> blocks(file->block_count());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = t; i < blocks.size(); i += 4) file->read_block(i, blocks[i]);
        });
    for (auto& thread : threads) thread.join();
    std::vector<double> x;
    for (const auto& block : blocks) x.insert(x.end(), block.x.begin(), block.x.end());
    CHECK(x == whole.x);
}
