#pragma once

#include "model/recorded_scan.hpp"
#include "sim/learn/learning_set.hpp"
#include "sim/recorded/beams.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace citysplat::sim {

/// What was found, or the beams of the sensor where a few more were found than it has: in a sweep that is
/// stored ring by ring, noise at a seam looks like another ring, and in other sweeps of the drive it may not.
BeamTable beams_for(const Sensor& sensor, const BeamTable& found);

/// The sensor's beam of each one that was found: in order of elevation when there are as many, else the
/// nearest. Throws ConfigError when there are none, more than the sensor has, or one that is far from all.
std::vector<std::uint32_t> match_beams(const Sensor& sensor, const BeamTable& found);

/// Recorded scans as images of a sensor's beams and columns, so that what is learned about a ray of the real
/// sensor holds for the simulated one.
class LessonMaker {
  public:
    /// Throws ConfigError as match_beams() does.
    LessonMaker(const Sensor& sensor, const BeamTable& found);

    /// `simulated` is what the city returns to the rays of the scan. Returns outside the sensor's range count
    /// as none, and so do real ones of the recording car: its shadow is what a mask is learned from. A
    /// place without ray shows its neighbours what the ray beside it met, and teaches nothing itself.
    learn::LearningScan lesson(const RecordedScan& scan, std::span<const Return> simulated) const;
    /// Where the image has each ray of the scan; kNowhere when the sensor does not fire there. The turning of
    /// a real head is not quite even: of two rays that look into one column the second goes to the next one
    /// if that is free, and nowhere if it is not.
    std::vector<std::uint32_t> places_of(const RecordedScan& scan) const;
    static constexpr std::uint32_t kNowhere = 0xffffffff;
    /// Whether the sensor would report a return at that range.
    bool reaches(float range_m) const { return range_m >= min_range_m_ && range_m <= max_range_m_; }

    const learn::ScanGrid& grid() const { return grid_; }

  private:
    learn::ScanGrid grid_;
    float min_range_m_, max_range_m_;
    std::vector<std::uint32_t> beam_of_;  ///< the sensor's beam of each beam that was found
};

}  // namespace citysplat::sim
