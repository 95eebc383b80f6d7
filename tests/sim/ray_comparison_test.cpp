#include "compare/ray_comparison.hpp"

#include "compare/range_image.hpp"
#include "core/hash.hpp"
#include "core/math/rng_hd.hpp"
#include "sim/memory_city.hpp"
#include "sim/recorded/ray_caster.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace citysplat;
using namespace citysplat::compare;
using test::MemoryCity;
using test::WorldDisc;

namespace {

constexpr double kEast = 652000, kNorth = 6861000;
const Vec3d kSensor{kEast, kNorth, 2};

/// A wall across the street 20 m east of the sensor, 8 m to either side and 8 m high.
std::vector<WorldDisc> wall() {
    std::vector<WorldDisc> discs;
    for (double y = -8; y <= 8; y += 0.25)
        for (double z = 0; z <= 8; z += 0.25)
            discs.push_back({{kEast + 20, kNorth + y, z}, {-1, 0, 0}, 0.25, 4, 32896});
    return discs;
}

/// To a point of the wall, as if it had been met `error_m` nearer than it is.
RecordedRay ray_to_wall(double y, double error_m) {
    RecordedRay ray;
    ray.origin = kSensor;
    const Vec3d to{20, y, 1.1};
    ray.range_m = length(to) - error_m;
    ray.direction = normalized(to);
    ray.intensity = 32896;
    ray.label = 9;
    return ray;
}

RecordedRay ray_to_sky(double range_m) {
    RecordedRay ray = ray_to_wall(0, 0);
    ray.direction = {0, 0, 1};
    ray.range_m = range_m;
    return ray;
}

std::vector<sim::Return> cast(const RecordedScan& scan, const TileSource& city,
                              const sim::CastOptions& options = {}) {
    const auto tracer = trace::make_group_tracer();
    trace::ResidentCity model(city, *tracer, {});
    return sim::cast_again(scan.rays, options, model, CancelToken());
}

}  // namespace

TEST_CASE("rays at a wall with known errors make exactly these figures") {
    const MemoryCity city(wall(), 16);
    RecordedScan scan;
    scan.has_intensity = scan.has_labels = true;
    scan.beams = 2;
    // Errors of the simulation, along the ray; 0.3 of incidence: nearly along the normal.
    const std::vector<double> errors{0.001, -0.03, 0.04, 0.07, -0.09, 0.15, 0.19, 0.3, -0.4, -0.6};
    for (const double e : errors) scan.rays.push_back(ray_to_wall(0.3, e));
    scan.rays.push_back(ray_to_sky(30));
    scan.returns = scan.rays.size();
    scan.rays.push_back(ray_to_wall(1, 0)), scan.rays.back().range_m = 0;
    scan.rays.push_back(ray_to_sky(0));
    scan.rays.push_back(ray_to_sky(0));
    for (std::size_t i = 0; i < scan.rays.size(); ++i) scan.rays[i].beam = i < 10 ? 0 : 1;

    RayComparison comparison;
    comparison.add(scan, cast(scan, city));
    const RayTally& all = comparison.all();
    CHECK(comparison.scans() == 1);
    CHECK(all.returns == 11);
    CHECK(all.holes == 1);
    CHECK(all.front == 2);
    CHECK(all.behind == 1);
    CHECK(all.empty == 3);
    CHECK(all.extra == 1);
    CHECK(all.agreement() == Approx(12.0 / 14));
    CHECK(all.share(all.holes) == Approx(1.0 / 11));
    CHECK(all.range.count() == 10);
    CHECK(all.range.within(0) == 3);
    CHECK(all.range.within(1) == 5);
    CHECK(all.range.within(2) == 7);
    CHECK(all.range.within(3) == 9);
    CHECK(all.range.median_m() == Approx(0.09).margin(2e-4));
    CHECK(all.range.bias_m() == Approx(0.001).margin(3e-4));
    CHECK(all.range.mean_m() == Approx(0.1871).margin(1e-4));
    // By real range: the wall is 20.03 m away, so that half of its returns lie on either side of 20 m.
    CHECK(comparison.ranges()[2].returns == 5);
    CHECK(comparison.ranges()[3].returns == 5);
    CHECK(comparison.ranges()[4].returns == 1);
    CHECK(comparison.ranges()[4].holes == 1);
    CHECK(comparison.ranges()[3].extra == 1);
    // By the label of the point; an extra by that of the splat.
    CHECK(comparison.classes().at(9).returns == 11);
    CHECK(comparison.classes().at(4).extra == 1);
    REQUIRE(comparison.beams().size() == 2);
    CHECK(comparison.beams()[0].returns == 10);
    CHECK(comparison.beams()[1].empty == 3);
    CHECK(all.intensity.count() == 5);
    CHECK(all.intensity.mean_error() == 0);
    CHECK(all.intensity.real_quantile(0.5) == Approx(128 / 255.0));

    SECTION("without labels of their own, returns are of the class that they meet") {
        scan.has_labels = false;
        RayComparison unlabelled;
        unlabelled.add(scan, cast(scan, city));
        CHECK(unlabelled.classes().at(4).returns == 10);
    }
}

TEST_CASE("returns of the recording car are rays that brought nothing of the city back") {
    const MemoryCity city(wall(), 16);
    RecordedScan scan;
    scan.beams = 1;
    for (const double y : {-1.0, 0.0, 1.0}) scan.rays.push_back(ray_to_wall(y, 0));
    // The bonnet, before the wall and before the sky.
    RecordedRay bonnet = ray_to_wall(2, 0);
    bonnet.range_m = 1.5;
    bonnet.own_car = true;
    scan.rays.push_back(bonnet);
    bonnet.direction = {0, 0, 1};
    scan.rays.push_back(bonnet);
    scan.returns = scan.rays.size();
    scan.own_car = 2;
    scan.rays.push_back(ray_to_sky(0));
    for (RecordedRay& ray : scan.rays) ray.beam = 0;

    RayComparison comparison;
    comparison.add(scan, cast(scan, city));
    CHECK(comparison.own_car() == 2);
    CHECK(comparison.all().returns == 3);
    CHECK(comparison.all().range.within(0) == 3);
    CHECK(comparison.all().holes + comparison.all().behind == 0);
    CHECK(comparison.all().empty == 3);
    CHECK(comparison.all().extra == 1);
    CHECK(comparison.beams()[0].empty == 3);
    CHECK(comparison.ranges()[0].returns == 0);
    CHECK(comparison.ranges()[3].extra == 1);
    // Judged like any other, one is a hole and one is behind.
    CHECK(comparison.with_own_car().returns == 5);
    CHECK(comparison.with_own_car().holes == 1);
    CHECK(comparison.with_own_car().behind == 1);
    CHECK(comparison.with_own_car().empty == 1);
}

TEST_CASE("along the normal an error at a grazing angle is as small as the surface is thick") {
    const MemoryCity city(wall(), 16);
    RecordedScan scan;
    // 20 m ahead and 7 m to the side of a point beside the wall: seen from 4 m before the wall.
    RecordedRay ray = ray_to_wall(0, 0);
    ray.origin = {kEast + 16, kNorth - 7, 2};
    const Vec3d to{4, 12, 1.1};
    ray.direction = normalized(to);
    ray.range_m = length(to) - 0.14;
    scan.rays.push_back(ray);
    scan.returns = 1;
    RayComparison comparison;
    comparison.add(scan, cast(scan, city));
    const double cosine = 4 / length(to);
    CHECK(comparison.all().range.median_m() == Approx(0.14).margin(3e-4));
    CHECK(comparison.all().range.within(1) == 0);
    CHECK(comparison.all().normal.median_m() == Approx(0.14 * cosine).margin(3e-4));
    CHECK(comparison.all().normal.within(0) == 1);
}

TEST_CASE("recorded rays meet the same city whatever its tiles, the budget and the threads") {
    const auto discs = test::street(kEast, kNorth, 60);
    RecordedScan scan;
    for (std::uint64_t i = 0; i < 6000; ++i) {
        RecordedRay ray;
        ray.origin = {kEast + 0.01 * static_cast<double>(i), kNorth + 0.1, 2};
        ray.direction = normalized(Vec3d{rng::uniform(1, 3 * i, -1, 1), rng::uniform(1, 3 * i + 1, -1, 1),
                                         rng::uniform(1, 3 * i + 2, -0.3, 0.3)});
        ray.range_m = i % 5 == 0 ? 0 : 10;
        scan.rays.push_back(ray);
    }
    const auto digest = [&](const TileSource& city, std::uint32_t hits, std::uint64_t budget_bytes) {
        const auto tracer = trace::make_group_tracer();
        trace::CacheOptions cache;
        cache.budget_bytes = budget_bytes;
        trace::ResidentCity model(city, *tracer, cache);
        sim::CastOptions options;
        options.hits = hits;
        options.gap_m = 0.3f;
        const auto returns = sim::cast_again(scan.rays, options, model, CancelToken());
        return hash_bytes(std::as_bytes(std::span(returns)));
    };
    const auto tracer = trace::make_group_tracer();
    const MemoryCity small(discs, 16);
    std::uint64_t largest = 0;
    for (const TileEntry& e : small.tiles())
        largest = std::max<std::uint64_t>(largest, tracer->estimated_bytes(e.splats));
    for (const std::uint32_t hits : {1u, 5u}) {
        const Hash128 reference = digest(MemoryCity(discs, 64), hits, std::uint64_t{1} << 30);
        CHECK(digest(small, hits, std::uint64_t{1} << 30) == reference);
        CHECK(digest(small, hits, 2 * largest) == reference);
        CHECK(digest(MemoryCity(discs, 32, test::Splits::mixed), hits, std::uint64_t{1} << 30) == reference);
        const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
        CHECK(digest(small, hits, std::uint64_t{1} << 30) == reference);
    }
}

TEST_CASE("casting recorded rays stops when it is asked to") {
    const MemoryCity city(wall(), 16);
    const auto tracer = trace::make_group_tracer();
    trace::ResidentCity model(city, *tracer, {});
    const std::vector<RecordedRay> rays(100, ray_to_wall(0, 0));
    CancelToken cancel;
    cancel.request();
    CHECK_THROWS_AS(sim::cast_again(rays, {}, model, cancel), Interrupted);
}

TEST_CASE("medians and means of errors are those of the sorted list") {
    ErrorStatistics statistics;
    CHECK(statistics.median_m() == 0);
    CHECK(statistics.bias_m() == 0);
    std::vector<double> errors, sizes;
    double sum = 0;
    for (std::uint64_t i = 0; i < 1001; ++i) {
        const double e = rng::gaussian(3, i) * 0.2 - 0.05 + (i % 50 == 0 ? 30 : 0);
        statistics.add(e);
        errors.push_back(e);
        sizes.push_back(std::fabs(e));
        sum += std::fabs(e);
    }
    std::sort(errors.begin(), errors.end());
    std::sort(sizes.begin(), sizes.end());
    CHECK(statistics.bias_m() == Approx(errors[500]).margin(2e-4));
    CHECK(statistics.median_m() == Approx(sizes[500]).margin(2e-4));
    CHECK(statistics.mean_m() == Approx(sum / 1001).margin(1e-6));
    for (std::size_t k = 0; k < ErrorStatistics::kLimits; ++k) {
        const double limit = ErrorStatistics::kLimits_m[k];
        CHECK(statistics.within(k) == static_cast<std::uint64_t>(std::count_if(
                                          sizes.begin(), sizes.end(), [&](double s) { return s <= limit; })));
    }
}

namespace {

double correlation_of(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) ma += a[i] / n, mb += b[i] / n;
    for (std::size_t i = 0; i < a.size(); ++i)
        ab += (a[i] - ma) * (b[i] - mb), aa += (a[i] - ma) * (a[i] - ma), bb += (b[i] - mb) * (b[i] - mb);
    return ab / std::sqrt(aa * bb);
}

/// Equal values share their mean rank.
std::vector<double> ranks_of(const std::vector<double>& values) {
    std::vector<double> ranks;
    for (const double v : values) {
        double below = 0, equal = 0;
        for (const double w : values) below += w < v, equal += w == v;
        ranks.push_back(below + (equal + 1) / 2);
    }
    return ranks;
}

}  // namespace

TEST_CASE("correlations of intensities are those of the lists of values and of their ranks") {
    IntensityStatistics statistics;
    CHECK(statistics.pearson() == 0);
    CHECK(statistics.spearman() == 0);
    std::vector<double> real, simulated;
    double error = 0;
    for (std::uint64_t i = 0; i < 400; ++i) {
        const int r = static_cast<int>(rng::uniform(5, 2 * i, 0, 255));
        const int s = std::clamp(r * r / 255 + static_cast<int>(rng::uniform(5, 2 * i + 1, -30, 30)), 0, 255);
        real.push_back(r), simulated.push_back(s);
        error += std::abs(r - s) / 255.0;
        statistics.add(static_cast<std::uint16_t>(r * 257), static_cast<std::uint16_t>(s * 257));
    }
    CHECK(statistics.pearson() == Approx(correlation_of(real, simulated)));
    CHECK(statistics.spearman() == Approx(correlation_of(ranks_of(real), ranks_of(simulated))));
    CHECK(statistics.mean_error() == Approx(error / 400));
    std::sort(real.begin(), real.end());
    CHECK(statistics.real_quantile(0.5) == Approx(real[199] / 255));
    CHECK(statistics.real_quantile(0.99) == Approx(real[395] / 255));
}

TEST_CASE("range images show what agrees, what is missing and what is too much") {
    RecordedScan scan;
    scan.beams = 2;
    scan.columns = 3;
    std::vector<sim::Return> simulated;
    const auto add = [&](std::uint16_t beam, std::uint32_t column, double real_m, float simulated_m) {
        RecordedRay ray;
        ray.beam = beam, ray.column = column, ray.range_m = real_m;
        scan.rays.push_back(ray);
        sim::Return met{};
        met.range_m = simulated_m;
        met.status = simulated_m > 0 ? sim::RayStatus::hit : sim::RayStatus::none;
        simulated.push_back(met);
    };
    add(0, 0, 10, 10.01f);
    add(0, 1, 10, 0);
    add(0, 2, 0, 10);
    add(1, 0, 10, 8);
    add(1, 1, 10, 12);
    add(1, 2, 0, 0);
    const Picture picture = range_images(scan, simulated);
    REQUIRE(picture.width() == 3);
    const int height = 2 * 4;  // of an image
    REQUIRE(picture.height() == 3 * height + 2 * 6);
    const auto same = [](Rgb a, Rgb b) { return a.r == b.r && a.g == b.g && a.b == b.b; };
    const int below = 2 * (height + 6);
    CHECK(same(picture.at(0, below), {70, 70, 70}));
    CHECK(same(picture.at(1, below), {255, 0, 255}));
    CHECK(same(picture.at(2, below), {255, 230, 0}));
    CHECK(picture.at(0, below + 4).b > picture.at(0, below + 4).r);
    CHECK(picture.at(1, below + 4).r > picture.at(1, below + 4).b);
    CHECK(same(picture.at(2, below + 4), {0, 0, 0}));
    // Real and simulated ranges of 10 m have one colour, and what did not return is black.
    CHECK(same(picture.at(0, 0), picture.at(1, 0)));
    CHECK(same(picture.at(2, 0), {0, 0, 0}));
    CHECK(same(picture.at(2, height + 6), picture.at(0, 0)));
    CHECK(same(picture.at(1, height + 6), {0, 0, 0}));
}
