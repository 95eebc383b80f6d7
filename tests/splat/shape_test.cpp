#include "seen_discs.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace citysplat;
using namespace citysplat::splat;
using test::discs_of;
using test::seen_from;
using test::WorldDisc;
using test::WorldPoint;

/// What the discs of edges, bars and lone returns look like.
namespace {

constexpr std::uint16_t kBuilding = 1, kFence = 2, kPole = 5;

/// A normal deviate in metres, along y: the direction the sensor of these tests looks in.
double noise(std::uint64_t i) {
    double sum = -6;
    for (std::uint64_t k = 0; k < 12; ++k) sum += rng::uniform(99, 12 * i + k);
    return 0.012 * sum;
}

/// A wall in the plane y = 0 that ends at x = 0, seen from 10 m.
std::vector<WorldPoint> half_a_wall() {
    std::vector<WorldPoint> wall;
    for (std::uint64_t i = 0; i < 4000; ++i)
        wall.push_back(seen_from({rng::uniform(1, i, -1, 0), noise(i), rng::uniform(2, i, 0, 1)},
                                 {0, -10, 0.5}, kBuilding));
    return wall;
}

/// A plinth: a wall that steps back by 6 cm at z = 0, with the top of the step between.
std::vector<WorldPoint> plinth() {
    std::vector<WorldPoint> points;
    const Vec3d sensor{0, -8, 1.5};
    for (std::uint64_t i = 0; i < 6000; ++i) {
        const double x = rng::uniform(5, i, -4, 4), u = rng::uniform(6, i, 0, 0.5);
        const Vec3d place = i % 12 == 0  ? Vec3d{x, 0.12 * u, 0}
                            : i % 2 == 0 ? Vec3d{x, 0, -u}
                                         : Vec3d{x, 0.06, u};
        points.push_back(seen_from(place + normalized(place - sensor) * noise(i), sensor, kBuilding));
    }
    return points;
}

/// Share of the points whose ray from the sensor meets no disc within 5 cm of them.
double share_bare(const std::vector<WorldPoint>& points, const std::vector<WorldDisc>& discs) {
    int bare = 0;
    for (const WorldPoint& p : points) {
        const Vec3d place{to_metres(p.place.x), to_metres(p.place.y), to_metres(p.place.z)};
        const Vec3d ray = normalized(Vec3d{-1.0 * p.sensor_dx, -1.0 * p.sensor_dy, -1.0 * p.sensor_dz});
        bare += std::none_of(discs.begin(), discs.end(), [&](const WorldDisc& d) {
            const double t = dot(d.centre - place, d.normal) / dot(ray, d.normal);
            const Vec3d off = place + ray * t - d.centre;
            return std::fabs(t) < 0.05 && dot(off, off) <= 1.01 * d.radius * d.radius;
        });
    }
    return bare / static_cast<double>(points.size());
}

/// How far the discs reach over the edge: the farthest but for one in fifty.
double beyond_edge_m(const std::vector<WorldDisc>& discs) {
    std::vector<double> beyond;
    for (const WorldDisc& d : discs)
        if (d.centre.x > -0.2)
            beyond.push_back(d.centre.x + d.radius * std::sqrt(1 - d.normal.x * d.normal.x));
    REQUIRE(beyond.size() > 10);
    std::sort(beyond.begin(), beyond.end());
    return beyond[beyond.size() * 49 / 50];
}

/// Share of a grid of rays along y, from z0 to z1 at x, that meet a disc.
double share_met(const std::vector<WorldDisc>& discs, double x, double z0, double z1) {
    int met = 0;
    constexpr int kRays = 200;
    for (int k = 0; k < kRays; ++k) {
        const double z = z0 + (z1 - z0) * (k + 0.5) / kRays;
        bool found = false;
        for (const WorldDisc& d : discs) {
            if (std::fabs(d.normal.y) < 1e-6) continue;
            const double y =
                d.centre.y - (d.normal.x * (x - d.centre.x) + d.normal.z * (z - d.centre.z)) / d.normal.y;
            const Vec3d off = Vec3d{x, y, z} - d.centre;
            found = found || (std::fabs(y) < 0.05 && dot(off, off) < d.radius * d.radius);
        }
        met += found;
    }
    return static_cast<double>(met) / kRays;
}

}  // namespace

TEST_CASE("discs end where a wall ends, and reach there") {
    for (const bool resample : {false, true}) {
        INFO((resample ? "resampled" : "one generation"));
        SplatParams ours = SplatParams::of(Method::adaptive), paper = SplatParams::paper(Method::adaptive);
        ours.resample = paper.resample = resample;
        paper.error_factor = ours.error_factor;
        const auto discs = discs_of(half_a_wall(), ours);
        CHECK(beyond_edge_m(discs) < 0.03);
        CHECK(beyond_edge_m(discs_of(half_a_wall(), paper)) > 0.06);
        CHECK(share_met(discs, -0.5, 0.1, 0.9) > 0.98);
        CHECK(share_met(discs, -0.01, 0.1, 0.9) > 0.9);
        CHECK(share_met(discs, 0.04, 0.1, 0.9) < 0.1);
    }
}

TEST_CASE("a bar thinner than the noise is a ribbon of discs that face the sensor") {
    for (const std::uint16_t label : {kFence, kPole}) {
        std::vector<WorldPoint> bar;
        for (std::uint64_t i = 0; i < 300; ++i)
            bar.push_back(seen_from({rng::uniform(3, i, -0.008, 0.008), noise(i), rng::uniform(4, i, 0, 1)},
                                    {0, -8, 0.5}, label));
        const auto discs = discs_of(bar, SplatParams::of(Method::adaptive));
        double facing = 0;
        for (const WorldDisc& d : discs) facing += -d.normal.y / static_cast<double>(discs.size());
        CHECK(facing > 0.85);
        CHECK(share_met(discs, 0, 0.05, 0.95) > 0.98);
        CHECK(share_met(discs, 0.05, 0.05, 0.95) == 0);
    }
}

TEST_CASE("a lone return is a splat of a pole but not of a wall") {
    const auto discs_of_one = [](std::uint16_t label) {
        return discs_of({seen_from({0, 0, 0}, {0, -10, 0}, label)}, SplatParams::of(Method::adaptive));
    };
    CHECK(discs_of_one(kBuilding).empty());
    const auto discs = discs_of_one(kPole);
    REQUIRE(discs.size() == 1);
    CHECK(discs[0].normal.y < -0.999);
    CHECK(discs[0].radius == Approx(SplatParams().least_radius_m).margin(1e-4));
}

TEST_CASE("what starts no splat of its own is covered by one") {
    SplatParams params = SplatParams::of(Method::adaptive);
    params.resample = false;
    // Outliers and points that too few others go with may stay bare.
    CHECK(share_bare(half_a_wall(), discs_of(half_a_wall(), params)) < 0.005);
}

TEST_CASE("a wall that steps back is closed up to the step") {
    SplatParams ours = SplatParams::of(Method::adaptive), without = ours;
    ours.resample = without.resample = false;
    without.crease_points = 0;
    const double bare_without = share_bare(plinth(), discs_of(plinth(), without));
    CHECK(bare_without > 0.003);
    CHECK(share_bare(plinth(), discs_of(plinth(), ours)) < 0.25 * bare_without);
}
