#include "core/math/rng_hd.hpp"
#include "tiling/carve/carved_points.hpp"
#include "tiling/carve/free_space.hpp"
#include "tiling/city_checks.hpp"
#include "tiling/points/point_codec.hpp"
#include "tiling/store/city_reader.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <vector>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace {

using Voxel = std::array<std::int64_t, 3>;

Voxel voxel_of(const TilePoint& p) {
    return {floor_div(p.x, kVoxelSteps), floor_div(p.y, kVoxelSteps), floor_div(p.z, kVoxelSteps)};
}

/// The share of a ray inside a voxel, as the slabs of the voxel say; ends behind the last place that counts:
/// 0.
double share_inside(const TilePoint& p, const Voxel& voxel) {
    const std::array<double, 3> to{static_cast<double>(p.x), static_cast<double>(p.y),
                                   static_cast<double>(p.z)};
    const std::array<double, 3> d{-128.0 * p.sensor_dx, -128.0 * p.sensor_dy, -128.0 * p.sensor_dz};
    const double length = std::hypot(d[0], d[1], d[2]);
    double margin = std::max(0.4 * 8192, 0.03 * length);
    if (d[2] != 0)
        margin = std::max(
            margin, std::min(1.5 * static_cast<double>(kVoxelSteps) * length / std::abs(d[2]), 0.5 * length));
    double enter = 0, leave = std::numeric_limits<double>::max();
    for (std::size_t a = 0; a < 3; ++a) {
        const double o = to[a] - d[a], low = static_cast<double>(voxel[a] * kVoxelSteps),
                     high = low + static_cast<double>(kVoxelSteps);
        if (d[a] == 0) {
            if (o < low || o >= high) return 0;
            continue;
        }
        enter = std::max(enter, std::min((low - o) / d[a], (high - o) / d[a]));
        leave = std::min(leave, std::max((low - o) / d[a], (high - o) / d[a]));
    }
    return leave <= 1 - margin / length && leave > enter ? (leave - enter) * length : 0;
}

/// The rule of free_space.hpp in its own words, voxel by voxel and ray by ray.
std::vector<bool> brute_force(const std::vector<TilePoint>& points) {
    std::map<Voxel, std::set<std::uint32_t>> looks;
    const auto look = [](const TilePoint& p) { return (p.slot - 1) / 2; };
    for (const TilePoint& p : points) {
        auto& of_voxel = looks[voxel_of(p)];
        if (p.slot != 0) of_voxel.insert(look(p));
    }
    std::map<Voxel, std::array<bool, 2>> verdicts;
    for (const auto& [voxel, own] : looks) {
        std::set<std::uint32_t> hit, free;
        for (std::int64_t dx = -1; dx <= 1; ++dx)
            for (std::int64_t dy = -1; dy <= 1; ++dy)
                for (std::int64_t dz = -1; dz <= 1; ++dz)
                    if (const auto found = looks.find({voxel[0] + dx, voxel[1] + dy, voxel[2] + dz});
                        found != looks.end())
                        hit.insert(found->second.begin(), found->second.end());
        std::map<std::uint32_t, int> passes;
        for (const TilePoint& p : points)
            if (is_witness(p, {0, 0}) && share_inside(p, voxel) > static_cast<double>(kVoxelSteps) / 2)
                ++passes[look(p)];
        for (const auto& [when, rays] : passes)
            if (rays > 0 && !hit.contains(when)) free.insert(when);
        const auto outside =
            static_cast<std::size_t>(std::count_if(free.begin(), free.end(), [&](std::uint32_t when) {
                return hit.empty() || when < *hit.begin() || when > *hit.rbegin();
            }));
        for (const bool timed : {false, true}) {
            const std::size_t hits = hit.size() - (timed && !hit.empty() ? 1 : 0);
            verdicts[voxel][timed] = (free.size() >= 2 && free.size() > hits) ||
                                     (outside >= 4 && 2 * outside > std::min<std::size_t>(hits, 28));
        }
    }
    std::vector<bool> dynamic;
    for (const TilePoint& p : points) dynamic.push_back(verdicts[voxel_of(p)][p.slot != 0]);
    return dynamic;
}

/// A wall, dense, and a few points in the 4 m before it, seen from sensors there.
std::vector<TilePoint> random_scene(std::uint64_t seed, std::size_t size) {
    std::vector<TilePoint> points;
    for (std::uint64_t i = 0; i < size; ++i) {
        const auto u = [k = rng::key(seed, i)](std::uint64_t c, double low, double high) {
            return rng::uniform(k, c, low, high);
        };
        TilePoint p{};
        p.x = static_cast<std::int32_t>(u(0, 0, 2.4) * 8192);
        p.y = static_cast<std::int32_t>((i % 40 != 0 ? 3.9 : u(1, 0, 3.5)) * 8192);
        p.z = static_cast<std::int32_t>(u(2, 0, 0.8) * 8192);
        p.slot = i % 17 == 0 ? TilePoint::kNoSlot : 1 + static_cast<std::uint32_t>(u(3, 0, 12));
        p.sensor_dx = static_cast<std::int16_t>(u(4, -200, 200));
        p.sensor_dy = static_cast<std::int16_t>(u(5, -640, -64));
        p.sensor_dz = i % 5 == 0 ? std::int16_t{0} : static_cast<std::int16_t>(u(6, -20, 60));
        points.push_back(p);
    }
    std::sort(points.begin(), points.end());
    return points;
}

std::vector<Ray> rays_of(const std::vector<TilePoint>& points) {
    std::vector<Ray> rays;
    for (const TilePoint& p : points)
        if (is_witness(p, {0, 0})) rays.push_back(ray_of(p));
    return rays;
}

/// The points of a city as its latest generation has them.
struct OpenCity {
    explicit OpenCity(const std::filesystem::path& city)
        : store(CityPaths(city)), points(store, sources(city)), carved(points, cancel) {}
    static std::vector<CitySource> sources(const std::filesystem::path& city) {
        Catalog catalog = Catalog::open_to_read(CityPaths(city).catalog());
        return sources_of(catalog, catalog.inputs(catalog.latest()->id));
    }
    ObjectStore store;
    CancelToken cancel;
    CityPoints points;
    CarvedPoints carved;
};

std::set<LatticePoint> places(const Region& region) {
    std::set<LatticePoint> all;
    const LatticePoint o = region.frame.origin();
    for (const TilePoint& p : region.points) all.insert({o.x + p.x, o.y + p.y, o.z + p.z});
    return all;
}

std::size_t passing(const Region& region) {
    return static_cast<std::size_t>(std::count_if(region.points.begin(), region.points.end(),
                                                  [](const TilePoint& p) { return p.label == kPassing; }));
}

/// Takes the rays out of an archive, in place: its segments are then as those of version 3 were.
void remove_rays(const std::filesystem::path& path, const std::vector<SegmentRow>& segments) {
    struct Entry {
        std::uint32_t cell, points, bytes, passed;
        std::uint64_t checksum;
    };
    constexpr std::size_t kHeader = 16;
    constexpr std::uint32_t kLayoutOf3 = 1, kRays = 256;
    std::vector<std::byte> file = read_file(path);
    for (const SegmentRow& segment : segments) {
        std::byte* const at = file.data() + segment.offset;
        std::uint32_t spans;
        std::memcpy(&spans, at, sizeof spans);
        std::vector<Entry> table(spans);
        std::memcpy(table.data(), at + kHeader, spans * sizeof(Entry));
        std::byte* const cells = at + kHeader + spans * sizeof(Entry);
        REQUIRE(std::erase_if(table, [](const Entry& e) { return e.cell == kRays; }) > 0);
        spans = static_cast<std::uint32_t>(table.size());
        const std::uint64_t checksum = checksum_bytes(std::as_bytes(std::span(table)));
        std::memcpy(at, &spans, sizeof spans);
        std::memcpy(at + 4, &kLayoutOf3, sizeof kLayoutOf3);
        std::memcpy(at + 8, &checksum, sizeof checksum);
        std::memcpy(at + kHeader, table.data(), spans * sizeof(Entry));
        std::memmove(at + kHeader + spans * sizeof(Entry), cells,
                     static_cast<std::size_t>(at + segment.bytes - cells));
    }
    FileWriter out(path);
    out.write(file);
    out.finish();
}

}  // namespace

TEST_CASE("rays of any numbers are read as they were written") {
    constexpr auto kLow = std::numeric_limits<std::int32_t>::min(),
                   kHigh = std::numeric_limits<std::int32_t>::max();
    std::vector<Ray> rays{{0, 0, kLow, 1, INT16_MIN + 1, INT16_MAX, 0},
                          {524287, 524287, kHigh, UINT32_MAX, INT16_MAX, INT16_MIN + 1, -1}};
    for (std::uint64_t i = 0; i < 3000; ++i) {
        const auto u = [i](std::uint64_t c) {
            return static_cast<std::uint32_t>(rng::key(rng::key(5, i), c));
        };
        rays.push_back({static_cast<std::int32_t>(u(0) >> 13), static_cast<std::int32_t>(u(1) >> 13),
                        static_cast<std::int32_t>(u(2)), u(3), static_cast<std::int16_t>(u(4)),
                        static_cast<std::int16_t>(u(5)), static_cast<std::int16_t>(u(6))});
    }
    std::vector<std::byte> bytes;
    encode_rays(rays, bytes);
    std::vector<Ray> read;
    REQUIRE(decode_rays(bytes, rays.size(), read));
    CHECK(read == rays);
    CHECK_FALSE(decode_rays(bytes, rays.size() - 1, read));
}

TEST_CASE("what rays saw through is what slabs and counts say, voxel by voxel") {
    std::size_t dynamic = 0, all = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const std::vector<TilePoint> points = random_scene(seed, 2500);
        const LatticeBox box{-to_lattice(20), -to_lattice(20), to_lattice(20), to_lattice(20)};
        const Region region{.frame = {0, 0, 0}, .core = box, .covered = box, .points = points};
        const CancelToken never;
        FreeSpace space(region, never);
        space.add_rays({0, 0}, rays_of(points));
        const std::vector<bool> found = space.find_dynamic();
        CHECK(found == brute_force(points));
        dynamic += static_cast<std::size_t>(std::count(found.begin(), found.end(), true));
        all += found.size();
    }
    CHECK(dynamic > 50);
    CHECK(dynamic < all / 10);
}

TEST_CASE("things that stood there for a moment are left out, the wall behind them stays") {
    Drive d(carving_maker());
    d.put("a.cloud", d.maker.street(1, 1000, 2000, 60));
    const BuildReport built = d.build();
    const OpenCity city(d.city);
    const LatticeBox all = city.points.bounds();
    const Region before = city.points.read(all, 0), after = city.carved.read(all, 0);
    CHECK(passing(before) > 300);
    CHECK(passing(after) < passing(before) / 2);
    CHECK(before.points.size() - after.points.size() == passing(before) - passing(after));
    CHECK(after.removed == before.points.size() - after.points.size());
    CHECK(built.removed == after.removed);
    CHECK(city.carved.removed(all).points.size() == after.removed);

    BuildOptions kept = d.options();
    kept.carve = false;
    CHECK(d.maker.build(d.city, kept).removed == 0);
    CHECK(d.maker.build(d.city, d.options()).digest == built.digest);
}

TEST_CASE("a region is without the same points wherever it ends") {
    Drive d(carving_maker());
    d.put("a.cloud", d.maker.street(3, 1000, 2000, 50));
    d.put("b.cloud", d.maker.street(4, 1030, 2000, 40));
    static_cast<void>(d.build());
    const OpenCity city(d.city);
    const std::set<LatticePoint> all = places(city.carved.read(city.points.bounds(), 0));
    for (std::uint64_t i = 0; i < 30; ++i) {
        const auto u = [i](std::uint64_t c, double low, double high) {
            return to_lattice(rng::uniform(rng::key(9, i), c, low, high));
        };
        const std::int64_t x = u(0, 1000, 1070), y = u(1, 2022, 2036);
        const LatticeBox box{x, y, x + u(2, 0.1, 15), y + u(3, 0.1, 10)};
        std::set<LatticePoint> expected;
        for (const LatticePoint& p : all)
            if (box.contains(p.x, p.y)) expected.insert(p);
        REQUIRE(places(city.carved.read(box, 0)) == expected);
    }
}

TEST_CASE("archives of version 3 have their rays among their points") {
    Drive d(carving_maker());
    d.put("a.cloud", d.maker.street(5, 1000, 2000, 50));
    d.put("b.cloud", d.maker.street(6, 1020, 2000, 40));
    static_cast<void>(d.build());
    std::vector<TilePoint> expected;
    {
        const OpenCity city(d.city);
        const Region carved = city.carved.read(city.points.bounds(), 0);
        REQUIRE(carved.removed > 100);
        expected = carved.points;
        for (const CitySource& source : city.points.sources())
            remove_rays(city.store.paths().object(source.row.object), source.segments);
    }
    const OpenCity city(d.city);
    CHECK(city.carved.read(city.points.bounds(), 0).points == expected);
}

TEST_CASE("damaged rays of an archive are named and never taken for others") {
    Drive d(carving_maker());
    d.put("a.cloud", d.maker.street(7, 1000, 2000, 12));
    static_cast<void>(d.build());
    const auto all_rays = [&d] {
        const OpenCity city(d.city);
        std::vector<Ray> all;
        city.points.visit_rays(city.points.bounds(), [&](const Sector&, std::span<const Ray> rays) {
            all.insert(all.end(), rays.begin(), rays.end());
        });
        return all;
    };
    const std::vector<Ray> good = all_rays();
    REQUIRE(good.size() > 100);
    const CitySource source = OpenCity::sources(d.city).front();
    const auto path = CityPaths(d.city).object(source.row.object);
    const std::vector<std::byte> whole = read_file(path);
    std::size_t named = 0, tried = 0;
    for (const SegmentRow& segment : source.segments) {
        const SegmentTable table = read_table(File(path, File::Mode::read), segment, "test");
        REQUIRE(table.has_rays);
        for (const RaySpan& span : table.rays)
            for (std::uint64_t at = span.offset; at < span.offset + span.bytes; at += 97, ++tried) {
                auto bad = whole;
                bad[at] ^= std::byte{8};
                FileWriter out(path);
                out.write(bad);
                out.finish();
                try {
                    if (all_rays() != good) FAIL("byte " << at << " gave other rays");
                } catch (const CorruptionError&) {
                    ++named;
                }
            }
    }
    CHECK(tried > 20);
    CHECK(named > tried * 9 / 10);
}

TEST_CASE("what stands while the sensor stands and drives off later is left out") {
    // A wall at x = 10 m, seen for 60 s by a sensor that does not move. Something is in front of it for the
    // first 40 s.
    std::vector<TilePoint> points;
    const auto see = [&points](double time_s, double x, double y, double z) {
        const auto offset = [](double m) { return static_cast<std::int16_t>(std::lround(m * 64)); };
        points.push_back({static_cast<std::int32_t>(to_lattice(x)), static_cast<std::int32_t>(to_lattice(y)),
                          static_cast<std::int32_t>(to_lattice(z)), 0, 0, 0, offset(-x), offset(-y),
                          offset(2 - z), time_slot(time_s)});
    };
    for (int i = 0; i < 60'000; ++i) {
        const double time = i * 0.001, y = rng::uniform(1, static_cast<std::uint64_t>(i), -1, 1);
        const double z = 2 + rng::uniform(2, static_cast<std::uint64_t>(i), -0.5, 0.5);
        if (time < 30 && std::abs(y) < 0.4)
            see(time, 3, y * 0.3, 2 + (z - 2) * 0.3);
        else
            see(time, 10, y, z);
    }
    std::sort(points.begin(), points.end());
    const LatticeBox box{0, -to_lattice(20), to_lattice(20), to_lattice(20)};
    const Region region{.frame = {0, 0, 0}, .core = box, .covered = box, .points = points};
    const CancelToken never;
    FreeSpace space(region, never);
    space.add_rays({0, 0}, rays_of(points));
    const std::vector<bool> dynamic = space.find_dynamic();
    std::size_t things = 0, left = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const bool thing = points[i].x < to_lattice(5);
        things += thing;
        left += thing && !dynamic[i];
        if (!thing) REQUIRE_FALSE(dynamic[i]);
    }
    CHECK(things > 10'000);
    CHECK(left < things / 50);
}
