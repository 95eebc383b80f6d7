#include "datasets/synth/drive.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::synth {

namespace {

constexpr double kAcceleration = 1.4;  // m/s²

/// A stretch of the drive with one speed limit, before it is turned into motion.
struct Stretch {
    double length_m, limit, exit_speed = 0;
    double dwell_s = 0;  ///< standing still at its end
};

double reachable(double speed, double length_m) {
    return std::sqrt(speed * speed + 2 * kAcceleration * length_m);
}

/// Sum of two slow waves with random phases: unit variance, a pure function of time.
double drift(std::uint64_t key, std::uint64_t channel, double time_s) {
    double sum = 0;
    for (std::uint64_t wave = 0; wave < 2; ++wave) {
        const double period = rng::uniform(key, 10 * channel + 3 * wave, 35, 140);
        const double phase = rng::uniform(key, 10 * channel + 3 * wave + 1, 0, 2 * exact::kPi);
        sum += exact::sin(2 * exact::kPi * time_s / period + phase);
    }
    return sum;
}

}  // namespace

Drive::Drive(const DriveParams& params) : params_(params), route_(plan_route(params.seed, params.length_m)) {
    plan_motion();
}

void Drive::plan_motion() {
    const double stop_m = 0.35 * params_.length_m;
    standstill_s_ = std::min(4.0, params_.length_m / 25);
    std::vector<Stretch> stretches;
    for (const PathPiece& piece : route_) {
        const double length_m = std::min(piece.length_m, params_.length_m - piece.begin_m);
        if (length_m <= 1e-9) break;
        const double before = stop_m - piece.begin_m;
        if (before > 1e-6 && before < length_m) {
            stretches.push_back({before, piece.speed_limit, 0, standstill_s_});
            stretches.push_back({length_m - before, piece.speed_limit});
        } else {
            stretches.push_back({length_m, piece.speed_limit});
        }
    }
    // Backwards: no faster at the end of a stretch than the next one and braking allow.
    double next_entry = stretches.back().limit;
    for (auto it = stretches.rbegin(); it != stretches.rend(); ++it) {
        it->exit_speed = it->dwell_s > 0 ? 0 : std::min(it->limit, next_entry);
        next_entry = std::min(it->limit, reachable(it->exit_speed, it->length_m));
    }
    // Forwards: accelerate, cruise, brake.
    double time_s = 0, at_m = 0, speed = std::min(5.0, next_entry);
    for (const Stretch& s : stretches) {
        const double exit_speed = std::min(s.exit_speed, reachable(speed, s.length_m));
        const double peak_square = kAcceleration * s.length_m + (speed * speed + exit_speed * exit_speed) / 2;
        const double peak = std::max({std::min(s.limit, std::sqrt(peak_square)), speed, exit_speed});
        const double up_m = (peak * peak - speed * speed) / (2 * kAcceleration);
        const double down_m = (peak * peak - exit_speed * exit_speed) / (2 * kAcceleration);
        const double cruise_m = std::max(0.0, s.length_m - up_m - down_m);
        const auto phase = [&](double v, double a, double duration, double advance) {
            if (duration <= 0) return;
            motion_.push_back({time_s, at_m, v, a});
            time_s += duration;
            at_m += advance;
        };
        phase(speed, kAcceleration, (peak - speed) / kAcceleration, up_m);
        phase(peak, 0, cruise_m / peak, cruise_m);
        phase(peak, -kAcceleration, (peak - exit_speed) / kAcceleration, down_m);
        phase(0, 0, s.dwell_s, 0);
        speed = exit_speed;
    }
    duration_s_ = time_s;
}

double Drive::travelled_m(double time_s) const {
    const auto after = std::upper_bound(motion_.begin(), motion_.end(), time_s,
                                        [](double t, const MotionPhase& p) { return t < p.begin_s; });
    const MotionPhase& p = after == motion_.begin() ? *after : after[-1];
    const double t = std::min(time_s, duration_s_) - p.begin_s;
    return p.begin_m + p.speed * t + 0.5 * p.acceleration * t * t;
}

PathPoint Drive::path_at(double arc_m) const {
    const auto after = std::upper_bound(route_.begin(), route_.end(), arc_m,
                                        [](double s, const PathPiece& p) { return s < p.begin_m; });
    const PathPiece& p = after == route_.begin() ? *after : after[-1];
    const double s = arc_m - p.begin_m;
    const auto begin = exact::sin_cos(p.heading_rad);
    if (p.curvature == 0) return {p.x + s * begin.cos, p.y + s * begin.sin, p.heading_rad};
    const double heading = p.heading_rad + s * p.curvature;
    const auto end = exact::sin_cos(heading);
    return {p.x + (end.sin - begin.sin) / p.curvature, p.y + (begin.cos - end.cos) / p.curvature, heading};
}

Pose Drive::true_pose(std::int64_t k) const {
    const double time_s = pose_time_s(k), arc_m = travelled_m(time_s);
    const PathPoint p = path_at(arc_m);
    // A driver wanders a little within the lane.
    const double wander = 0.09 * exact::sin(arc_m * 0.11) + 0.05 * exact::sin(arc_m * 0.31 + 1);
    const double drift_angle =
        0.09 * 0.11 * exact::cos(arc_m * 0.11) + 0.05 * 0.31 * exact::cos(arc_m * 0.31 + 1);
    const auto heading = exact::sin_cos(p.heading_rad);
    const double x = p.x - wander * heading.sin, y = p.y + wander * heading.cos;
    // The suspension smooths the ground under the vehicle.
    Ground ground(params_.seed);
    double mean = 0, slope = 0;
    constexpr int kReach = 4;
    for (int i = -kReach; i <= kReach; ++i) {
        const double along = 0.6 * i;
        const double h = ground.height(x + along * heading.cos, y + along * heading.sin);
        mean += h / (2 * kReach + 1);
        slope += along * h / (2 * 0.36 * (1 + 4 + 9 + 16));
    }
    const double roll = 0.006 * exact::sin(time_s * 1.9) + 0.003 * exact::sin(time_s * 4.3 + 2);
    const double pitch = -slope + 0.004 * exact::sin(time_s * 2.7 + 1);
    return {{x, y, mean + params_.sensor_height_m},
            from_yaw_pitch_roll(p.heading_rad + drift_angle, pitch, roll)};
}

Pose Drive::recorded_pose(std::int64_t k) const {
    Pose pose = true_pose(k);
    const double sigma = params_.localisation_m, time_s = pose_time_s(k);
    if (sigma == 0) return pose;
    const std::uint64_t key = key_of(params_.seed, Purpose::drive, {});
    pose.translation =
        pose.translation + sigma * Vec3d{drift(key, 0, time_s), drift(key, 1, time_s), drift(key, 2, time_s)};
    const double angle = sigma * 0.012;  // a centimetre here is 0.007° there
    const Quaternion error = from_yaw_pitch_roll(angle * drift(key, 3, time_s), angle * drift(key, 4, time_s),
                                                 angle * drift(key, 5, time_s));
    pose.rotation = error * pose.rotation;
    return pose;
}

std::int64_t Drive::pose_count() const {
    return static_cast<std::int64_t>(std::ceil(duration_s_ * kPosesPerSecond)) + 2;
}

Pose Drive::interpolate(const Pose& a, const Pose& b, double t) {
    // As Trajectory::at() for rotations this close to each other.
    const Quaternion &p = a.rotation, &q = b.rotation;
    const double sign = p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w < 0 ? -1 : 1;
    const double u = 1 - t, v = sign * t;
    const Quaternion mix{u * p.x + v * q.x, u * p.y + v * q.y, u * p.z + v * q.z, u * p.w + v * q.w};
    const double n = std::sqrt(mix.x * mix.x + mix.y * mix.y + mix.z * mix.z + mix.w * mix.w);
    return {a.translation + t * (b.translation - a.translation),
            {mix.x / n, mix.y / n, mix.z / n, mix.w / n}};
}

Pose Drive::true_pose_at(double time_s) const {
    const double grid = std::floor(time_s * kPosesPerSecond);
    const auto k = static_cast<std::int64_t>(grid);
    return interpolate(true_pose(k), true_pose(k + 1), time_s * kPosesPerSecond - grid);
}

Pose Drive::recorded_pose_at(double time_s) const {
    const double grid = std::floor(time_s * kPosesPerSecond);
    const auto k = static_cast<std::int64_t>(grid);
    return interpolate(recorded_pose(k), recorded_pose(k + 1), time_s * kPosesPerSecond - grid);
}

}  // namespace citysplat::synth
