#pragma once

#include "model/recorded_scan.hpp"
#include "sim/sensor/sensor.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::sim {

/// Where the beams of a rotating head look, and when they fire, from recorded scans whose rays have beams.
///
/// Elevations are means of the returns. Where points have times, the azimuth of the head at each of them is
/// known, and with it how far each beam is ahead; the time within a column is that of the file, counted in
/// periods of the column. What the scans do not show stays as the sensor had it.
class BeamCalibration {
  public:
    /// `beam_of` is the sensor's beam of each beam of the scans.
    BeamCalibration(const SpinningHead& head, std::vector<std::uint32_t> beam_of);

    void add(const RecordedScan& scan);

    struct Result {
        std::vector<Beam> beams;
        std::uint32_t beams_seen = 0;          ///< of which enough returns were there
        bool azimuths = false, times = false;  ///< whether the scans showed them
    };
    Result result() const;

  private:
    struct Returns {
        std::vector<float> elevation_rad, azimuth_rad;  ///< azimuth: ahead of the head
        double time_cos = 0, time_sin = 0;              ///< of the phase within a column
        std::uint64_t timed = 0;
    };
    void add_azimuths(const RecordedScan& scan);
    void find_azimuths(Result& result) const;
    void find_times(Result& result) const;

    const SpinningHead& head_;
    std::vector<std::uint32_t> beam_of_;
    std::vector<Returns> returns_;  ///< by beam of the sensor
    double first_time_s_ = 0;
    bool any_time_ = false;
};

}  // namespace citysplat::sim
