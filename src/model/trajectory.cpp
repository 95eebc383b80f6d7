#include "model/trajectory.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/lattice.hpp"
#include "core/math/math_hd.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

namespace citysplat {

Quaternion operator*(const Quaternion& a, const Quaternion& b) {
    return {a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z};
}

Quaternion from_yaw_pitch_roll(double yaw_rad, double pitch_rad, double roll_rad) {
    const auto y = exact::sin_cos(yaw_rad / 2), p = exact::sin_cos(pitch_rad / 2),
               r = exact::sin_cos(roll_rad / 2);
    return Quaternion{0, 0, y.sin, y.cos} * Quaternion{0, p.sin, 0, p.cos} * Quaternion{r.sin, 0, 0, r.cos};
}

Quaternion from_rotation_matrix(const double (&m)[9]) {
    // Of the four ways to divide, take the one with the largest divisor.
    const double trace = m[0] + m[4] + m[8];
    Quaternion q;
    if (trace > 0) {
        const double s = std::sqrt(trace + 1.0) * 2;
        q = {(m[7] - m[5]) / s, (m[2] - m[6]) / s, (m[3] - m[1]) / s, s / 4};
    } else if (m[0] > m[4] && m[0] > m[8]) {
        const double s = std::sqrt(1.0 + m[0] - m[4] - m[8]) * 2;
        q = {s / 4, (m[1] + m[3]) / s, (m[2] + m[6]) / s, (m[7] - m[5]) / s};
    } else if (m[4] > m[8]) {
        const double s = std::sqrt(1.0 + m[4] - m[0] - m[8]) * 2;
        q = {(m[1] + m[3]) / s, s / 4, (m[5] + m[7]) / s, (m[2] - m[6]) / s};
    } else {
        const double s = std::sqrt(1.0 + m[8] - m[0] - m[4]) * 2;
        q = {(m[2] + m[6]) / s, (m[5] + m[7]) / s, s / 4, (m[3] - m[1]) / s};
    }
    return q;
}

Pose operator*(const Pose& a_from_b, const Pose& b_from_c) {
    return {a_from_b.apply(b_from_c.translation), a_from_b.rotation * b_from_c.rotation};
}

Pose inverse(const Pose& pose) {
    const Quaternion back = conjugate(pose.rotation);
    return {-rotate(back, pose.translation), back};
}

namespace {

/// Quaternions written with two decimals are this far from length 1.
constexpr double kUnitTolerance = 0.02;
/// Quaternions that were normalised are this far from it at most.
constexpr double kRounding = 1e-15;

double norm(const Quaternion& q) { return std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w); }

Quaternion slerp(const Quaternion& a, Quaternion b, double t) {
    double cosine = a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    if (cosine < 0) b = {-b.x, -b.y, -b.z, -b.w}, cosine = -cosine;
    double wa = 1 - t, wb = t;
    if (cosine < 0.9995) {
        const double angle = exact::acos(cosine), s = exact::sin(angle);
        wa = exact::sin((1 - t) * angle) / s;
        wb = exact::sin(t * angle) / s;
    }
    const Quaternion q{wa * a.x + wb * b.x, wa * a.y + wb * b.y, wa * a.z + wb * b.z, wa * a.w + wb * b.w};
    const double n = norm(q);
    return {q.x / n, q.y / n, q.z / n, q.w / n};
}

/// Where a pose stands, for messages.
struct PoseName {
    std::string_view origin;
    std::size_t index;
};

/// The pose with a normalised rotation. Throws InputError unless it may follow a pose of `last_s` (any may be
/// the first).
StampedPose checked(StampedPose stamped, double last_s, const PoseName& name) {
    const auto fail = [&](const std::string& why) {
        throw InputError(std::string(name.origin) + ": pose " + std::to_string(name.index + 1) + ": " + why);
    };
    const double time_s = stamped.time_s;
    const Vec3d& t = stamped.world_from_body.translation;
    Quaternion& q = stamped.world_from_body.rotation;
    if (!ranges::kTime_s.contains(time_s))
        fail("time " + format_number(time_s) + " is not a number of seconds " + ranges::kTime_s.text());
    for (const double v : {t.x, t.y, t.z})
        if (!(std::fabs(v) <= kMaxWorld_m))
            fail("position " + std::to_string(v) +
                 (std::isfinite(v) ? " is not on Earth; expected metres" : " is not finite"));
    const double n = norm(q);
    if (!(std::fabs(n - 1) <= kUnitTolerance))
        fail("the rotation quaternion has the length " + std::to_string(n) + "; expected 1");
    // What is of unit length up to rounding stays: a pose that was read from a trajectory is the same in
    // another.
    if (std::fabs(n - 1) > kRounding) q = {q.x / n, q.y / n, q.z / n, q.w / n};
    if (name.index > 0 && !(time_s > last_s))
        fail("time " + std::to_string(time_s) + " does not follow " + std::to_string(last_s) +
             "; sort the file by time and remove duplicates");
    return stamped;
}

}  // namespace

Trajectory::Trajectory(std::vector<StampedPose> poses, std::string_view origin) : poses_(std::move(poses)) {
    for (std::size_t i = 0; i < poses_.size(); ++i)
        poses_[i] = checked(poses_[i], i > 0 ? poses_[i - 1].time_s : 0, {origin, i});
}

bool Trajectory::covers(double time_s) const {
    return !poses_.empty() && time_s >= begin_s() && time_s <= end_s();
}

std::optional<Pose> Trajectory::at(double time_s) const {
    if (!covers(time_s)) return std::nullopt;
    const auto after = std::upper_bound(poses_.begin(), poses_.end(), time_s,
                                        [](double t, const StampedPose& p) { return t < p.time_s; });
    // The last pose is what it would be if others followed: rotations pass through slerp() everywhere.
    const StampedPose& a = after[-1];
    if (after == poses_.end()) {
        const auto& [translation, rotation] = a.world_from_body;
        return Pose{translation, slerp(rotation, rotation, 0)};
    }
    const StampedPose& b = *after;
    const double t = (time_s - a.time_s) / (b.time_s - a.time_s);
    const Pose &pa = a.world_from_body, &pb = b.world_from_body;
    return Pose{pa.translation + t * (pb.translation - pa.translation), slerp(pa.rotation, pb.rotation, t)};
}

std::optional<Vec3d> SensorPath::at(double time_s) {
    if (!trajectory_ || !trajectory_->covers(time_s)) return std::nullopt;
    const auto poses = trajectory_->poses();
    // Points follow each other in time: nearly always it is the same interval as before.
    if (last_ + 1 >= poses.size() || time_s < poses[last_].time_s || time_s >= poses[last_ + 1].time_s) {
        const auto after = std::upper_bound(poses.begin(), poses.end(), time_s,
                                            [](double t, const StampedPose& p) { return t < p.time_s; });
        last_ = static_cast<std::size_t>(after - poses.begin()) - 1;
    }
    const Vec3d a = poses[last_].world_from_body.translation;
    if (last_ + 1 == poses.size()) return a;
    const StampedPose& next = poses[last_ + 1];
    const double t = (time_s - poses[last_].time_s) / (next.time_s - poses[last_].time_s);
    return a + t * (next.world_from_body.translation - a);
}

double Trajectory::length_m() const {
    double sum = 0;
    for (std::size_t i = 1; i < poses_.size(); ++i)
        sum += length(poses_[i].world_from_body.translation - poses_[i - 1].world_from_body.translation);
    return sum;
}

Trajectory Trajectory::read_tum(const std::filesystem::path& path) {
    const std::string text = read_text_file(path);
    std::vector<StampedPose> poses;
    for (const auto& [line, line_number, next_line, ended] : Lines(text)) {
        double v[8];
        int n = 0;
        bool clean = true;
        const char *p = line.data(), *stop = line.data() + line.size();
        const auto skip_blanks = [&] {
            while (p < stop && (*p == ' ' || *p == '\t' || *p == '\r')) ++p;
        };
        skip_blanks();
        if (p == stop || *p == '#') continue;
        while (p < stop && n < 8 && clean) {
            const auto [next, ec] = std::from_chars(p, stop, v[n]);
            clean = ec == std::errc();
            if (clean) ++n, p = next;
            skip_blanks();
        }
        if (!clean || n != 8 || p != stop)
            throw InputError(path.string() + ": line " + std::to_string(line_number) +
                             ": expected the 8 numbers of a TUM pose (time x y z qx qy qz qw), got \"" +
                             std::string(line.substr(0, 60)) + "\"");
        poses.push_back({v[0], {{v[1], v[2], v[3]}, {v[4], v[5], v[6], v[7]}}});
    }
    if (poses.empty()) throw InputError(path.string() + ": no poses in this trajectory");
    return Trajectory(std::move(poses), path.string());
}

TumWriter::TumWriter(const std::filesystem::path& path) : origin_(path.string()), out_(path) {
    out_.text("# time_s x_m y_m z_m qx qy qz qw\n");
}

void TumWriter::write(const StampedPose& stamped) {
    const auto& [time_s, pose] = checked(stamped, last_s_, {origin_, written_++});
    last_s_ = time_s;
    const Vec3d& t = pose.translation;
    const Quaternion& q = pose.rotation;
    char line[256];
    const int n = std::snprintf(line, sizeof line, "%.9f %.6f %.6f %.6f %.12f %.12f %.12f %.12f\n", time_s,
                                t.x, t.y, t.z, q.x, q.y, q.z, q.w);
    out_.text({line, static_cast<std::size_t>(n)});
}

}  // namespace citysplat
