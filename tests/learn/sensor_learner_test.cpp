#include "sim/learn/sensor_learner.hpp"

#include "core/error.hpp"
#include "learn/synthetic_law.hpp"
#include "sim/learn/drop_metrics.hpp"

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
