#include "model/moving_boxes.hpp"

#include <algorithm>

namespace citysplat {

namespace {

bool moves(const Track& track) {
    Box3d places = kEmptyBox;
    for (const StampedPose& p : track.path.poses()) places.grow(p.world_from_body.translation);
    return length(places.max - places.min) > MovingBoxes::kStands_m;
}

}  // namespace

MovingBoxes::MovingBoxes(std::span<const Track> tracks) {
    for (const Track& track : tracks)
        if (track.size.length_m > 0 && track.size.width_m > 0 && track.size.height_m > 0 && moves(track))
            tracks_.push_back(track);
}

MovingBoxes::Near MovingBoxes::during(double begin_s, double end_s) const {
    Near near;
    for (const Track& track : tracks_)
        if (const Box3d reach = reach_of(track, begin_s, end_s, kMargin_m); !reach.empty())
            near.candidates_.push_back({&track, reach});
    return near;
}

bool MovingBoxes::Near::contain(Vec3d world, double time_s) const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& c) {
        if (!is_inside(c.reach, world) || !c.track->exists(time_s)) return false;
        const Vec3d own = inverse(c.track->pose_at(time_s)).apply(world);
        return own.z >= kGround_m && in_box(c.track->size, own, kMargin_m);
    });
}

}  // namespace citysplat
