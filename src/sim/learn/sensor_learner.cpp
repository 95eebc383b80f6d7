#include "sim/learn/sensor_learner.hpp"

#include "core/error.hpp"
#include "sim/learn/drop_metrics.hpp"
#include "sim/learn/intensity_residuals.hpp"
#include "sim/learn/network_trainer.hpp"
#include "sim/learn/probit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::sim::learn {

namespace {

/// A mask cell with few rays is drawn towards "seen": it counts as if it had this many returns more.
constexpr double kMaskCaution = 4;
/// A beam's gain is drawn towards that of all beams as by this many rays of mean intensity.
constexpr double kGainCaution = 50;
/// Fewer matched returns than this teach no intensity.
constexpr std::size_t kLeastMatched = 1000;

/// The rays of the first scans learn, those of the last judge; some in between do neither, because
/// neighbours in time are alike.
struct Split {
    std::size_t learn_end, judge_begin;
};
Split split_by_time(const LearningSet& set, double share) {
    const std::size_t scans = set.scans();
    const auto learning = std::clamp<std::size_t>(
        static_cast<std::size_t>(std::floor(share * static_cast<double>(scans))), 1, scans - 1);
    const std::size_t gap = std::min(scans / 12, scans - 1 - learning);
    const auto& ends = set.rays().scan_ends;
    return {ends[learning - 1], ends[learning + gap - 1]};
}

class Learner {
  public:
    Learner(const LearningSet& set, const LearnOptions& options, const CancelToken& cancel,
            Progress& progress)
        : set_(set),
          rays_(set.rays()),
          options_(options),
          cancel_(cancel),
          progress_(progress),
          split_(split_by_time(set, options.train_share)) {}

    SensorModel run(const Sensor& sensor);

  private:
    OwnCarMask find_mask() const;
    void find_hidden(const OwnCarMask& mask);
    Normalisation find_scales() const;
    void prepare_features(const Normalisation& norm);
    BeamNetwork learn(const char* what, const std::vector<std::uint32_t>& chosen,
                      const std::vector<float>& target, Loss loss);
    void learn_drop(SensorModel& model);
    void learn_intensity(SensorModel& model);
    std::vector<std::uint32_t> matched(std::size_t begin, std::size_t end) const;
    struct IntensityError {
        double mean = 0, rmse = 0;  ///< of absolute values, and of squares
    };
    struct IntensityErrors {
        IntensityError corrected, recorded;
    };
    IntensityErrors judge_intensity(const std::vector<std::uint32_t>& chosen, const std::vector<float>& gain,
                                    const std::vector<float>& corrections) const;
    /// As a simulation would give it.
    float corrected_value(std::uint32_t ray, const std::vector<float>& gain,
                          const std::vector<float>& corrections) const;
    float recorded(std::size_t ray) const { return rays_.features[ray][kIntensity]; }

    const LearningSet& set_;
    const LearningRays& rays_;
    const LearnOptions& options_;
    const CancelToken& cancel_;
    Progress& progress_;
    Split split_;
    std::vector<std::array<float, kFeatures>> x_;  ///< normalised
    std::vector<std::uint8_t> hidden_;
};

OwnCarMask Learner::find_mask() const {
    const std::uint32_t beams = set_.grid().beams();
    std::vector<double> seen(std::size_t{beams} * kMaskCells), lost(seen.size());
    for (std::size_t i = 0; i < split_.learn_end; ++i) {
        const std::size_t cell = std::size_t{rays_.beam[i]} * kMaskCells + rays_.mask_cell[i];
        seen[cell] += 1;
        lost[cell] += rays_.lost[i];
    }
    OwnCarMask mask{options_.mask_below_deg, std::vector<float>(seen.size())};
    for (std::uint32_t beam = 0; beam < beams; ++beam) {
        if (set_.grid().elevation_deg(beam) > mask.below_deg) continue;
        for (std::size_t i = std::size_t{beam} * kMaskCells; i < std::size_t{beam + 1} * kMaskCells; ++i)
            // As the file keeps it: in steps of 1/255.
            mask.probability[i] =
                static_cast<float>(std::floor(lost[i] / (seen[i] + kMaskCaution) * 255 + 0.5)) / 255.0f;
    }
    return mask;
}

Normalisation Learner::find_scales() const {
    Normalisation norm{};
    for (unsigned j = 0; j < kFeatures; ++j) {
        double n = 0, sum = 0, squares = 0;
        cancel_.check();
        for (std::size_t i = 0; i < split_.learn_end; ++i) {
            const auto value = static_cast<double>(x_[i][j]);
            if (hidden_[i] || std::isnan(value)) continue;
            n += 1;
            sum += value;
            squares += value * value;
        }
        const double mean = n > 0 ? sum / n : 0,
                     variance = n > 0 ? std::max(0.0, squares / n - mean * mean) : 0;
        norm.mean[j] = static_cast<float>(mean);
        // A feature that never changes says nothing.
        norm.scale[j] = variance > 1e-12 ? static_cast<float>(1 / std::sqrt(variance)) : 0.0f;
    }
    return norm;
}

void Learner::find_hidden(const OwnCarMask& mask) {
    hidden_.resize(rays_.size());
    x_ = rays_.features;
    for (std::size_t i = 0; i < rays_.size(); ++i) {
        x_[i][kMask] = mask.probability[std::size_t{rays_.beam[i]} * kMaskCells + rays_.mask_cell[i]];
        hidden_[i] = x_[i][kMask] >= kOwnCar;
    }
}

void Learner::prepare_features(const Normalisation& norm) {
    for (auto& f : x_) {
        for (const unsigned j : {kRecordedRange, kRecordedIncidence})
            if (std::isnan(f[j])) f[j] = norm.mean[j];
        float values[kFeatures];
        std::copy(f.begin(), f.end(), values);
        normalise(norm, values);
        f = std::to_array(values);
    }
}

BeamNetwork Learner::learn(const char* what, const std::vector<std::uint32_t>& chosen,
                           const std::vector<float>& target, Loss loss) {
    std::vector<std::array<float, kFeatures>> x(chosen.size());
    std::vector<std::uint16_t> beam(chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        x[i] = x_[chosen[i]];
        beam[i] = rays_.beam[chosen[i]];
    }
    constexpr std::uint64_t kSteps = 100;
    Progress::Stage stage(progress_, what, kSteps, "%");
    std::uint64_t told = 0;
    const auto done = [&](double share) {
        const auto now = static_cast<std::uint64_t>(share * kSteps);
        stage.advance(now - told);
        told = now;
    };
    const TrainingTask task{x, beam, target, set_.grid().beams(), loss, options_.effort};
    return train_network(task, cancel_, done);
}

/// What must be added to the scores so that as many rays are lost as really were. The network comes near; the
/// number of returns should be right.
float level_correction(const std::vector<float>& scores, const std::vector<float>& lost,
                       const CancelToken& cancel) {
    double wanted = 0;
    for (const float v : lost) wanted += static_cast<double>(v);
    double low = -0.5, high = 0.5;
    for (int round = 0; round < 16; ++round) {
        const double middle = (low + high) / 2;
        double said = 0;
        cancel.check();
        for (const float score : scores) said += normal_cdf(static_cast<double>(score) + middle);
        (said < wanted ? low : high) = middle;
    }
    return static_cast<float>((low + high) / 2);
}

/// The score that as many rays exceed as were lost. Requires that some were lost and some were not.
float likely_above(std::vector<float> scores, const std::vector<float>& lost) {
    const auto count = std::count_if(lost.begin(), lost.end(), [](float v) { return v > 0; });
    const auto at = scores.begin() + count;
    std::nth_element(scores.begin(), at, scores.end(), std::greater<>());
    return *at;
}

/// SensorModel::lost_above: of the scores of rays that came back, and of `hidden` ones more, which are lost
/// whatever their score is.
std::vector<float> lost_above(std::vector<float> returned, std::size_t hidden) {
    std::sort(returned.begin(), returned.end(), std::greater<>());
    const double all = static_cast<double>(returned.size() + hidden);
    std::vector<float> limits;
    for (std::size_t k = 0; k < SensorModel::kLostSteps; ++k) {
        const auto above = static_cast<std::size_t>(static_cast<double>(k) * SensorModel::kLostStep * all);
        limits.push_back(returned[std::min(above - std::min(above, hidden), returned.size() - 1)]);
    }
    return limits;
}

void Learner::learn_drop(SensorModel& model) {
    std::vector<std::uint32_t> chosen;
    std::vector<float> lost;
    double lost_rays = 0;
    for (std::size_t i = 0; i < split_.learn_end; ++i) {
        if (hidden_[i]) continue;
        chosen.push_back(static_cast<std::uint32_t>(i));
        lost.push_back(rays_.lost[i]);
        lost_rays += rays_.lost[i];
    }
    if (lost_rays == 0 || lost_rays == static_cast<double>(chosen.size()))
        throw InputError("of " + std::to_string(chosen.size()) + " rays that meet the model, " +
                         (lost_rays == 0 ? "none" : "every one") +
                         " came back without return; are the empty rays of the scans known?");
    model.training_rays = chosen.size();
    model.drop = learn("learn drop", chosen, lost, Loss::probit);
    std::vector<float> scores = outputs_of(model.drop, x_, rays_.beam), chosen_scores;
    for (const std::uint32_t ray : chosen) chosen_scores.push_back(scores[ray]);
    const float correction = level_correction(chosen_scores, lost, cancel_);
    model.drop.network.b3 += correction;
    for (float& score : scores) score += correction;
    for (float& score : chosen_scores) score += correction;
    std::vector<float> returned;
    for (std::size_t i = 0; i < chosen.size(); ++i)
        if (lost[i] == 0) returned.push_back(chosen_scores[i]);
    std::size_t hidden_returns = 0;
    for (std::size_t i = 0; i < split_.learn_end; ++i) hidden_returns += hidden_[i] && rays_.lost[i] == 0;
    model.lost_above = lost_above(std::move(returned), hidden_returns);
    model.likely_above = likely_above(std::move(chosen_scores), lost);
    model.noise = fit_noise({rays_, 0, split_.learn_end, scores, hidden_}, cancel_);
    model.metrics = judge_drops({rays_, split_.judge_begin, rays_.size(), scores, hidden_}, model.noise,
                                lost_rays / static_cast<double>(chosen.size()), cancel_);
}

std::vector<std::uint32_t> Learner::matched(std::size_t begin, std::size_t end) const {
    std::vector<std::uint32_t> chosen;
    for (std::size_t i = begin; i < end; ++i)
        if (rays_.real_intensity[i] >= 0 && !hidden_[i]) chosen.push_back(static_cast<std::uint32_t>(i));
    return chosen;
}

/// A real intensity by a recorded one, and the recorded one.
struct Ratio {
    float value, weight;
};

/// The gain g with the least sum of |real − g·recorded|: a few mirrors do not change it.
double weighted_median(std::vector<Ratio>& ratios) {
    std::sort(ratios.begin(), ratios.end(), [](const Ratio& a, const Ratio& b) {
        return std::pair(a.value, a.weight) < std::pair(b.value, b.weight);
    });
    double all = 0, below = 0;
    for (const Ratio& r : ratios) all += static_cast<double>(r.weight);
    for (const Ratio& r : ratios)
        if ((below += static_cast<double>(r.weight)) >= all / 2) return static_cast<double>(r.value);
    return 1;
}

void Learner::learn_intensity(SensorModel& model) {
    const std::vector<std::uint32_t> chosen = matched(0, split_.learn_end);
    std::vector<Ratio> all;
    std::vector<std::vector<Ratio>> by_beam(model.beams);
    for (const std::uint32_t i : chosen) {
        if (!(recorded(i) > 0)) continue;
        all.push_back({rays_.real_intensity[i] / recorded(i), recorded(i)});
        by_beam[rays_.beam[i]].push_back(all.back());
    }
    if (chosen.size() < kLeastMatched || all.empty()) return;
    cancel_.check();
    const double gain = weighted_median(all);
    if (!(gain > 0)) return;
    IntensityCorrection& result = model.intensity.emplace();
    for (std::vector<Ratio>& ratios : by_beam) {
        const double n = static_cast<double>(ratios.size()),
                     own = ratios.empty() ? gain : weighted_median(ratios);
        result.gain.push_back(static_cast<float>((n * own + kGainCaution * gain) / (n + kGainCaution)));
    }
    std::vector<float> target;
    for (const std::uint32_t i : chosen)
        target.push_back(rays_.real_intensity[i] - result.gain[rays_.beam[i]] * recorded(i));
    result.net = learn("learn intensity", chosen, target, Loss::huber);

    std::vector<float> corrections = outputs_of(result.net, x_, rays_.beam);
    cancel_.check();
    const std::vector<std::uint32_t> judges = matched(split_.judge_begin, rays_.size());
    IntensityErrors judged = judge_intensity(judges, result.gain, corrections);
    const IntensityErrors taught = judge_intensity(chosen, result.gain, corrections);
    // What was recorded may be what the sensor sees; then there is nothing to correct. Means of absolute
    // values decide: in squares a few mirrors are more than all the rest.
    if (taught.corrected.mean >= taught.recorded.mean) {
        result = IntensityCorrection::none(model.beams);
        corrections.assign(corrections.size(), 0);
        judged.corrected = judged.recorded;
    }
    cancel_.check();
    std::vector<float> expected(rays_.size());
    for (const std::uint32_t i : chosen) expected[i] = corrected_value(i, result.gain, corrections);
    result.residuals = find_residuals(rays_, chosen, expected);
    model.metrics.intensity_rmse = judged.corrected.rmse;
    model.metrics.recorded_rmse = judged.recorded.rmse;
}

float Learner::corrected_value(std::uint32_t i, const std::vector<float>& gain,
                               const std::vector<float>& corrections) const {
    const auto recorded_value = static_cast<std::uint16_t>(recorded(i) * 65535.0f + 0.5f);
    return kIntensityScale *
           static_cast<float>(corrected_intensity(recorded_value, gain[rays_.beam[i]], corrections[i]));
}

Learner::IntensityErrors Learner::judge_intensity(const std::vector<std::uint32_t>& chosen,
                                                  const std::vector<float>& gain,
                                                  const std::vector<float>& corrections) const {
    if (chosen.empty()) return {};
    IntensityErrors sums;
    const auto add = [](IntensityError& to, double error) {
        to.mean += std::fabs(error);
        to.rmse += error * error;
    };
    for (const std::uint32_t i : chosen) {
        const float value = corrected_value(i, gain, corrections);
        add(sums.corrected, static_cast<double>(value - rays_.real_intensity[i]));
        add(sums.recorded, static_cast<double>(recorded(i) - rays_.real_intensity[i]));
    }
    const double n = static_cast<double>(chosen.size());
    for (IntensityError* of : {&sums.corrected, &sums.recorded})
        *of = {of->mean / n, std::sqrt(of->rmse / n)};
    return sums;
}

SensorModel Learner::run(const Sensor& sensor) {
    SensorModel model;
    model.sensor = sensor.id;
    model.beams = set_.grid().beams();
    model.training_digest = set_.digest().hex();
    model.mask = find_mask();
    cancel_.check();
    find_hidden(model.mask);
    cancel_.check();
    model.norm = find_scales();
    cancel_.check();
    prepare_features(model.norm);
    learn_drop(model);
    learn_intensity(model);
    return model;
}

}  // namespace

SensorModel learn_sensor(const LearningSet& set, const Sensor& sensor, const LearnOptions& options,
                         const CancelToken& cancel, Progress& progress) {
    if (set.scans() < kLeastScans)
        throw InputError("a model is learned from " + std::to_string(kLeastScans) +
                         " scans at least, there are " + std::to_string(set.scans()));
    return Learner(set, options, cancel, progress).run(sensor);
}

}  // namespace citysplat::sim::learn
