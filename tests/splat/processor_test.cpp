#include "memory_city.hpp"
#include "model/class_map.hpp"
#include "splat/search/plane_fit.hpp"
#include "splat/splat_processor.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>

using namespace citysplat;
using namespace citysplat::splat;
using test::MemoryCity;
using test::WorldPoint;

namespace {

SplatTile build_whole(const std::vector<WorldPoint>& points, SplatParams params = {},
                      std::string_view classes = "synthetic") {
    const MemoryCity city(points);
    SplatProcessor processor(params, ClassMap::load(classes));
    Progress quiet;
    processor.set_calibration(processor.calibrate(city, CancelToken(), quiet));
    const LatticeBox b = city.bounds();
    std::int64_t halo = processor.initial_halo_steps();
    for (;;) {
        tiling::TileOutput out = processor.process(city.read(b, halo), CancelToken());
        if (out.certified()) return std::move(out.splats);
        REQUIRE(out.wanted_halo_steps > halo);
        halo = out.wanted_halo_steps;
    }
}

WorldPoint at(std::int64_t x, std::int64_t y, std::int64_t z) {
    WorldPoint p;
    p.place = {x, y, z};
    p.label = 1;
    return p;
}

void require_sane(const SplatTile& tile) {
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Disc d = tile.disc(i);
        REQUIRE(std::isfinite(d.centre.x + d.centre.y + d.centre.z + d.radius));
        REQUIRE(d.radius > 0);
        REQUIRE(std::abs(length(d.normal) - 1) < 1e-5f);
    }
}

}  // namespace

TEST_CASE("degenerate clouds give a defined model without a NaN") {
    for (const Method method : kMethods) {
        const SplatParams params = SplatParams::of(method);
        INFO(to_string(method));
        CHECK(build_whole({at(5, 5, 5)}, params).empty());
        require_sane(build_whole({at(0, 0, 0), at(100, 0, 0)}, params));
        require_sane(build_whole({at(0, 0, 0), at(100, 0, 0), at(0, 100, 0)}, params));

        std::vector<WorldPoint> same;
        for (std::uint16_t i = 0; i < 3000; ++i) same.push_back(at(7, 7, 7)), same.back().intensity = i;
        CHECK(build_whole(same, params).empty());

        std::vector<WorldPoint> line, plane;
        for (std::int64_t i = 0; i < 400; ++i) line.push_back(at(60 * i, 30 * i, 15 * i));
        for (std::int64_t i = 0; i < 2500; ++i) plane.push_back(at(160 * (i % 50), 160 * (i / 50), 1000));
        require_sane(build_whole(line, params));
        const SplatTile flat = build_whole(plane, params);
        require_sane(flat);
        REQUIRE(flat.size() > 20);
        for (std::size_t i = 0; i < flat.size(); ++i) {
            REQUIRE(std::abs(flat.disc(i).normal.z) > 0.9999f);
            REQUIRE(flat.splat(i).z + flat.frame().z_m * kLatticePerMetre == 1000);
        }
    }
}

namespace {

/// Random places in a cube of one centimetre.
std::vector<WorldPoint> crowd_of(std::uint64_t n) {
    std::vector<WorldPoint> crowd;
    for (std::uint64_t i = 0; i < n; ++i)
        crowd.push_back(at(static_cast<std::int64_t>(rng::bits(1, i) % 82),
                           static_cast<std::int64_t>(rng::bits(2, i) % 82),
                           static_cast<std::int64_t>(rng::bits(3, i) % 82)));
    return crowd;
}

}  // namespace

TEST_CASE("a crowd of points in a centimetre becomes sane splats, fewer than points") {
    const SplatTile tile = build_whole(crowd_of(60'000));
    require_sane(tile);
    CHECK(tile.size() > 1000);
    CHECK(tile.size() < 60'000 / 3);
}

TEST_CASE("a million points in a centimetre are built by every method", "[slow]") {
    const auto crowd = crowd_of(1'000'000);
    for (const Method method : kMethods) {
        SplatParams params;
        params.method = method;
        INFO(to_string(method));
        require_sane(build_whole(crowd, params));
    }
}

TEST_CASE("stages book the time that tiles take") {
    const MemoryCity city(test::small_street(5, 150, 5));
    SplatProcessor processor(SplatParams{}, ClassMap::load("synthetic"));
    Progress quiet;
    processor.set_calibration(processor.calibrate(city, CancelToken(), quiet));
    CHECK(processor.times().total_seconds() == 0);
    CHECK(processor.times().search_share() == 0);
    processor.process(city.read(city.bounds(), processor.initial_halo_steps()), CancelToken());
    CHECK(processor.times().seconds(Stage::plane_search) > 0);
    CHECK(processor.times().seconds(Stage::growth) > 0);
    CHECK(processor.times().search_share() > 0);
    CHECK(processor.times().search_share() < 1);
}

TEST_CASE("normals point to the sensor, labels and intensities are those of the points") {
    const auto points = test::small_street(8, 400, 11);
    const SplatTile tile = build_whole(points);
    require_sane(tile);
    std::map<std::uint16_t, int> labels;
    int away = 0;
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Splat s = tile.splat(i);
        const Disc d = tile.disc(i);
        ++labels[s.label];
        REQUIRE(s.intensity >= 1000 * s.label);
        REQUIRE(s.intensity <= 1000 * s.label + 200);
        REQUIRE(s.range != kUnknownByte);
        // The drive passes along x at y = 0, 2 m up: the sensor is somewhere on that line near the splat.
        const double z = to_metres(s.z) + static_cast<double>(tile.frame().z_m);
        const double y = to_metres(s.y) + static_cast<double>(tile.frame().y_m);
        const bool surface = s.label == 7 || s.label == 8 || s.label == 1;
        if (surface && s.radius > 400) away += d.normal.y * (0 - y) + d.normal.z * (2 - z) < -0.3;
    }
    CHECK(away * 1000 <= static_cast<int>(tile.size()));
    CHECK(labels.count(20) == 0);  // moving vehicles are dynamic
    for (const int label : {1, 5, 7, 8, 9}) CHECK(labels[static_cast<std::uint16_t>(label)] > 0);
}

TEST_CASE("splats lie on the surface within the noise") {
    const SplatTile tile = build_whole(test::small_street(8, 600, 3, 0.01));
    double sum = 0;
    int n = 0;
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Splat s = tile.splat(i);
        if (s.label != 7) continue;
        const double y = to_metres(s.y) + static_cast<double>(tile.frame().y_m);
        const double z = to_metres(s.z) + static_cast<double>(tile.frame().z_m);
        sum += std::abs(z + 0.01 * y * y), ++n;
    }
    REQUIRE(n > 100);
    CHECK(sum / n < 0.006);
}

TEST_CASE("nothing outside core and halo can change a certified tile") {
    auto points = test::small_street(8, 300, 5);
    for (const bool resample : {false, true}) {
        SplatParams params;
        params.resample = resample;
        const MemoryCity city(points);
        SplatProcessor processor(params, ClassMap::load("synthetic"));
        Progress quiet;
        processor.set_calibration(processor.calibrate(city, CancelToken(), quiet));
        const LatticeBox core{to_lattice(3), to_lattice(-1), to_lattice(4), to_lattice(1)};
        std::int64_t halo = processor.initial_halo_steps() / 3;
        tiling::TileOutput honest = processor.process(city.read(core, halo), CancelToken());
        while (!honest.certified()) {
            halo = honest.wanted_halo_steps;
            honest = processor.process(city.read(core, halo), CancelToken());
        }
        std::vector<WorldPoint> garbage;
        const LatticeBox covered = core.widened(halo);
        for (const WorldPoint& p : points)
            if (covered.contains(p.place.x, p.place.y)) garbage.push_back(p);
        const std::size_t kept = garbage.size();
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            WorldPoint p =
                at(to_lattice(rng::uniform(7, 3 * i, -2, 10)), to_lattice(rng::uniform(7, 3 * i + 1, -5, 7)),
                   to_lattice(rng::uniform(7, 3 * i + 2, -0.2, 0.2)));
            p.label = 7;
            if (!covered.contains(p.place.x, p.place.y)) garbage.push_back(p);
        }
        REQUIRE((garbage.size() > kept || halo > to_lattice(6)));
        // Read with a wider halo: the garbage is there, and the core must not care.
        const tiling::TileOutput disturbed =
            processor.process(MemoryCity(garbage).read(core, halo + to_lattice(4)), CancelToken());
        REQUIRE(disturbed.certified());
        CHECK(disturbed.splats.digest() == honest.splats.digest());
        CHECK(disturbed.splats.size() == honest.splats.size());
    }
}

TEST_CASE("a key changes with every parameter, the class map and the calibration") {
    std::vector<Hash128> keys;
    const auto add = [&](const SplatParams& params, const char* classes, double radius_m) {
        SplatProcessor processor(params, ClassMap::load(classes));
        processor.set_calibration({radius_m, 0.01, 20, 1});
        keys.push_back(processor.parameters_key());
    };
    SplatParams params;
    add(params, "synthetic", 0.1);
    add(params, "synthetic", 0.2);
    params.suppression = 0.3;
    add(params, "synthetic", 0.1);
    params.error_factor[2] = 0.33;
    add(params, "synthetic", 0.1);
    params.disc_fill[0] = 0;
    add(params, "synthetic", 0.1);
    params.lateral_noise[3] = 0;
    add(params, "synthetic", 0.1);
    params.sparse_points[1] = 0;
    add(params, "synthetic", 0.1);
    params.resample_group[2] = true;
    add(params, "synthetic", 0.1);
    params.method = Method::descriptors;
    add(params, "synthetic", 0.1);
    std::sort(keys.begin(), keys.end());
    CHECK(std::unique(keys.begin(), keys.end()) == keys.end());
    params.neighbours = 1;
    CHECK_THROWS_WITH(SplatProcessor(params, ClassMap()), Catch::Contains("neighbours"));
}
