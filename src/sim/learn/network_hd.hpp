#pragma once

#include "core/math/host_device.hpp"
#include "sim/learn/features_hd.hpp"

#include <cstdint>

namespace citysplat::sim::learn {

inline constexpr unsigned kHidden1 = 16, kHidden2 = 8;

/// kFeatures–16–8–1, leaky between the layers. The biases of the first layer are a table, 16 for each beam,
/// and are kept elsewhere. Sums run in the order of the indices.
struct Network {
    float w1[kHidden1][kFeatures];
    float w2[kHidden2][kHidden1];
    float b2[kHidden2];
    float w3[kHidden2];
    float b3;
};
static_assert(sizeof(Network) == (16 * 20 + 8 * 16 + 8 + 8 + 1) * 4);

/// Slope 1 above zero and 1/8 below. With slope 0 a unit can die in training and cap what can be predicted.
CITYSPLAT_HD inline float leaky(float v) { return larger(v, v * 0.125f); }

/// `x` are normalised features, `b1` the 16 biases of the ray's beam.
CITYSPLAT_HD inline float evaluate(const Network& n, const float* b1, const float (&x)[kFeatures]) {
    float h1[kHidden1], h2[kHidden2];
    for (unsigned k = 0; k < kHidden1; ++k) {
        float sum = b1[k];
        for (unsigned j = 0; j < kFeatures; ++j) sum += n.w1[k][j] * x[j];
        h1[k] = leaky(sum);
    }
    for (unsigned m = 0; m < kHidden2; ++m) {
        float sum = n.b2[m];
        for (unsigned k = 0; k < kHidden1; ++k) sum += n.w2[m][k] * h1[k];
        h2[m] = leaky(sum);
    }
    float sum = n.b3;
    for (unsigned m = 0; m < kHidden2; ++m) sum += n.w3[m] * h2[m];
    return sum;
}

}  // namespace citysplat::sim::learn
