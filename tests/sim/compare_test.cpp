#include "compare/compare.hpp"

#include "compare/point_columns.hpp"
#include "core/file.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/open_point_file.hpp"
#include "io/write/export_splats.hpp"
#include "io/write/point_sink.hpp"
#include "sim/memory_city.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace citysplat;
using namespace citysplat::io;
using namespace citysplat::compare;

namespace {

std::filesystem::path write_cloud(const test::TempDir& directory, const std::string& name,
                                  const std::vector<Vec3d>& points, std::uint16_t labels) {
    PointBatch batch;
    for (std::size_t i = 0; i < points.size(); ++i) {
        batch.x.push_back(points[i].x);
        batch.y.push_back(points[i].y);
        batch.z.push_back(points[i].z);
        batch.label.push_back(static_cast<std::uint16_t>(i % labels));
    }
    const auto path = directory / name;
    const auto sink = create_ply(path);
    sink->write(batch);
    sink->finish();
    return path;
}

std::vector<Vec3d> random_points(std::size_t n, std::uint64_t key) {
    std::vector<Vec3d> points;
    for (std::uint64_t i = 0; i < n; ++i)
        points.push_back({652000 + rng::uniform(key, 3 * i, -70, 70),
                          6861000 + rng::uniform(key, 3 * i + 1, -40, 40),
                          rng::uniform(key, 3 * i + 2, 0, 6)});
    return points;
}

DistancesByClass compare_files(const std::filesystem::path& simulated,
                               const std::filesystem::path& reference) {
    const test::TempDir temp;
    CancelToken cancel;
    Progress progress;
    const OpenCloud a = [&] { return open_point_file(simulated); };
    const OpenCloud b = [&] { return open_point_file(reference); };
    return cloud_to_cloud({{&a, 1}, {&b, 1}}, temp.path(), cancel, progress);
}

}  // namespace

TEST_CASE("cloud-to-cloud distance is what brute force says, also across columns and far away") {
    const test::TempDir directory;
    const auto reference = random_points(3000, 1);
    auto simulated = random_points(2000, 2);
    simulated.push_back(reference[0]);
    simulated.push_back(reference[7] + Vec3d{0, 0, 20});
    const auto result = compare_files(write_cloud(directory, "sim.ply", simulated, 3),
                                      write_cloud(directory, "ref.ply", reference, 1));
    double sum = 0, most = 0;
    std::map<std::uint16_t, double> sums;
    for (std::size_t i = 0; i < simulated.size(); ++i) {
        double best = 1e9;
        for (const Vec3d& r : reference) best = std::min(best, length(r - simulated[i]));
        sum += best;
        most = std::max(most, best);
        sums[static_cast<std::uint16_t>(i % 3)] += best;
    }
    CHECK(result.all.count() == simulated.size());
    CHECK(result.all.mean_m() == Approx(sum / static_cast<double>(simulated.size())).margin(1e-5));
    CHECK(result.all.max_m() == Approx(most).margin(1e-5));
    REQUIRE(result.classes.size() == 3);
    for (const auto& [label, statistics] : result.classes)
        CHECK(statistics.mean_m() ==
              Approx(sums[label] / static_cast<double>(statistics.count())).margin(1e-5));
}

TEST_CASE("a cloud is at distance zero from itself, and at the shift from a shifted plane") {
    const test::TempDir directory;
    const auto points = random_points(500, 3);
    const auto file = write_cloud(directory, "a.ply", points, 1);
    CHECK(compare_files(file, file).all.max_m() == 0);
    std::vector<Vec3d> plane, above;
    for (int i = 0; i < 100; ++i)
        for (int j = 0; j < 100; ++j) {
            plane.push_back({i * 0.5, j * 0.5, 0});
            above.push_back({i * 0.5, j * 0.5, 0.125});
        }
    const auto shifted =
        compare_files(write_cloud(directory, "b.ply", above, 1), write_cloud(directory, "c.ply", plane, 1));
    CHECK(shifted.all.mean_m() == Approx(0.125));
    CHECK(shifted.all.quantile_m(0.95) == Approx(0.125).margin(2e-4));
    CHECK(shifted.all.share_above(0.1) == 1);
    CHECK(shifted.all.share_above(0.2) == 0);
}

TEST_CASE("points of more columns than may wait in memory are all in the file") {
    const test::TempDir directory;
    constexpr std::size_t kPoints = 5000, kMostWaiting = 64;
    PointColumns columns(directory.path(), 0, kMostWaiting);
    PointBatch batch;
    for (std::size_t i = 0; i < kPoints; ++i) {
        batch.x.push_back(652000 + rng::uniform(7, 2 * i, 0, 500));
        batch.y.push_back(6861000 + rng::uniform(7, 2 * i + 1, 0, 500));
        batch.z.push_back(static_cast<double>(i));
    }
    columns.add(batch);
    CHECK(columns.waiting() < kMostWaiting);
    columns.finish();
    REQUIRE(columns.columns().size() > kMostWaiting);
    std::vector<int> times(kPoints);
    for (const Column& column : columns.columns())
        for (const ColumnPoint& point : columns.read(column)) ++times[static_cast<std::size_t>(point.z)];
    CHECK(std::count(times.begin(), times.end(), 1) == static_cast<std::ptrdiff_t>(kPoints));
}

TEST_CASE("every splat is exported, in every format, with a size that its header explains") {
    const test::MemoryCity city(test::street(652000, 6861000, 20, 0.5), 16);
    std::uint64_t splats = 0;
    for (const auto& e : city.tiles()) splats += e.splats;
    const test::TempDir directory;
    CancelToken cancel;
    Progress progress;
    for (const auto& [name, record_bytes] : {std::pair{"ply", 49u}, {"2dgs", 64u}}) {
        const auto path = directory / (std::string(name) + ".ply");
        CHECK(export_splats(city, export_format_from(name), path, cancel, progress) == splats);
        const std::string text = read_text_file(path);
        CHECK(text.size() - (text.find("end_header\n") + 11) == splats * record_bytes);
    }
    const auto path = directory / "splats.las";
    CHECK(export_splats(city, ExportFormat::las, path, cancel, progress) == splats);
    const auto file = open_point_file(path);
    CHECK(file->info().points == splats);
    PointBatch batch;
    file->read_block(0, batch);
    const Vec3d first = test::MemoryCity::world(city.tile(0), city.tile(0).disc(0).centre);
    CHECK(length(Vec3d{batch.x[0], batch.y[0], batch.z[0]} - first) < 2e-4);
}
