#pragma once

#include "sim/learn/network_hd.hpp"

#include <cstddef>

namespace citysplat::sim::learn {

/// Rays are evaluated in multiples of this; no vector of any machine is longer.
inline constexpr std::size_t kLaneMultiple = 64;

/// A network for a block of rays, and where its results go.
struct LaneNetwork {
    const Network* network;
    const float* bias;  ///< the 16 first biases, each as an array over the rays of the block
    float* output;
};

/// Many rays at once: arrays over `count` rays, one after the other.
struct LaneBlock {
    const float* inputs;  ///< kInputs arrays
    std::size_t count;    ///< a multiple of kLaneMultiple
    const Normalisation* norm;
};

/// make_features(), normalise() and evaluate() for every ray of the block, the same operations in the same
/// order, a ray in each lane. `second` is left out when it has no network.
void evaluate_lanes(const LaneBlock& block, const LaneNetwork& first, const LaneNetwork& second);

}  // namespace citysplat::sim::learn
