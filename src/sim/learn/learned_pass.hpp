#pragma once

#include "sim/learn/sensor_model.hpp"
#include "sim/learn/window_walk.hpp"
#include "sim/scan/scan.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace citysplat::sim::learn {

/// Memory that a pass over a scan needs; used again for the next scan, it allocates nothing.
struct PassScratch {
    WindowWalk walk;
    std::vector<float> inputs, scores, corrections;
};

/// A model made ready for one sensor: a second pass over finished scans, because what becomes of a return
/// depends on its neighbours. Immutable; safe from several threads.
class LearnedPass {
  public:
    /// Throws ConfigError when the model is not for this sensor, or has no residuals and the sensor asks for
    /// noise of intensities; `origin` names the model.
    LearnedPass(const SensorModel& model, const Sensor& sensor, std::string_view origin = "model");

    /// Marks what is lost as dropped and corrects intensities. Requires all returns of the sensor's scan.
    void apply(std::span<Return> returns, const NoiseKeys& keys, PassScratch& scratch) const;

    /// The model as plain data, for one ray at a time. Valid as long as this and the returns are.
    LearnedView view(const Return* returns, const NoiseKeys& keys) const;
    const ScanGrid& grid() const { return grid_; }

  private:
    struct Block;
    void fill(const Block& block, std::span<const Return> returns, PassScratch& scratch) const;
    void decide(const Block& block, std::span<Return> returns, const LearnedView& view,
                const PassScratch& scratch) const;
    bool certainly_kept(float score, const NoiseDraws& draws) const;

    ScanGrid grid_;
    Normalisation norm_;
    Network drop_, intensity_{};
    NoiseMix mix_;
    std::vector<float> mask_;                        ///< by column × beams + row
    std::vector<float> drop_bias_, intensity_bias_;  ///< by row × 16
    std::vector<float> gain_;                        ///< by row; empty: intensities stay
    std::optional<ResidualTable> residuals_;         ///< noise of intensities, where it is asked for
    std::uint32_t columns_per_block_;
    std::size_t block_rays_;                           ///< a multiple of kLaneMultiple
    std::vector<float> drop_lanes_, intensity_lanes_;  ///< the biases of a block: 16 arrays over its rays
    std::vector<float> least_quantile_;                ///< by the upper bits of a uniform number
};

}  // namespace citysplat::sim::learn
