#include "splat/calibration.hpp"

#include "memory_city.hpp"
#include "model/class_map.hpp"
#include "splat/city_sample.hpp"
#include "splat/splat_processor.hpp"
#include "tiling/city_checks.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

using namespace citysplat;
using namespace citysplat::splat;
using test::MemoryCity;
using test::WorldPoint;

namespace {

tiling::Calibration measure(const tiling::RegionReader& city, const SplatParams& params = {}) {
    Progress quiet;
    return measure_city(params, ClassMap::load("synthetic"), city, CancelToken(), quiet).means;
}

/// A street whose density falls from one end to the other and across, as that of a drive does.
std::vector<WorldPoint> uneven_street(double length_m, std::uint64_t seed) {
    std::vector<WorldPoint> points;
    for (const WorldPoint& p : test::small_street(length_m, 300, seed)) {
        const double x = to_metres(p.place.x) / length_m, y = to_metres(p.place.y);
        const double share = (1 - 0.9 * x) / (1 + 0.2 * y * y);
        if (rng::uniform(rng::key(seed, 2), points.size() + static_cast<std::uint64_t>(p.place.x)) < share)
            points.push_back(p);
    }
    return points;
}

/// What a sensor 2 m above level ground sees in these scans, one a metre: rings 1° apart, `step_rad` between
/// rays. Ranges have noise of about 1 cm.
std::vector<WorldPoint> turning_sensor(double step_rad, int scans, double metres_a_scan) {
    std::vector<WorldPoint> points;
    for (int scan = 0; scan < scans; ++scan)
        for (int ring = 4; ring < 30; ++ring)
            for (int i = 0; i * step_rad < 6.28; ++i) {
                const double down = 0.01745 * ring, turn = step_rad * i + 0.1 * scan;
                const double x = std::cos(down) * std::cos(turn), y = std::cos(down) * std::sin(turn);
                const auto n = static_cast<std::uint64_t>(1'000'000 * scan + 10'000 * ring + i);
                const double range = 2 / std::sin(down) + rng::uniform(3, n, -0.02, 0.02);
                const double from_x = metres_a_scan * scan;
                const auto steps = [](double m) { return static_cast<std::int16_t>(std::lround(m * 64)); };
                WorldPoint p;
                p.place = {to_lattice(from_x + range * x), to_lattice(range * y),
                           to_lattice(2 - range * std::sin(down))};
                p.label = 7;
                p.sensor_dx = steps(-range * x), p.sensor_dy = steps(-range * y);
                p.sensor_dz = steps(range * std::sin(down));
                p.slot = static_cast<std::uint32_t>(1 + scan);
                points.push_back(p);
            }
    return points;
}

/// The distance of each point to its K-th neighbour, by comparing it with all that are not too far in x, on
/// average.
double brute_force_radius_m(std::vector<WorldPoint> points, const SplatParams& params) {
    const ClassMap classes = ClassMap::load("synthetic");
    std::erase_if(points, [&](const WorldPoint& p) { return classes.at(p.label).dynamic; });
    std::ranges::sort(points, {}, [](const WorldPoint& p) { return p.place.x; });
    double sum = 0;
    std::vector<double> distances2;
    std::size_t first = 0;
    for (const WorldPoint& p : points) {
        const auto ahead_m = [&](const WorldPoint& q) { return to_metres(q.place.x - p.place.x); };
        while (ahead_m(points[first]) < -params.radius_cap_m) ++first;
        distances2.clear();
        for (std::size_t i = first; i < points.size() && ahead_m(points[i]) <= params.radius_cap_m; ++i) {
            const Vec3d d{ahead_m(points[i]), to_metres(points[i].place.y - p.place.y),
                          to_metres(points[i].place.z - p.place.z)};
            distances2.push_back(dot(d, d));
        }
        // Who has fewer neighbours there has the K-th beyond the cap.
        double radius_m = params.radius_cap_m;
        if (distances2.size() >= static_cast<std::size_t>(params.neighbours)) {
            const auto kth = distances2.begin() + params.neighbours - 1;
            std::nth_element(distances2.begin(), kth, distances2.end());
            radius_m = std::min(radius_m, std::sqrt(*kth));
        }
        sum += radius_m;
    }
    return sum / static_cast<double>(points.size());
}

}  // namespace

TEST_CASE("the mean radius of a small cloud is that over all its points") {
    const auto points = test::small_street(12, 20, 3);
    const SplatParams params;
    const tiling::Calibration means = measure(MemoryCity(points), params);
    CHECK(means.mean_radius_m == Approx(brute_force_radius_m(points, params)).epsilon(1e-4));
}

TEST_CASE("of a large place some points stand for all") {
    const auto points = uneven_street(40, 5);
    REQUIRE(points.size() > 20'000);
    const SplatParams params;
    const tiling::Calibration means = measure(MemoryCity(points), params);
    CHECK(means.samples < points.size() * 9 / 10);
    CHECK(means.mean_radius_m == Approx(brute_force_radius_m(points, params)).epsilon(0.02));
}

TEST_CASE("points at the edge of a crowded place are stood for by others") {
    // Nothing is read beyond the places here.
    const auto points = uneven_street(40, 5);
    const MemoryCity city(points);
    const Reach reach{SplatParams{}.neighbours, static_cast<std::int32_t>(to_lattice(1.5))};
    SamplePlan plan = plan_sample(city);
    const ClassTable classes(ClassMap::load("synthetic"));
    double radius[2] = {}, weight[2] = {};
    for (const std::size_t few : {std::size_t{0}, plan.few_points})
        for (std::size_t place = 0; place < plan.places.size(); ++place) {
            plan.few_points = few;
            for (const SampledPoint& p : sample_place({city, reach, plan, classes}, place).points) {
                radius[few > 0] += p.weight * std::sqrt(static_cast<double>(p.reach2));
                weight[few > 0] += p.weight;
            }
        }
    CHECK(weight[0] == Approx(weight[1]).epsilon(0.05));
    CHECK(radius[0] / weight[0] == Approx(radius[1] / weight[1]).epsilon(0.05));
}

TEST_CASE("the means of a street do not depend on where in the world it lies") {
    const auto points = uneven_street(60, 7);
    const tiling::Calibration here = measure(MemoryCity(points));
    const auto check = [&](const std::vector<WorldPoint>& moved) {
        const tiling::Calibration there = measure(MemoryCity(moved));
        CHECK(there.mean_radius_m == Approx(here.mean_radius_m).epsilon(0.02));
        CHECK(there.mean_error_m == Approx(here.mean_error_m).epsilon(0.02));
        CHECK(there.mean_density == Approx(here.mean_density).epsilon(0.05));
    };
    constexpr std::int64_t kMoves_m[][3] = {
        {7, 0, 0}, {0, 13, 0}, {64, 64, 0}, {1000, 2000, 0}, {-651000, -6861000, 0}, {1000000, 5000000, 100}};
    for (const auto& move_m : kMoves_m) {
        INFO(move_m[0] << ", " << move_m[1] << ", " << move_m[2]);
        std::vector<WorldPoint> moved = points;
        for (WorldPoint& p : moved) {
            p.place.x += move_m[0] * kLatticePerMetre;
            p.place.y += move_m[1] * kLatticePerMetre;
            p.place.z += move_m[2] * kLatticePerMetre;
        }
        check(moved);
    }
    INFO("rotated by 90 degrees");
    std::vector<WorldPoint> rotated = points;
    for (WorldPoint& p : rotated) p.place = {-p.place.y, p.place.x, p.place.z};
    check(rotated);
}

TEST_CASE("the sample has its share of every part of a large city") {
    // A sparse plane of 500 m: more places than are asked.
    std::vector<WorldPoint> points;
    for (std::int64_t x = 0; x < 500; x += 2)
        for (std::int64_t y = 0; y < 500; y += 2)
            points.push_back({.place = {x * kLatticePerMetre, y * kLatticePerMetre, 0}});
    const SamplePlan plan = plan_sample(MemoryCity(points));
    CHECK(plan.places.size() == 2000);
    std::array<int, 25> by_part{};
    for (const LatticeBox& place : plan.places)
        ++by_part[static_cast<std::size_t>(place.min_x / to_lattice(100) * 5 +
                                           place.min_y / to_lattice(100))];
    for (const int count : by_part) CHECK(std::abs(count - 80) <= 16);
}

TEST_CASE("points written twice change neither the means nor the splats") {
    const auto maker = [] {
        return test::CityMaker{
            [] { return std::make_unique<SplatProcessor>(SplatParams{}, ClassMap::load("synthetic")); },
            nullptr, 16, false};
    };
    std::vector<test::CloudPoint> cloud;
    for (const WorldPoint& p : uneven_street(30, 9))
        cloud.push_back({.x = to_metres(p.place.x),
                         .y = to_metres(p.place.y),
                         .z = to_metres(p.place.z),
                         .label = p.label,
                         .intensity = p.intensity});
    const auto west = [&](double until_x) {
        std::vector<test::CloudPoint> part;
        for (const auto& p : cloud)
            if (p.x < until_x) part.push_back(p);
        return part;
    };
    const auto east = [&](double from_x) {
        std::vector<test::CloudPoint> part;
        for (const auto& p : cloud)
            if (p.x >= from_x) part.push_back(p);
        return part;
    };
    test::Drive once(maker());
    once.put("a.cloud", west(15));
    once.put("b.cloud", east(15));
    const tiling::BuildReport expected = once.build();
    REQUIRE(expected.splats > 0);

    test::Drive buffers(maker());  // tiles of a survey with five metres around each
    buffers.put("a.cloud", west(20));
    buffers.put("b.cloud", east(10));
    test::Drive doubled(maker());
    std::vector<test::CloudPoint> twice = west(15);
    twice.insert(twice.end(), twice.begin(), twice.begin() + static_cast<std::ptrdiff_t>(twice.size() / 2));
    doubled.put("a.cloud", twice);
    doubled.put("b.cloud", east(15));
    for (const test::Drive* drive : {&buffers, &doubled}) {
        const tiling::BuildReport report = drive->build();
        CHECK(report.points.read > expected.points.read);
        CHECK(report.calibration == expected.calibration);
        CHECK(report.digest == expected.digest);
    }
}

TEST_CASE("the angular step is that of the sensor, however many scans lie on top of one another") {
    for (const double step_rad : {0.0035, 0.0058, 0.02})
        for (const double metres_a_scan : {0.0, 0.7}) {
            INFO(step_rad << " rad, " << metres_a_scan << " m a scan");
            const MemoryCity city(turning_sensor(step_rad, 6, metres_a_scan));
            CHECK(measure(city).angular_step_rad == Approx(step_rad).epsilon(0.05));
        }
}

TEST_CASE("without times, sensor positions or enough points the angular step is unknown") {
    const auto points = turning_sensor(0.02, 2, 1);
    auto timeless = points, blind = points;
    for (WorldPoint& p : timeless) p.slot = TilePoint::kNoSlot;
    for (WorldPoint& p : blind) p.sensor_dx = p.sensor_dy = p.sensor_dz = TilePoint::kNoSensor;
    CHECK(measure(MemoryCity(points)).angular_step_rad > 0);
    CHECK(measure(MemoryCity(timeless)).angular_step_rad == 0);
    CHECK(measure(MemoryCity(blind)).angular_step_rad == 0);
    CHECK(measure(MemoryCity({points.begin(), points.begin() + 50})).angular_step_rad == 0);
}
