#pragma once

#include "core/words.hpp"
#include "model/trajectory.hpp"

#include <vector>

namespace citysplat {

/// How the points of one scan of a drive come into the world, and when each of them was measured.
///
/// The time of a point is, in this order: what the file says; its place in the file, where the file has a
/// record for every firing; the direction it was seen in, the sensor turning evenly from begin_s to end_s.
struct Sweep {
    /// The frame in which the file has its points.
    enum class Frame {
        moving,  ///< the sensor's at the time of each point: not compensated
        fixed,   ///< the sensor's at reference_s: compensated
        world
    };
    static constexpr Words<Frame, 3> kFrames{{"moving", "fixed", "world"}};

    Frame frame = Frame::moving;
    /// World from sensor; from begin_s or earlier to end_s or later.
    std::vector<StampedPose> poses;
    double reference_s = 0;
    double begin_s = 0, end_s = 0;  ///< of one turn
    /// Where the sensor looks at begin_s, counter-clockwise from its x axis.
    double start_azimuth_rad = 0;
    bool clockwise = true;  ///< seen from above
    /// The file has its points in the order of firing, which tells the two sides of the seam apart.
    bool in_order = false;
    /// Not empty: the file has a record for every firing, in order, and record i is of beam i modulo the
    /// size of this, which looks up by so much.
    std::vector<double> elevations_rad;
};

}  // namespace citysplat
