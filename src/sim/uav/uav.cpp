#include "sim/uav/uav.hpp"

#include "core/math/math_hd.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace citysplat::sim {

namespace {

/// Where the motors are, seen from above, in units of the arm, and how they turn.
struct Motor {
    double x, y, spin;
};
constexpr double kDiagonal = 0.70710678118654752440;
constexpr std::array<Motor, 4> kMotors{{{kDiagonal, -kDiagonal, 1},
                                        {-kDiagonal, kDiagonal, 1},
                                        {kDiagonal, kDiagonal, -1},
                                        {-kDiagonal, -kDiagonal, -1}}};

Vec3d by_axes(Vec3d a, Vec3d b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
Vec3d over_axes(Vec3d a, Vec3d b) { return {a.x / b.x, a.y / b.y, a.z / b.z}; }

Vec3d limited(Vec3d v, double most) {
    const double n = length(v);
    return n > most ? v * (most / n) : v;
}

Quaternion normalized(const Quaternion& q) {
    const double n = std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    return {q.x / n, q.y / n, q.z / n, q.w / n};
}

double yaw_of(const Quaternion& q) {
    const Vec3d x = rotate(q, {1, 0, 0});
    return exact::atan2(x.y, x.x);
}

/// The rotation that has its z axis along `up` and its x axis as near to the yaw as that lets it.
Quaternion attitude_with(Vec3d up, double yaw_rad) {
    const exact::SinCos yaw = exact::sin_cos(yaw_rad);
    const Vec3d z = normalized(up), y = normalized(cross(z, Vec3d{yaw.cos, yaw.sin, 0})), x = cross(y, z);
    return from_rotation_matrix({x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z});
}

/// The turn that a rotation is, taken apart: the shortest way to its z axis, and what is left about that
/// axis. A body that lags behind in yaw still tilts the right way.
Vec3d turn_to(const Quaternion& rotation) {
    const double n = std::sqrt(rotation.z * rotation.z + rotation.w * rotation.w);
    if (!(n > 1e-9)) return quaternion_log(rotation);
    const Quaternion about_z{0, 0, rotation.z / n, rotation.w / n};
    return quaternion_log(rotation * conjugate(about_z)) + quaternion_log(about_z);
}

/// What each motor is to lift for a thrust and a torque. Where the motors cannot do all of it, they turn the
/// body last and hold it upright first: a body that cannot keep its tilt falls.
std::array<double, 4> lifts_for(const UavParameters& p, double thrust, Vec3d torque) {
    const double least = p.thrust_n_s2 * p.least_speed_rad_s * p.least_speed_rad_s,
                 most = p.thrust_n_s2 * p.most_speed_rad_s * p.most_speed_rad_s;
    std::array<double, 4> tilt{}, lifts{};
    for (std::size_t i = 0; i < 4; ++i)
        tilt[i] = (torque.x * kMotors[i].y - torque.y * kMotors[i].x) / (2 * p.arm_m);
    const auto [low, high] = std::minmax_element(tilt.begin(), tilt.end());
    const double share_of_tilt = std::min(1.0, (most - least) / std::max(*high - *low, 1e-12));
    const double each = std::clamp(thrust / 4, least - share_of_tilt * *low, most - share_of_tilt * *high);
    const double turn = torque.z / (4 * p.torque_nm_s2 / p.thrust_n_s2);
    double share_of_turn = 1;
    for (std::size_t i = 0; i < 4; ++i) {
        lifts[i] = each + share_of_tilt * tilt[i];
        const double wanted = -kMotors[i].spin * turn, room = wanted > 0 ? most - lifts[i] : lifts[i] - least;
        if (std::abs(wanted) > room)
            share_of_turn = std::min(share_of_turn, std::max(0.0, room) / std::abs(wanted));
    }
    for (std::size_t i = 0; i < 4; ++i) lifts[i] -= share_of_turn * kMotors[i].spin * turn;
    return lifts;
}

}  // namespace

/// What changes in a state, per second.
struct Uav::Rates {
    Vec3d position, velocity, turn;
    Quaternion rotation;
    std::array<double, 4> motor, motor_rate;
};

Uav::Uav(const UavParameters& parameters, const Pose& start, double time_s, std::uint64_t seed)
    : parameters_(parameters),
      command_(GoTo{start.translation, yaw_of(start.rotation)}),
      begin_s_(time_s),
      model_m_(start.translation),
      yaw_rad_(yaw_of(start.rotation)),
      most_turn_rad_s2_(parameters.most_turn_rad_s2()),
      noise_(parameters.imu, parameters.imu_rate_hz, seed) {
    state_.position_m = start.translation;
    state_.rotation = attitude_with({0, 0, 1}, yaw_rad_);
    state_.motor_rad_s.fill(parameters.hover_speed_rad_s());
    poses_.push_back({time_s, state_.pose()});
}

Uav::Rates Uav::rates_of(const UavState& s, const std::array<double, 4>& speed_commands) const {
    const UavParameters& p = parameters_;
    Rates r{};
    double thrust = 0;
    Vec3d torque{0, 0, 0};
    for (std::size_t i = 0; i < 4; ++i) {
        const double square = s.motor_rad_s[i] * s.motor_rad_s[i], lift = p.thrust_n_s2 * square;
        thrust += lift;
        torque = torque + Vec3d{kMotors[i].y * p.arm_m * lift, -kMotors[i].x * p.arm_m * lift,
                                -kMotors[i].spin * p.torque_nm_s2 * square};
        r.motor[i] = s.motor_rad_s2[i];
        r.motor_rate[i] =
            p.motor.frequency_rad_s * p.motor.frequency_rad_s * (speed_commands[i] - s.motor_rad_s[i]) -
            2 * p.motor.damping * p.motor.frequency_rad_s * s.motor_rad_s2[i];
    }
    const Vec3d force = rotate(s.rotation, {0, 0, thrust}) - s.velocity_m_s * p.drag_n_s_m + push_n_;
    r.position = s.velocity_m_s;
    r.velocity = force * (1 / p.mass_kg) - Vec3d{0, 0, kGravity_m_s2};
    r.turn = over_axes(torque - cross(s.turn_rad_s, by_axes(p.inertia_kg_m2, s.turn_rad_s)), p.inertia_kg_m2);
    const Quaternion q = s.rotation * Quaternion{s.turn_rad_s.x, s.turn_rad_s.y, s.turn_rad_s.z, 0};
    r.rotation = {q.x / 2, q.y / 2, q.z / 2, q.w / 2};
    return r;
}

UavState Uav::moved(const UavState& s, const Rates& r, double dt) const {
    UavState next = s;
    next.position_m = s.position_m + r.position * dt;
    next.velocity_m_s = s.velocity_m_s + r.velocity * dt;
    next.turn_rad_s = s.turn_rad_s + r.turn * dt;
    next.rotation = {s.rotation.x + r.rotation.x * dt, s.rotation.y + r.rotation.y * dt,
                     s.rotation.z + r.rotation.z * dt, s.rotation.w + r.rotation.w * dt};
    for (std::size_t i = 0; i < 4; ++i) {
        next.motor_rad_s[i] = s.motor_rad_s[i] + r.motor[i] * dt;
        next.motor_rad_s2[i] = s.motor_rad_s2[i] + r.motor_rate[i] * dt;
    }
    return next;
}

void Uav::move_model() {
    const UavParameters& p = parameters_;
    const double w = p.position.frequency_rad_s, z = p.position.damping;
    Vec3d acceleration{}, jerk{};
    double turn_rad_s = 0;
    if (const auto* go = std::get_if<GoTo>(&command_)) {
        // Far away the pull towards the place is what keeps the greatest velocity.
        const double pull = 2 * z * w * p.most_velocity_m_s;
        const Vec3d spring = (go->position_m - model_m_) * (w * w);
        const bool far = length(spring) > pull;
        acceleration = limited(spring, pull) - model_m_s_ * (2 * z * w);
        jerk = (far ? Vec3d{0, 0, 0} : model_m_s_ * (-w * w)) - acceleration * (2 * z * w);
        const double turn = go->yaw_rad - yaw_rad_;
        const double shortest = turn - 2 * exact::kPi * std::floor(turn / (2 * exact::kPi) + 0.5);
        turn_rad_s = std::clamp(shortest * w, -1.0, 1.0);
    } else {
        const auto& fly = std::get<FlyWith>(command_);
        const Vec3d velocity = limited(fly.velocity_m_s, p.most_velocity_m_s);
        acceleration = (velocity - model_m_s_) * (2 * z * w);
        jerk = acceleration * (-2 * z * w);
        turn_rad_s = fly.yaw_rate_rad_s;
    }
    if (length(acceleration) > p.most_acceleration_m_s2)
        acceleration = limited(acceleration, p.most_acceleration_m_s2), jerk = {0, 0, 0};
    const double most_change = most_turn_rad_s2_ * kStep_s;
    yaw_rad_s_ += std::clamp(turn_rad_s - yaw_rad_s_, -most_change, most_change);
    yaw_rad_ += yaw_rad_s_ * kStep_s;
    yaw_rad_ -= 2 * exact::kPi * std::floor(yaw_rad_ / (2 * exact::kPi) + 0.5);
    model_m_ = model_m_ + model_m_s_ * kStep_s + acceleration * (kStep_s * kStep_s / 2);
    model_m_s_ = model_m_s_ + acceleration * kStep_s;
    model_m_s2_ = acceleration;
    model_m_s3_ = jerk;
}

std::array<double, 4> Uav::control() {
    const UavParameters& p = parameters_;
    // As quick as an attitude that follows in its own time allows: the model is followed, not lived.
    const double a = p.attitude.frequency_rad_s, w = a / 5;
    const Vec3d away = model_m_ - state_.position_m;
    constexpr double kMostIntegral_m_s2 = 3;
    const double integral_gain = p.position_integral * w * w * w;
    if (integral_gain > 0)
        integral_ = limited(integral_ + away * kStep_s, kMostIntegral_m_s2 / integral_gain);
    // Lift follows the motors, its direction the attitude as well: what is wanted is told so much ahead.
    const double motor_s = 2 * p.motor.damping / p.motor.frequency_rad_s,
                 attitude_s = motor_s + 2 * p.attitude.damping / a;
    const Vec3d wanted = model_m_s2_ + by_axes(model_m_s3_, {attitude_s, attitude_s, motor_s}) +
                         away * (w * w) + (model_m_s_ - state_.velocity_m_s) * (2 * p.position.damping * w) +
                         integral_ * integral_gain;
    const double most_aside = exact::sin_cos(p.most_tilt_rad).sin / exact::sin_cos(p.most_tilt_rad).cos;
    const double up = std::max(wanted.z + kGravity_m_s2, 0.3 * kGravity_m_s2);
    const Vec3d aside = limited({wanted.x, wanted.y, 0}, most_aside * up);
    const Vec3d force = Vec3d{aside.x, aside.y, up} * p.mass_kg;
    const double thrust = std::max(0.0, dot(force, rotate(state_.rotation, {0, 0, 1})));

    const Vec3d turn = turn_to(conjugate(state_.rotation) * attitude_with(force, yaw_rad_));
    const Vec3d angular = turn * (a * a) - state_.turn_rad_s * (2 * p.attitude.damping * a);
    const Vec3d torque = by_axes(p.inertia_kg_m2, angular) +
                         cross(state_.turn_rad_s, by_axes(p.inertia_kg_m2, state_.turn_rad_s));

    const std::array<double, 4> lifts = lifts_for(p, thrust, torque);
    std::array<double, 4> speeds{};
    for (std::size_t i = 0; i < 4; ++i)
        speeds[i] = std::clamp(std::sqrt(std::max(0.0, lifts[i]) / p.thrust_n_s2), p.least_speed_rad_s,
                               p.most_speed_rad_s);
    return speeds;
}

void Uav::step() {
    move_model();
    const std::array<double, 4> speeds = control();
    const Rates a = rates_of(state_, speeds), b = rates_of(moved(state_, a, kStep_s / 2), speeds),
                c = rates_of(moved(state_, b, kStep_s / 2), speeds),
                d = rates_of(moved(state_, c, kStep_s), speeds);
    const auto mean = [](const auto& ka, const auto& kb, const auto& kc, const auto& kd) {
        return (ka + 2.0 * kb + 2.0 * kc + kd) * (1.0 / 6);
    };
    Rates r{};
    r.position = mean(a.position, b.position, c.position, d.position);
    r.velocity = mean(a.velocity, b.velocity, c.velocity, d.velocity);
    r.turn = mean(a.turn, b.turn, c.turn, d.turn);
    r.rotation = {mean(a.rotation.x, b.rotation.x, c.rotation.x, d.rotation.x),
                  mean(a.rotation.y, b.rotation.y, c.rotation.y, d.rotation.y),
                  mean(a.rotation.z, b.rotation.z, c.rotation.z, d.rotation.z),
                  mean(a.rotation.w, b.rotation.w, c.rotation.w, d.rotation.w)};
    for (std::size_t i = 0; i < 4; ++i) {
        r.motor[i] = mean(a.motor[i], b.motor[i], c.motor[i], d.motor[i]);
        r.motor_rate[i] = mean(a.motor_rate[i], b.motor_rate[i], c.motor_rate[i], d.motor_rate[i]);
    }
    state_ = moved(state_, r, kStep_s);
    state_.rotation = normalized(state_.rotation);
    ++steps_;
    poses_.push_back({time_s(), state_.pose()});
    const auto every = static_cast<std::uint64_t>(1 / (kStep_s * parameters_.imu_rate_hz) + 0.5);
    if (steps_ % every == 0) imu_.push_back({time_s(), noise_.measured(ideal_imu())});
}

void Uav::advance_to(double time_s) {
    const double steps = std::floor((time_s - begin_s_) / kStep_s + 0.5);
    while (static_cast<double>(steps_) < steps) step();
}

Vec3d Uav::acceleration_m_s2() const { return rates_of(state_, state_.motor_rad_s).velocity; }

ImuSample Uav::ideal_imu() const {
    return sim::ideal_imu(state_.rotation, acceleration_m_s2(), state_.turn_rad_s);
}

std::vector<Uav::TimedSample> Uav::take_imu() { return std::exchange(imu_, {}); }

std::vector<StampedPose> Uav::take_poses() {
    std::vector<StampedPose> taken = std::exchange(poses_, {});
    if (!taken.empty()) poses_.push_back(taken.back());
    return taken;
}

}  // namespace citysplat::sim
