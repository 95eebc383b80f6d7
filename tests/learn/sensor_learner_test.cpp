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
    WARN("rays " << m.rays << " of " << model.training_rays << " loss " << m.log_loss << " constant "
                 << m.constant_loss << " auc " << m.auc << " cal " << m.calibration_error << " empty "
                 << m.empty_percent << " wrong " << m.wrong_percent << " count " << m.count_percent
                 << " left " << m.left_real << " " << m.left_model << " int " << m.intensity_rmse << " "
                 << m.recorded_rmse << " shares " << model.noise.scan << " " << model.noise.place);
    // The law's own loss on the same rays: those of the last scans, outside the mask that the model found.
    const LearnedPass pass(model, lesson.sensor);
    double loss = 0, rays = 0;
    std::size_t judged_from = lesson.scans.size() * 7 / 10 + lesson.scans.size() / 12;
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
    WARN("law " << loss / rays << " rays " << rays);
    CHECK(m.log_loss < 1.02 * loss / rays);
}
