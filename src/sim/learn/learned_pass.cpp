#include "sim/learn/learned_pass.hpp"

#include "core/error.hpp"
#include "sim/learn/network_lanes.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

namespace citysplat::sim::learn {

namespace {

/// Rays that are evaluated at a time: enough to fill vectors, few enough for the first-level cache.
constexpr std::uint32_t kBlockRays = 256;

/// Uniform numbers are told apart by their upper bits where a bound of the quantile is enough.
constexpr std::size_t kQuantileBins = 256;
/// Wider than all rounding in the quantile, the table and the mix.
constexpr double kQuantileMargin = 1e-5;

/// Row order instead of beam order.
std::vector<float> by_row(const ScanGrid& grid, const std::vector<float>& by_beam, std::uint32_t each) {
    std::vector<float> rows(std::size_t{grid.beams()} * each);
    for (std::uint32_t row = 0; row < grid.beams(); ++row)
        std::copy_n(by_beam.begin() + grid.beam_of_row(row) * each, each, rows.begin() + row * each);
    return rows;
}

/// Biases of a block of columns, one array over the rays for each of the 16 units.
std::vector<float> lanes_of(const std::vector<float>& rows, std::size_t rays) {
    const std::size_t beams = rows.size() / kHidden1;
    std::vector<float> lanes(kHidden1 * rays);
    for (std::size_t ray = 0; ray < rays; ++ray)
        for (unsigned k = 0; k < kHidden1; ++k) lanes[k * rays + ray] = rows[ray % beams * kHidden1 + k];
    return lanes;
}

/// The score above which returns are lost; nothing where drops are drawn.
std::optional<float> likely_limit(const SensorModel& model, const Sensor& sensor, std::string_view origin) {
    const auto refuse = [&](const std::string& what, const char* flag) {
        return ConfigError(std::string(origin) + " does not say " + what + "; learn it anew, or leave out " +
                           flag);
    };
    if (sensor.most_lost_percent) {
        if (model.lost_above.empty()) throw refuse("how many returns each limit costs", "--most-lost");
        return model.lost_above_of(*sensor.most_lost_percent / 100);
    }
    if (!sensor.likely_drops) return std::nullopt;
    if (!model.likely_above) throw refuse("which drops are likely", "--likely-drops");
    return model.likely_above;
}

}  // namespace

/// Consecutive columns that are evaluated together.
struct LearnedPass::Block {
    std::uint32_t first_column, columns;
};

LearnedPass::LearnedPass(const SensorModel& model, const Sensor& sensor, std::string_view origin)
    : grid_(sensor), norm_(model.norm), drop_(model.drop.network) {
    model.check(sensor, origin);
    const std::uint32_t beams = grid_.beams();
    const auto& [scan, place] = model.noise;
    mix_ = {std::sqrt(scan), std::sqrt(place), std::sqrt(std::max(0.0, 1 - scan - place))};
    if (const auto limit = likely_limit(model, sensor, origin)) {
        // No chance has a part: a return is lost when its score is above the limit.
        mix_ = {0, 0, 0};
        drop_.b3 -= *limit;
    }
    mask_.resize(grid_.rays());
    for (std::uint32_t row = 0; row < beams; ++row) {
        const std::uint32_t beam = grid_.beam_of_row(row);
        if (grid_.elevation_deg(beam) > model.mask.below_deg) continue;
        for (std::uint32_t column = 0; column < grid_.columns(); ++column)
            mask_[std::size_t{column} * beams + row] =
                model.mask.probability[std::size_t{beam} * kMaskCells + grid_.mask_cell(beam, column)];
    }
    drop_bias_ = by_row(grid_, model.drop.bias, kHidden1);
    columns_per_block_ = std::max(1u, kBlockRays / beams);
    block_rays_ =
        (std::size_t{columns_per_block_} * beams + kLaneMultiple - 1) / kLaneMultiple * kLaneMultiple;
    drop_lanes_ = lanes_of(drop_bias_, block_rays_);
    if (model.intensity && sensor.intensity_noise) residuals_ = model.intensity->residuals;
    if (model.intensity && model.intensity->corrects()) {
        intensity_ = model.intensity->net.network;
        intensity_bias_ = by_row(grid_, model.intensity->net.bias, kHidden1);
        intensity_lanes_ = lanes_of(intensity_bias_, block_rays_);
        gain_ = by_row(grid_, model.intensity->gain, 1);
    }
    if (sensor.intensity_noise && !residuals_)
        throw ConfigError(std::string(origin) +
                          " knows nothing about the noise of intensities; learn it anew, or leave out "
                          "--intensity-noise");
    least_quantile_.push_back(-10);
    for (std::size_t bin = 1; bin < kQuantileBins; ++bin)
        least_quantile_.push_back(
            static_cast<float>(normal_quantile(static_cast<double>(bin) / kQuantileBins) - kQuantileMargin));
}

LearnedView LearnedPass::view(const Return* returns, const NoiseKeys& keys) const {
    return {grid_.view(),
            returns,
            mask_.data(),
            drop_bias_.data(),
            intensity_bias_.data(),
            gain_.empty() ? nullptr : gain_.data(),
            norm_,
            drop_,
            intensity_,
            mix_,
            keys,
            residuals_ ? &*residuals_ : nullptr};
}

void LearnedPass::apply(std::span<Return> returns, const NoiseKeys& keys, PassScratch& scratch) const {
    assert(returns.size() == grid_.rays());
    const LearnedView view = this->view(returns.data(), keys);
    scratch.inputs.assign(kInputs * block_rays_, 1.0f);
    scratch.scores.resize(block_rays_);
    scratch.corrections.resize(block_rays_);
    scratch.walk.begin(view.grid, returns);
    const LaneBlock lanes{scratch.inputs.data(), block_rays_, &norm_};
    const LaneNetwork drop{&drop_, drop_lanes_.data(), scratch.scores.data()},
        intensity{gain_.empty() ? nullptr : &intensity_, intensity_lanes_.data(), scratch.corrections.data()};
    for (std::uint32_t column = 0; column < grid_.columns(); column += columns_per_block_) {
        const Block block{column, std::min(columns_per_block_, grid_.columns() - column)};
        fill(block, returns, scratch);
        evaluate_lanes(lanes, drop, intensity);
        decide(block, returns, view, scratch);
    }
}

void LearnedPass::fill(const Block& block, std::span<const Return> returns, PassScratch& scratch) const {
    const std::uint32_t beams = grid_.beams();
    for (std::uint32_t c = 0; c < block.columns; ++c) {
        scratch.walk.next();
        const std::size_t first = std::size_t{block.first_column + c} * beams;
        for (std::uint32_t row = 0; row < beams; ++row) {
            const Return& r = returns[first + grid_.beam_of_row(row)];
            if (r.status != RayStatus::hit) continue;
            float* to = scratch.inputs.data() + std::size_t{c} * beams + row;
            put_inputs(r, mask_[first + row], scratch.walk.at(row), norm_,
                       [&](unsigned input, float value) { to[input * block_rays_] = value; });
        }
    }
}

/// Most rays are kept, and for most of those a bound of the noise says so.
inline bool LearnedPass::certainly_kept(float score, const NoiseDraws& draws) const {
    const auto least = [this](double u) {
        return static_cast<double>(least_quantile_[static_cast<std::uint32_t>(u * kQuantileBins)]);
    };
    return mix_.scan * least(draws.scan) + mix_.place * least(draws.place) + mix_.ray * least(draws.ray) >
           static_cast<double>(score);
}

void LearnedPass::decide(const Block& block, std::span<Return> returns, const LearnedView& view,
                         const PassScratch& scratch) const {
    const std::uint32_t beams = grid_.beams();
    for (std::uint32_t c = 0; c < block.columns; ++c) {
        const std::size_t first = std::size_t{block.first_column + c} * beams;
        for (std::uint32_t row = 0; row < beams; ++row) {
            const std::size_t ray = first + grid_.beam_of_row(row), lane = std::size_t{c} * beams + row;
            Return& r = returns[ray];
            if (r.status != RayStatus::hit) continue;
            if (mask_[first + row] >= kOwnCar) {
                r.status = RayStatus::dropped;
                continue;
            }
            const float score = scratch.scores[lane];
            const NoiseDraws draws = draws_of(view.keys, r, ray);
            if (!certainly_kept(score, draws) && mixed(mix_, draws) < static_cast<double>(score))
                r.status = RayStatus::dropped;
            if (!gain_.empty())
                r.intensity = corrected_intensity(r.intensity, gain_[row], scratch.corrections[lane]);
            if (view.residuals)
                r.intensity = noisy_intensity(*view.residuals, view.keys, r, ray, r.intensity);
        }
    }
}

}  // namespace citysplat::sim::learn
