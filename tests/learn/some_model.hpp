#pragma once

#include "core/math/math_hd.hpp"
#include "sim/learn/sensor_model.hpp"

#include <cstring>

namespace citysplat::test {

/// A model of random weights that loses about a third of the returns, with an own car between 150° and 210°.
inline sim::learn::SensorModel some_model(std::uint32_t beams, std::uint64_t seed = 3) {
    using namespace sim::learn;
    std::uint64_t counter = 0;
    const auto gaussian = [&](double scale) {
        return static_cast<float>(scale * rng::gaussian(seed, counter++));
    };
    const auto network = [&](double output) {
        BeamNetwork net;
        for (auto& row : net.network.w1)
            for (float& w : row) w = gaussian(0.4);
        for (auto& row : net.network.w2)
            for (float& w : row) w = gaussian(0.4);
        for (float& w : net.network.b2) w = gaussian(0.1);
        for (float& w : net.network.w3) w = gaussian(output);
        net.network.b3 = static_cast<float>(-0.5 * output);
        for (std::uint32_t i = 0; i < beams * kHidden1; ++i) net.bias.push_back(gaussian(0.3));
        return net;
    };
    SensorModel model;
    model.sensor = "some";
    model.beams = beams;
    model.training_digest = "0123456789abcdef0123456789abcdef";
    model.training_rays = 12345;
    for (unsigned j = 0; j < kFeatures; ++j) {
        model.norm.mean[j] = 0.3f + gaussian(0.1);
        model.norm.scale[j] = 1.5f;
    }
    model.mask.below_deg = -8;
    for (std::uint32_t beam = 0; beam < beams; ++beam)
        for (std::uint32_t cell = 0; cell < kMaskCells; ++cell)
            model.mask.probability.push_back(
                cell >= 150 && cell < 210 ? static_cast<float>(cell % 5 * 50) / 255.0f : 0.0f);
    model.drop = network(0.7);
    model.noise = {0.25, 0.5};
    model.likely_above = 0.125f;
    for (std::size_t k = 0; k < SensorModel::kLostSteps; ++k)
        model.lost_above.push_back(1.5f - 0.05f * static_cast<float>(k));
    model.intensity.emplace();
    model.intensity->net = network(0.05);
    for (std::uint32_t beam = 0; beam < beams; ++beam) model.intensity->gain.push_back(0.9f + gaussian(0.05));
    sim::learn::ResidualTable& residuals = model.intensity->residuals.emplace();
    residuals.share = 0.6;
    for (auto& row : residuals.values)
        for (unsigned k = 0; k < kResidualSteps; ++k) row[k] = 0.004f * (static_cast<float>(k) - 31.5f);
    model.metrics.log_loss = 0.25;
    return model;
}

}  // namespace citysplat::test
