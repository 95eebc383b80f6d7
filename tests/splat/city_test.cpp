#include "core/class_map.hpp"
#include "memory_city.hpp"
#include "splat/splat_processor.hpp"
#include "tiling/city_checks.hpp"

#include <catch2/catch.hpp>

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

constexpr Method kMethods[] = {Method::basic, Method::adaptive, Method::descriptors};

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
        test::check_edits(splat_maker(kMethods[seed % 3], 10), seed, 8);
}

TEST_CASE("garbage beyond core and halo changes no splat of a tile") {
    for (const Method method : kMethods) {
        INFO(to_string(method));
        test::check_non_interference(splat_maker(method, 30));
    }
}
