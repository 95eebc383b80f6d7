#include "seen_discs.hpp"

#include <algorithm>
#include <cmath>

using namespace citysplat;
using namespace citysplat::splat;
using test::discs_of;
using test::kUsualMeans;
using test::seen_from;
using test::WorldDisc;
using test::WorldPoint;

/// What far surfaces look like, of which a scanner leaves a few lines of points.
namespace {

constexpr std::uint16_t kRoad = 7;
constexpr double kStep_rad = 0.0033;
constexpr Vec3d kSensor{0, 0, 1.8};

/// Rings on a level road, 18 m ahead of a sensor that turns: 6 cm between points, 35 cm between rings.
std::vector<WorldPoint> road_ahead() {
    std::vector<WorldPoint> points;
    for (int ring = 0; ring < 8; ++ring)
        for (int i = -40; i <= 40; ++i) {
            const auto n = static_cast<std::uint64_t>(100 * ring + i + 40);
            const Vec3d place{18 * kStep_rad * i, 18 + 0.35 * ring, rng::uniform(7, n, -0.008, 0.008)};
            points.push_back(seen_from(place, kSensor, kRoad));
        }
    return points;
}

tiling::Calibration with_step(double step_rad) {
    tiling::Calibration means = kUsualMeans;
    means.angular_step_rad = step_rad;
    return means;
}

/// Share of the discs that lie level.
double share_level(const std::vector<WorldDisc>& discs) {
    REQUIRE(discs.size() > 20);
    const auto level = std::ranges::count_if(discs, [](const WorldDisc& d) { return d.normal.z > 0.98; });
    return static_cast<double>(level) / static_cast<double>(discs.size());
}

}  // namespace

TEST_CASE("scan lines on a far road make level discs, which they alone do not tell") {
    SplatParams params = SplatParams::of(Method::descriptors);
    params.resample = false;
    SplatParams narrow = params;
    narrow.sparse_reach_m = 0;
    CHECK(share_level(discs_of(road_ahead(), params)) > 0.95);
    CHECK(share_level(discs_of(road_ahead(), narrow)) < 0.2);
}

TEST_CASE("what no wider ball calls flat keeps the normal of its line") {
    // Wires one above the other: each 45 cm from the next, but not behind one another in one plane.
    std::vector<WorldPoint> wires;
    for (int wire = 0; wire < 6; ++wire)
        for (int i = -40; i <= 40; ++i)
            wires.push_back(seen_from({0.05 * i, 18 + 0.3 * (wire % 2), 4 + 0.2 * wire}, kSensor, kRoad));
    const SplatParams params = SplatParams::of(Method::descriptors);
    SplatParams narrow = params;
    narrow.sparse_reach_m = 0;
    const auto discs = discs_of(wires, params), lines = discs_of(wires, narrow);
    REQUIRE(discs.size() == lines.size());
    for (std::size_t i = 0; i < discs.size(); ++i) CHECK(dot(discs[i].normal, lines[i].normal) > 0.9999);
}

TEST_CASE("a disc is not smaller than its return stands for, and is else the same disc") {
    for (const Method method : {Method::descriptors, Method::adaptive})
        for (const bool resample : {false, true}) {
            INFO(to_string(method) << (resample ? ", resampled" : ""));
            SplatParams params = SplatParams::of(method);
            params.resample = resample;
            params.range_radius = 2, params.range_radius_limit_m = 0.4, params.range_radius_spacing = 10;
            const auto fitted = discs_of(road_ahead(), params);
            const auto wide = discs_of(road_ahead(), params, with_step(0.01));
            REQUIRE(wide.size() == fitted.size());
            std::size_t widened = 0;
            for (std::size_t i = 0; i < wide.size(); ++i) {
                REQUIRE(length(wide[i].centre - fitted[i].centre) == 0);
                REQUIRE(length(wide[i].normal - fitted[i].normal) == 0);
                // The range of the seed, which lies inside the disc.
                const double range_m = length(wide[i].centre - kSensor);
                const double least_m = std::min(0.4, 2 * 0.01 * range_m);
                CHECK(std::abs(wide[i].radius - std::max(fitted[i].radius, least_m)) < 0.006);
                widened += wide[i].radius > fitted[i].radius;
            }
            CHECK(widened > 5);
        }
}

TEST_CASE("discs of a lone scan line touch one another, those of lines beside each other need not") {
    SplatParams params = SplatParams::of(Method::descriptors);
    params.resample = false;
    // Lines on a wall 24 m away, 12 cm between points; the rule for surfaces would give discs of 4 cm.
    constexpr double kWallStep_rad = 0.005;
    const auto radii = [&](int lines, double between_m) {
        std::vector<WorldPoint> points;
        for (int line = 0; line < lines; ++line)
            for (int i = -40; i <= 40; ++i)
                points.push_back(
                    seen_from({24 * kWallStep_rad * i, 24, 2 + between_m * line}, kSensor, kRoad));
        std::vector<double> all;
        for (const WorldDisc& d : discs_of(points, params, with_step(kWallStep_rad))) all.push_back(d.radius);
        REQUIRE(all.size() > 20);
        std::sort(all.begin(), all.end());
        return all;
    };
    const std::vector<double> alone = radii(1, 0), apart = radii(4, 1.0), beside = radii(4, 0.2);
    CHECK(alone[alone.size() / 20] >= 0.0595);
    CHECK(apart[apart.size() / 20] >= 0.0595);
    params.line_range_radius = params.range_radius;
    CHECK(radii(1, 0).back() < 0.05);
    CHECK(radii(4, 0.2) == beside);
}

TEST_CASE("the radius of far returns has a limit") {
    SplatParams params = SplatParams::of(Method::descriptors);
    params.range_radius_limit_m = 0.1, params.range_radius_spacing = 10;
    const auto fitted = discs_of(road_ahead(), params);
    const auto wide = discs_of(road_ahead(), params, with_step(0.1));
    REQUIRE(wide.size() == fitted.size());
    for (std::size_t i = 0; i < wide.size(); ++i)
        CHECK(std::abs(wide[i].radius - std::max(fitted[i].radius, 0.1)) < 0.0002);
}

TEST_CASE("without a sensor position, and with the basic method, ranges change no radius") {
    auto points = road_ahead();
    const SplatParams basic = SplatParams::of(Method::basic);
    const auto same = [](const std::vector<WorldDisc>& a, const std::vector<WorldDisc>& b) {
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].radius == b[i].radius);
    };
    same(discs_of(points, basic), discs_of(points, basic, with_step(kStep_rad)));
    for (WorldPoint& p : points) p.sensor_dx = p.sensor_dy = p.sensor_dz = TilePoint::kNoSensor;
    const SplatParams ours = SplatParams::of(Method::descriptors);
    same(discs_of(points, ours), discs_of(points, ours, with_step(0.1)));
}

TEST_CASE("where scans lie on top of one another the radius follows their points") {
    std::vector<WorldPoint> points;
    for (const WorldPoint& p : road_ahead())
        for (std::int64_t scan = 0; scan < 20; ++scan) {
            points.push_back(p);
            points.back().place.y += 10 * scan;
        }
    const SplatParams params = SplatParams::of(Method::descriptors);
    SplatParams alone = params;
    alone.range_radius_spacing = 10;
    const auto mean_radius = [&](const SplatParams& with) {
        double sum = 0;
        const auto discs = discs_of(points, with, with_step(0.02));
        REQUIRE(discs.size() > 20);
        for (const WorldDisc& d : discs) sum += d.radius;
        return sum / static_cast<double>(discs.size());
    };
    CHECK(mean_radius(params) < 0.7 * mean_radius(alone));
}
