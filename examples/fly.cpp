// Two quadrotors with a Livox Avia each fly towards each other along the right side of a street: around what
// their scanners see, or blind. Says where they touched something. See docs/uav.md.
#include <algorithm>
#include <citysplat/uav.hpp>
#include <cmath>
#include <cstdio>
#include <deque>
#include <string>

using namespace citysplat::api;

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kStep_s = 0.1;      // of a sweep and a decision
constexpr double kSpeed_m_s = 2.5;   // where nothing is in the way
constexpr double kAside_m = 2.6;     // to the right of the way of the recording car: parked cars and trees
constexpr double kHeight_m = 1.2;    // above what is below
constexpr double kRadius_m = 0.8;    // of the tube that must be free
constexpr double kFree_m = 5;        // so far it should be
constexpr double kSees_m = 10;       // what is farther away does not matter yet
constexpr std::size_t kMemory = 30;  // scans

Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Vec3 operator*(Vec3 a, double s) { return {a.x * s, a.y * s, a.z * s}; }
double dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
double length(Vec3 a) { return std::sqrt(dot(a, a)); }
// Commands without their last digits, in which the functions of C libraries differ.
double rounded(double v) { return std::floor(v * 1e6 + 0.5) / 1e6; }
double shortest(double angle) { return angle - 2 * kPi * std::floor(angle / (2 * kPi) + 0.5); }

struct Flight {
    std::string name;
    std::size_t sensor;
    Uav uav;
    Vec3 goal;
    double yaw;                            // where it looks
    std::deque<std::vector<Vec3>> seen{};  // points of the latest scans
    std::vector<Vec3> others{};            // what moves, in the latest one
    double flown_m = 0, nearest_m = 1;
    std::string nearest = "nothing";
    int collisions = 0;
    bool touches = false, arrived = false;
};

void remember(Flight& f, const Scan& scan) {
    std::vector<Vec3> points;
    f.others.clear();
    const Vec3 here = f.uav.pose().position;
    for (std::size_t i = 0; i < scan.returns.size(); ++i) {
        const Return& r = scan.returns[i];
        if (r.status != Status::hit || length(r.position - here) > kSees_m) continue;
        if (r.instance != 0)
            f.others.push_back(r.position);
        else if (i % 8 == 0)
            points.push_back(r.position);
    }
    f.seen.push_back(std::move(points));
    if (f.seen.size() > kMemory) f.seen.pop_front();
}

// How far a tube in this direction is free. Who is nearer to something than that gets away from it.
double free_along(const Flight& f, Vec3 direction, double radius) {
    const Vec3 here = f.uav.pose().position;
    double free = kSees_m;
    const auto look = [&](Vec3 point, double tube) {
        const Vec3 d = point - here;
        const double along = dot(d, direction);
        if (along > 0 && dot(d, d) - along * along < tube * tube) free = std::min(free, along);
    };
    for (const auto& points : f.seen)
        for (const Vec3& point : points) look(point, radius);
    // Who flies will be elsewhere in a moment.
    for (const Vec3& point : f.others) look(point, 2 * radius);
    return free;
}

double nearest_point(const Flight& f) {
    const Vec3 here = f.uav.pose().position;
    double nearest = kSees_m;
    for (const auto& points : f.seen)
        for (const Vec3& point : points) nearest = std::min(nearest, length(point - here));
    for (const Vec3& point : f.others) nearest = std::min(nearest, length(point - here));
    return nearest;
}

// The rule: of some directions, those nearest to the one of the goal first, the first that is free far
// enough, otherwise the one that is free farthest; right before left, so that two who meet pass. Slower with
// less room, and where it does not look yet.
Vec3 decide(const Flight& f, bool blind) {
    const Vec3 to = f.goal - f.uav.pose().position;
    const double far = length(to), speed = std::min(kSpeed_m_s, far);
    if (blind || far < 0.5) return to * (speed / far);
    const double heading = std::atan2(to.y, to.x), up = std::atan2(to.z, std::hypot(to.x, to.y));
    const double wanted = std::min(kFree_m, far), radius = std::min(kRadius_m, 0.9 * nearest_point(f));
    Vec3 best{};
    double best_free = -1, best_yaw = 0;
    for (const double turn : {0.0, -15.0, 15.0, -30.0, 30.0, -50.0, 50.0, -75.0, 75.0})
        for (const double climb : {0.0, 25.0, -25.0, 50.0}) {
            if (best_free >= wanted) continue;
            const double yaw = heading + turn * kPi / 180,
                         pitch = std::clamp(up, -0.3, 0.3) + climb * kPi / 180;
            const Vec3 direction{std::cos(yaw) * std::cos(pitch), std::sin(yaw) * std::cos(pitch),
                                 std::sin(pitch)};
            const double free = free_along(f, direction, radius);
            if (free > best_free) best = direction, best_free = free, best_yaw = yaw;
        }
    const double room = best_free >= wanted ? 1 : std::clamp((best_free - radius) / kFree_m, 0.05, 1.0);
    const bool looks_there = std::abs(shortest(best_yaw - f.yaw)) < 0.6;
    return best * (looks_there ? speed * room : std::min(0.3, speed * room));
}

// How near it comes to anything on the way that it flew, every 10 ms.
void look_for_collisions(Flight& f, Session& session, const City& city,
                         const std::vector<Trajectory::Stamped>& poses) {
    for (std::size_t i = 0; i < poses.size(); i += 10) {
        const Clearance near =
            session.clearance({f.uav.body(), poses[i].pose, poses[i].time_s, f.name, f.nearest_m});
        if (near.found) {
            f.nearest_m = std::max(near.distance_m, 1e-3);  // the limit of the next question
            f.nearest = near.actor.empty() ? city.class_name(near.label) : near.actor;
        }
        if (near.touches && !f.touches) {
            ++f.collisions;
            std::printf("%.2f s: %s touches %s\n", poses[i].time_s, f.name.c_str(), f.nearest.c_str());
        }
        f.touches = near.touches;
    }
}

Vec3 above_ground(Session& session, Vec3 place) {
    const Hit below = session.cast(std::vector<Ray>{{place, {0, 0, -1}, 0, 50}}, 0)[0];
    return below.found ? Vec3{place.x, place.y, below.position.z + kHeight_m} : place;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 5 || argc > 6) throw Error(2, "usage: fly CITY TRAJECTORY two_uavs.toml METRES [blind]");
    const City city(argv[1]);
    const Trajectory drive = Trajectory::read(argv[2]);
    const double metres = std::stod(argv[4]);
    const bool blind = argc == 6 && std::string(argv[5]) == "blind";
    Session session(city, argv[3]);

    // Along the beginning of the drive.
    const Vec3 from = drive.at(drive.begin_s())->position;
    Vec3 to = from;
    for (double t = drive.begin_s(); t < drive.end_s() && length(to - from) < metres; t += 0.05)
        to = drive.at(t)->position;
    const Vec3 ahead = (to - from) * (1 / length(to - from)), right{ahead.y, -ahead.x, 0};
    const Vec3 ends[]{above_ground(session, from + right * kAside_m),
                      above_ground(session, to + right * kAside_m)};
    std::vector<Flight> flights;
    for (const std::size_t i : {0u, 1u}) {
        const double yaw = std::atan2(i ? -ahead.y : ahead.y, i ? -ahead.x : ahead.x);
        const Pose start{ends[i], 0, 0, rounded(std::sin(yaw / 2)), rounded(std::cos(yaw / 2))};
        flights.push_back({i ? "second" : "first", i, Uav("quadrotor", start, 0, i + 1), ends[1 - i], yaw});
    }

    double now = 0;
    while (now < 2 * metres && !(flights[0].arrived && flights[1].arrived)) {
        std::vector<std::vector<Trajectory::Stamped>> flown;
        for (Flight& f : flights) {
            const Vec3 wanted = decide(f, blind);
            const Vec3 velocity{rounded(wanted.x), rounded(wanted.y), rounded(wanted.z)};
            const double turn = shortest(std::atan2(velocity.y, velocity.x) - f.yaw);
            const double rate = rounded(std::clamp(turn / kStep_s, -1.5, 1.5));
            f.yaw += rate * kStep_s;
            f.uav.fly_with(velocity, rate);
            const Vec3 before = f.uav.pose().position;
            f.uav.advance_to(now + kStep_s);
            f.flown_m += length(f.uav.pose().position - before);
            f.arrived = length(f.goal - f.uav.pose().position) < 0.5;
            flown.push_back(f.uav.take_poses());
            session.advance(f.name, flown.back());
        }
        for (std::size_t i = 0; i < flights.size(); ++i) {
            remember(flights[i], session.scan(flights[i].sensor, now));
            look_for_collisions(flights[i], session, city, flown[i]);
        }
        now = flights[0].uav.time_s();
    }
    int collisions = 0, late = 0;
    for (const Flight& f : flights) {
        std::printf("%s: %.1f m, %s, nearest %.2f m (%s), %d collisions\n", f.name.c_str(), f.flown_m,
                    f.arrived ? "arrived" : "not arrived", f.touches || f.collisions ? 0 : f.nearest_m,
                    f.nearest.c_str(), f.collisions);
        collisions += f.collisions;
        late += !f.arrived;
    }
    return collisions > 0 || late > 0 ? 1 : 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
}
