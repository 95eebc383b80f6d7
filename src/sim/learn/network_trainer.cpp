#include "sim/learn/network_trainer.hpp"

#include "core/math/math_hd.hpp"
#include "core/parallel.hpp"
#include "sim/learn/probit.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace citysplat::sim::learn {

namespace {

constexpr std::size_t kPartRays = 512, kParts = 8, kBatchRays = kPartRays * kParts;
/// Every ray is seen as often as makes this many in all, within limits.
constexpr std::size_t kVisits = 16'000'000, kLeastEpochs = 5, kMostEpochs = 60;
constexpr float kFirstRate = 4e-3f, kMomentum = 0.9f, kSquareMomentum = 0.999f, kAdamFloor = 1e-8f;
/// Pulls the biases of a beam towards those of all beams: a beam with few rays learns little of its own.
constexpr float kBeamDecay = 1e-5f;
constexpr std::uint64_t kSeed = 20;

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
using Layer1 = Eigen::Matrix<float, kHidden1, kFeatures, Eigen::RowMajor>;
using Layer2 = Eigen::Matrix<float, kHidden2, kHidden1, Eigen::RowMajor>;
using Hidden1 = Eigen::Matrix<float, kHidden1, 1>;
using Hidden2 = Eigen::Matrix<float, kHidden2, 1>;

/// All that is learned, and equally its gradient.
struct Weights {
    Layer1 w1;
    Layer2 w2;
    Hidden1 b1;
    Hidden2 b2, w3;
    float b3;
    Matrix beam;  ///< 16 × beams, added to b1

    explicit Weights(std::uint32_t beams) : beam(kHidden1, beams) { clear(); }
    void clear() {
        w1.setZero(), w2.setZero(), b1.setZero(), b2.setZero(), w3.setZero(), beam.setZero();
        b3 = 0;
    }
    /// Calls f(values of this, values of the others …) for each block of numbers.
    template <class F, class... Others>
    void for_each(const F& f, Others&... others) {
        f(std::span(w1.data(), static_cast<std::size_t>(w1.size())), others.w1.data()...);
        f(std::span(w2.data(), static_cast<std::size_t>(w2.size())), others.w2.data()...);
        f(std::span(b1.data(), kHidden1), others.b1.data()...);
        f(std::span(b2.data(), kHidden2), others.b2.data()...);
        f(std::span(w3.data(), kHidden2), others.w3.data()...);
        f(std::span(&b3, 1), &others.b3...);
        f(std::span(beam.data(), static_cast<std::size_t>(beam.size())), others.beam.data()...);
    }
};

void leak(Matrix& m) { m = m.cwiseMax(0.125f * m); }
/// The slope of leaky() times `m`, told by the sign of its result.
void unleak(Matrix& m, const Matrix& result) { m = (result.array() > 0).select(m, 0.125f * m); }

/// Forward and backward through one part of a batch.
class Part {
  public:
    explicit Part(std::uint32_t beams) : gradient(beams) {}

    void run(const TrainingTask& task, const Weights& w, const ProbitLoss& probit,
             std::span<const std::uint32_t> rays);

    Weights gradient;

  private:
    Matrix x_, h1_, h2_, d1_, d2_;
    Eigen::RowVectorXf output_;
};

void Part::run(const TrainingTask& task, const Weights& w, const ProbitLoss& probit,
               std::span<const std::uint32_t> rays) {
    const auto n = static_cast<Eigen::Index>(rays.size());
    x_.resize(kFeatures, n);
    h1_.resize(kHidden1, n);
    for (Eigen::Index i = 0; i < n; ++i) {
        const std::uint32_t ray = rays[static_cast<std::size_t>(i)];
        std::memcpy(x_.col(i).data(), task.x[ray].data(), sizeof task.x[ray]);
        h1_.col(i) = w.b1 + w.beam.col(task.beam[ray]);
    }
    h1_.noalias() += w.w1 * x_;
    leak(h1_);
    h2_ = w.b2.replicate(1, n);
    h2_.noalias() += w.w2 * h1_;
    leak(h2_);
    output_.noalias() = w.w3.transpose() * h2_;

    // From here on output_ is the derivative of the loss by the output.
    for (Eigen::Index i = 0; i < n; ++i) {
        const float value = output_(i) + w.b3, target = task.target[rays[static_cast<std::size_t>(i)]];
        if (task.loss == Loss::square)
            output_(i) = value - target;
        else
            output_(i) = target > 0 ? -probit.at(value).slope : probit.at(-value).slope;
    }
    Weights& g = gradient;
    g.clear();
    g.b3 = output_.sum();
    g.w3.noalias() = h2_ * output_.transpose();
    d2_.noalias() = w.w3 * output_;
    unleak(d2_, h2_);
    g.b2 = d2_.rowwise().sum();
    g.w2.noalias() = d2_ * h1_.transpose();
    d1_.noalias() = w.w2.transpose() * d2_;
    unleak(d1_, h1_);
    g.b1 = d1_.rowwise().sum();
    g.w1.noalias() = d1_ * x_.transpose();
    for (Eigen::Index i = 0; i < n; ++i)
        g.beam.col(task.beam[rays[static_cast<std::size_t>(i)]]) += d1_.col(i);
}

Weights first_weights(const TrainingTask& task) {
    Weights w(task.beams);
    std::uint64_t counter = 0;
    const auto fill = [&counter](auto& m, double inputs) {
        for (Eigen::Index i = 0; i < m.size(); ++i)
            m.data()[i] = static_cast<float>(rng::gaussian(kSeed, counter++) * std::sqrt(2 / inputs));
    };
    fill(w.w1, kFeatures);
    fill(w.w2, kHidden1);
    fill(w.w3, 4.0 * kHidden2);
    double mean = 0;
    for (const float target : task.target) mean += static_cast<double>(target);
    mean /= static_cast<double>(task.target.size());
    w.b3 = static_cast<float>(task.loss == Loss::square ? mean
                                                        : normal_quantile(std::clamp(mean, 1e-6, 1 - 1e-6)));
    return w;
}

/// Adam (Kingma and Ba 2015, algorithm 1).
class Adam {
  public:
    explicit Adam(std::uint32_t beams) : mean_(beams), square_(beams) {}
    void step(Weights& w, Weights& gradient, float rate) {
        mean_power_ *= kMomentum;
        square_power_ *= kSquareMomentum;
        const float mean_scale = 1 / (1 - mean_power_), square_scale = 1 / (1 - square_power_);
        w.for_each(
            [&](std::span<float> values, const float* g, float* mean, float* square) {
                for (std::size_t i = 0; i < values.size(); ++i) {
                    mean[i] = kMomentum * mean[i] + (1 - kMomentum) * g[i];
                    square[i] = kSquareMomentum * square[i] + (1 - kSquareMomentum) * g[i] * g[i];
                    values[i] -=
                        rate * mean[i] * mean_scale / (std::sqrt(square[i] * square_scale) + kAdamFloor);
                }
            },
            gradient, mean_, square_);
    }

  private:
    Weights mean_, square_;
    float mean_power_ = 1, square_power_ = 1;
};

void shuffle(std::vector<std::uint32_t>& order, std::uint64_t key) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng::bits(key, i) % i]);
}

BeamNetwork finished(const Weights& w) {
    BeamNetwork net;
    std::memcpy(net.network.w1, w.w1.data(), sizeof net.network.w1);
    std::memcpy(net.network.w2, w.w2.data(), sizeof net.network.w2);
    std::memcpy(net.network.b2, w.b2.data(), sizeof net.network.b2);
    std::memcpy(net.network.w3, w.w3.data(), sizeof net.network.w3);
    net.network.b3 = w.b3;
    for (Eigen::Index beam = 0; beam < w.beam.cols(); ++beam)
        for (Eigen::Index k = 0; k < kHidden1; ++k) net.bias.push_back(w.b1(k) + w.beam(k, beam));
    return net;
}

}  // namespace

BeamNetwork train_network(const TrainingTask& task, const CancelToken& cancel,
                          const std::function<void(double share)>& done) {
    // Sums are divided by the size of the caches; the same division everywhere gives the same bits.
    Eigen::setCpuCacheSizes(32 * 1024, 256 * 1024, 4 * 1024 * 1024);
    const std::size_t n = task.target.size();
    const std::size_t epochs = std::clamp(kVisits / std::max<std::size_t>(n, 1), kLeastEpochs, kMostEpochs);
    const std::size_t batches = (n + kBatchRays - 1) / kBatchRays;
    const ProbitLoss probit;
    Weights weights = first_weights(task), gradient(task.beams);
    Adam adam(task.beams);
    std::vector<Part> parts(kParts, Part(task.beams));
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        shuffle(order, rng::key(kSeed, epoch));
        for (std::size_t batch = 0; batch < batches; ++batch) {
            cancel.check();
            const auto rays = std::span<const std::uint32_t>(order).subspan(
                batch * kBatchRays, std::min(kBatchRays, n - batch * kBatchRays));
            const std::size_t used = (rays.size() + kPartRays - 1) / kPartRays;
            parallel_for(used, [&](std::size_t p) {
                parts[p].run(task, weights, probit,
                             rays.subspan(p * kPartRays, std::min(kPartRays, rays.size() - p * kPartRays)));
            });
            gradient.clear();
            for (std::size_t p = 0; p < used; ++p)
                gradient.for_each(
                    [](std::span<float> sum, const float* part) {
                        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
                    },
                    parts[p].gradient);
            const float per_ray = 1 / static_cast<float>(rays.size());
            gradient.for_each([per_ray](std::span<float> sum) {
                for (float& v : sum) v *= per_ray;
            });
            gradient.beam += kBeamDecay * weights.beam;
            const double share =
                static_cast<double>(epoch * batches + batch) / static_cast<double>(epochs * batches);
            adam.step(weights, gradient, kFirstRate * static_cast<float>((1 - share) * (1 - share)));
            done(share);
        }
    }
    return finished(weights);
}

std::vector<float> outputs_of(const BeamNetwork& net, std::span<const std::array<float, kFeatures>> x,
                              std::span<const std::uint16_t> beam) {
    std::vector<float> outputs(x.size());
    parallel_ranges(x.size(), 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            float features[kFeatures];
            std::memcpy(features, x[i].data(), sizeof features);
            outputs[i] = evaluate(net.network, net.bias.data() + std::size_t{beam[i]} * kHidden1, features);
        }
    });
    return outputs;
}

}  // namespace citysplat::sim::learn
