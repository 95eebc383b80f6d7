#include "sim/learn/intensity_residuals.hpp"

#include "sim/learn/probit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace citysplat::sim::learn {

namespace {

/// A level with fewer rays is as the nearest one that has more.
constexpr std::size_t kLeastRays = 200;
/// More in common would leave single rays no noise of their own.
constexpr double kMostShared = 0.95;

/// A residual and the ray it is of, in ascending order.
using Residuals = std::vector<std::pair<float, std::uint32_t>>;

float quantile_of(const Residuals& ascending, double probability) {
    const double place = probability * static_cast<double>(ascending.size() - 1);
    const auto i = std::min(static_cast<std::size_t>(place), ascending.size() - 1);
    const float low = ascending[i].first, high = ascending[std::min(i + 1, ascending.size() - 1)].first;
    return low + static_cast<float>(place - static_cast<double>(i)) * (high - low);
}

void fill(float (&row)[kResidualSteps], const Residuals& ascending) {
    for (std::uint32_t k = 0; k < kResidualSteps; ++k)
        row[k] = quantile_of(ascending, normal_cdf(kLeastNormal + k / kStepsPerNormal));
}

/// The mean product of the normal scores of neighbours in one voxel: noise of that share gives it back.
/// Neighbours in one voxel have one number in common, see LearningRays::Noise.
double shared_part(const LearningRays& rays, std::span<const std::uint32_t> chosen,
                   const std::vector<float>& score) {
    double sum = 0, pairs = 0;
    for (const std::uint32_t i : chosen) {
        const std::uint32_t left = rays.left[i];
        if (left == kNoRay || std::isnan(score[left]) || rays.noise[i].scan != rays.noise[left].scan)
            continue;
        sum += static_cast<double>(score[i]) * static_cast<double>(score[left]);
        pairs += 1;
    }
    return pairs < kLeastRays ? 0 : std::clamp(sum / pairs, 0.0, kMostShared);
}

}  // namespace

ResidualTable find_residuals(const LearningRays& rays, std::span<const std::uint32_t> chosen,
                             std::span<const float> expected) {
    std::array<Residuals, kResidualLevels> levels;
    Residuals all;
    for (const std::uint32_t i : chosen) {
        all.emplace_back(rays.real_intensity[i] - expected[i], i);
        levels[residual_level(expected[i])].push_back(all.back());
    }
    std::sort(all.begin(), all.end());
    std::vector<float> score(rays.size(), std::nanf(""));
    for (Residuals& level : levels) {
        std::sort(level.begin(), level.end());
        for (std::size_t begin = 0; begin < level.size();) {
            // Equal ones share the middle of their ranks: black surfaces look black to every ray.
            std::size_t end = begin;
            while (end < level.size() && level[end].first == level[begin].first) ++end;
            const double middle = 0.5 * static_cast<double>(begin + end) / static_cast<double>(level.size());
            for (; begin < end; ++begin)
                score[level[begin].second] = static_cast<float>(normal_quantile(middle));
        }
    }
    ResidualTable table{};
    table.share = shared_part(rays, chosen, score);
    for (std::uint32_t level = 0; level < kResidualLevels; ++level) {
        const Residuals* from = &all;
        for (std::uint32_t away = kResidualLevels; away-- > 0;)
            for (const std::uint32_t near : {level - away, level + away})
                if (near < kResidualLevels && levels[near].size() >= kLeastRays) from = &levels[near];
        fill(table.values[level], *from);
    }
    return table;
}

}  // namespace citysplat::sim::learn
