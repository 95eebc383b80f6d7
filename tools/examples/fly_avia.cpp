/// Two quadrotors, each with a Livox Avia, fly along the way of a drive through its city, avoid what their
/// scans show, and say what they touched:
///
///   fly_avia CITY TRAJECTORY [SECONDS]
///
/// The rule: of some directions around the one to the next way-point, take the nearest to it whose corridor
/// is free of recent returns; if there is none, stop and climb.
#include "core/bytes.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/number_range.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/uav/fleet.hpp"
#include "tiling/store/city_reader.hpp"

#include <cstdio>
#include <deque>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

constexpr double kScan_s = 0.1;   ///< an Avia at 10 Hz
constexpr double kAbove_m = 2.5;  ///< the way, above the way of the drive
constexpr double kSpeed_m_s = 2.5;
constexpr double kLook_m = 6;            ///< how far ahead a corridor must be free
constexpr double kCorridor_m = 0.9;      ///< its radius: half the UAV and some air
constexpr std::size_t kRemembered = 15;  ///< scans

/// What a UAV knows: the returns of its last scans.
class Memory {
  public:
    void add(const Scan& scan) {
        std::vector<Vec3d> points;
        for (std::size_t i = 0; i < scan.returns.size(); i += 4)
            if (scan.returns[i].status == RayStatus::hit) points.push_back(scan.returns[i].position);
        scans_.push_back(std::move(points));
        if (scans_.size() > kRemembered) scans_.pop_front();
    }
    bool is_free(Vec3d from, Vec3d direction) const {
        for (const auto& points : scans_)
            for (const Vec3d p : points) {
                const Vec3d d = p - from;
                const double along = dot(d, direction);
                if (along > 0 && along < kLook_m && dot(d, d) - along * along < kCorridor_m * kCorridor_m)
                    return false;
            }
        return true;
    }

  private:
    std::deque<std::vector<Vec3d>> scans_;
};

/// Directions around one, nearest first: aside by up to 80°, up by up to 40°.
std::vector<Vec3d> directions_around(Vec3d wanted) {
    const double heading = exact::atan2(wanted.y, wanted.x);
    std::vector<std::pair<double, Vec3d>> all;
    for (int aside = -4; aside <= 4; ++aside)
        for (int up = -1; up <= 2; ++up) {
            const auto a = exact::sin_cos(heading + aside * 20 * exact::kRadPerDegree);
            const auto e = exact::sin_cos(up * 20 * exact::kRadPerDegree);
            const Vec3d d{e.cos * a.cos, e.cos * a.sin, e.sin};
            all.emplace_back(-dot(d, wanted), d);
        }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Vec3d> directions;
    for (const auto& [badness, d] : all) directions.push_back(d);
    return directions;
}

/// What to fly next, towards a place.
FlyWith decide(const Uav& uav, const Memory& memory, Vec3d goal) {
    const Vec3d here = uav.state().position_m, wanted = normalized(goal - here);
    const Vec3d forward = rotate(uav.state().rotation, {1, 0, 0});
    const double turn = exact::atan2(forward.x * wanted.y - forward.y * wanted.x,
                                     forward.x * wanted.x + forward.y * wanted.y);
    for (const Vec3d d : directions_around(wanted))
        if (memory.is_free(here, d)) return {d * kSpeed_m_s, 1.5 * turn};
    return {{0, 0, 0.5}, 1.5 * turn};
}

void fly(const std::string& city_path, const std::string& way_path, double seconds) {
    const tiling::CityReader city(city_path);
    const Trajectory way = read_trajectory(way_path, {});
    const auto tracer = trace::make_group_tracer();
    const double begin_s = way.begin_s();
    std::vector<FleetMember> members;
    for (int i = 0; i < 2; ++i) {
        Pose start = *way.at(begin_s);
        start.translation = start.translation + rotate(start.rotation, {2.0 * i, 1.0 - 2.0 * i, kAbove_m});
        FleetMember m{"uav_" + std::to_string(i), UavParameters::load("quadrotor"), start, {}};
        m.run.sensor = Sensor::load("avia");
        m.run.stream = static_cast<std::uint64_t>(i);
        m.run.body_from_sensor.translation = {0.1, 0, 0.12};
        members.push_back(m);
    }
    Fleet fleet(city, *tracer, members, begin_s);
    std::vector<Memory> memories(fleet.size());
    std::vector<double> aim_s(fleet.size(), begin_s);
    std::vector<double> nearest_m(fleet.size(), 1e9);
    std::vector<std::uint64_t> touched(fleet.size()), seen(fleet.size());
    const CancelToken cancel;
    for (int k = 1; k * kScan_s <= seconds; ++k) {
        fleet.advance_to(begin_s + k * kScan_s);
        for (std::size_t i = 0; i < fleet.size(); ++i) {
            const Scan scan = fleet.scan(i, fleet.time_s() - kScan_s, cancel);
            memories[i].add(scan);
            seen[i] += scan.part_hits;
            const Clearance c = fleet.clearance(i, 2);
            nearest_m[i] = std::min(nearest_m[i], c.distance_m);
            if (c.touches) {
                ++touched[i];
                std::printf("%.1f s: uav_%zu touches %s\n", k * kScan_s, i,
                            c.actor ? "the other one" : "the city");
            }
            // The next way-point is 6 m ahead on the way of the drive.
            const auto goal = [&] { return way.at(aim_s[i])->translation + Vec3d{0, 0, kAbove_m}; };
            while (aim_s[i] + 0.1 < way.end_s() && length(goal() - fleet.uav(i).state().position_m) < 6)
                aim_s[i] += 0.1;
            fleet.uav(i).command(decide(fleet.uav(i), memories[i], goal()));
        }
    }
    for (std::size_t i = 0; i < fleet.size(); ++i) {
        const Vec3d start = members[i].start.translation, end = fleet.uav(i).state().position_m;
        std::printf(
            "uav_%zu: %.1f m from its start, nearest %.2f m (2 m: nothing nearer), touched something %llu "
            "times, "
            "%llu returns of the other one\n",
            i, length(end - start), nearest_m[i], static_cast<unsigned long long>(touched[i]),
            static_cast<unsigned long long>(seen[i]));
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const auto seconds = argc == 4 ? parse_number(argv[3]) : 20.0;
        if (argc < 3 || argc > 4 || !seconds || !(*seconds > 0 && *seconds <= 3600)) {
            std::fprintf(stderr, "usage: fly_avia CITY TRAJECTORY [SECONDS]\n");
            return 2;
        }
        fly(argv[1], argv[2], *seconds);
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "fly_avia: %s\n", e.what());
        return 1;
    }
}
