#pragma once

#include "model/recorded_scan.hpp"
#include "sim/scan/return_hd.hpp"
#include "sim/sensor/sensor_model_hd.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::sim {

/// How intensities of a sensor follow from those with which surfaces were recorded: the powers of
/// IntensityModel, and a gain for each beam.
class IntensityCalibration {
  public:
    explicit IntensityCalibration(std::uint32_t beams) : gains_(beams) {}

    /// A real return and the simulated one from the same surface, with the intensity as it was recorded.
    void add(std::uint32_t beam, std::uint16_t real, const Return& simulated);

    struct Result {
        IntensityModel law;
        std::vector<double> gain;  ///< by beam; empty: too few returns to tell
        std::uint64_t returns = 0;
    };
    Result result() const;

  private:
    struct Matched {
        std::uint32_t beam;
        std::uint16_t real, recorded;
        float range_m, cosine;
        std::uint8_t recorded_range_m, recorded_incidence;
    };
    IntensityModel fit_law() const;

    std::size_t gains_;
    std::vector<Matched> matched_;
};

}  // namespace citysplat::sim
