#pragma once

#include "model/tile_source.hpp"
#include "model/trajectory.hpp"
#include "sim/session/reach.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace citysplat::sim {

/// Which tiles the scans of a drive need, and when: known before the drive begins, from the trajectory, the
/// sensor's range and the tiles' boxes.
class Itinerary {
  public:
    using BytesOf = std::function<std::uint64_t(std::uint32_t tile)>;

    Itinerary(const TileSource& city, const SensorRun& run, const Trajectory& trajectory,
              std::span<const double> times);

    /// During a scan.
    const Reach& reach(std::size_t scan);

    /// The next scans to do together: as many as `most` whose tiles fit the budget. When not even one scan's
    /// tiles fit, that one scan with `fits` false.
    struct Leg {
        std::size_t scans = 1;
        std::vector<std::uint32_t> tiles;
        bool fits = true;
        std::vector<const Reach*> reaches;  ///< one for each scan; valid until the next call
    };
    Leg leg(std::size_t first, std::size_t most, std::uint64_t budget_bytes, const BytesOf& bytes);

    /// Tiles of the scans from `first` on, in order of first use, until the budget is full.
    std::vector<std::uint32_t> upcoming(std::size_t first, std::uint64_t budget_bytes, const BytesOf& bytes);

  private:
    const TileSource& city_;
    const SensorRun& run_;
    const Trajectory& trajectory_;
    std::span<const double> times_;
    std::map<std::size_t, Reach> known_;  ///< of scans not yet behind us
};

}  // namespace citysplat::sim
