#include "sim/traffic/obstacle.hpp"

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::sim {

namespace {

using Motion = ObstacleField::Motion;

constexpr double kGravity_m_s2 = 9.81;
constexpr double kForever_s = std::numeric_limits<double>::infinity();
/// Between the poses of a fall: 9.81 · 0.0125² / 8 is 0.2 mm.
constexpr double kFallStep_s = 0.0125;

std::uint64_t key_of(const ObstacleField& f, std::uint32_t number) {
    return rng::key(rng::key(f.seed, 0x0b57ac1e), number);
}

double extent(const Box3d& b, double Vec3d::*axis) { return b.max.*axis - b.min.*axis; }
constexpr double Vec3d::*kAxes[3]{&Vec3d::x, &Vec3d::y, &Vec3d::z};

Vec3d place_in(const Box3d& b, std::uint64_t key, std::uint64_t counter) {
    return {rng::uniform(key, counter, b.min.x, b.max.x), rng::uniform(key, counter + 1, b.min.y, b.max.y),
            rng::uniform(key, counter + 2, b.min.z, b.max.z)};
}

/// Of a random direction and speed.
Vec3d velocity(const ObstacleField& f, std::uint64_t key, std::uint64_t counter) {
    const double z = rng::uniform(key, counter, -1, 1),
                 around = rng::uniform(key, counter + 1, 0, 2 * exact::kPi);
    const double speed = rng::uniform(key, counter + 2, f.slowest_m_s, f.fastest_m_s);
    const double flat = std::sqrt(std::max(0.0, 1 - z * z));
    const auto a = exact::sin_cos(around);
    return speed * Vec3d{flat * a.cos, flat * a.sin, z};
}

/// Place of an obstacle of constant velocity and how often it has left the region along each axis.
struct Wrapped {
    Vec3d place;
    double left[3];
};
Wrapped constant_at(const ObstacleField& f, std::uint64_t key, double since_s) {
    const Vec3d p0 = place_in(f.region, key, 0), v = velocity(f, key, 3);
    Wrapped w{};
    for (int i = 0; i < 3; ++i) {
        const auto axis = kAxes[i];
        const double size = extent(f.region, axis), way = p0.*axis - f.region.min.*axis + since_s * (v.*axis);
        w.left[i] = size > 0 ? std::floor(way / size) : 0;
        w.place.*axis = f.region.min.*axis + (size > 0 ? way - w.left[i] * size : 0);
    }
    return w;
}

double fall_s(const ObstacleField& f) { return std::sqrt(2 * extent(f.region, &Vec3d::z) / kGravity_m_s2); }
/// Every obstacle begins somewhere on its way down.
double fall_phase_s(const ObstacleField& f, std::uint64_t key) { return rng::uniform(key, 0) * fall_s(f); }

Vec3d falling_at(const ObstacleField& f, std::uint64_t key, double generation, double falling_s) {
    const std::uint64_t own = rng::key(key, static_cast<std::uint64_t>(generation) + 1);
    Vec3d p = place_in(f.region, own, 0);
    p.z = f.region.max.z - kGravity_m_s2 / 2 * falling_s * falling_s;
    return p;
}

/// A coordinate that the walls reflect: a triangular wave.
double reflected(double v, double low, double high) {
    const double size = high - low;
    if (!(size > 0)) return low;
    const double turns = (v - low) / (2 * size), part = turns - std::floor(turns);
    return low + 2 * size * std::min(part, 1 - part);
}

/// The ends of the legs, one after the other.
class Walk {
  public:
    Walk(const ObstacleField& f, std::uint32_t number)
        : f_(f), key_(key_of(f, number)), free_(place_in(f.region, key_, 0)) {}

    double leg() const { return leg_; }
    Vec3d place() const {
        const Box3d& b = f_.region;
        return {reflected(free_.x, b.min.x, b.max.x), reflected(free_.y, b.min.y, b.max.y),
                reflected(free_.z, b.min.z, b.max.z)};
    }
    void advance() {
        free_ = free_ + f_.leg_s * velocity(f_, key_, 3 * static_cast<std::uint64_t>(leg_) + 3);
        ++leg_;
    }

  private:
    const ObstacleField& f_;
    std::uint64_t key_;
    Vec3d free_;  ///< without walls
    double leg_ = 0;
};

Vec3d walking_at(const ObstacleField& f, std::uint32_t number, double since_s) {
    Walk walk(f, number);
    const double legs = std::floor(since_s / f.leg_s);
    while (walk.leg() < legs) walk.advance();
    const Vec3d from = walk.place();
    walk.advance();
    return from + (since_s / f.leg_s - legs) * (walk.place() - from);
}

class TrackMaker {
  public:
    TrackMaker(const ObstacleField& f, double begin_s, double end_s)
        : f_(f), begin_s_(begin_s), end_s_(end_s) {}

    /// A piece that lives in [from_s, to_s), cut to the span that is asked for.
    void piece(double from_s, double to_s, std::vector<StampedPose> poses) {
        from_s = std::max(from_s, begin_s_), to_s = std::min(to_s, end_s_);
        if (!(from_s < to_s) || poses.empty()) return;
        Track track;
        track.path = Trajectory(std::move(poses), "obstacle");
        track.begin_s = from_s, track.end_s = to_s;
        tracks.push_back(std::move(track));
    }

    void constant(std::uint64_t key) {
        const Vec3d v = velocity(f_, key, 3);
        double at_s = begin_s_ - f_.start_s;
        while (at_s < end_s_ - f_.start_s) {
            const Wrapped w = constant_at(f_, key, at_s);
            double leaves_s = end_s_ - f_.start_s;
            for (const auto axis : kAxes) {
                if (v.*axis == 0 || extent(f_.region, axis) <= 0) continue;
                const double wall = v.*axis > 0 ? f_.region.max.*axis : f_.region.min.*axis;
                leaves_s = std::min(leaves_s, at_s + (wall - w.place.*axis) / (v.*axis));
            }
            // Rounding may put a place onto the wall that it has just come through. Time goes on even where
            // it has not so many digits.
            leaves_s = std::max({leaves_s, at_s + 1e-6, std::nextafter(at_s, kForever_s)});
            piece(f_.start_s + at_s, f_.start_s + leaves_s,
                  {{f_.start_s + at_s, {w.place, {}}},
                   {f_.start_s + leaves_s, {w.place + (leaves_s - at_s) * v, {}}}});
            at_s = leaves_s;
        }
    }

    void fall(std::uint64_t key) {
        const double period_s = fall_s(f_), phase_s = fall_phase_s(f_, key);
        const double first = std::floor((begin_s_ - f_.start_s + phase_s) / period_s);
        for (double g = std::max(0.0, first);; ++g) {
            const double from_s = f_.start_s - phase_s + g * period_s;
            if (from_s >= end_s_) return;
            std::vector<StampedPose> poses;
            for (double t = 0; t < period_s; t += kFallStep_s)
                poses.push_back({from_s + t, {falling_at(f_, key, g, t), {}}});
            if (period_s - (poses.back().time_s - from_s) > 1e-6)
                poses.push_back({from_s + period_s, {falling_at(f_, key, g, period_s), {}}});
            piece(std::max(from_s, f_.start_s), from_s + period_s, std::move(poses));
        }
    }

    void walk(std::uint32_t number) {
        Walk w(f_, number);
        std::vector<StampedPose> poses;
        while (f_.start_s + w.leg() * f_.leg_s < end_s_ + f_.leg_s) {
            if (f_.start_s + (w.leg() + 1) * f_.leg_s > begin_s_)
                poses.push_back({f_.start_s + w.leg() * f_.leg_s, {w.place(), {}}});
            w.advance();
        }
        piece(begin_s_, end_s_, std::move(poses));
    }

    std::vector<Track> tracks;

  private:
    const ObstacleField& f_;
    double begin_s_, end_s_;
};

}  // namespace

Vec3d obstacle_position(const ObstacleField& field, std::uint32_t number, double time_s) {
    const std::uint64_t key = key_of(field, number);
    const double since_s = time_s - field.start_s;
    if (field.motion == Motion::constant_velocity) return constant_at(field, key, since_s).place;
    if (field.motion == Motion::random_walk) return walking_at(field, number, since_s);
    const double falls = (since_s + fall_phase_s(field, key)) / fall_s(field), generation = std::floor(falls);
    return falling_at(field, key, generation, (falls - generation) * fall_s(field));
}

double most_poses(const ObstacleField& field, double begin_s, double end_s) {
    const double asked_s = std::max(0.0, end_s - std::max(begin_s, field.start_s));
    if (field.motion == Motion::random_walk)
        return std::max(0.0, end_s - std::min(begin_s, field.start_s)) / field.leg_s + 2;
    if (field.motion == Motion::free_fall)
        return (asked_s + 2 * fall_s(field)) * (1 / kFallStep_s + 2 / fall_s(field));
    double walls = 1;
    for (const auto axis : kAxes)
        if (const double size = extent(field.region, axis); size > 0)
            walls += field.fastest_m_s * asked_s / size + 1;
    return 2 * walls;
}

std::vector<Track> obstacle_tracks(const ObstacleField& field, std::uint32_t number, double begin_s,
                                   double end_s) {
    TrackMaker maker(field, std::max(begin_s, field.start_s), end_s);
    const std::uint64_t key = key_of(field, number);
    if (field.motion == Motion::constant_velocity) maker.constant(key);
    if (field.motion == Motion::free_fall) maker.fall(key);
    if (field.motion == Motion::random_walk) maker.walk(number);
    return std::move(maker.tracks);
}

}  // namespace citysplat::sim
