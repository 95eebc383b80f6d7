#pragma once

#include "memory_city.hpp"
#include "model/class_map.hpp"
#include "splat/splat_processor.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

namespace citysplat::test {

inline constexpr tiling::Calibration kUsualMeans{0.15, 0.01, 7, 1};

inline WorldPoint seen_from(Vec3d place_m, Vec3d sensor_m, std::uint16_t label) {
    const auto steps = [](double m) { return static_cast<std::int16_t>(std::lround(m * 64)); };
    WorldPoint p;
    p.place = {to_lattice(place_m.x), to_lattice(place_m.y), to_lattice(place_m.z)};
    p.label = label;
    p.sensor_dx = steps(sensor_m.x - place_m.x);
    p.sensor_dy = steps(sensor_m.y - place_m.y);
    p.sensor_dz = steps(sensor_m.z - place_m.z);
    return p;
}

struct WorldDisc {
    Vec3d centre, normal;
    double radius;
};

/// All splats of a cloud.
inline std::vector<WorldDisc> discs_of(const std::vector<WorldPoint>& points,
                                       const splat::SplatParams& params,
                                       const tiling::Calibration& means = kUsualMeans) {
    const MemoryCity city(points);
    splat::SplatProcessor processor(params, ClassMap::load("synthetic"));
    processor.set_calibration(means);
    const auto out = processor.process(city.read(city.bounds(), to_lattice(20)), CancelToken());
    REQUIRE(out.certified());
    const TileFrame frame = out.splats.frame();
    const Vec3d origin{static_cast<double>(frame.x_m), static_cast<double>(frame.y_m),
                       static_cast<double>(frame.z_m)};
    std::vector<WorldDisc> discs;
    for (std::size_t i = 0; i < out.splats.size(); ++i) {
        const Disc d = out.splats.disc(i);
        discs.push_back(
            {origin + vec_cast<double>(d.centre), vec_cast<double>(d.normal), static_cast<double>(d.radius)});
    }
    return discs;
}

}  // namespace citysplat::test
