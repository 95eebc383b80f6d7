#pragma once

#include "sim/traffic/played_frames.hpp"

#include <cstdint>
#include <span>

namespace citysplat::sim {

/// Recorded frames in the order of the scans of a drive, some at a time.
class FrameStream {
  public:
    FrameStream(ReadyFrames frames, double sweep_s) : frames_(std::move(frames)), sweep_s_(sweep_s) {}

    /// How much of the budget the frames of scans that begin at these times get: an eighth at most, and at
    /// least what the hungriest scan needs, which may be more than the budget.
    std::uint64_t reserve(std::span<const double> times, std::uint64_t budget_bytes);

    /// How many of the scans, from the first one on, can have their frames at once; at least one.
    std::size_t scans_that_fit(std::span<const double> times) const;
    /// Loads the frames of these scans and lets go of all others.
    void make_ready(std::span<const double> times);

    const ReadyFrames& frames() const { return frames_; }
    std::uint64_t most_resident() const { return most_resident_; }  ///< frames at a time, so far

  private:
    ReadyFrames frames_;
    double sweep_s_;
    std::uint64_t share_bytes_ = 0, most_resident_ = 0;
};

}  // namespace citysplat::sim
