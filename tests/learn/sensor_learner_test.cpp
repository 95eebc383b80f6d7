#include "sim/learn/sensor_learner.hpp"

#include "core/error.hpp"
#include "learn/synthetic_law.hpp"
#include "sim/learn/drop_metrics.hpp"
#include "sim/learn/intensity_residuals.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <cmath>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::sim::learn;
using test::SyntheticLaw;

namespace {

struct Lesson {
    Sensor sensor;
    std::vector<Scan> scans;
    SyntheticLaw law;
    LearningSet set;

    explicit Lesson(const Sensor& s, double length_m, double seconds)
        : sensor(s), scans(test::clean_scans(s, length_m, seconds)), set(s) {
        for (const Scan& scan : scans) set.add(law.observe(scan, set.grid()));
    }
    SensorModel learn(const LearnOptions& options = {}) const {
        CancelToken cancel;
        Progress progress;
        return learn_sensor(set, sensor, options, cancel, progress);
    }
};

}  // namespace

TEST_CASE("a model of a known law of ray drop comes near the law itself", "[slow]") {
    const Lesson lesson(test::learning_sensor(), 60, 4.01);
    const SensorModel model = lesson.learn();
    const DropMetrics& m = model.metrics;
    const LearnedPass pass(model, lesson.sensor);
    // The law's own loss on the rays that judge.
    double loss = 0, rays = 0;
    const std::size_t judged_from = lesson.scans.size() * 7 / 10 + lesson.scans.size() / 12;
    for (std::size_t s = judged_from; s < lesson.scans.size(); ++s) {
        const LearningScan truth = lesson.law.observe(lesson.scans[s], pass.grid());
        for (std::uint32_t ray = 0; ray < truth.simulated.size(); ++ray) {
            const Return& r = truth.simulated[ray];
            if (r.status != RayStatus::hit) continue;
            if (lesson.law.behind_car(pass.grid(), r.beam, ray / pass.grid().beams())) continue;
            const double p = normal_cdf(lesson.law.score(r));
            loss -= std::log(truth.observed[ray].answer == Answer::empty ? p : 1 - p);
            rays += 1;
        }
    }
    loss /= rays;
    CAPTURE(m.log_loss, loss, m.constant_loss, m.auc, m.calibration_error, m.left_real, m.left_model);
    CHECK(static_cast<double>(m.rays) == Approx(rays).epsilon(0.01));
    CHECK(m.log_loss < 1.02 * loss);
    CHECK(m.log_loss > 0.98 * loss);
    CHECK(loss < 0.85 * m.constant_loss);
    CHECK(m.calibration_error <= 0.01);
    CHECK(m.count_percent <= 1);
    CHECK(std::fabs(m.left_model - m.left_real) <= 0.05);
    CHECK(model.noise.scan == Approx(lesson.law.shares.scan).margin(0.11));
    CHECK(model.noise.place == Approx(lesson.law.shares.place).margin(0.11));
    CHECK(m.intensity_rmse < 0.2 * m.recorded_rmse);

    // The car is where it is, and nowhere else.
    for (std::uint32_t beam = 0; beam < model.beams; ++beam)
        for (std::uint32_t cell = 0; cell < kMaskCells; ++cell) {
            const bool car = pass.grid().elevation_deg(beam) < -12 && cell >= 150 && cell < 210;
            CAPTURE(beam, cell, car);
            REQUIRE((model.mask.probability[beam * kMaskCells + cell] >= kOwnCar) == car);
        }

    // Simulated with another seed, the last scans have as many returns as really came back.
    for (std::size_t s = judged_from; s < lesson.scans.size(); ++s) {
        const LearningScan truth = lesson.law.observe(lesson.scans[s], pass.grid());
        std::vector<Return> returns = truth.simulated;
        PassScratch scratch;
        pass.apply(returns, {scan_key(2, 0, s), place_key(2)}, scratch);
        double simulated = 0, real = 0;
        for (std::size_t i = 0; i < returns.size(); ++i) {
            simulated += returns[i].status == RayStatus::hit;
            real += truth.observed[i].answer == Answer::returned;
        }
        CHECK(simulated == Approx(real).epsilon(0.02));
    }
}

TEST_CASE("the same scans teach the same bytes, on any number of threads") {
    const Lesson lesson(test::learning_sensor(16, 180), 30, 1.21);
    LearnOptions options;
    options.effort = 0.02;
    const std::string text = lesson.learn(options).text();
    CHECK(text == lesson.learn(options).text());
    for (const std::size_t threads : {1u, 3u}) {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
        CHECK(text == lesson.learn(options).text());
    }
    const SensorModel model = SensorModel::parse(text, "m.toml");
    CHECK(model.metrics.log_loss < model.metrics.constant_loss);
    CHECK(model.metrics.empty_percent > 30);
    CHECK(model.likely_above.has_value());
    CHECK(model.lost_above.size() == SensorModel::kLostSteps);
}

TEST_CASE("what a model may lose is no more on scans that did not teach") {
    // So few rays that a network learns them by heart: what their own scores promise does not hold elsewhere.
    const Lesson lesson(test::learning_sensor(16, 180), 30, 2.41);
    LearnOptions options;
    options.effort = 0.5;
    const SensorModel model = lesson.learn(options);
    const std::size_t judged_from = lesson.scans.size() * 7 / 10 + lesson.scans.size() / 12;
    for (const double percent : {2.0, 4.0, 8.0}) {
        Sensor sensor = lesson.sensor;
        sensor.most_lost_percent = percent;
        const LearnedPass pass(model, sensor);
        double returned = 0, lost = 0, empty = 0, left_empty = 0;
        for (std::size_t s = judged_from; s < lesson.scans.size(); ++s) {
            const LearningScan truth = lesson.law.observe(lesson.scans[s], pass.grid());
            std::vector<Return> returns = truth.simulated;
            PassScratch scratch;
            pass.apply(returns, {scan_key(2, 0, s), place_key(2)}, scratch);
            for (std::size_t i = 0; i < returns.size(); ++i) {
                if (!met_something(returns[i])) continue;
                const bool gone = returns[i].status == RayStatus::dropped;
                const bool came_back = truth.observed[i].answer == Answer::returned;
                (came_back ? returned : empty) += 1;
                if (gone) (came_back ? lost : left_empty) += 1;
            }
        }
        CAPTURE(percent, returned, lost, empty, left_empty);
        CHECK(lost <= percent / 100 * returned);
        CHECK(left_empty > 0.5 * empty);
    }
}

TEST_CASE("the scatter of intensities and what neighbours have of it in common is found") {
    // A tail: 0.02 for a normal number of 0, 0.05 for 1, and 0.2 for 2; ten rays to a voxel.
    const auto tail = [](double z) { return 0.02 * std::exp(1.1 * z); };
    LearningRays rays;
    std::vector<std::uint32_t> chosen;
    std::vector<float> expected;
    constexpr std::uint32_t kRays = 200'000;
    for (std::uint32_t i = 0; i < kRays; ++i) {
        const double voxel = rng::gaussian(1, i / 10), own = rng::gaussian(2, i);
        const double z = std::sqrt(0.6) * voxel + std::sqrt(0.4) * own;
        expected.push_back(i % 3 == 0 ? 0.1f : 0.3f);
        rays.real_intensity.push_back(expected.back() +
                                      static_cast<float>(i % 3 == 0 ? 2 * tail(z) : tail(z)));
        rays.noise.push_back({static_cast<float>(voxel), 0, 0});
        rays.left.push_back(i == 0 ? kNoRay : i - 1);
        rays.lost.push_back(0);
        chosen.push_back(i);
    }
    const ResidualTable table = find_residuals(rays, chosen, expected);
    CHECK(table.share == Approx(0.6).margin(0.02));
    for (const double z : {-2.0, -1.0, 0.0, 1.0, 2.0}) {
        CHECK(static_cast<double>(residual_at(table, 0.3f, z)) == Approx(tail(z)).epsilon(0.05));
        CHECK(static_cast<double>(residual_at(table, 0.1f, z)) == Approx(2 * tail(z)).epsilon(0.05));
        // A level without rays is as the nearest one with some.
        CHECK(residual_at(table, 0.9f, z) == residual_at(table, 0.3f, z));
        CHECK(residual_at(table, 0.0f, z) == residual_at(table, 0.1f, z));
    }
}

TEST_CASE("a few mirrors do not change how bright everything else is") {
    const Sensor sensor = test::learning_sensor(16, 180);
    const SyntheticLaw law;
    LearningSet set(sensor);
    std::vector<Scan> scans = test::clean_scans(sensor, 30, 1.21);
    const auto is_mirror = [](std::size_t ray) { return rng::uniform(8, ray) < 0.02; };
    for (const Scan& scan : scans) {
        LearningScan lesson = law.observe(scan, set.grid());
        for (std::size_t i = 0; i < lesson.observed.size(); ++i)
            lesson.observed[i].intensity =
                is_mirror(i) ? 1.0f : static_cast<float>(lesson.simulated[i].intensity) * kIntensityScale;
        set.add(lesson);
    }
    CancelToken cancel;
    Progress progress;
    LearnOptions options;
    options.effort = 0.05;
    const SensorModel model = learn_sensor(set, sensor, options, cancel, progress);
    REQUIRE(model.intensity);
    CHECK_FALSE(model.intensity->corrects());
    REQUIRE(model.intensity->residuals);
    // One in fifty is a mirror: beyond a normal number of 2.05.
    CHECK(residual_at(*model.intensity->residuals, 0.2f, 0.0) == 0);
    CHECK(residual_at(*model.intensity->residuals, 0.2f, 2.6) > 0.5f);
    std::vector<Return> returns = scans[0].returns;
    PassScratch scratch;
    LearnedPass(model, sensor).apply(returns, {1, 2}, scratch);
    for (std::size_t i = 0; i < returns.size(); ++i)
        REQUIRE(returns[i].intensity == scans[0].returns[i].intensity);
}

TEST_CASE("too little to learn from is said") {
    const Sensor sensor = test::learning_sensor(16, 180);
    CancelToken cancel;
    Progress progress;
    LearningSet few(sensor);
    CHECK_THROWS_WITH(learn_sensor(few, sensor, {}, cancel, progress), Catch::Contains("4 scans"));
    CHECK_THROWS_AS(few.add(LearningScan{0, std::vector<Return>(7), std::vector<Observation>(7)}),
                    InputError);
    LearningSet lossless(sensor);
    for (const Scan& scan : test::clean_scans(sensor, 10, 0.61)) {
        LearningScan lesson{scan.time_s, scan.returns, std::vector<Observation>(scan.returns.size())};
        for (Observation& o : lesson.observed) o = {Answer::returned, 1, -1};
        lossless.add(lesson);
    }
    CHECK_THROWS_WITH(learn_sensor(lossless, sensor, {}, cancel, progress),
                      Catch::Contains("none") && Catch::Contains("empty rays"));
    cancel.request();
    const Lesson lesson(sensor, 10, 0.61);
    CHECK_THROWS_AS(learn_sensor(lesson.set, sensor, {}, cancel, progress), Interrupted);
}
