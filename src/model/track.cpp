#include "model/track.hpp"

#include "core/error.hpp"

#include <cmath>
#include <limits>

namespace citysplat {

Track Track::along(std::string name, Trajectory path) {
    Track track;
    track.name = std::move(name);
    track.path = std::move(path);
    constexpr double kForever = std::numeric_limits<double>::infinity();
    const bool stands = track.path.poses().size() < 2;
    track.begin_s = stands ? -kForever : track.path.begin_s();
    // The last pose still counts.
    track.end_s = stands ? kForever : std::nextafter(track.path.end_s(), kForever);
    return track;
}

Pose Track::pose_at(double time_s) const {
    if (const auto pose = path.at(time_s)) return *pose;
    return time_s < path.begin_s() ? path.poses().front().world_from_body
                                   : path.poses().back().world_from_body;
}

void Track::check() const {
    const auto refuse = [this](const std::string& what) {
        throw InputError("track \"" + name + "\": " + what);
    };
    if (path.empty()) refuse("it has no pose");
    if (!(begin_s < end_s)) refuse("it ends before it begins");
    for (const double extent : {size.length_m, size.width_m, size.height_m})
        if (!(extent >= 0 && std::isfinite(extent))) refuse("its size is negative or not finite");
}

}  // namespace citysplat
