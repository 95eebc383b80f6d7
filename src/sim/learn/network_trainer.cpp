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
/// How often rays are seen, and how many in all at least. Neighbouring rays are lost together, in the same
/// places scan after scan: a drop network that sees them more often learns the places by heart.
struct Effort {
    std::size_t epochs, least_visits;
};
constexpr Effort effort(Loss loss) {
    return loss == Loss::probit ? Effort{4, 2'000'000} : Effort{8, 4'000'000};
}
constexpr float kFirstRate = 3e-3f, kMomentum = 0.9f, kSquareMomentum = 0.999f, kAdamFloor = 1e-8f;
/// Pulls the biases of a beam towards those of all beams: a beam with few rays learns little of its own.
constexpr float kBeamDecay = 1e-5f;
/// An intensity that is off by more pulls no harder than this: retroreflectors are bright beyond all means,
/// and few; what is usual should not bend towards them (Huber's loss).
constexpr float kMostPull = 0.03f;
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
        if (task.loss == Loss::huber)
            output_(i) = std::clamp(value - target, -kMostPull, kMostPull);
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
    w.b3 = static_cast<float>(task.loss == Loss::huber ? mean
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

/// One run from the first weights to the last ones.
class Training {
  public:
    explicit Training(const TrainingTask& task)
        : task_(task),
          weights_(first_weights(task)),
          gradient_(task.beams),
          adam_(task.beams),
          parts_(kParts, Part(task.beams)),
          order_(task.target.size()) {
        std::iota(order_.begin(), order_.end(), 0u);
    }

    BeamNetwork run(const CancelToken& cancel, const std::function<void(double share)>& done) {
        const Effort wanted = effort(task_.loss);
        const std::size_t n = order_.size(), per_epoch = (n + kBatchRays - 1) / kBatchRays,
                          most = std::max(wanted.epochs * per_epoch, wanted.least_visits / kBatchRays),
                          batches = std::max<std::size_t>(
                              1, static_cast<std::size_t>(task_.effort * static_cast<double>(most)));
        for (std::size_t batch = 0; batch < batches; ++batch) {
            cancel.check();
            if (batch % per_epoch == 0) shuffle(order_, rng::key(kSeed, batch / per_epoch));
            const std::size_t first = batch % per_epoch * kBatchRays;
            const double share = static_cast<double>(batch) / static_cast<double>(batches);
            step(std::span<const std::uint32_t>(order_).subspan(first, std::min(kBatchRays, n - first)),
                 kFirstRate * static_cast<float>((1 - share) * (1 - share)));
            done(share);
        }
        return finished(weights_);
    }

  private:
    void step(std::span<const std::uint32_t> rays, float rate) {
        const std::size_t used = (rays.size() + kPartRays - 1) / kPartRays;
        parallel_for(used, [&](std::size_t p) {
            parts_[p].run(task_, weights_, probit_,
                          rays.subspan(p * kPartRays, std::min(kPartRays, rays.size() - p * kPartRays)));
        });
        gradient_.clear();
        for (std::size_t p = 0; p < used; ++p)
            gradient_.for_each(
                [](std::span<float> sum, const float* part) {
                    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
                },
                parts_[p].gradient);
        const float per_ray = 1 / static_cast<float>(rays.size());
        gradient_.for_each([per_ray](std::span<float> sum) {
            for (float& v : sum) v *= per_ray;
        });
        gradient_.beam += kBeamDecay * weights_.beam;
        adam_.step(weights_, gradient_, rate);
    }

    const TrainingTask& task_;
    const ProbitLoss probit_;
    Weights weights_, gradient_;
    Adam adam_;
    std::vector<Part> parts_;
    std::vector<std::uint32_t> order_;
};

}  // namespace

BeamNetwork train_network(const TrainingTask& task, const CancelToken& cancel,
                          const std::function<void(double share)>& done) {
    // Sums are divided by the size of the caches; the same division everywhere gives the same bits.
    Eigen::setCpuCacheSizes(32 * 1024, 256 * 1024, 4 * 1024 * 1024);
    return Training(task).run(cancel, done);
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
