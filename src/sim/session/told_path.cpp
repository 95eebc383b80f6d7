#include "sim/session/told_path.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <algorithm>

namespace citysplat::sim {

void ToldPath::append(std::span<const StampedPose> poses) {
    if (poses.empty()) return;
    // A trajectory checks what it is made of. Poses are kept as they were told: the one that is asked for
    // normalises them.
    const Trajectory checked({poses.begin(), poses.end()}, name_);
    if (!empty() && !(poses.front().time_s > end_s()))
        throw InputError(name_ + ": pose 1: time " + format_number(poses.front().time_s) +
                         " does not follow " + format_number(end_s()) + ", which was told before");
    if (!(poses.back().time_s < leaves_s_))
        throw InputError(name_ + " left at " + format_number(leaves_s_) + " s and has no pose at " +
                         format_number(poses.back().time_s) + " s");
    if (empty()) first_s_ = poses.front().time_s;
    poses_.insert(poses_.end(), poses.begin(), poses.end());
}

void ToldPath::leave(double time_s) {
    if (empty() || !(time_s > first_s_))
        throw InputError(name_ + " cannot leave at " + format_number(time_s) +
                         " s: it was told no place before that");
    leaves_s_ = time_s;
}

namespace {

/// The last pose at or before a time, else the first one.
std::size_t last_before(std::span<const StampedPose> poses, double time_s) {
    const auto after = std::upper_bound(poses.begin(), poses.end(), time_s,
                                        [](double t, const StampedPose& p) { return t < p.time_s; });
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - poses.begin() - 1, 0));
}

}  // namespace

void ToldPath::forget_before(double time_s) {
    const std::size_t unneeded = last_before(poses_, time_s);
    // Half of them at least, so that each pose is moved a few times at most.
    if (2 * unneeded >= poses_.size())
        poses_.erase(poses_.begin(), poses_.begin() + static_cast<std::ptrdiff_t>(unneeded));
}

Trajectory ToldPath::during(double begin_s, double end_s) const {
    const std::size_t first = last_before(poses_, begin_s);
    std::size_t last = last_before(poses_, end_s);
    if (poses_[last].time_s <= end_s && last + 1 < poses_.size()) ++last;
    return Trajectory({poses_.begin() + static_cast<std::ptrdiff_t>(first),
                       poses_.begin() + static_cast<std::ptrdiff_t>(last) + 1},
                      name_);
}

Track ToldPath::track_during(double begin_s, double end_s) const {
    const double known_s = poses_.front().time_s;
    if (begin_s < known_s && known_s > first_s_)
        throw UsageError("where " + name_ + " was at " + format_number(begin_s) +
                         " s is forgotten; what is known begins at " + format_number(known_s) +
                         " s: give the session a longer history");
    Track track = Track::along(name_, during(begin_s, end_s));
    track.begin_s = first_s_;
    track.end_s = leaves_s_;
    return track;
}

}  // namespace citysplat::sim
