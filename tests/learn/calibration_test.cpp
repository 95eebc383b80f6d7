#include "core/error.hpp"
#include "core/file.hpp"
#include "learn/synthetic_law.hpp"
#include "sim/calibrate/sensor_calibration.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

/// What a head of 16 beams is by its data sheet, and one that was built a little differently.
std::string sheet_text() { return test::learning_sensor_text(16, 720); }

Sensor built_sensor() {
    std::string elevations, azimuths, times;
    for (int i = 0; i < 16; ++i) {
        const char* comma = i == 0 ? "" : ", ";
        const double sheet_deg = 5 - 2.0 * i;
        elevations += comma + std::to_string(sheet_deg + 0.2 * rng::uniform(4, i, -1, 1));
        // Their mean is 0: how the head stands on its axis cannot be seen.
        azimuths += comma + std::to_string((i % 2 == 0 ? 1 : -1) * 0.15);
        times += comma + std::to_string(i * 7.5);
    }
    return Sensor::parse(
        "name = \"built\"\nkind = \"spinning\"\n[spin]\nrate_hz = 10\ncolumns_per_turn = 720\n"
        "[range]\nmin_m = 0.5\nmax_m = 60\n[error]\nbias_m = [0.03, -0.0004, 0.00002]\n"
        "sigma_m = [0.008, 0.0003]\n[intensity]\nincidence_power = 1\n[beams]\nelevation_deg = [" +
            elevations + "]\nazimuth_deg = [" + azimuths + "]\ntime_us = [" + times + "]\n",
        "built.toml");
}

/// A simulated scan as if it were recorded: the point says where the ray went, and nothing else does.
RecordedScan recorded(const Scan& scan, const SensorRun& run, const Trajectory& trajectory) {
    RecordedScan result;
    result.has_intensity = true;
    result.beams = 16;
    for (const Return& r : scan.returns) {
        if (r.status != RayStatus::hit) continue;
        const Pose pose = *trajectory.at(scan.time_s + static_cast<double>(r.time_s)) * run.body_from_sensor;
        const Vec3d local = rotate(conjugate(pose.rotation), r.position - pose.translation);
        RecordedRay ray;
        ray.origin = pose.translation;
        ray.range_m = length(local);
        ray.direction = (r.position - pose.translation) * (1 / ray.range_m);
        ray.time_s = scan.time_s + static_cast<double>(r.time_s);
        ray.azimuth_rad = std::atan2(local.y, local.x);
        ray.elevation_rad = std::asin(local.z / ray.range_m);
        ray.beam = r.beam;
        ray.intensity = r.intensity;
        result.rays.push_back(ray);
    }
    result.returns = result.rays.size();
    return result;
}

struct Outcome {
    CalibratedSensor found;
    Sensor sensor;  ///< from the text that was written
};

Outcome calibrate(const Sensor& built) {
    const test::MemoryCity city(test::patchy_street(80), 32);
    const Trajectory trajectory = test::straight_drive(20, 1.61);
    SensorRun run{built, {}, 3};
    const std::vector<Scan> noisy = test::drive(city, run, test::with_budget(1 << 30), trajectory).scans;
    run.noise = false;
    run.sensor.intensity = {};
    const std::vector<Scan> clean = test::drive(city, run, test::with_budget(1 << 30), trajectory).scans;
    const Sensor sheet = Sensor::parse(sheet_text(), "sheet.toml");
    std::vector<std::uint32_t> beam_of;
    for (std::uint32_t b = 0; b < 16; ++b) beam_of.push_back(b);
    SensorCalibration calibration(sheet, beam_of);
    for (std::size_t s = 0; s < noisy.size(); ++s) {
        std::vector<Return> met;
        for (std::size_t i = 0; i < noisy[s].returns.size(); ++i)
            if (noisy[s].returns[i].status == RayStatus::hit) met.push_back(clean[s].returns[i]);
        calibration.add(recorded(noisy[s], run, trajectory), met);
    }
    Outcome outcome{calibration.result(), {}};
    outcome.sensor = Sensor::parse(calibrated_text(sheet_text(), "sheet.toml", outcome.found, "Calibrated."),
                                   "calibrated.toml");
    return outcome;
}

}  // namespace

TEST_CASE("a simulated sensor is calibrated to what it was made of") {
    const Sensor built = built_sensor();
    const Outcome outcome = calibrate(built);
    const RangeCalibration& range = *outcome.found.range;
    CAPTURE(range.rmse_before_m, range.rmse_after_m, range.pairs);
    CHECK(range.pairs > 20'000);
    CHECK(range.rmse_after_m < 0.65 * range.rmse_before_m);
    for (const double d : {3.0, 6.0, 10.0, 15.0}) {
        CAPTURE(d);
        CHECK(outcome.sensor.error.bias_m.at(d) == Approx(built.error.bias_m.at(d)).margin(0.001));
        CHECK(outcome.sensor.error.sigma_m.at(d) == Approx(built.error.sigma_m.at(d)).epsilon(0.05));
    }
    const auto& truth = std::get<SpinningHead>(built.rays).beams;
    const auto& found = std::get<SpinningHead>(outcome.sensor.rays).beams;
    REQUIRE(found.size() == truth.size());
    CHECK(outcome.found.beams->azimuths);
    CHECK(outcome.found.beams->times);
    std::size_t seen = 0;
    for (std::size_t b = 0; b < truth.size(); ++b) {
        CAPTURE(b);
        CHECK(found[b].elevation_rad * exact::kDegreesPerRad ==
              Approx(truth[b].elevation_rad * exact::kDegreesPerRad).margin(0.005));
        CHECK(found[b].azimuth_rad * exact::kDegreesPerRad ==
              Approx(truth[b].azimuth_rad * exact::kDegreesPerRad).margin(0.005));
        CHECK(found[b].time_s == Approx(truth[b].time_s).margin(5e-7));
        ++seen;
    }
    CHECK(outcome.found.beams->beams_seen == seen);
    CHECK(outcome.sensor.intensity.incidence_power == 1);
    CHECK(outcome.sensor.intensity.range_power == 0);
    for (const float gain : std::get<SpinningHead>(outcome.sensor.rays).gain)
        CHECK(static_cast<double>(gain) == Approx(1).margin(0.02));
}

TEST_CASE("known distances give bias and sigma, whatever some wild measurements say") {
    std::vector<RangePair> pairs;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        const double d = rng::uniform(1, i, 0.5, 4), sigma = 0.003 + 0.001 * d;
        const double error = i % 50 == 0 ? rng::uniform(2, i, -0.5, 2) : 0.01566 - 0.002 * d + 0.0005 * d * d;
        pairs.push_back({d, d + error + sigma * rng::gaussian(3, i)});
    }
    const RangeCalibration found = calibrate_range(pairs, {});
    CHECK(found.pairs > 19'000);
    CHECK(found.pairs < 19'900);
    for (const double d : {0.7, 2.0, 3.8}) {
        CHECK(found.error.bias_m.at(d) == Approx(0.01566 - 0.002 * d + 0.0005 * d * d).margin(2e-4));
        CHECK(found.error.sigma_m.at(d) == Approx(0.003 + 0.001 * d).epsilon(0.05));
    }
    CHECK(found.rmse_after_m < 0.65 * found.rmse_before_m);
    CHECK_THROWS_AS(calibrate_range({{1, 1}, {2, 2}}, {}), InputError);
}

TEST_CASE("a table of known distances is read, and its mistakes are named") {
    const test::TempDir dir;
    const auto path = dir.path() / "distances.csv";
    const auto written = [&](const std::string& text) {
        std::ofstream(path) << text;
        return path;
    };
    const auto pairs = read_range_table(written("# tape\ntrue_m,measured_m\n1.0,1.02\n2, 2.015\n"));
    REQUIRE(pairs.size() == 2);
    CHECK(pairs[1].true_m == 2);
    CHECK(pairs[1].measured_m == 2.015);
    CHECK_THROWS_WITH(read_range_table(written("1.0,1.02\n")), Catch::Contains("true_m,measured_m"));
    CHECK_THROWS_WITH(read_range_table(written("true_m,measured_m\n1.0\n")), Catch::Contains("line 2"));
    CHECK_THROWS_WITH(read_range_table(written("true_m,measured_m\n1.0,nan\n")), Catch::Contains("line 2"));
}

TEST_CASE("the gain of a beam scales what it sees") {
    const Sensor plain = Sensor::parse(sheet_text(), "sheet.toml");
    const Sensor dim = Sensor::parse(sheet_text() + "[intensity]\n", "sheet.toml");
    CHECK(std::get<SpinningHead>(dim.rays).gain.empty());
    std::string text = sheet_text(), gains = "gain = [";
    for (int i = 0; i < 16; ++i) gains += std::string(i == 0 ? "" : ", ") + (i == 3 ? "0.5" : "1");
    text.insert(text.find("first_deg"), gains + "]\n");
    const Sensor gained = Sensor::parse(text, "sheet.toml");
    const auto before = test::clean_scans(plain, 4, 0.11), after = test::clean_scans(gained, 4, 0.11);
    for (std::size_t i = 0; i < before[0].returns.size(); ++i) {
        const Return &a = before[0].returns[i], &b = after[0].returns[i];
        // Halves are rounded.
        REQUIRE(std::fabs(b.intensity - (a.beam == 3 ? 0.5 : 1.0) * a.intensity) <=
                (a.beam == 3 ? 0.5 : 0.0));
    }
}
