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
/// The scans that teach, in pieces that follow each other in time; each is judged by what the others teach.
constexpr std::size_t kPieces = 3;

/// Consecutive rays of a set.
struct RayRange {
    std::size_t begin = 0, end = 0;
    bool contains(std::size_t ray) const { return ray >= begin && ray < end; }
};

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
    /// From all rays that teach but those.
    OwnCarMask find_mask(const RayRange& without) const;
    void find_hidden(const OwnCarMask& mask);
    /// Puts another mask in the place of the one that the features were prepared with.
    void change_mask(const OwnCarMask& mask, const Normalisation& norm);
    std::vector<RayRange> pieces() const;
    /// The rays that teach, behind no car, and whether they were lost.
    struct Examples {
        std::vector<std::uint32_t> rays;
        std::vector<float> lost;
        double lost_rays = 0;
    };
    Examples examples(const RayRange& without) const;
    BeamNetwork drop_network(const char* what, const Examples& taught);
    void find_limits(SensorModel& model);
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

OwnCarMask Learner::find_mask(const RayRange& without) const {
    const std::uint32_t beams = set_.grid().beams();
    std::vector<double> seen(std::size_t{beams} * kMaskCells), lost(seen.size());
    for (std::size_t i = 0; i < split_.learn_end; ++i) {
        if (without.contains(i)) continue;
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

void Learner::change_mask(const OwnCarMask& mask, const Normalisation& norm) {
    for (std::size_t i = 0; i < rays_.size(); ++i) {
        const float hides = mask.probability[std::size_t{rays_.beam[i]} * kMaskCells + rays_.mask_cell[i]];
        x_[i][kMask] = normalised(norm, kMask, hides);
        hidden_[i] = hides >= kOwnCar;
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

/// Scores of rays, and of those among them that came back.
struct Scored {
    std::vector<float> all, returned;
    std::size_t lost = 0;
    std::size_t hidden_returns = 0;  ///< behind the mask of the own car: lost whatever their score is
};

/// The score that as many rays exceed as were lost. Requires at least one ray.
float likely_above(std::vector<float> scores, std::size_t lost) {
    const auto at = scores.begin() + static_cast<std::ptrdiff_t>(std::min(lost, scores.size() - 1));
    std::nth_element(scores.begin(), at, scores.end(), std::greater<>());
    return *at;
}

/// SensorModel::lost_above as these rays have it. Requires that one came back.
std::vector<float> lost_above(Scored& rays) {
    std::sort(rays.returned.begin(), rays.returned.end(), std::greater<>());
    const double all = static_cast<double>(rays.returned.size() + rays.hidden_returns);
    std::vector<float> limits;
    for (std::size_t k = 0; k < SensorModel::kLostSteps; ++k) {
        const auto above = static_cast<std::size_t>(static_cast<double>(k) * SensorModel::kLostStep * all);
        limits.push_back(
            rays.returned[std::min(above - std::min(above, rays.hidden_returns), rays.returned.size() - 1)]);
    }
    return limits;
}

std::vector<RayRange> Learner::pieces() const {
    const auto& ends = rays_.scan_ends;
    const auto scans =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), split_.learn_end) - ends.begin());
    std::vector<RayRange> result;
    std::size_t begin = 0;
    for (std::size_t piece = 1; piece <= kPieces; ++piece) {
        const std::size_t scan = piece * scans / kPieces, end = scan == 0 ? 0 : ends[scan - 1];
        if (end > begin) result.push_back({begin, end});
        begin = end;
    }
    return result;
}

Learner::Examples Learner::examples(const RayRange& without) const {
    Examples chosen;
    for (std::size_t i = 0; i < split_.learn_end; ++i) {
        if (hidden_[i] || without.contains(i)) continue;
        chosen.rays.push_back(static_cast<std::uint32_t>(i));
        chosen.lost.push_back(rays_.lost[i]);
        chosen.lost_rays += rays_.lost[i];
    }
    return chosen;
}

BeamNetwork Learner::drop_network(const char* what, const Examples& taught) {
    BeamNetwork net = learn(what, taught.rays, taught.lost, Loss::probit);
    const std::vector<float> scores = outputs_of(net, x_, rays_.beam);
    std::vector<float> chosen;
    for (const std::uint32_t ray : taught.rays) chosen.push_back(scores[ray]);
    net.network.b3 += level_correction(chosen, taught.lost, cancel_);
    return net;
}

/// A network knows the rays that taught it better than others, and so does a mask: their scores would promise
/// a loss that other scans exceed. So the limits are those of scans that did not teach, each piece judged by
/// what the others teach, and of the pieces the one that loses most decides.
void Learner::find_limits(SensorModel& model) {
    std::vector<float> all;
    std::size_t lost = 0;
    for (const RayRange& piece : pieces()) {
        change_mask(find_mask(piece), model.norm);
        const Examples others = examples(piece);
        if (others.lost_rays == 0 || others.lost_rays == static_cast<double>(others.rays.size())) continue;
        const BeamNetwork net = drop_network("judge drop", others);
        const std::size_t count = piece.end - piece.begin;
        const std::vector<float> scores =
            outputs_of(net, std::span(x_).subspan(piece.begin, count),
                       std::span<const std::uint16_t>(rays_.beam).subspan(piece.begin, count));
        Scored judged;
        for (std::size_t i = piece.begin; i < piece.end; ++i) {
            const bool came_back = rays_.lost[i] == 0;
            if (hidden_[i]) {
                judged.hidden_returns += came_back;
                continue;
            }
            all.push_back(scores[i - piece.begin]);
            lost += !came_back;
            if (came_back) judged.returned.push_back(all.back());
        }
        if (judged.returned.empty()) continue;
        const std::vector<float> limits = lost_above(judged);
        if (model.lost_above.empty()) model.lost_above = limits;
        std::transform(limits.begin(), limits.end(), model.lost_above.begin(), model.lost_above.begin(),
                       [](float a, float b) { return std::max(a, b); });
    }
    if (!all.empty()) model.likely_above = likely_above(std::move(all), lost);
    change_mask(model.mask, model.norm);
}

void Learner::learn_drop(SensorModel& model) {
    const Examples taught = examples({});
    const bool none = taught.lost_rays == 0;
    if (none || taught.lost_rays == static_cast<double>(taught.rays.size()))
        throw InputError("of " + std::to_string(taught.rays.size()) + " rays that meet the model, " +
                         (none ? "none" : "every one") +
                         " came back without return; are the empty rays of the scans known?");
    model.training_rays = taught.rays.size();
    model.drop = drop_network("learn drop", taught);
    const std::vector<float> scores = outputs_of(model.drop, x_, rays_.beam);
    model.noise = fit_noise({rays_, 0, split_.learn_end, scores, hidden_}, cancel_);
    model.metrics = judge_drops({rays_, split_.judge_begin, rays_.size(), scores, hidden_}, model.noise,
                                taught.lost_rays / static_cast<double>(taught.rays.size()), cancel_);
    find_limits(model);
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
    model.mask = find_mask({});
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
