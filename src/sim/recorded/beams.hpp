#pragma once

#include "model/recorded_scan.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Which laser of a rotating sensor fired a recorded ray. Where the file does not say, sweeps are stored in
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
    /// What the files call them ("ring"); empty where they do not say.
    std::vector<std::uint16_t> number;
    /// The sweeps are stored ring by ring: beams are known by their order, and elevations tell little.
    bool ring_by_ring = false;

    std::size_t size() const { return elevation_rad.size(); }
};

/// Sensors have at least and at most so many beams; what looks like more or less is not a rotating sensor.
inline constexpr std::size_t kLeastBeams = 4, kMostBeams = 256;

/// The beams of one sweep, from its returns alone, whose `beam` is the number in the file. Nothing when it
/// shows no clear beams.
std::optional<BeamTable> find_beams(std::span<const RecordedRay> returns);

/// The beams of all tables together, which are those of different sweeps of one sensor: a beam that returns
/// nothing in one may return something in another.
BeamTable merged(std::span<const BeamTable> tables);

/// Makes RecordedRay::beam of the rays of a sweep, which is the number in the file or kNoBeam, an index of
/// the table. A ray that fits no beam gets kNoBeam. The first `returns` of the rays came back.
void assign_beams(const BeamTable& table, std::span<RecordedRay> rays, std::size_t returns);

}  // namespace citysplat::sim
