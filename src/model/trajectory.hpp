#pragma once

#include "core/file.hpp"
#include "core/math/vec_hd.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat {

/// Unit quaternion, scalar last as in TUM files.
struct Quaternion {
    double x = 0, y = 0, z = 0, w = 1;
};
Quaternion operator*(const Quaternion& a, const Quaternion& b);
inline Quaternion conjugate(const Quaternion& q) { return {-q.x, -q.y, -q.z, q.w}; }
inline Vec3d rotate(const Quaternion& q, Vec3d v) {
    const Vec3d u{q.x, q.y, q.z};
    const Vec3d t = 2.0 * cross(u, v);
    return v + q.w * t + cross(u, t);
}
Quaternion from_yaw_pitch_roll(double yaw_rad, double pitch_rad,
                               double roll_rad);  ///< Rz(yaw)·Ry(pitch)·Rx(roll)
Quaternion from_rotation_matrix(const double (&row_major)[9]);

/// A rigid transform: world_from_body = translation after rotation.
struct Pose {
    Vec3d translation{0, 0, 0};
    Quaternion rotation;

    Vec3d apply(Vec3d v) const { return rotate(rotation, v) + translation; }
};
Pose operator*(const Pose& a_from_b, const Pose& b_from_c);
Pose inverse(const Pose& pose);

struct StampedPose {
    double time_s;
    Pose world_from_body;
};

/// Poses in strictly increasing time. Between two of them the position is linear and the rotation spherical.
class Trajectory {
  public:
    Trajectory() = default;
    /// Throws InputError naming the record when times do not increase, a value is not finite, a position is
    /// not on Earth, or a quaternion is more than 2 % off length 1; the others are normalised.
    explicit Trajectory(std::vector<StampedPose> poses, std::string_view origin = "trajectory");

    std::span<const StampedPose> poses() const { return poses_; }
    bool empty() const { return poses_.empty(); }
    double begin_s() const { return poses_.front().time_s; }
    double end_s() const { return poses_.back().time_s; }
    bool covers(double time_s) const;
    /// Nothing outside [begin, end].
    std::optional<Pose> at(double time_s) const;
    /// Path length in metres.
    double length_m() const;

    /// TUM lines: time x y z qx qy qz qw; '#' comments. Throws InputError with the line.
    static Trajectory read_tum(const std::filesystem::path& path);

  private:
    std::vector<StampedPose> poses_;
};

/// Where the sensor was at a time: linear between the poses of a trajectory. Remembers where it looked last;
/// make one per thread.
class SensorPath {
  public:
    explicit SensorPath(const Trajectory* trajectory) : trajectory_(trajectory) {}
    std::optional<Vec3d> at(double time_s);

  private:
    const Trajectory* trajectory_;
    std::size_t last_ = 0;
};

/// Writes a TUM file pose by pose: no drive is too long for the memory. Without finish() the file may lack
/// its end.
class TumWriter {
  public:
    explicit TumWriter(const std::filesystem::path& path);
    /// Throws InputError for a pose that a Trajectory would refuse; rotations are normalised.
    void write(const StampedPose& pose);
    void finish() { out_.finish(); }

  private:
    std::string origin_;
    FileWriter out_;
    std::size_t written_ = 0;
    double last_s_ = 0;
};

}  // namespace citysplat
