#pragma once

#include "core/math/vec_hd.hpp"
#include "model/trajectory.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace citysplat {

/// One pulse of a real sensor, with what came back.
struct RecordedRay {
    static constexpr std::uint16_t kNoBeam = 65535;

    Vec3d origin{0, 0, 0};         ///< world: where the sensor was when the pulse was fired
    Vec3d direction{1, 0, 0};      ///< world, of unit length
    double time_s = 0;             ///< as in the file; 0 where it has no times
    double range_m = 0;            ///< of the return; 0: nothing came back
    double azimuth_rad = 0;        ///< in the frame of the sensor: from x to y
    double elevation_rad = 0;      ///< in the frame of the sensor: above its xy plane
    std::uint32_t column = 0;      ///< of the range image: azimuth steps from the beginning of the sweep
    std::uint16_t beam = kNoBeam;  ///< from the top; kNoBeam: the beams of this scan are not known
    std::uint16_t intensity = 0, label = 0;
    bool own_car = false;  ///< the return is of the car that carries the sensor

    bool is_empty() const { return range_m == 0; }
    /// It brought something of the city back.
    bool met_city() const { return !is_empty() && !own_car; }
};

/// One sweep of a real sensor: its returns in the order of the file, then the rays that did not come back.
struct RecordedScan {
    std::string name;        ///< of the file
    Pose world_from_sensor;  ///< when the first return was recorded
    std::vector<RecordedRay> rays;
    std::size_t returns = 0;           ///< of `rays`, the first ones
    std::size_t beams = 0;             ///< 0: not known; there are no empty rays then
    std::size_t columns = 0;           ///< of the range image; 0 without beams
    double azimuth_step_rad = 0;       ///< as measured; 0 without beams
    std::size_t own_car = 0;           ///< of the returns, those of the recording car
    std::uint64_t no_return = 0;       ///< records of the file that say that nothing came back
    std::uint64_t without_sensor = 0;  ///< points left out: nobody knows where the sensor was

    bool has_intensity = false, has_labels = false;
};

}  // namespace citysplat
