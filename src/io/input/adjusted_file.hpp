#pragma once

#include "io/point_file.hpp"

#include <memory>

namespace citysplat {

/// A trajectory as it was recorded, and as `citysplat adjust` corrected it.
struct Adjustment {
    Trajectory given, adjusted;
};

}  // namespace citysplat

namespace citysplat::io {

/// The points of a file where the adjusted trajectory puts them: each is moved by adjusted(t) · given(t)⁻¹ at
/// its own time t, and so is the place of its sensor. Points without a time, or with one that the
/// trajectories do not cover, stay where they are; their sensor becomes unknown, so that whoever counts
/// points without a sensor counts them.
std::unique_ptr<PointFile> with_adjusted_poses(std::unique_ptr<PointFile> file,
                                               std::shared_ptr<const Adjustment> adjustment);

}  // namespace citysplat::io
