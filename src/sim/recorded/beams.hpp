#pragma once

#include "model/recorded_scan.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Which laser of a rotating sensor fired a recorded ray, where the file does not say. Sweeps are stored in
/// one of two ways:
///
/// - Ring by ring: the azimuth runs through one turn for each beam (KITTI). The turns are the beams. This
/// also
///   works for the HDL-64E, whose two blocks of lasers sit 0.2 m apart, so that the elevation under which a
///   return is seen depends on its range.
/// - In firing order, or in none: the elevations of each beam lie close together, with gaps between them. The
///   poses of a drive may be tilted against the sensor's true axis by a little; the tilt that makes the
///   elevations sharpest is taken out.
namespace citysplat::sim {

/// The lasers of a sensor.
struct BeamTable {
    std::vector<double> elevation_rad;  ///< mean of each beam, highest first; empty: not known

    std::size_t size() const { return elevation_rad.size(); }
};

/// Sensors have at least and at most so many beams; what looks like more or less is not a rotating sensor.
inline constexpr std::size_t kLeastBeams = 4, kMostBeams = 256;

/// The beams of one sweep, from its returns alone. Nothing when it shows no clear beams.
std::optional<BeamTable> find_beams(std::span<const RecordedRay> returns);

/// The beams of all tables together, which are those of different sweeps of one sensor: a beam that returns
/// nothing in one may return something in another.
BeamTable merged(std::span<const BeamTable> tables);

/// Sets RecordedRay::beam of the returns of a sweep; a ray that fits no beam keeps kNoBeam.
void assign_beams(const BeamTable& table, std::span<RecordedRay> returns);

}  // namespace citysplat::sim
