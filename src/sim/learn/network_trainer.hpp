#pragma once

#include "core/cancel.hpp"
#include "sim/learn/learning_set.hpp"
#include "sim/learn/sensor_model.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <span>

namespace citysplat::sim::learn {

enum class Loss {
    probit,  ///< targets 0 and 1; the probability of 1 is Φ(output)
    huber    ///< half the square of what is off by little, and as much more as it is off by more
};

/// What a network is to learn.
struct TrainingTask {
    std::span<const std::array<float, kFeatures>> x;  ///< normalised
    std::span<const std::uint16_t> beam;
    std::span<const float> target;
    std::uint32_t beams = 0;
    Loss loss = Loss::probit;
    double effort = 1;  ///< scales how long it is trained
};

/// Trains by Adam on batches, each divided into parts whose gradients are summed in order: the weights do not
/// depend on the number of threads. The seed is fixed, and so is the number of batches for a number of rays.
/// `done(share)` is called now and then.
BeamNetwork train_network(const TrainingTask& task, const CancelToken& cancel,
                          const std::function<void(double share)>& done);

/// The output of the network for every ray.
std::vector<float> outputs_of(const BeamNetwork& net, std::span<const std::array<float, kFeatures>> x,
                              std::span<const std::uint16_t> beam);

}  // namespace citysplat::sim::learn
