#pragma once

#include "sim/traffic/played_frames.hpp"

#include <cstdint>
#include <span>

namespace citysplat::sim {

/// Recorded frames in the order of scans, some at a time.
class FrameStream {
  public:
    explicit FrameStream(ReadyFrames frames) : frames_(std::move(frames)) {}

    /// How much of the budget the frames get: an eighth at most, and at least what the hungriest of these
    /// sweeps needs, which may be more than the budget.
    std::uint64_t reserve(std::span<const Sweep> sweeps, std::uint64_t budget_bytes);

    /// How many of the sweeps, from the first one on, can have their frames at once; at least one.
    std::size_t sweeps_that_fit(std::span<const Sweep> sweeps) const;
    /// Loads the frames of these sweeps and lets go of all others. Throws UsageError when those of one sweep
    /// exceed what was reserved.
    void make_ready(std::span<const Sweep> sweeps);

    const ReadyFrames& frames() const { return frames_; }
    std::uint64_t most_resident() const { return most_resident_; }  ///< frames at a time, so far

  private:
    ReadyFrames frames_;
    std::uint64_t share_bytes_ = 0, most_resident_ = 0;
};

}  // namespace citysplat::sim
