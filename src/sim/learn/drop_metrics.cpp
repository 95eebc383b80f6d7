#include "sim/learn/drop_metrics.hpp"

#include "core/math/math_hd.hpp"
#include "core/parallel.hpp"
#include "sim/learn/probit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace citysplat::sim::learn {

namespace {

/// Of the shares that are tried.
constexpr int kShareSteps = 20;
/// With fewer cases a share would be a guess.
constexpr std::uint64_t kLeastCases = 200;
/// Rays that shares are fitted to: enough for three digits.
constexpr std::size_t kMostFitted = 2'000'000;

template <class Lost>
Clumping clumping(const JudgedRays& judged, const Lost& lost) {
    Clumping c;
    std::uint64_t left = 0, again = 0;
    for (std::size_t i = judged.first; i < judged.end; ++i) {
        if (judged.hidden[i] || !lost(i)) continue;
        if (const std::uint32_t other = judged.rays.left[i]; other != kNoRay && judged.outside(other)) {
            ++c.lefts;
            left += lost(other);
        }
        if (const std::uint32_t other = judged.rays.again[i]; other != kNoRay && judged.outside(other)) {
            ++c.agains;
            again += lost(other);
        }
    }
    c.left = c.lefts > 0 ? static_cast<double>(left) / static_cast<double>(c.lefts) : 0;
    c.again = c.agains > 0 ? static_cast<double>(again) / static_cast<double>(c.agains) : 0;
    return c;
}

/// Whether the model loses a ray with these shares and the noise of the set.
class ModelLoses {
  public:
    ModelLoses(const JudgedRays& judged, const NoiseShares& shares)
        : judged_(judged),
          scan_(static_cast<float>(std::sqrt(shares.scan))),
          place_(static_cast<float>(std::sqrt(shares.place))),
          ray_(static_cast<float>(std::sqrt(std::max(0.0, 1 - shares.scan - shares.place)))) {}
    bool operator()(std::size_t i) const {
        const LearningRays::Noise& g = judged_.rays.noise[i];
        return scan_ * g.scan + place_ * g.place + ray_ * g.ray < judged_.score[i];
    }

  private:
    const JudgedRays& judged_;
    float scan_, place_, ray_;
};

/// The area under the curve of hits against false alarms, from ranks; ties count half.
double area_under_curve(std::vector<std::pair<float, std::uint8_t>>& scored) {
    std::sort(scored.begin(), scored.end());
    double rank_sum = 0, lost = 0;
    for (std::size_t begin = 0; begin < scored.size();) {
        std::size_t end = begin;
        double lost_here = 0;
        while (end < scored.size() && scored[end].first == scored[begin].first)
            lost_here += scored[end++].second;
        rank_sum += lost_here * (static_cast<double>(begin + end) + 1) / 2;
        lost += lost_here;
        begin = end;
    }
    const double kept = static_cast<double>(scored.size()) - lost;
    return lost > 0 && kept > 0 ? (rank_sum - lost * (lost + 1) / 2) / (lost * kept) : 0.5;
}

/// What is said and seen in tenths of the probability.
class Reliability {
  public:
    void add(double probability, bool lost) {
        Tenth& t = tenths_[std::min<std::size_t>(9, static_cast<std::size_t>(probability * 10))];
        ++t.rays;
        t.said += probability;
        t.seen += lost;
    }
    double error() const {
        double sum = 0, rays = 0;
        for (const Tenth& t : tenths_) sum += std::fabs(t.said - t.seen), rays += t.rays;
        return rays > 0 ? sum / rays : 0;
    }

  private:
    struct Tenth {
        double rays = 0, said = 0, seen = 0;
    };
    std::array<Tenth, 10> tenths_;
};

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// With the mask, ray by ray as a simulation would do it.
void judge_samples(const JudgedRays& judged, const ModelLoses& loses, DropMetrics& m) {
    double empty = 0, empty_lost = 0, real = 0, real_lost = 0, count_error = 0;
    int scans = 0;
    std::size_t begin = 0;
    for (const std::size_t end : judged.rays.scan_ends) {
        double real_here = 0, model_here = 0;
        for (std::size_t i = std::max(begin, judged.first); i < std::min(end, judged.end); ++i) {
            const bool lost = judged.hidden[i] || loses(i);
            (judged.rays.lost[i] ? empty : real) += 1;
            if (lost) (judged.rays.lost[i] ? empty_lost : real_lost) += 1;
            real_here += !judged.rays.lost[i];
            model_here += !lost;
        }
        if (real_here > 0) count_error += std::fabs(model_here / real_here - 1), ++scans;
        begin = end;
    }
    m.empty_percent = percent(empty_lost, empty);
    m.wrong_percent = percent(real_lost, real);
    m.count_percent = percent(count_error, scans);
}

}  // namespace

Clumping real_clumping(const JudgedRays& judged) {
    return clumping(judged, [&](std::size_t i) { return judged.rays.lost[i] != 0; });
}

Clumping model_clumping(const JudgedRays& judged, const NoiseShares& shares) {
    return clumping(judged, ModelLoses(judged, shares));
}

NoiseShares fit_noise(const JudgedRays& all, const CancelToken& cancel) {
    JudgedRays judged = all;
    judged.end = std::min(judged.end, judged.first + kMostFitted);
    const Clumping real = real_clumping(judged);
    if (real.lefts < kLeastCases) return {};
    std::vector<std::pair<double, NoiseShares>> tried;
    for (int scan = 0; scan < kShareSteps; ++scan)
        for (int place = 0; scan + place < kShareSteps; ++place)
            tried.emplace_back(0, NoiseShares{scan / double{kShareSteps}, place / double{kShareSteps}});
    parallel_for(tried.size(), [&](std::size_t i) {
        cancel.check();
        const Clumping model = model_clumping(judged, tried[i].second);
        const double left = model.left - real.left,
                     again = real.agains < kLeastCases ? 0 : model.again - real.again;
        tried[i].first = left * left + again * again;
    });
    return std::min_element(tried.begin(), tried.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; })
        ->second;
}

DropMetrics judge_drops(const JudgedRays& judged, const NoiseShares& shares, double constant,
                        const CancelToken& cancel) {
    DropMetrics m;
    const ProbitLoss probit;
    Reliability reliability;
    std::vector<std::pair<float, std::uint8_t>> scored;
    double loss = 0, brier = 0, lost_rays = 0;
    constexpr std::size_t kRaysAtOnce = std::size_t{1} << 16;
    for (std::size_t i = judged.first; i < judged.end; ++i) {
        if (i % kRaysAtOnce == 0) cancel.check();
        if (judged.hidden[i]) continue;
        const bool lost = judged.rays.lost[i] != 0;
        const float score = judged.score[i];
        const double probability = normal_cdf(static_cast<double>(score));
        loss += static_cast<double>(probit.at(lost ? score : -score).loss);
        brier += (probability - lost) * (probability - lost);
        lost_rays += lost;
        reliability.add(probability, lost);
        scored.emplace_back(score, lost);
    }
    const double n = static_cast<double>(scored.size());
    m.rays = scored.size();
    if (n > 0) {
        const double said = std::clamp(constant, 1e-9, 1 - 1e-9);
        m.log_loss = loss / n;
        m.brier = brier / n;
        m.constant_loss = -(lost_rays * exact::log(said) + (n - lost_rays) * exact::log(1 - said)) / n;
    }
    cancel.check();
    m.auc = area_under_curve(scored);
    cancel.check();
    m.calibration_error = reliability.error();
    judge_samples(judged, ModelLoses(judged, shares), m);
    m.left_real = real_clumping(judged).left;
    m.left_model = model_clumping(judged, shares).left;
    return m;
}

}  // namespace citysplat::sim::learn
