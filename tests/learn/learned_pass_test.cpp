#include "sim/learn/learned_pass.hpp"

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "learn/some_model.hpp"
#include "learn/synthetic_law.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <hwy/highway.h>
#include <tbb/global_control.h>

#include <cstring>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::sim::learn;
using test::some_model;

namespace {

/// Beams out of order, numbers that fill no vector, a sector, a single beam.
std::vector<Sensor> sensors() {
    const auto parse = [](const std::string& spin, const std::string& elevations) {
        return Sensor::parse(
            "name = \"t\"\nkind = \"spinning\"\n[range]\nmin_m = 0.5\nmax_m = 60\n[spin]\nrate_hz = 10\n" +
                spin + "\n[beams]\nelevation_deg = " + elevations + "\n",
            "t.toml");
    };
    return {
        parse("columns_per_turn = 181", "[-3, 5, -20, -9, 1, -15, -6]"),
        parse("columns_per_turn = 360\nfrom_deg = -60\nto_deg = 75\nsense = \"clockwise\"", "[2, -10, -18]"),
        parse("columns_per_turn = 90", "-12"), test::learning_sensor(70, 64)};
}

std::vector<Return> scan_of(const Sensor& sensor) { return test::clean_scans(sensor, 4, 0.11).at(0).returns; }

/// Ray by ray, from the functions that the GPU uses.
std::vector<Return> one_by_one(const LearnedPass& pass, const std::vector<Return>& returns,
                               const NoiseKeys& keys) {
    std::vector<Return> result = returns;
    const LearnedView view = pass.view(returns.data(), keys);
    for (std::uint32_t column = 0; column < pass.grid().columns(); ++column)
        for (std::uint32_t row = 0; row < pass.grid().beams(); ++row) {
            const Outcome outcome = outcome_of(view, row, column);
            Return& r = result[column * pass.grid().beams() + pass.grid().beam_of_row(row)];
            r.status = outcome.status;
            r.intensity = outcome.intensity;
        }
    return result;
}

bool same(const std::vector<Return>& a, const std::vector<Return>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Return)) == 0;
}

}  // namespace

TEST_CASE("a learned pass over a scan gives what every ray gives alone, with any instruction set") {
    for (const Sensor& sensor : sensors()) {
        const ScanGrid grid(sensor);
        const std::vector<Return> returns = scan_of(sensor);
        REQUIRE(returns.size() == grid.rays());
        SensorModel model = some_model(grid.beams());
        struct Case {
            bool intensity, noise;
        };
        for (const auto [with_intensity, with_noise] :
             {Case{true, true}, Case{true, false}, Case{false, false}}) {
            if (!with_intensity) model.intensity.reset();
            Sensor wanted = sensor;
            wanted.intensity_noise = with_noise;
            const LearnedPass pass(model, wanted);
            const NoiseKeys keys{scan_key(9, 0, 4), place_key(9)};
            const std::vector<Return> expected = one_by_one(pass, returns, keys);
            std::size_t hits = 0, dropped = 0, brighter = 0;
            for (std::size_t i = 0; i < returns.size(); ++i) {
                hits += returns[i].status == RayStatus::hit;
                dropped += expected[i].status == RayStatus::dropped;
                brighter += expected[i].intensity != returns[i].intensity;
            }
            CAPTURE(grid.beams(), grid.columns(), hits);
            CHECK(dropped > hits / 20);
            CHECK(dropped < hits);
            CHECK((brighter > 0) == with_intensity);

            PassScratch scratch;
            const std::int64_t supported = hwy::SupportedTargets() | HWY_SCALAR;
            int tried = 0;
            for (std::int64_t bit = supported; bit != 0; bit &= bit - 1) {
                hwy::SetSupportedTargetsForTest(bit & -bit);
                hwy::GetChosenTarget().Update(hwy::SupportedTargets());
                std::vector<Return> result = returns;
                pass.apply(result, keys, scratch);
                CAPTURE(hwy::TargetName(bit & -bit));
                CHECK(same(result, expected));
                ++tried;
            }
            hwy::SetSupportedTargetsForTest(0);
            hwy::GetChosenTarget().Update(hwy::SupportedTargets());
            CHECK(tried >= 2);
        }
    }
}

TEST_CASE("what a learned pass does depends on the scan's number and the seed, and places keep their share") {
    const Sensor sensor = test::learning_sensor(32, 360);
    const std::vector<Return> returns = scan_of(sensor);
    SensorModel model = some_model(32);
    const auto lost = [&](NoiseShares shares, std::uint64_t seed, std::uint64_t scan) {
        model.noise = shares;
        const LearnedPass pass(model, sensor);
        PassScratch scratch;
        std::vector<Return> result = returns;
        pass.apply(result, {scan_key(seed, 0, scan), place_key(seed)}, scratch);
        std::vector<bool> dropped;
        for (const Return& r : result) dropped.push_back(r.status == RayStatus::dropped);
        return dropped;
    };
    const auto differ = [](const std::vector<bool>& a, const std::vector<bool>& b) {
        std::size_t n = 0;
        for (std::size_t i = 0; i < a.size(); ++i) n += a[i] != b[i];
        return n;
    };
    // All noise is that of places: the next scan loses the same rays.
    CHECK(differ(lost({0, 1}, 5, 0), lost({0, 1}, 5, 1)) == 0);
    CHECK(differ(lost({0, 1}, 5, 0), lost({0, 1}, 6, 0)) > 100);
    const std::size_t alone = differ(lost({0, 0}, 5, 0), lost({0, 0}, 5, 1)),
                      shared = differ(lost({0, 0.6}, 5, 0), lost({0, 0.6}, 5, 1));
    CHECK(alone > 1000);
    CHECK(shared < alone * 8 / 10);
}

TEST_CASE("a simulation with a model is the same for any threads and budget, and nothing without noise") {
    const test::TempDir dir;
    const auto discs = test::patchy_street(60);
    const test::MemoryCity city(discs, 16);
    SensorRun run{test::small_sensor(), {}, 7};
    const auto trajectory = test::straight_drive(20, 1.01);
    const auto plain = test::drive(city, run, test::with_budget(1 << 30), trajectory);
    const auto path = dir.path() / "model.toml";
    OutputFile file(path);
    file.writer().text(some_model(16).text());
    file.commit();
    run.sensor.model = path;
    const auto learned = test::drive(city, run, test::with_budget(1 << 30), trajectory);
    CHECK(learned.report.digest != plain.report.digest);
    CHECK(learned.report.dropped > plain.report.dropped + learned.report.hits / 20);
    CHECK(learned.report.hits + learned.report.dropped == plain.report.hits + plain.report.dropped);
    const std::uint64_t one = test::largest_tile_bytes(city);
    for (const std::uint64_t budget : {one, 3 * one})
        CHECK(test::drive(city, run, test::with_budget(budget), trajectory).report.digest ==
              learned.report.digest);
    for (const std::size_t threads : {1u, 5u}) {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
        CHECK(test::drive(city, run, test::with_budget(1 << 30), trajectory).report.digest ==
              learned.report.digest);
    }
    run.noise = false;
    const auto quiet = test::drive(city, run, test::with_budget(1 << 30), trajectory);
    run.sensor.model.clear();
    CHECK(quiet.report.digest ==
          test::drive(city, run, test::with_budget(1 << 30), trajectory).report.digest);
}

TEST_CASE("a pulse that a model loses has no second return either") {
    const test::TempDir dir;
    const test::MemoryCity city(test::patchy_street(60), 16);
    SensorRun run{test::small_sensor(), {}, 7};
    run.sensor.beam = {0.05, ReturnMode::dual, 7, 0.3};
    run.sensor.model = dir / "model.toml";
    OutputFile file(run.sensor.model);
    file.writer().text(some_model(16).text());
    file.commit();
    const auto trajectory = test::straight_drive(20, 0.51);
    const auto dual = test::drive(city, run, {}, trajectory);
    run.sensor.beam.returns = ReturnMode::strongest;
    const auto strongest = test::drive(city, run, {}, trajectory);
    std::size_t lost = 0, kept = 0;
    for (std::size_t s = 0; s < dual.scans.size(); ++s) {
        const Scan& scan = dual.scans[s];
        const auto first = std::vector(scan.returns.begin(), scan.returns.begin() + 16 * 360);
        CHECK(same(first, strongest.scans[s].returns));
        for (std::size_t i = 0; i < scan.pulses(); ++i) {
            const Return& second = scan.returns[scan.pulses() + i];
            if (second.status == RayStatus::none) continue;
            REQUIRE((second.status == RayStatus::dropped) == (first[i].status == RayStatus::dropped));
            ++(second.status == RayStatus::dropped ? lost : kept);
        }
    }
    CHECK(lost > 5);
    CHECK(kept > 5);
}

TEST_CASE("a model is refused by a sensor with another number of beams, and by one that does not spin") {
    const SensorModel model = some_model(16);
    CHECK_THROWS_WITH(LearnedPass(model, test::learning_sensor(17, 90), "m.toml"),
                      Catch::Contains("m.toml") && Catch::Contains("16 beams") && Catch::Contains("17"));
    CHECK_THROWS_WITH(LearnedPass(model, Sensor::load("avia"), "m.toml"), Catch::Contains("spinning"));
}

TEST_CASE("the column of an azimuth is the one whose ray is nearest to it") {
    for (const Sensor& sensor : sensors()) {
        const ScanGrid grid(sensor);
        std::vector<Firing> firings;
        fire(sensor, 0, firings);
        for (const Firing& firing : firings) {
            const double azimuth =
                std::atan2(static_cast<double>(firing.direction.y), static_cast<double>(firing.direction.x));
            const std::uint32_t column = firing.ray / grid.beams();
            REQUIRE(grid.column_at(firing.beam, azimuth + 1e-6) == column);
            REQUIRE(grid.column_at(firing.beam, azimuth - 1e-6 + 2 * exact::kPi) == column);
            const double degrees = azimuth * exact::kDegreesPerRad;
            const double cell = grid.mask_cell(firing.beam, column) + 0.5;
            REQUIRE(std::fabs(std::remainder(degrees - cell, 360)) <= 0.5 + 1e-4);
        }
        if (!grid.wraps()) CHECK_FALSE(grid.column_at(0, exact::kPi));
    }
}

TEST_CASE("noise of intensities is refused by a model that does not know it") {
    Sensor sensor = sensors()[0];
    sensor.intensity_noise = true;
    SensorModel model = some_model(7);
    CHECK_NOTHROW(LearnedPass(model, sensor, "mine.toml"));
    model.intensity->residuals.reset();
    CHECK_THROWS_WITH(LearnedPass(model, sensor, "mine.toml"),
                      Catch::Contains("mine.toml") && Catch::Contains("--intensity-noise"));
}

TEST_CASE("drops that are likely are refused by a model that does not know them") {
    Sensor sensor = sensors()[0];
    sensor.likely_drops = true;
    SensorModel model = some_model(7);
    CHECK_NOTHROW(LearnedPass(model, sensor, "mine.toml"));
    model.likely_above.reset();
    CHECK_THROWS_WITH(LearnedPass(model, sensor, "mine.toml"),
                      Catch::Contains("mine.toml") && Catch::Contains("--likely-drops"));
    sensor.most_lost_percent = 3;
    CHECK_NOTHROW(LearnedPass(model, sensor, "mine.toml"));
    model.lost_above.clear();
    CHECK_THROWS_WITH(LearnedPass(model, sensor, "mine.toml"),
                      Catch::Contains("mine.toml") && Catch::Contains("--most-lost"));
}

TEST_CASE("drops that are likely are those above the limit, whatever the seed") {
    Sensor sensor = test::learning_sensor(32, 360);
    const std::vector<Return> returns = scan_of(sensor);
    SensorModel model = some_model(32);
    const auto lost = [&](std::uint64_t seed) {
        std::vector<Return> after = returns;
        PassScratch scratch;
        LearnedPass(model, sensor).apply(after, {scan_key(seed, 0, 4), place_key(seed)}, scratch);
        std::vector<bool> result;
        for (const Return& r : after) result.push_back(r.status == RayStatus::dropped);
        return result;
    };
    const auto drawn = lost(9);
    CHECK(lost(10) != drawn);
    sensor.likely_drops = true;
    const auto likely = lost(9);
    CHECK(lost(10) == likely);
    CHECK(likely != drawn);
    // A higher limit takes some away and adds none.
    model.likely_above = *model.likely_above + 0.25f;
    const auto fewer = lost(9);
    std::size_t less = 0;
    for (std::size_t i = 0; i < likely.size(); ++i) {
        REQUIRE((likely[i] || !fewer[i]));
        less += likely[i] && !fewer[i];
    }
    CHECK(less > 0);
    // The more returns may be lost, the more are; the limit of likely drops has no part in it.
    std::size_t before = 0;
    for (const double percent : {0.0, 1.0, 3.0, 10.0}) {
        sensor.most_lost_percent = percent;
        const auto now = lost(9);
        const auto count = static_cast<std::size_t>(std::count(now.begin(), now.end(), true));
        CHECK(count >= before);
        before = count;
    }
    model.likely_above = model.lost_above_of(0.1);
    sensor.most_lost_percent.reset();
    const auto same = lost(9);
    CHECK(static_cast<std::size_t>(std::count(same.begin(), same.end(), true)) == before);
}

TEST_CASE("noise of intensities brings the scatter back without touching what is lost") {
    Sensor sensor = test::learning_sensor(32, 360);
    const std::vector<Return> returns = scan_of(sensor);
    const SensorModel model = some_model(32);
    const NoiseKeys keys{scan_key(9, 0, 4), place_key(9)};
    PassScratch scratch;
    std::vector<Return> plain = returns, noisy = returns;
    LearnedPass(model, sensor).apply(plain, keys, scratch);
    sensor.intensity_noise = true;
    LearnedPass(model, sensor).apply(noisy, keys, scratch);
    // The table says 0.04 for each unit of a normal number.
    double n = 0, mean = 0, squares = 0;
    for (std::size_t i = 0; i < returns.size(); ++i) {
        REQUIRE(plain[i].status == noisy[i].status);
        if (plain[i].status != RayStatus::hit || plain[i].intensity < 15000 || plain[i].intensity > 50000)
            continue;
        const double difference = (noisy[i].intensity - plain[i].intensity) / 65535.0;
        n += 1, mean += difference, squares += difference * difference;
    }
    REQUIRE(n > 500);
    CHECK(std::fabs(mean / n) < 0.006);
    CHECK(std::sqrt(squares / n) == Approx(0.04).epsilon(0.15));
}
