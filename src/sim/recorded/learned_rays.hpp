#pragma once

#include "sim/learn/learned_pass.hpp"
#include "sim/recorded/lesson.hpp"

#include <cstdint>
#include <span>

namespace citysplat::sim {

/// What a learned model of the sensor makes of the returns of recorded rays: `simulate` does the same with
/// the scans of the simulated sensor.
class LearnedRays {
  public:
    /// `sensor.model` is the file of the model. Throws ConfigError when it is not for this sensor, or the
    /// sensor not for these beams.
    LearnedRays(const Sensor& sensor, const BeamTable& found);

    /// Marks the returns that the sensor would lose as dropped, takes away those that are out of its range,
    /// and corrects intensities. `index` is the number of the scan: random numbers follow from it.
    void apply(const RecordedScan& scan, std::uint64_t index, std::span<Return> simulated);

  private:
    LessonMaker images_;
    learn::LearnedPass pass_;
    learn::PassScratch scratch_;
};

}  // namespace citysplat::sim
