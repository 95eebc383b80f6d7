#include "datasets/synth/actors.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::synth {

namespace {

constexpr int kVehicleShapes = 8, kPeople = 6, kStepPhases = 12;
constexpr double kVehicleSpacing_m = 48, kPersonSpacing_m = 16, kStride_m = 1.4;
constexpr double kPeopleOffset_m = 7.6;  // of the middle of the walking strip from the centre line

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
struct ActorStream {
    std::uint64_t key;
    bool east;         ///< along x, or along y
    double line;       ///< the street's centre line: y, or x
    double direction;  ///< +1 or −1 along the street
    double offset;     ///< to the right of the centre line
    double speed, spacing, share;
    bool people;
};

/// One of a stream. Keeps the ground it walks on.
struct Crowd::Member {
    ActorStream stream;
    double start, aside;  ///< place in the stream at time 0, and beside its middle
    std::size_t which;
    Ground ground;
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
Actors::~Actors() = default;
Crowd::~Crowd() = default;

Crowd::Crowd(const Actors& actors, const Place& place, const Span& span) : actors_(actors), place_(place) {
    for (const bool east : {true, false}) {
        const double across = east ? place.y : place.x, reach = place.reach_m + plan::kStreetHalf;
        const double first = std::ceil((across - reach) / plan::kPitch);
        const double last = std::floor((across + reach) / plan::kPitch);
        for (double row = first; row <= last; ++row)
            for (const double direction : {-1.0, 1.0}) {
                const Cell street{static_cast<std::int32_t>(row), east ? 1 : 2};
                const std::uint64_t key =
                    rng::key(key_of(actors.seed_, Purpose::actors, street), direction > 0 ? 1 : 2);
                ActorStream s{rng::key(key, 1),
                              east,
                              row * plan::kPitch,
                              direction,
                              plan::kLaneOffset,
                              rng::uniform(key, 0, 6, 10),
                              kVehicleSpacing_m,
                              0.5,
                              false};
                gather(s, span);
                s = {rng::key(key, 2),
                     east,
                     row * plan::kPitch,
                     direction,
                     kPeopleOffset_m,
                     rng::uniform(key, 1, 1.1, 1.6),
                     kPersonSpacing_m,
                     0.45,
                     true};
                gather(s, span);
            }
    }
}

void Crowd::gather(const ActorStream& s, const Span& span) {
    const double along = (s.east ? place_.x : place_.y) * s.direction;
    const double first = std::floor((along - place_.reach_m - s.speed * span.end_s) / s.spacing) - 1;
    const double last = std::ceil((along + place_.reach_m - s.speed * span.begin_s) / s.spacing);
    for (double k = first; k <= last; ++k) {
        Dice dice(rng::key(s.key, static_cast<std::uint64_t>(static_cast<std::int64_t>(k))));
        if (!dice.chance(s.share)) continue;
        const double start = (k + dice.between(0.0, 0.7)) * s.spacing;
        const double aside = s.offset + (s.people ? dice.between(-0.6, 0.6) : dice.between(-0.15, 0.15));
        const auto which = static_cast<std::size_t>(dice.below(s.people ? kPeople : kVehicleShapes));
        members_.push_back({s, start, aside, which, Ground(actors_.seed_)});
    }
}

std::size_t Crowd::size() const { return members_.size(); }

/// On the plane.
Vec3d Crowd::place_at(const Member& m, double time_s) {
    const ActorStream& s = m.stream;
    const double travel = (m.start + s.speed * time_s) * s.direction;
    return {s.east ? travel : s.line + s.direction * m.aside,
            s.east ? s.line - s.direction * m.aside : travel, 0};
}

Somebody Crowd::somebody(std::size_t i, double time_s) {
    Member& m = members_[i];
    const ActorStream& s = m.stream;
    const double progress = m.start + s.speed * time_s;
    Somebody result{};
    Actor& a = result.actor;
    a.position = place_at(m, time_s);
    a.position.z = m.ground.height(a.position.x, a.position.y);
    a.cos_yaw = s.east ? s.direction : 0;
    a.sin_yaw = s.east ? 0 : s.direction;
    result.person = s.people;
    if (s.people) {
        const double stride = progress / kStride_m, phase = stride - std::floor(stride);
        const auto step =
            std::min(static_cast<std::size_t>(phase * kStepPhases), std::size_t{kStepPhases - 1});
        a.shape = &actors_.people_[m.which][step];
        a.centre = a.position + Vec3d{0, 0, 0.92};
        a.radius = 1.1;
        result.shape = kVehicleShapes + m.which * kStepPhases + step;
        result.seconds_a_picture = kStride_m / kStepPhases / s.speed;
        result.first_picture_s = -m.start / s.speed;
    } else {
        a.shape = &actors_.vehicles_[m.which];
        a.centre = a.position + Vec3d{0, 0, 0.9};
        a.radius = 3.0;
        result.shape = m.which;
    }
    return result;
}

void Crowd::at(double time_s, double vehicle_x, double vehicle_y, std::vector<Actor>& out) {
    const auto square = [](double dx, double dy) { return dx * dx + dy * dy; };
    out.clear();
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const Vec3d p = place_at(members_[i], time_s);
        if (square(p.x - place_.x, p.y - place_.y) > place_.reach_m * place_.reach_m) continue;
        if (square(p.x - vehicle_x, p.y - vehicle_y) < kClearance_m * kClearance_m) continue;
        out.push_back(somebody(i, time_s).actor);
    }
}

std::size_t Actors::shapes() const { return vehicles_.size() + people_.size() * kStepPhases; }
const Geometry& Actors::shape(std::size_t i) const {
    if (i < vehicles_.size()) return vehicles_[i];
    return people_[(i - vehicles_.size()) / kStepPhases][(i - vehicles_.size()) % kStepPhases];
}
std::string Actors::shape_name(std::size_t i) const {
    if (i < vehicles_.size()) return "vehicle" + std::to_string(i);
    i -= vehicles_.size();
    return "person" + std::to_string(i / kStepPhases) + "_" + std::to_string(i % kStepPhases);
}
std::uint8_t Actors::shape_label(std::size_t i) const {
    return i < vehicles_.size() ? label::moving_vehicle : label::pedestrian;
}

namespace {

Vec3d to_actor(const Actor& a, Vec3d v) {
    return {a.cos_yaw * v.x + a.sin_yaw * v.y, a.cos_yaw * v.y - a.sin_yaw * v.x, v.z};
}

}  // namespace

std::optional<ActorHit> intersect(const std::vector<Actor>& actors, const Ray& ray, double t_max) {
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

std::optional<GeometryNearest> nearest(const std::vector<Actor>& actors, Vec3d p, double d_max) {
    std::optional<GeometryNearest> best;
    for (const Actor& a : actors) {
        if (length(p - a.centre) - a.radius > d_max) continue;
        const auto found = nearest_of_all(*a.shape, to_actor(a, p - a.position));
        if (found && found->distance_m <= d_max) best = found, d_max = found->distance_m;
    }
    return best;
}

}  // namespace citysplat::synth
