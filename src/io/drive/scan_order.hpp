#pragma once

#include "core/math/vec_hd.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::io {

/// What the order of the records of a scan tells about the sensor. Points are as in the file, in the frame of
/// the sensor.
struct ScanOrder {
    /// Records follow each other as they were fired: one turn from the first to the last.
    bool by_firing = false;
    bool clockwise = true;         ///< where by_firing
    double start_azimuth_rad = 0;  ///< of the first records, where by_firing
    /// Not empty: there is a record for every firing, whether it came back or not, and record i is of beam
    /// i modulo the size of this, which looks up by so much.
    std::vector<double> elevations_rad;
};

ScanOrder order_of(std::span<const Vec3d> records);

}  // namespace citysplat::io
