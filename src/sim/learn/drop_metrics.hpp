#pragma once

#include "core/cancel.hpp"
#include "sim/learn/learning_set.hpp"
#include "sim/learn/sensor_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::sim::learn {

/// Consecutive rays of a set, those of whole scans, and what a model says about them.
struct JudgedRays {
    const LearningRays& rays;
    std::size_t first, end;
    std::span<const float> score;          ///< of all rays of the set; lost with probability Φ(score)
    std::span<const std::uint8_t> hidden;  ///< of all rays of the set; 1: behind the own car

    bool outside(std::size_t ray) const { return ray >= first && ray < end && !hidden[ray]; }
};

/// How often a ray is lost, given that the one before it is lost, and given that an earlier one into the same
/// place was.
struct Clumping {
    double left = 0, again = 0;
    std::uint64_t lefts = 0, agains = 0;  ///< cases they are means of
};
Clumping real_clumping(const JudgedRays& judged);
Clumping model_clumping(const JudgedRays& judged, const NoiseShares& shares);

/// The shares with which clumps are most like the real ones; both 0 when too few rays are lost to tell.
NoiseShares fit_noise(const JudgedRays& judged, const CancelToken& cancel);

/// `constant` is the probability that somebody would say who knows the training rays alone. Intensities are
/// left at zero.
DropMetrics judge_drops(const JudgedRays& judged, const NoiseShares& shares, double constant,
                        const CancelToken& cancel);

}  // namespace citysplat::sim::learn
