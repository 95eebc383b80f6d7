#include "sim/output/decimated_cloud.hpp"

#include "core/error.hpp"
#include "sim/output/scan_writer.hpp"
#include "sim/test_drive.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::test;

namespace {

std::vector<std::byte> merged(const TempDir& dir, const ScanFormat& format, double size_m,
                              std::span<const Scan* const> scans) {
    DecimatedCloud cloud(dir.path(), format, size_m);
    for (const Scan* scan : scans) cloud.add(*scan, {});
    std::vector<std::byte> all;
    cloud.finish([&](std::span<const std::byte> r) { all.insert(all.end(), r.begin(), r.end()); });
    return all;
}

}  // namespace

TEST_CASE("a decimated cloud has the first return of each cube, whatever the order of scans") {
    const MemoryCity city(street(Place{}.east, Place{}.north, 40), 16);
    const SensorRun run{small_sensor(), {}, 7};
    const DriveOutcome outcome = drive(city, run, with_budget(1 << 30), straight_drive(3, 0.61));
    REQUIRE(outcome.scans.size() == 6);
    const TempDir dir;
    const auto ply = make_scan_format("ply"), xyz = make_scan_format("xyz");
    std::vector<const Scan*> order;
    for (const Scan& scan : outcome.scans) order.push_back(&scan);
    for (const double size_m : {0.001, 0.2}) {
        // Brute force: the earliest of each cube.
        std::map<std::tuple<double, double, double>, double> first;
        std::size_t all = 0;
        for (const Scan& scan : outcome.scans)
            for (const Return& r : scan.returns) {
                if (r.status != RayStatus::hit) continue;
                ++all;
                const auto cube = [&](double v) { return std::floor(v / size_m); };
                const double time_s = scan.time_s + static_cast<double>(r.time_s);
                const auto [at, fresh] = first.emplace(
                    std::tuple{cube(r.position.x), cube(r.position.y), cube(r.position.z)}, time_s);
                if (!fresh) at->second = std::min(at->second, time_s);
            }
        CHECK((size_m < 0.01 || first.size() < all / 2));
        const std::vector<std::byte> reference = merged(dir, *ply, size_m, order);
        const std::size_t record = reference.size() / first.size();
        REQUIRE(reference.size() == record * first.size());
        std::set<std::tuple<double, double, double>> seen;
        for (std::size_t i = 0; i < first.size(); ++i) {
            double values[4];  // x, y, z, gps_time
            std::memcpy(values, reference.data() + i * record, sizeof values);
            const auto cube = [&](double v) { return std::floor(v / size_m); };
            const auto found = first.find({cube(values[0]), cube(values[1]), cube(values[2])});
            REQUIRE(found != first.end());
            REQUIRE(found->second == values[3]);
            REQUIRE(seen.insert(found->first).second);
        }
        const std::vector<std::byte> text = merged(dir, *xyz, size_m, order);
        for (int turn = 0; turn < 3; ++turn) {
            std::rotate(order.begin(), order.begin() + 2, order.end());
            std::swap(order[0], order[3]);
            CHECK(merged(dir, *ply, size_m, order) == reference);
            CHECK(merged(dir, *xyz, size_m, order) == text);
        }
    }
    CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE(
    "piles that are larger than their buffers come back from the file, which is the only one that is open") {
    const MemoryCity city(street(Place{}.east, Place{}.north, 40), 16);
    const DriveOutcome outcome =
        drive(city, {small_sensor(), {}, 7}, with_budget(1 << 30), straight_drive(3, 0.61));
    const Scan& scan = outcome.scans.front();
    const auto ply = make_scan_format("ply");
    const TempDir dir;
    const auto open_files = [] {
        const std::filesystem::directory_iterator all("/proc/self/fd");
        return std::distance(begin(all), end(all));
    };
    const auto before = open_files();
    DecimatedCloud cloud(dir.path(), *ply, 1000);
    // A cube of a kilometre holds all: its buffer goes to the file every 700 returns or so.
    int rounds = 0;
    for (std::size_t returns = 0; returns < 20'000; returns += scan.hits, ++rounds) cloud.add(scan, {});
    CHECK(rounds > 1);
    CHECK(open_files() == before + 1);
    std::vector<std::byte> kept;
    const auto put = [&](std::span<const std::byte> r) { kept.insert(kept.end(), r.begin(), r.end()); };
    const std::uint64_t cubes = cloud.finish(put);
    CHECK(cubes >= 1);
    CHECK(cubes <= 8);
    const Scan* one = &scan;
    CHECK(kept == merged(dir, *ply, 1000, std::span(&one, 1)));
}

TEST_CASE("who stops a run does not wait for the cloud of all its scans") {
    const MemoryCity city(street(Place{}.east, Place{}.north, 40), 16);
    const DriveOutcome outcome =
        drive(city, {small_sensor(), {}, 7}, with_budget(1 << 30), straight_drive(3, 0.61));
    const TempDir dir;
    CancelToken cancel;
    ScanWriterOptions options;
    options.directory = dir / "run";
    options.format = "ply";
    options.accumulate = true;
    options.decimate_m = 0.01;
    options.planned_scans = outcome.scans.size();
    options.cancel = &cancel;
    ScanWriter writer(options);
    for (const Scan& scan : outcome.scans) {
        writer.consume(scan);
        writer.conclude(scan);
    }
    cancel.request();
    CHECK_THROWS_AS(writer.finish(), Interrupted);
    CHECK_FALSE(std::filesystem::exists(dir / "run/cloud.ply"));
}

TEST_CASE("lengths are read with their units") {
    CHECK(parse_length("1mm", "x") == 0.001);
    CHECK(parse_length("2.5cm", "x") == Approx(0.025));
    CHECK(parse_length("0.1m", "x") == 0.1);
    CHECK(parse_length("3", "x") == 3);
    for (const char* wrong : {"", "mm", "-1mm", "0", "nan", "inf", "1 mm", "1km", "1e9", "0.00001mm"})
        CHECK_THROWS_AS(parse_length(wrong, "--decimate"), UsageError);
}
