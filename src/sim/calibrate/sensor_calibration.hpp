#pragma once

#include "sim/calibrate/beam_calibration.hpp"
#include "sim/calibrate/intensity_calibration.hpp"
#include "sim/calibrate/range_calibration.hpp"
#include "sim/sensor/sensor.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::sim {

/// What was found out about a sensor. What is not there stays as it was.
struct CalibratedSensor {
    std::optional<RangeCalibration> range;
    std::optional<BeamCalibration::Result> beams;
    std::optional<IntensityCalibration::Result> intensity;
    std::uint64_t scans = 0;
};

/// Collects recorded scans and what a city returns to their rays.
class SensorCalibration {
  public:
    /// Throws ConfigError unless the sensor spins. `beam_of`: see BeamCalibration.
    SensorCalibration(const Sensor& sensor, std::vector<std::uint32_t> beam_of);

    /// `simulated` is what the city returns to the rays of the scan, without noise.
    void add(const RecordedScan& scan, std::span<const Return> simulated);

    /// Throws InputError when too few rays meet what they met in reality.
    CalibratedSensor result() const;

  private:
    RangeError before_;
    std::vector<std::uint32_t> beam_of_;
    BeamCalibration beams_;
    IntensityCalibration intensity_;
    std::vector<RangePair> ranges_;
    std::uint64_t scans_ = 0;
};

/// The sensor file `text`, with what was found out in the place of what it said. `note` goes in front of its
/// `source`. `origin` names it in errors.
std::string calibrated_text(std::string_view text, std::string_view origin, const CalibratedSensor& found,
                            const std::string& note);

}  // namespace citysplat::sim
