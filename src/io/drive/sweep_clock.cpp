#include "io/drive/sweep_clock.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

SweepClock::SweepClock(const Sweep& sweep, const std::string& name)
    : path_(sweep.poses, name),
      begin_s_(sweep.begin_s),
      end_s_(sweep.end_s),
      start_azimuth_rad_(sweep.start_azimuth_rad),
      clockwise_(sweep.clockwise),
      in_order_(sweep.in_order),
      beams_(std::max<std::size_t>(1, sweep.elevations_rad.size())) {
    const double reference_s = sweep.frame == Sweep::Frame::fixed ? sweep.reference_s : begin_s_;
    if (!(begin_s_ <= end_s_) || !path_.covers(begin_s_) || !path_.covers(end_s_) ||
        !path_.covers(reference_s) || !std::isfinite(start_azimuth_rad_))
        throw InputError(name + ": the poses do not cover the time of the scan, from " +
                         format_number(begin_s_) + " to " + format_number(end_s_) + " s");
    world_from_reference_ = *path_.at(reference_s);
}

double SweepClock::turn_towards(Vec3d in_sensor) const {
    const double azimuth = exact::atan2(in_sensor.y, in_sensor.x);
    const double turned =
        (clockwise_ ? start_azimuth_rad_ - azimuth : azimuth - start_azimuth_rad_) / (2 * exact::kPi);
    return turned - std::floor(turned);
}

double SweepClock::at_seam(double turn, double in_file) const {
    if (!in_order_ || std::fabs(turn - in_file) <= 0.5) return turn;
    return in_file < 0.5 ? 0 : 1;
}

double SweepClock::time_towards(Vec3d in_sensor, double in_file) const {
    return time_at(at_seam(turn_towards(in_sensor), in_file));
}

double SweepClock::time_of_fixed(Vec3d in_reference, double in_file) const {
    constexpr int kSteps = 3;  // each divides the error by the range over the way of a turn
    const Vec3d in_world = world_from_reference_.apply(in_reference);
    double turn = at_seam(turn_towards(in_reference), in_file);
    for (int step = 0; step < kSteps; ++step) {
        const Pose pose = world_from_sensor(time_at(turn));
        const double next = turn_towards(rotate(conjugate(pose.rotation), in_world - pose.translation));
        if (std::fabs(next - turn) > 0.5) return time_at(turn < 0.5 ? 0 : 1);
        turn = next;
    }
    return time_at(turn);
}

double SweepClock::time_of_record(std::uint64_t record, std::uint64_t records) const {
    const double columns = static_cast<double>(std::max<std::uint64_t>(1, records / beams_));
    return std::min(end_s_, time_at((static_cast<double>(record / beams_) + 0.5) / columns));
}

bool SweepClock::passes(Vec3d world, double distance_m) const {
    const auto poses = path_.poses();
    if (poses.size() == 1) return length(world - poses[0].world_from_body.translation) < distance_m;
    for (std::size_t i = 1; i < poses.size(); ++i) {
        const Vec3d from = poses[i - 1].world_from_body.translation,
                    way = poses[i].world_from_body.translation - from, to_place = world - from;
        const double way_2 = dot(way, way);
        const double share = way_2 > 0 ? std::clamp(dot(to_place, way) / way_2, 0.0, 1.0) : 0;
        if (length(to_place - share * way) < distance_m) return true;
    }
    return false;
}

double SweepClock::azimuth_at(double time_s) const {
    const double turn = end_s_ > begin_s_ ? (time_s - begin_s_) / (end_s_ - begin_s_) : 0;
    return start_azimuth_rad_ + (clockwise_ ? -turn : turn) * 2 * exact::kPi;
}

}  // namespace citysplat::io
