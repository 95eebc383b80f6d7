#pragma once

#include "core/math/box.hpp"
#include "model/track.hpp"

namespace citysplat {

/// Whether a place in the object's frame is inside of its box, grown to all sides.
inline bool in_box(const ObjectSize& size, Vec3d p, double grow_m) {
    return p.x >= -size.length_m / 2 - grow_m && p.x <= size.length_m / 2 + grow_m &&
           p.y >= -size.width_m / 2 - grow_m && p.y <= size.width_m / 2 + grow_m && p.z >= -grow_m &&
           p.z <= size.height_m + grow_m;
}

inline bool is_inside(const Box3d& box, Vec3d p) {
    return p.x >= box.min.x && p.x <= box.max.x && p.y >= box.min.y && p.y <= box.max.y && p.z >= box.min.z &&
           p.z <= box.max.z;
}

/// Where the boxes of a track are during some time: a box along the axes of the world around them, grown.
/// Empty when the object is not there, or has no size.
inline Box3d reach_of(const Track& track, double begin_s, double end_s, double grow_m) {
    Box3d box = kEmptyBox;
    if (track.path.empty() || !(track.size.length_m > 0)) return box;
    if (end_s < track.begin_s || begin_s > track.end_s) return box;
    box.grow(track.pose_at(begin_s).translation);
    box.grow(track.pose_at(end_s).translation);
    for (const StampedPose& p : track.path.poses())
        if (p.time_s > begin_s && p.time_s < end_s) box.grow(p.world_from_body.translation);
    const ObjectSize& s = track.size;
    return box.widened(grow_m + 0.5 * length(Vec3d{s.length_m, s.width_m, 2 * s.height_m}));
}

}  // namespace citysplat
