#include "memory_city.hpp"
#include "model/class_map.hpp"
#include "splat/splat_processor.hpp"
#include "tiling/city_checks.hpp"
#include "tiling/edit_sequence.hpp"
#include "tiling/store/city_reader.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace citysplat;
using namespace citysplat::splat;

/// The promises of the tiling, kept with real splats: whole cities on disk, made by the builder.
namespace {

test::CityMaker splat_maker(Method method, double points_per_m2, bool resample = true) {
    SplatParams params = SplatParams::of(method);
    params.resample = resample;
    return {
        [params] { return std::make_unique<SplatProcessor>(params, ClassMap::load("synthetic")); },
        [points_per_m2](std::uint64_t seed, double x, double y, double length) {
            const LatticePoint origin{to_lattice(x), to_lattice(y + 20), 0};
            std::vector<test::CloudPoint> points;
            for (const test::WorldPoint& p : test::small_street(length, points_per_m2, seed, 0.01, origin))
                points.push_back({.x = to_metres(p.place.x),
                                  .y = to_metres(p.place.y),
                                  .z = to_metres(p.place.z),
                                  .gps_time = 0.1 * to_metres(p.place.x),
                                  .label = p.label,
                                  .intensity = p.intensity});
            return points;
        },
        16, true};
}

}  // namespace

TEST_CASE("the splats of a city depend on nothing but its points") {
    test::check_independence(splat_maker(Method::adaptive, 12), {25, 64});
}

TEST_CASE("the splats of a city depend on nothing but its points, with every method", "[slow]") {
    for (const Method method : kMethods)
        for (const bool resample : {true, false}) {
            INFO(to_string(method) << (resample ? ", resampled" : ""));
            test::check_independence(splat_maker(method, 60, resample));
        }
}

TEST_CASE("a splat city after random edits equals a clean build") {
    test::check_edits(splat_maker(Method::adaptive, 10), 21, 5);
}

TEST_CASE("fifty random edit sequences of a splat city give clean cities", "[slow]") {
    for (std::uint64_t seed = 200; seed < 250; ++seed)
        test::check_edits(splat_maker(kMethods[seed % kMethods.size()], 10), seed, 8);
}

TEST_CASE("after edits, tile sizes, budgets, shards and care mixed a splat city equals a clean build") {
    test::check_sequence(splat_maker(Method::adaptive, 10), 31, 5);
}

TEST_CASE("twenty random sequences of edits, tile sizes, budgets, shards and care give clean splat cities",
          "[slow]") {
    for (std::uint64_t seed = 300; seed < 320; ++seed)
        test::check_sequence(splat_maker(kMethods[seed % kMethods.size()], 10), 10 * seed, 8);
}

TEST_CASE("garbage beyond core and halo changes no splat of a tile") {
    for (const Method method : kMethods) {
        INFO(to_string(method));
        test::check_non_interference(splat_maker(method, 30));
    }
}

namespace {

/// Splats of a street that begins at (x, y), made with these means, and how far those of the road are from
/// it.
struct Made {
    tiling::Calibration means;
    std::uint64_t splats = 0;
    double road_rms_m = 0;
};
Made make_at(double x, double y, double length, const std::optional<tiling::Calibration>& means = {}) {
    test::CityMaker maker = splat_maker(Method::adaptive, 100);
    maker.trajectory = false;  // it does not come along
    test::Drive d(maker);
    d.put("a.cloud", maker.street(1, x, y, length));
    const tiling::BuildReport report = maker.build(d.city, d.options(), means);
    Made made{report.calibration, report.splats, 0};
    const tiling::CityReader city(d.city);
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) {
        const SplatTile tile = city.load(i);
        const double y0 = static_cast<double>(tile.frame().y_m) - (y + 20),
                     z0 = static_cast<double>(tile.frame().z_m);
        for (std::size_t k = 0; k < tile.size(); ++k) {
            if (tile.label()[k] != 7) continue;
            const Vec3d c = vec_cast<double>(tile.disc(k).centre);
            const double error = z0 + c.z + 0.01 * (y0 + c.y) * (y0 + c.y);
            sum += error * error;
            ++count;
        }
    }
    made.road_rms_m = std::sqrt(sum / count);
    return made;
}

}  // namespace

TEST_CASE("far from the origin a city is as good as near it", "[slow]") {
    // Which points become splats is settled by hashes of their places, so any two places differ a little: by
    // 0.2 % of the splats, the means of eight by 0.1 %.
    const Made first = make_at(0, 0, 150);
    double splats[2] = {}, rms_m[2] = {};
    for (int far = 0; far < 2; ++far)
        for (int k = 0; k < 8; ++k) {
            const Made made = make_at(far * 651'000 + 1000 * k, far * 6'861'000 + 700 * k, 150, first.means);
            splats[far] += static_cast<double>(made.splats) / 8;
            rms_m[far] += made.road_rms_m / 8;
        }
    CHECK(splats[0] > 20'000);
    CHECK(splats[1] == Approx(splats[0]).epsilon(0.004));
    CHECK(rms_m[0] < 0.01);
    CHECK(rms_m[1] == Approx(rms_m[0]).epsilon(0.04));
}
