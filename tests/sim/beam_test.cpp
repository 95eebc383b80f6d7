#include "core/error.hpp"
#include "sim/scan/scan_tracer.hpp"
#include "sim/test_drive.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <cmath>
#include <cstring>

using namespace citysplat;
using namespace citysplat::sim;
using test::MemoryCity;
using test::WorldDisc;

namespace {

constexpr double kEast = test::Place{}.east, kNorth = test::Place{}.north;
/// The largest disc that there is: near its rim as straight as a wall's edge.
constexpr double kWall_m = 7.9;

Sensor wide_sensor(ReturnMode mode, std::uint32_t rays = 7, double divergence_rad = 0.01) {
    Sensor sensor = test::small_sensor();
    sensor.beam = {divergence_rad, mode, rays, 0.75};
    return sensor;
}

/// A pulse in the horizontal plane.
Firing pulse_at(std::uint32_t number, double azimuth_rad) {
    return {direction_of(azimuth_rad, 0), 0, number, 0};
}

/// What a standing sensor at the origin reports of these pulses.
std::vector<Return> fired(const Sensor& sensor, const std::vector<WorldDisc>& discs,
                          const std::vector<Firing>& pulses) {
    SensorRun run{sensor, {}, 7};
    run.noise = false;
    run.hits = 1;
    const Trajectory standing({{0, {{0, 0, 0}, {}}}, {1, {{0, 0, 0}, {}}}});
    const ScanRays rays(run, standing, 0, 0, plan_of(pulses));
    const ScanView view = rays.view();
    const MemoryCity city(discs, 64);
    const auto tracer = trace::make_group_tracer();
    std::vector<trace::TracerTilePtr> tiles;
    for (std::uint32_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(tracer->load(city.load(i)));
    std::vector<Return> returns(pulses.size() * returns_per_pulse(view.model.beam));
    RayBatch scratch;
    trace_scan(*tracer, *tracer->bind(tiles), {view, 0, pulses.size()}, scratch, returns);
    return returns;
}

WorldDisc wall_at(double x_m, double y_m = 0, std::uint16_t intensity = 30000) {
    return {{x_m, y_m, 0}, {-1, 0, 0}, kWall_m, 1, intensity};
}

/// Energy of the beam beyond a straight edge at distance `a` from its axis, in units of half the divergence.
double energy_beyond(double a) {
    constexpr int kSteps = 400;
    double beyond = 0, all = 0;
    for (int i = 0; i < kSteps; ++i)
        for (int j = 0; j < kSteps; ++j) {
            const double x = (i + 0.5) / kSteps * 2 - 1, y = (j + 0.5) / kSteps * 2 - 1, r2 = x * x + y * y;
            if (r2 > 1) continue;
            const double e = std::exp(-2 * r2);
            all += e;
            if (x > a) beyond += e;
        }
    return beyond / all;
}

}  // namespace

TEST_CASE("the sub-rays of a pulse carry its energy and its second moment") {
    for (const std::uint32_t rays : {7u, 19u}) {
        const BundlePattern pattern = bundle_pattern(rays);
        const BeamModel beam{ReturnMode::first, rays, 0.01f, 0.5f};
        for (const Vec3d axis : {Vec3d{1, 0, 0}, Vec3d{0.6, -0.48, 0.64}, Vec3d{0, 0, -1}}) {
            double weights = 0, moment = 0;
            Vec3d mean{0, 0, 0};
            std::uint32_t seen = 0;
            for_each_sub_ray(beam, vec_cast<float>(axis), 4711, [&](std::uint32_t k, Vec3f direction) {
                CHECK(k == seen++);
                const Vec3d d = vec_cast<double>(direction);
                if (k == 0) CHECK(length(d - vec_cast<double>(vec_cast<float>(axis))) == 0);
                const Vec3d off = d * (1 / dot(d, axis)) - axis;
                weights += weight_of(pattern, k);
                mean = mean + off * weight_of(pattern, k);
                moment += weight_of(pattern, k) * dot(off, off) / 1e-4;
            });
            CHECK(seen == rays);
            CHECK(weights == Approx(1).epsilon(1e-12));
            CHECK(length(mean) < 1e-7);
            // ∫ρ²·exp(−2ρ²) over the unit disc by ∫exp(−2ρ²).
            const double exact = (0.5 - 1.5 * std::exp(-2)) / (1 - std::exp(-2));
            CHECK(moment == Approx(exact).epsilon(1e-4));
        }
    }
}

TEST_CASE("at the edge of a wall before a wall ranges mix as the energies do") {
    // Pulses whose axes pass the edge at distances from −1.5 to 1.5 half beam widths.
    constexpr std::uint32_t kSteps = 31, kEach = 200;
    constexpr double kNear_m = 10, kGap_m = 0.5, kHalf_rad = 0.005;
    std::vector<Firing> pulses;
    const auto place = [](std::uint32_t step) {
        return (static_cast<double>(step) / (kSteps - 1) - 0.5) * 3;
    };
    for (std::uint32_t step = 0; step < kSteps; ++step)
        for (std::uint32_t i = 0; i < kEach; ++i)
            pulses.push_back(pulse_at(step * kEach + i, place(step) * kHalf_rad));
    const std::vector<WorldDisc> walls{wall_at(kNear_m, -kWall_m), wall_at(kNear_m + kGap_m)};
    for (const std::uint32_t rays : {7u, 19u}) {
        const auto mixed = fired(wide_sensor(ReturnMode::strongest, rays), walls, pulses);
        double worst = 0;
        std::size_t between = 0;
        for (std::uint32_t step = 0; step < kSteps; ++step) {
            double sum = 0;
            for (std::uint32_t i = 0; i < kEach; ++i) {
                const Return& r = mixed[step * kEach + i];
                REQUIRE(r.status == RayStatus::hit);
                CHECK(r.intensity == 30000);
                const auto range = static_cast<double>(r.range_m);
                CHECK(length(r.position) == Approx(range).epsilon(1e-6));
                between += range > kNear_m + 0.01 && range < kNear_m + kGap_m - 0.01;
                sum += range;
            }
            const double expected = kNear_m + kGap_m * energy_beyond(-place(step));
            worst = std::max(worst, std::fabs(sum / kEach - expected) / kGap_m);
        }
        CAPTURE(rays, worst);
        // Where the axis passes the edge, its whole share goes from one wall to the other.
        CHECK(worst < bundle_pattern(rays).axis_weight / 2 + 0.01);
        // Both walls are met where a sub-ray of the outermost ring reaches over the edge: at random turns of
        // the ring as far as its radius times the mean of the cosine between two of its n rays, n/π·sin(π/n).
        const BundleRing ring = bundle_pattern(rays).rings[rays == 7 ? 0 : 1];
        const double n = ring.rays, reach = ring.radius * n / exact::kPi * std::sin(exact::kPi / n);
        CHECK(static_cast<double>(between) / static_cast<double>(pulses.size()) ==
              Approx(2 * reach / 3).margin(0.04));
    }

    // Walls that are farther apart than the resolution are told apart.
    const std::vector<WorldDisc> apart{wall_at(kNear_m, -kWall_m), wall_at(kNear_m + 2)};
    const auto first = fired(wide_sensor(ReturnMode::first, 19), apart, pulses),
               last = fired(wide_sensor(ReturnMode::last, 19), apart, pulses),
               strongest = fired(wide_sensor(ReturnMode::strongest, 19), apart, pulses),
               dual = fired(wide_sensor(ReturnMode::dual, 19), apart, pulses);
    const std::size_t n = pulses.size();
    std::size_t doubles = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double a = place(static_cast<std::uint32_t>(i / kEach));
        const auto near = [](const Return& r) { return std::fabs(r.range_m - 10.0f) < 0.01f; };
        const auto far = [](const Return& r) { return std::fabs(r.range_m - 12.0f) < 0.01f; };
        REQUIRE((near(first[i]) || far(first[i])));
        CHECK(near(first[i]) == (near(first[i]) || near(last[i])));
        if (std::fabs(a) > 0.15) CHECK(near(strongest[i]) == (a < 0));
        CHECK(std::memcmp(&dual[i], &strongest[i], sizeof(Return)) == 0);
        if (near(first[i]) && far(last[i])) {
            ++doubles;
            CHECK(near(dual[i]) == far(dual[n + i]));
            CHECK(std::abs(dual[i].intensity + dual[n + i].intensity - 30000) <= 1);
        } else {
            CHECK(dual[n + i].status == RayStatus::none);
        }
    }
    CHECK(doubles > n / 4);
}

TEST_CASE("a slanted plane looks farther away by the second moment of the beam") {
    constexpr double kRange_m = 20, kHalf_rad = 0.01;
    std::vector<Firing> pulses;
    for (std::uint32_t i = 0; i < 2000; ++i) pulses.push_back(pulse_at(i, 0));
    const double spread = std::tan(kHalf_rad), moment = 0.34348235725;
    for (const double slant_deg : {0.0, 45.0, 75.0}) {
        const double slant = slant_deg * exact::kRadPerDegree, tangent = std::tan(slant);
        const std::vector<WorldDisc> plane{
            {{kRange_m, 0, 0}, {-std::cos(slant), std::sin(slant), 0}, kWall_m}};
        // Along d + s the plane is at R·√(1 + s²) / (1 − s·tan θ) ≈ R·(1 + s·tan θ + s²·tan² θ + s²/2).
        const double expected = kRange_m * spread * spread * moment * (tangent * tangent / 2 + 0.5);
        for (const std::uint32_t rays : {7u, 19u}) {
            Sensor sensor = wide_sensor(ReturnMode::dual, rays, 2 * kHalf_rad);
            sensor.beam.resolution_m = 0.02;
            const auto returns = fired(sensor, plane, pulses);
            double sum = 0;
            for (std::size_t i = 0; i < pulses.size(); ++i) {
                sum += static_cast<double>(returns[i].range_m) - kRange_m;
                // However far its sub-rays are apart: it is one surface.
                REQUIRE(returns[pulses.size() + i].status == RayStatus::none);
            }
            CAPTURE(slant_deg, rays);
            CHECK(sum / static_cast<double>(pulses.size()) == Approx(expected).epsilon(0.03).margin(2e-5));
        }
    }
}

TEST_CASE("a pole takes its share of the beam and the wall behind it the rest") {
    // The axis alone meets the pole.
    const auto pole = [](std::uint16_t intensity) {
        return std::vector<WorldDisc>{{{10, 0, 0}, {-1, 0, 0}, 0.005, 5, intensity}, wall_at(15, 0, 10000)};
    };
    const std::vector<Firing> pulse{pulse_at(0, 0)};
    const double share = bundle_pattern(7).axis_weight;
    const auto one = [&](ReturnMode mode, std::uint16_t intensity) {
        return fired(wide_sensor(mode), pole(intensity), pulse)[0];
    };
    const Return on_pole = one(ReturnMode::first, 20000), on_wall = one(ReturnMode::last, 20000);
    CHECK(on_pole.range_m == Approx(10).margin(1e-4));
    CHECK(on_pole.label == 5);
    CHECK(on_pole.intensity == static_cast<int>(std::floor(share * 20000 + 0.5)));
    CHECK(on_pole.hits == 1);
    CHECK(on_wall.range_m == Approx(15).margin(1e-3));
    CHECK(on_wall.label == 1);
    CHECK(on_wall.intensity == static_cast<int>(std::floor((1 - share) * 10000 + 0.5)));
    CHECK(on_wall.hits == 6);
    CHECK(one(ReturnMode::strongest, 20000).label == 1);
    CHECK(one(ReturnMode::strongest, 60000).label == 5);
    const auto two = fired(wide_sensor(ReturnMode::dual), pole(60000), pulse);
    CHECK(two[0].label == 5);
    CHECK(two[1].label == 1);
    // Without intensities the greater part of the beam is the stronger.
    CHECK(fired(wide_sensor(ReturnMode::strongest),
                {{{10, 0, 0}, {-1, 0, 0}, 0.005, 5, 0}, wall_at(15, 0, 0)}, pulse)[0]
              .label == 1);
}

TEST_CASE("a poor echo is a return of its own when three are told apart") {
    // Near: the axis; middle: a half of the ring; far: the rest. Dual reports the strongest and the last, and
    // the second strongest where the last is the strongest.
    const std::vector<WorldDisc> three{{{10, 0, 0}, {-1, 0, 0}, 0.005, 5, 30000},
                                       {{12, -kWall_m, 0}, {-1, 0, 0}, kWall_m, 6, 5000},
                                       wall_at(14, 0, 30000)};
    std::vector<Firing> pulses;
    for (std::uint32_t i = 0; i < 50; ++i) pulses.push_back(pulse_at(i, 0));
    const auto returns = fired(wide_sensor(ReturnMode::dual), three, pulses);
    for (std::size_t i = 0; i < pulses.size(); ++i) {
        // The far wall has two to four of six sub-rays of the ring: 0.24 … 0.48 against the axis' 0.29.
        const bool far_first = returns[i].label == 1;
        CHECK(returns[i].label != 6);
        CHECK(returns[pulses.size() + i].label == (far_first ? 5 : 1));
    }
}

TEST_CASE("scans of wide beams are the same for any threads and batches and instruction sets and budgets") {
    const MemoryCity city(test::street(kEast, kNorth, 60), 16);
    SensorRun run{wide_sensor(ReturnMode::dual), {}, 7};
    run.sensor.drop.probability = 0.05;
    const auto trajectory = test::straight_drive(40, 0.41);
    for (const std::uint32_t hits : {1u, 5u}) {
        run.hits = hits;
        const auto reference = test::drive(city, run, test::with_budget(1 << 30), trajectory);
        REQUIRE(reference.report.scans == 4);
        CHECK(reference.report.rays == 4 * 16 * 360);
        std::size_t second = 0;
        for (const Scan& scan : reference.scans) {
            REQUIRE(scan.returns.size() == 2 * 16 * 360);
            for (std::size_t i = scan.pulses(); i < scan.returns.size(); ++i)
                second += scan.returns[i].status == RayStatus::hit;
        }
        CHECK(second > 50);
        const std::uint64_t one = test::largest_tile_bytes(city);
        for (const std::uint64_t budget : {one, 3 * one})
            CHECK(test::drive(city, run, test::with_budget(budget), trajectory).report.digest ==
                  reference.report.digest);
        {
            const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 1);
            CHECK(test::drive(city, run, test::with_budget(1 << 30), trajectory).report.digest ==
                  reference.report.digest);
        }

        std::vector<Firing> list;
        const ScanRays rays(run, trajectory, 0, 100, plan_firings(run.sensor, 0, list));
        const ScanView view = rays.view();
        for (const std::string& set : trace::group_instruction_sets())
            for (const std::size_t batch : {std::size_t{7}, rays.size()}) {
                CAPTURE(set, batch);
                const auto tracer = trace::make_group_tracer({set});
                std::vector<trace::TracerTilePtr> tiles;
                for (std::uint32_t i = 0; i < city.tiles().size(); ++i)
                    tiles.push_back(tracer->load(city.load(i)));
                const auto bound = tracer->bind(tiles);
                std::vector<Return> returns(2 * rays.size());
                RayBatch scratch;
                for (std::size_t first = 0; first < rays.size(); first += batch)
                    trace_scan(*tracer, *bound, {view, first, std::min(batch, rays.size() - first)}, scratch,
                               returns);
                CHECK(std::memcmp(returns.data(), reference.scans[0].returns.data(),
                                  returns.size() * sizeof(Return)) == 0);
            }
    }
}

TEST_CASE("a width that nobody asks for changes nothing") {
    const MemoryCity city(test::street(kEast, kNorth, 60), 16);
    SensorRun run{test::small_sensor(), {}, 7};
    const auto trajectory = test::straight_drive(40, 0.21);
    const auto digest = [&] { return test::drive(city, run, {}, trajectory).report.digest; };
    const Hash128 narrow = digest();
    run.sensor.beam.divergence_rad = 0.01;
    CHECK(digest() == narrow);
    run.sensor.beam.returns = ReturnMode::strongest;
    CHECK(digest() != narrow);
}

TEST_CASE("a damaged tile marks every wide pulse that one of its sub-rays concerns") {
    MemoryCity city(test::street(kEast, kNorth, 60), 16);
    SensorRun run{wide_sensor(ReturnMode::dual), {}, 7};
    run.noise = false;
    const auto trajectory = test::straight_drive(40, 0.21);
    const auto whole = test::drive(city, run, test::with_budget(1 << 30), trajectory);
    city.damaged = {city.tiles().size() / 2};
    SimulationOptions options = test::with_budget(1 << 30);
    options.cache.allow_missing = true;
    const auto partial = test::drive(city, run, options, trajectory);
    std::size_t marked = 0;
    for (std::size_t s = 0; s < whole.scans.size(); ++s) {
        const Scan &a = whole.scans[s], &b = partial.scans[s];
        for (std::size_t i = 0; i < a.pulses(); ++i) {
            if (b.returns[i].status == RayStatus::missing) {
                ++marked;
                continue;
            }
            for (const std::size_t at : {i, a.pulses() + i})
                REQUIRE(std::memcmp(&a.returns[at], &b.returns[at], sizeof(Return)) == 0);
        }
    }
    CHECK(marked > 100);
    CHECK(marked < partial.report.rays);
}

TEST_CASE("returns of wide pulses need a width and a word that is known") {
    BeamShape beam;
    CHECK_THROWS_WITH(beam.set_returns("dual", "here"),
                      Catch::Contains("here") && Catch::Contains("divergence_mrad"));
    CHECK_NOTHROW(beam.set_returns("line", "here"));
    beam.divergence_rad = 0.003;
    CHECK_THROWS_WITH(beam.set_returns("both", "here"),
                      Catch::Contains("both") && Catch::Contains("strongest"));
    beam.set_returns("last", "here");
    CHECK(beam.returns == ReturnMode::last);
}
