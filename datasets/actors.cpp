#include "datasets/actors.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::synth {

namespace {

constexpr int kVehicleShapes = 8, kPeople = 6, kStepPhases = 12;
constexpr double kVehicleSpacing_m = 48, kPersonSpacing_m = 16, kStride_m = 1.4;

Geometry make_person(Dice dice, double phase) {
    Geometry g;
    const Placed at(g, {0, 0, 0}, 0);
    const double scale = dice.between(0.92, 1.06);
    const Surface clothes{label::pedestrian, static_cast<std::uint8_t>(15 + dice.below(50)), Pattern::plain};
    const Surface trousers{label::pedestrian, static_cast<std::uint8_t>(10 + dice.below(30)), Pattern::plain};
    const Surface skin{label::pedestrian, 55, Pattern::plain};
    const double swing = 0.32 * exact::sin(2 * exact::kPi * phase);
    const auto up = [&](double x, double y, double z) { return Vec3d{x * scale, y * scale, z * scale}; };
    for (const double side : {-1.0, 1.0}) {
        const double foot = side * swing;
        at.cone(up(0, side * 0.1, 0.88), up(foot * 0.45, side * 0.1, 0.46), 0.085 * scale, 0.06 * scale,
                trousers);
        at.cone(up(foot * 0.45, side * 0.1, 0.48), up(foot, side * 0.1, 0.06), 0.06 * scale, 0.045 * scale,
                trousers);
        at.box(up(foot + 0.05, side * 0.1, 0.04), up(0.26, 0.09, 0.08), trousers);
        at.cone(up(0, side * 0.22, 1.42), up(-foot * 0.8, side * 0.25, 0.86), 0.05 * scale, 0.035 * scale,
                clothes);
    }
    at.cone(up(0, 0, 0.84), up(0, 0, 1.2), 0.16 * scale, 0.19 * scale, clothes);
    at.cone(up(0, 0, 1.2), up(0, 0, 1.48), 0.19 * scale, 0.13 * scale, clothes);
    at.cone(up(0, 0, 1.48), up(0, 0, 1.56), 0.06 * scale, 0.06 * scale, skin);
    at.sphere(up(0.01, 0, 1.65), 0.115 * scale, skin);
    return g;
}

}  // namespace

/// Members k of a stream are at (k + jitter)·spacing + speed·time along their street.
struct Actors::Stream {
    std::uint64_t key;
    bool east;         ///< along x, or along y
    double line;       ///< the street's centre line: y, or x
    double direction;  ///< +1 or −1 along the street
    double offset;     ///< to the right of the centre line
    double speed, spacing, share;
    bool people;
};

Actors::Actors(std::uint64_t seed) : seed_(seed) {
    const std::uint64_t key = key_of(seed, Purpose::actors, {INT32_MAX, INT32_MAX});
    for (int i = 0; i < kVehicleShapes; ++i) {
        Dice dice(rng::key(key, static_cast<std::uint64_t>(i)));
        Geometry g;
        const VehicleKind kinds[3] = {VehicleKind::hatchback, VehicleKind::saloon, VehicleKind::van};
        add_vehicle(Placed(g, {0, 0, 0}, 0), kinds[i % 3], dice, label::moving_vehicle);
        vehicles_.push_back(std::move(g));
    }
    for (int i = 0; i < kPeople; ++i) {
        const Dice dice(rng::key(key, 100 + static_cast<std::uint64_t>(i)));
        auto& phases = people_.emplace_back();
        for (int p = 0; p < kStepPhases; ++p)
            phases.push_back(make_person(dice, static_cast<double>(p) / kStepPhases));
    }
}

void Actors::walk(const Stream& s, double x, double y, double reach_m, double time_s, Ground& ground,
                  std::vector<Actor>& out) const {
    const double along = (s.east ? x : y) * s.direction, moved = s.speed * time_s;
    const double first = std::floor((along - reach_m - moved) / s.spacing) - 1;
    const double last = std::ceil((along + reach_m - moved) / s.spacing);
    for (double k = first; k <= last; ++k) {
        Dice dice(rng::key(s.key, static_cast<std::uint64_t>(static_cast<std::int64_t>(k))));
        if (!dice.chance(s.share)) continue;
        const double at = (k + dice.between(0.0, 0.7)) * s.spacing + moved;
        const double aside = s.offset + (s.people ? dice.between(-0.6, 0.6) : dice.between(-0.15, 0.15));
        const int which = dice.below(s.people ? kPeople : kVehicleShapes);
        const double travel = at * s.direction;
        const double px = s.east ? travel : s.line + s.direction * aside;
        const double py = s.east ? s.line - s.direction * aside : travel;
        const double dx = px - x, dy = py - y, square = dx * dx + dy * dy;
        if (square > reach_m * reach_m || square < kClearance_m * kClearance_m) continue;
        Actor a{};
        a.position = {px, py, ground.height(px, py)};
        a.cos_yaw = s.east ? s.direction : 0;
        a.sin_yaw = s.east ? 0 : s.direction;
        if (s.people) {
            const double stride = at / kStride_m, phase = stride - std::floor(stride);
            const auto step =
                std::min(static_cast<std::size_t>(phase * kStepPhases), std::size_t{kStepPhases - 1});
            a.shape = &people_[static_cast<std::size_t>(which)][step];
            a.centre = a.position + Vec3d{0, 0, 0.92};
            a.radius = 1.1;
        } else {
            a.shape = &vehicles_[static_cast<std::size_t>(which)];
            a.centre = a.position + Vec3d{0, 0, 0.9};
            a.radius = 3.0;
        }
        out.push_back(a);
    }
}

void Actors::near(double x, double y, double reach_m, double time_s, std::vector<Actor>& out) const {
    out.clear();
    Ground ground(seed_);
    for (const bool east : {true, false}) {
        const double across = east ? y : x;
        const double first = std::ceil((across - reach_m) / plan::kPitch),
                     last = std::floor((across + reach_m) / plan::kPitch);
        for (double row = first; row <= last; ++row) {
            const auto street = static_cast<std::int32_t>(row);
            for (const double direction : {-1.0, 1.0}) {
                const std::uint64_t key =
                    rng::key(key_of(seed_, Purpose::actors, {street, east ? 1 : 2}), direction > 0 ? 1 : 2);
                Stream cars{rng::key(key, 1),
                            east,
                            row * plan::kPitch,
                            direction,
                            plan::kLaneOffset,
                            rng::uniform(key, 0, 6, 10),
                            kVehicleSpacing_m,
                            0.5,
                            false};
                walk(cars, x, y, reach_m, time_s, ground, out);
                Stream people{rng::key(key, 2), east, row * plan::kPitch,
                              direction,        7.6,  rng::uniform(key, 1, 1.1, 1.6),
                              kPersonSpacing_m, 0.45, true};
                walk(people, x, y, reach_m, time_s, ground, out);
            }
        }
    }
}

namespace {

Vec3d to_actor(const Actor& a, Vec3d v) {
    return {a.cos_yaw * v.x + a.sin_yaw * v.y, a.cos_yaw * v.y - a.sin_yaw * v.x, v.z};
}

}  // namespace

std::optional<ActorHit> Actors::intersect(const std::vector<Actor>& actors, const Ray& ray, double t_max) {
    std::optional<ActorHit> best;
    for (const Actor& a : actors) {
        const Vec3d to_centre = a.centre - ray.origin;
        const double t = dot(to_centre, ray.direction);
        if (t < -a.radius || t - a.radius > t_max || dot(to_centre, to_centre) - t * t > a.radius * a.radius)
            continue;
        const Ray local{to_actor(a, ray.origin - a.position), to_actor(a, ray.direction)};
        const auto hit = intersect_all(*a.shape, local, t_max);
        if (!hit || (best && hit->encounter.t >= best->encounter.t)) continue;
        t_max = hit->encounter.t;
        const Vec3d n = hit->encounter.normal;
        best = ActorHit{{t_max, {a.cos_yaw * n.x - a.sin_yaw * n.y, a.sin_yaw * n.x + a.cos_yaw * n.y, n.z}},
                        hit->look};
    }
    return best;
}

std::optional<GeometryNearest> Actors::nearest(const std::vector<Actor>& actors, Vec3d p, double d_max) {
    std::optional<GeometryNearest> best;
    for (const Actor& a : actors) {
        if (length(p - a.centre) - a.radius > d_max) continue;
        const auto found = nearest_of_all(*a.shape, to_actor(a, p - a.position));
        if (found && found->distance_m <= d_max) best = found, d_max = found->distance_m;
    }
    return best;
}

}  // namespace citysplat::synth
