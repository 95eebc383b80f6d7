#pragma once

#include "io/drive/drive.hpp"
#include "model/sensor_mask.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace citysplat::io {

/// In how many scans each cell of the sensor's surroundings held a point: what is always there moves with the
/// sensor, or is like that everywhere, as the road is. Only counts, so the order of scans cannot matter.
class SensorOccupancy {
  public:
    /// The points of one scan, each in the frame of the sensor at its own time.
    void add_scan(std::span<const Vec3d> in_sensor);
    /// The cells that the points of one scan are in, each once.
    void add_cells(std::span<const std::uint32_t> cells);

    std::size_t scans() const { return scans_; }
    /// Cells that were occupied in at least this share of the scans, ascending.
    std::vector<std::uint32_t> cells(double least_share) const;

  private:
    std::unordered_map<std::uint32_t, std::uint32_t> scans_of_;  ///< by SensorCell
    std::size_t scans_ = 0;
};

/// The cells that the recording car fills, ascending; empty when nothing tells.
///
/// They are always occupied while the car moves, stand above the road, and lie in the space that the car
/// itself drives through a moment earlier or later. Nothing that stands still can stay there, be it a wall
/// beside the street or the road; a car that stands adds nothing, because scans are taken at least 20 cm of
/// way apart. Looks at up to 40 scans of the whole drive, whichever of them are going to be read.
/// Memory: the cells of these scans and the points of the lane before and behind the car.
std::vector<std::uint32_t> find_own_car(const Drive& drive, const OpenScan& open,
                                        const CancelToken& cancel = CancelToken());

}  // namespace citysplat::io
