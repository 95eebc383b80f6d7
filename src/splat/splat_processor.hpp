#pragma once

#include "model/class_map.hpp"
#include "splat/generation/stage_times.hpp"
#include "splat/params/splat_params.hpp"
#include "tiling/tile_processor.hpp"

#include <memory>
#include <string>

namespace citysplat::splat {

/// Makes splats from the points of a tile by AdaSplats (docs/adr/0301-adasplats-on-tiles.md). The splats of a
/// city do not depend on how it is tiled: a tile is certified only when nothing outside the points it was
/// given could have changed it. A splat belongs to the tile whose core holds its seed.
class SplatProcessor final : public tiling::TileProcessor {
  public:
    /// Throws ConfigError when a parameter is out of range.
    SplatProcessor(const SplatParams& params, ClassMap classes);

    tiling::Calibration calibrate(const tiling::RegionReader& reader, const CancelToken& cancel,
                                  Progress& progress) const override;
    /// {"thickness": …} as adjust::thickness_words() has it.
    std::string findings() const override { return *findings_; }
    void set_calibration(const tiling::Calibration& calibration) override;
    Hash128 parameters_key() const override;
    std::int64_t initial_halo_steps() const override;
    std::size_t estimated_bytes(std::uint64_t points) const override;
    tiling::TileOutput process(tiling::Region region, const CancelToken& cancel) const override;

    const SplatParams& params() const { return params_; }
    const tiling::Calibration& calibration() const { return calibration_; }
    /// Processor time that process() has spent so far, by stage.
    const StageTimes& times() const { return *times_; }

  private:
    SplatParams params_;
    ClassMap classes_;
    tiling::Calibration calibration_;
    std::unique_ptr<StageTimes> times_ = std::make_unique<StageTimes>();
    std::unique_ptr<std::string> findings_ = std::make_unique<std::string>();
};

}  // namespace citysplat::splat
