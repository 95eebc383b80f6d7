#pragma once

#include "tiling/tile_processor.hpp"

#include <atomic>
#include <string>

namespace citysplat::test {

/// A cheap stand-in for splat generation with the same structure: a point becomes a splat unless an accepted
/// point of higher priority lies within `radius_m`. Priorities are hashes of lattice positions, so that
/// dependencies reach across tiles; what depends on points beyond the halo is unknown, and a tile with an
/// unknown core asks for more halo.
class ToyProcessor final : public tiling::TileProcessor {
  public:
    explicit ToyProcessor(double radius_m = 0.5, double halo_m = 2) : radius_m_(radius_m), halo_m_(halo_m) {}

    tiling::Calibration calibrate(const tiling::RegionReader& reader, const CancelToken& cancel,
                                  Progress& progress) const override;
    /// {"mean_intensity": …} of the points that were measured.
    std::string findings() const override { return findings_; }
    void set_calibration(const tiling::Calibration& calibration) override { calibration_ = calibration; }
    Hash128 parameters_key() const override;
    std::int64_t initial_halo_steps() const override { return to_lattice(halo_m_); }
    std::size_t estimated_bytes(std::uint64_t points) const override { return 200 * points + 4096; }
    tiling::TileOutput process(tiling::Region region, const CancelToken& cancel) const override;

    /// Number of calls of process().
    std::uint64_t calls() const { return calls_; }

  private:
    double radius_m_, halo_m_;
    tiling::Calibration calibration_;
    mutable std::string findings_;
    mutable std::atomic<std::uint64_t> calls_{0};
};

}  // namespace citysplat::test
