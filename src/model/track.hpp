#pragma once

#include "core/math/vec_hd.hpp"
#include "model/trajectory.hpp"

#include <string>

namespace citysplat {

/// Extent of an object along its own x, y and z.
struct ObjectSize {
    double length_m = 0, width_m = 0, height_m = 0;
};

/// How one object moves, and when it is there. One convention for all sources, which readers convert to: the
/// origin of an object is the middle of the bottom face of its box, x points forward, y to the left, z up.
/// The poses are world_from_object.
struct Track {
    std::string name;         ///< in the source: an id or a name
    std::string class_name;   ///< in the words of the source; may be empty
    std::string object_name;  ///< what it looks like, where the source says it; may be empty
    ObjectSize size;          ///< zeros: not known
    Trajectory path;          ///< at least one pose
    /// The object exists in [begin_s, end_s). Infinite ends are allowed.
    double begin_s = 0, end_s = 0;

    /// A track that exists as long as it has poses, or always when there is only one.
    static Track along(std::string name, Trajectory path);

    bool exists(double time_s) const { return time_s >= begin_s && time_s < end_s; }
    /// Before the first pose the object stands there, after the last one there.
    Pose pose_at(double time_s) const;

    /// Throws InputError naming the track when it has no pose, no time to exist, or a size that is not finite
    /// or negative.
    void check() const;
};

}  // namespace citysplat
