#include "memory_city.hpp"
#include "model/class_map.hpp"
#include "splat/splat_processor.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <initializer_list>

using namespace citysplat;
using namespace citysplat::splat;
using test::MemoryCity;

namespace {

struct Built {
    Hash128 digest;
    std::size_t splats = 0, widened = 0;
    friend bool operator==(const Built& a, const Built& b) {
        return a.digest == b.digest && a.splats == b.splats;
    }
};

/// Builds every tile of the city, widening halos as asked. They begin at this share of the usual halo.
Built build(const MemoryCity& city, const SplatProcessor& processor, double tile_m, double halo_share = 1) {
    const TileGrid grid(tile_m);
    const LatticeBox b = city.bounds();
    const CancelToken cancel;
    Built built;
    const auto first = grid.base_tile_of(b.min_x, b.min_y), last = grid.base_tile_of(b.max_x, b.max_y);
    for (std::int32_t iy = first.iy; iy <= last.iy; ++iy)
        for (std::int32_t ix = first.ix; ix <= last.ix; ++ix) {
            const LatticeBox core = grid.core({0, ix, iy});
            auto halo =
                static_cast<std::int64_t>(halo_share * static_cast<double>(processor.initial_halo_steps()));
            tiling::TileOutput out = processor.process(city.read(core, halo), cancel);
            for (; !out.certified(); ++built.widened) {
                REQUIRE(out.wanted_halo_steps > halo);
                halo = out.wanted_halo_steps;
                out = processor.process(city.read(core, halo), cancel);
            }
            built.digest += out.splats.digest();
            built.splats += out.splats.size();
        }
    return built;
}

SplatProcessor calibrated(const SplatParams& params, const MemoryCity& city) {
    SplatProcessor processor(params, ClassMap::load("synthetic"));
    Progress quiet;
    tiling::Calibration means = processor.calibrate(city, CancelToken(), quiet);
    means.angular_step_rad = 0.02;
    processor.set_calibration(means);
    return processor;
}

void check_tile_sizes(const MemoryCity& city, std::initializer_list<double> tile_sizes_m) {
    for (const Method method : kMethods)
        for (const bool resample : {false, true}) {
            const bool once = method == Method::basic || method == Method::surfels;
            if (once && resample) continue;
            SplatParams params = SplatParams::of(method);
            params.resample = resample;
            INFO(to_string(method) << (resample ? ", resampled" : ""));
            const SplatProcessor processor = calibrated(params, city);
            const Built whole = build(city, processor, 512);
            CHECK(whole.splats > 500);
            for (const double tile_m : tile_sizes_m) {
                INFO("tiles of " << tile_m << " m");
                CHECK(build(city, processor, tile_m) == whole);
                const Built scarce = build(city, processor, tile_m, 0.1);
                CHECK(scarce == whole);
                CHECK(scarce.widened > 0);
            }
        }
}

const LatticePoint kFarNorth{to_lattice(-3.3), to_lattice(6'860'000.7), 77};

}  // namespace

TEST_CASE("the splats of a street do not depend on the size of its tiles") {
    check_tile_sizes(MemoryCity(test::small_street(5, 150, 5, 0.01, kFarNorth)), {6.0});
}

TEST_CASE("the splats of a longer street do not depend on the size of its tiles", "[slow]") {
    check_tile_sizes(MemoryCity(test::small_street(20, 300, 6, 0.01, kFarNorth)), {5.0, 8.0, 13.0, 31.0});
}

TEST_CASE("calibration and splats do not depend on the order of points") {
    auto points = test::small_street(4, 150, 9);
    SplatParams params;
    const MemoryCity city(points);
    const SplatProcessor processor = calibrated(params, city);
    std::reverse(points.begin(), points.end());
    const MemoryCity reversed(points);
    const SplatProcessor again = calibrated(params, reversed);
    CHECK(again.calibration() == processor.calibration());
    CHECK(again.parameters_key() == processor.parameters_key());
    CHECK(build(reversed, again, 7) == build(city, processor, 7));
}
