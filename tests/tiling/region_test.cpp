#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "tiling/points/canonical_order.hpp"
#include "tiling/points/city_points.hpp"
#include "tiling/points/partition.hpp"
#include "tiling/points/point_codec.hpp"
#include "tiling/points/scatter.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <sys/stat.h>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace {

/// A store with archives of some clouds.
struct Archives {
    TempDir dir{memory_directory()};
    ObjectStore store{CityPaths(dir.path())};
    std::vector<CitySource> sources;
    Archives() { store.create_layout(); }

    const SourceRow& add(const std::vector<CloudPoint>& cloud, std::uint64_t memory_bytes = 64 << 20,
                         const SourceTrajectory* trajectory = nullptr) {
        const auto path = dir / ("cloud" + std::to_string(sources.size()));
        write_cloud(path, cloud);
        CancelToken cancel;
        Progress progress;
        Progress::Stage stage(progress, "read", 0, "pts");
        const OpenedInput input(
            path, [](const std::filesystem::path& p, const std::string&) { return open_cloud(p); }, "");
        Partitioned p = partition({input, trajectory, memory_bytes}, store, cancel, stage);
        store.flush();
        sources.push_back(p.source);
        return sources.back().row;
    }
    CityPoints points() const { return CityPoints(store, sources); }
};

struct WorldPoint {
    std::int64_t x, y, z;
    std::uint16_t label, intensity;
    friend auto operator<=>(const WorldPoint&, const WorldPoint&) = default;
};

std::vector<WorldPoint> brute_force(const std::vector<std::vector<CloudPoint>>& clouds,
                                    const LatticeBox& box) {
    std::vector<WorldPoint> points;
    for (const auto& cloud : clouds)
        for (const CloudPoint& p : cloud) {
            const WorldPoint w{to_lattice(p.x), to_lattice(p.y), to_lattice(p.z), p.label, p.intensity};
            if (box.contains(w.x, w.y)) points.push_back(w);
        }
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
}

std::vector<WorldPoint> in_world(const Region& region) {
    std::vector<WorldPoint> points;
    const LatticePoint o = region.frame.origin();
    for (const TilePoint& p : region.points)
        points.push_back({o.x + p.x, o.y + p.y, o.z + p.z, p.label, p.intensity});
    return points;
}

}  // namespace

TEST_CASE("a region has the points a brute-force search finds, in canonical order") {
    Archives a;
    std::vector<std::vector<CloudPoint>> clouds{street(1, -70, -30, 150, 5), street(2, -20, -60, 90, 5)};
    clouds[1].insert(clouds[1].end(), clouds[0].begin(), clouds[0].begin() + 500);  // duplicates across files
    for (const auto& cloud : clouds) a.add(cloud);
    const CityPoints points = a.points();
    CHECK(points.total_points() == clouds[0].size() + clouds[1].size());
    for (std::uint64_t i = 0; i < 60; ++i) {
        const auto u = [i](std::uint64_t c, double low, double high) {
            return to_lattice(rng::uniform(rng::key(4, i), c, low, high));
        };
        const std::int64_t x = u(0, -80, 80), y = u(1, -70, 40), halo = u(4, 0, 20);
        const LatticeBox core{x, y, x + u(2, 0.1, 70), y + u(3, 0.1, 70)};
        const Region region = points.read(core, halo);
        CHECK(region.covered == core.widened(halo));
        const auto expected = brute_force(clouds, region.covered);
        REQUIRE(in_world(region) == expected);
        REQUIRE(points.count_at_most(region.covered) >= expected.size());
        REQUIRE(std::is_sorted(region.points.begin(), region.points.end()));
    }
}

TEST_CASE("a crowded column is sorted canonically and its duplicates collapse") {
    std::vector<TilePoint> points(20'000);
    for (std::size_t i = 0; i < points.size(); ++i) {
        TilePoint& p = points[i];
        p.x = 100 + static_cast<std::int32_t>(rng::bits(1, i) % 50);
        p.y = static_cast<std::int32_t>(rng::bits(2, i) % 20);
        p.z = static_cast<std::int32_t>(rng::bits(3, i) % 5);
        p.label = static_cast<std::uint16_t>(rng::bits(4, i) % 2);
        p.slot = static_cast<std::uint32_t>(rng::bits(5, i) % 2);
    }
    const std::set<TilePoint> expected(points.begin(), points.end());
    REQUIRE(expected.size() < points.size() / 4 * 3);
    sort_column(points, 0, 100);
    CHECK(std::equal(points.begin(), points.end(), expected.begin(), expected.end()));
}

TEST_CASE("a point written twice at one time is one point, at two times it is two") {
    std::vector<CloudPoint> cloud = street(1, 0, 0, 20, 2);
    const std::size_t others = cloud.size();
    for (const double time : {5.01, 5.02, 7.5})
        cloud.push_back({.x = 3, .y = 1, .z = 30, .gps_time = time, .label = 77});
    Archives a;
    a.add(cloud);
    a.add(cloud);
    CHECK(a.sources[0].row.counts.duplicates == 1);
    std::vector<std::uint32_t> slots;
    const Region region = a.points().read(a.points().bounds(), 0);
    for (const TilePoint& p : region.points)
        if (p.label == 77) slots.push_back(p.slot);
    CHECK(slots == std::vector{time_slot(5), time_slot(7.5)});
    CHECK(region.points.size() == others + 2);
}

TEST_CASE("a region ends at the lattice step where it says, on all sides") {
    const LatticeBox core{to_lattice(1000), to_lattice(2000), to_lattice(1016), to_lattice(2016)};
    const std::int64_t halo = to_lattice(2);
    const LatticeBox box = core.widened(halo);
    const std::int64_t middle_x = to_lattice(1008), middle_y = to_lattice(2008);
    std::vector<CloudPoint> cloud = street(1, 1000, 1990, 20, 2);
    const auto add = [&](std::int64_t x, std::int64_t y) {
        cloud.push_back({.x = to_metres(x), .y = to_metres(y), .z = 1, .label = 77});
    };
    for (const std::int64_t step : {-1, 0, 1}) {
        add(box.min_x + step, middle_y);
        add(box.max_x + step, middle_y);
        add(middle_x, box.min_y + step);
        add(middle_x, box.max_y + step);
    }
    Archives a;
    a.add(cloud);
    const Region region = a.points().read(core, halo);
    REQUIRE(in_world(region) == brute_force({cloud}, box));
    // Of each side three are at the border: two within where it begins, one where it ends.
    CHECK(std::count_if(region.points.begin(), region.points.end(),
                        [](const TilePoint& p) { return p.label == 77; }) == 6);
}

TEST_CASE("a damaged cell of an archive is named, never read as other points") {
    Archives a;
    const SourceRow source = a.add(street(1, 1000, 2000, 12, 3));
    const LatticeBox all{to_lattice(990), to_lattice(1990), to_lattice(1020), to_lattice(2050)};
    const auto points = in_world(a.points().read(all, 0));
    REQUIRE(points.size() > 1000);
    const auto path = a.store.paths().object(source.object);
    const std::vector<std::byte> good = read_file(path);
    const SegmentRow segment = a.sources[0].segments[0];
    std::size_t named = 0;
    for (std::uint64_t at = segment.offset; at < segment.offset + segment.bytes; at += 3) {
        auto bad = good;
        bad[at] ^= std::byte{8};
        FileWriter out(path);
        out.write(bad);
        out.finish();
        try {
            if (in_world(a.points().read(all, 0)) != points) FAIL("byte " << at << " gave other points");
        } catch (const CorruptionError&) {
            ++named;
        }
    }
    CHECK(named > segment.bytes / 3 * 9 / 10);
}

TEST_CASE("points that cannot be used are dropped and counted by reason") {
    auto cloud = street(3, 0, 0, 20, 5);
    const std::size_t good = cloud.size();
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(),
                     kInf = std::numeric_limits<double>::infinity();
    cloud.push_back({.x = kNaN});
    cloud.push_back({.y = kInf});
    cloud.push_back({.z = -kInf});
    cloud.push_back({.x = 2e8});
    cloud.push_back({.z = 50'000});
    cloud.push_back({.x = 3, .withheld = 1});
    cloud.push_back(cloud[5]);
    Archives a;
    const PointCounts& c = a.add(cloud).counts;
    CHECK(c.read == cloud.size());
    CHECK(c.not_finite == 3);
    CHECK(c.out_of_range == 2);
    CHECK(c.withheld == 1);
    CHECK(c.duplicates == 1);
    CHECK(c.kept == good);
    CHECK(c.dropped() + c.kept == c.read);
    CHECK(c.without_sensor == good + 1);
}

TEST_CASE("a few points far from everything are quarantined, however they are divided into files") {
    auto cloud = street(3, 0, 0, 20, 5);
    const std::vector<CloudPoint> far{{.x = 5000, .y = 5000}, {.x = 5001, .y = 5000}, {.x = -90000, .y = 3}};
    Archives one, two;
    auto all = cloud;
    all.insert(all.end(), far.begin(), far.end());
    one.add(all);
    two.add(cloud);
    for (const CloudPoint& p : far) two.add({p});
    for (const Archives* a : {&one, &two}) {
        const CityPoints points = a->points();
        CHECK(points.quarantined_points() == 3);
        CHECK(points.occupied_sectors().size() == 1);
        CHECK(points.read({to_lattice(4990), to_lattice(4990), to_lattice(5010), to_lattice(5010)}, 0)
                  .points.empty());
    }
}

TEST_CASE("far points are counted once, however often and in however many files they are written") {
    const auto cloud = street(3, 0, 0, 20, 5);
    // Both sides of a corner of sectors, so that neighbours count as well.
    const auto cluster = [](int count) {
        std::vector<CloudPoint> points;
        for (int i = 0; i < count; ++i) points.push_back({.x = 6399 + 0.25 * i, .y = 6400.0 + i % 3});
        return points;
    };
    const auto together = [&](std::vector<std::vector<CloudPoint>> files) {
        Archives a;
        files.push_back(cloud);
        for (const auto& file : files) a.add(file);
        const CityPoints points = a.points();
        const LatticeBox far{to_lattice(6390), to_lattice(6390), to_lattice(6410), to_lattice(6410)};
        return std::pair(points.quarantined_points(), points.read(far, 0).points.size());
    };
    for (const int count : {1, 7, 15, 16, 40}) {
        const std::vector<CloudPoint> far = cluster(count);
        const auto all = static_cast<std::uint64_t>(count);
        const auto expected = count < 16 ? std::pair(all, std::size_t{0}) : std::pair(std::uint64_t{0}, all);
        std::vector<CloudPoint> many;
        std::vector<std::vector<CloudPoint>> singles, overlapping;
        for (int copy = 0; copy < 20; ++copy) many.insert(many.end(), far.begin(), far.end());
        for (int i = 0; i < count; ++i) {
            singles.push_back({far[static_cast<std::size_t>(i)]});
            overlapping.emplace_back(far.begin(), far.begin() + 1 + i);
            overlapping.emplace_back(far.begin() + i, far.end());
        }
        CAPTURE(count);
        CHECK(together({far}) == expected);
        CHECK(together({many}) == expected);
        CHECK(together({far, far}) == expected);
        CHECK(together(std::vector(20, far)) == expected);
        CHECK(together({far, many}) == expected);
        CHECK(together(singles) == expected);
        CHECK(together(overlapping) == expected);
    }
}

TEST_CASE("a partition that has to spill gives the same archive") {
    const auto cloud = street(8, 0, 0, 200, 40);
    Archives roomy, tight;
    CHECK(roomy.add(cloud).object == tight.add(cloud, 1 << 20).object);
}

TEST_CASE("scattered points come back complete from memory and from the spill file") {
    TempDir dir{memory_directory()};
    Scatter scatter(dir / "spill", 50'000);
    std::map<Sector, std::vector<TilePoint>> expected;
    for (std::uint64_t i = 0; i < 400; ++i) {
        const Sector sector{static_cast<std::int32_t>(rng::bits(1, i) % 7), 0};
        std::vector<TilePoint> chunk(1 + rng::bits(2, i) % 600);
        for (std::size_t k = 0; k < chunk.size(); ++k) {
            chunk[k] = {};
            chunk[k].x = static_cast<std::int32_t>(rng::bits(rng::key(3, i), k) % kSectorSteps);
            chunk[k].z = static_cast<std::int32_t>(i);
        }
        auto& all = expected[sector];
        all.insert(all.end(), chunk.begin(), chunk.end());
        scatter.add(sector, std::move(chunk));
    }
    CHECK(scatter.spilled_bytes() > 1'000'000);
    for (auto& [sector, points] : expected) {
        auto got = scatter.take(sector, 0, 5);
        const auto rest = scatter.take(sector, 5, kCellsPerSide);
        got.insert(got.end(), rest.begin(), rest.end());
        std::sort(got.begin(), got.end());
        std::sort(points.begin(), points.end());
        REQUIRE(got == points);
    }
}

TEST_CASE("the sensor is where the trajectory says, in steps of 1/64 m, and keeps its direction when far") {
    const Trajectory path({{0, {{0, 0, 2}, {}}}, {10, {{10, 0, 2}, {}}}});
    const SourceTrajectory trajectory(path);
    std::vector<CloudPoint> cloud(40);
    for (std::size_t i = 0; i < cloud.size(); ++i)
        cloud[i] = {
            .x = 0.25 * static_cast<double>(i), .y = 5, .z = 0, .gps_time = 0.25 * static_cast<double>(i)};
    cloud[39].gps_time = 11;                         // after the end
    cloud[38] = {.x = 2, .y = 4000, .gps_time = 2};  // far away
    cloud.push_back({.x = 2.5, .y = 4000, .gps_time = 2});
    for (int i = 0; i < 20; ++i) cloud.push_back({.x = 2.5 + i, .y = 4001, .gps_time = 2});
    Archives a;
    CHECK(a.add(cloud, 64 << 20, &trajectory).counts.without_sensor == 1);
    const CityPoints points = a.points();
    const Region near = points.read({0, 0, to_lattice(20), to_lattice(10)}, 0);
    int known = 0;
    for (const TilePoint& p : near.points)
        if (p.has_sensor()) {
            ++known;
            CHECK(p.sensor_dx == 0);
            CHECK(p.sensor_dy == -5 * 64);
            CHECK(p.sensor_dz == 2 * 64);
        }
    CHECK(known == 38);
    const Region far = points.read({0, to_lattice(3999), to_lattice(2.1), to_lattice(4002)}, 0);
    REQUIRE(far.points.size() == 1);
    CHECK(far.points[0].sensor_dy == -511 * 64);
    CHECK(far.points[0].sensor_dx == 0);
}

TEST_CASE("a million points on one spot collapse to their places, and each is near one splat") {
    constexpr double kRadius_m = 0.0005;
    std::vector<CloudPoint> cloud(1'000'000);
    std::set<std::array<std::int64_t, 3>> places;
    for (std::size_t i = 0; i < cloud.size(); ++i) {
        CloudPoint& p = cloud[i];
        p = {.x = 100 + 0.01 * rng::uniform(1, 2 * i),
             .y = 100 + 0.01 * rng::uniform(1, 2 * i + 1),
             .z = i % 2 ? 0.0 : 0.0005};
        places.insert({to_lattice(p.x), to_lattice(p.y), to_lattice(p.z)});
    }
    TempDir dir{memory_directory()};
    write_cloud(dir / "a.cloud", cloud);
    auto options = toy_options({dir / "a.cloud"});
    options.most_tile_points = 1000;
    ToyProcessor processor(kRadius_m, 0.5);
    CancelToken cancel;
    Progress progress;
    const BuildReport report = build_city(dir / "city", processor, options, cancel, progress);
    CHECK(report.points.kept == places.size());
    CHECK(report.points.duplicates == cloud.size() - places.size());

    // What the processor promises: no two splats within the radius, and every place within it of one.
    std::vector<std::array<std::int64_t, 3>> splats;
    const CityReader city(dir / "city");
    for (std::size_t i = 0; i < city.tiles().size(); ++i) {
        const SplatTile tile = city.load(i);
        const LatticePoint origin = tile.frame().origin();
        for (std::size_t k = 0; k < tile.size(); ++k)
            splats.push_back(
                {origin.x + tile.splat(k).x, origin.y + tile.splat(k).y, origin.z + tile.splat(k).z});
    }
    REQUIRE(splats.size() == report.splats);
    const auto near_splats = [&](const std::array<std::int64_t, 3>& place) {
        const std::int64_t r = to_lattice(kRadius_m);
        return std::count_if(splats.begin(), splats.end(), [&](const auto& s) {
            const std::int64_t dx = s[0] - place[0], dy = s[1] - place[1], dz = s[2] - place[2];
            return dx * dx + dy * dy + dz * dz <= r * r;
        });
    };
    CHECK(std::all_of(places.begin(), places.end(), [&](const auto& p) { return near_splats(p) > 0; }));
    CHECK(std::all_of(splats.begin(), splats.end(), [&](const auto& s) { return near_splats(s) == 1; }));
}

TEST_CASE("frames stand below the points, whatever the outliers") {
    auto cloud = street(3, 0, 0, 20, 5);
    for (CloudPoint& p : cloud) p.z += 2240;  // a city in the mountains
    cloud.push_back({.x = 10, .y = 10, .z = -9000});
    Archives a;
    a.add(cloud);
    const Region region = a.points().read({0, 0, to_lattice(20), to_lattice(40)}, 0);
    CHECK(region.frame.z_m == 2240);
}
