#include "citysplat/uav.hpp"

#include "api/parts.hpp"
#include "core/bytes.hpp"
#include "sim/uav/uav.hpp"

#include <cmath>
#include <initializer_list>
#include <utility>

namespace citysplat::api {
inline namespace v1 {

struct Uav::Parts {
    sim::Uav uav;
    bool poses_were_taken = false;
};

namespace {

void require_finite(std::initializer_list<double> numbers, const char* what) {
    for (const double number : numbers)
        if (!std::isfinite(number)) throw UsageError(std::string("a UAV: ") + what + " is not a number");
}

}  // namespace

Uav::Uav(const std::string& name_or_file, const Pose& start, double time_s, std::uint64_t seed)
    : parts_(guarded([&] {
          require_finite({time_s}, "the time of its start");
          // A trajectory checks poses, and gives their rotations unit length.
          const citysplat::Trajectory checked({{time_s, from_api(start)}}, "the start of a UAV");
          return std::make_unique<Parts>(Parts{sim::Uav(sim::UavParameters::load(name_or_file),
                                                        checked.poses()[0].world_from_body, time_s, seed)});
      })) {}
Uav::~Uav() = default;
Uav::Uav(Uav&&) noexcept = default;
Uav& Uav::operator=(Uav&&) noexcept = default;
std::vector<std::string> Uav::shipped() { return sim::UavParameters::builtin_names(); }

void Uav::go_to(const Vec3& place, double yaw_rad) {
    guarded([&] {
        require_finite({place.x, place.y, place.z, yaw_rad}, "the place where it is to fly");
        parts_->uav.command(sim::GoTo{from_api(place), yaw_rad});
    });
}

void Uav::fly_with(const Vec3& velocity_m_s, double yaw_rate_rad_s) {
    guarded([&] {
        require_finite({velocity_m_s.x, velocity_m_s.y, velocity_m_s.z, yaw_rate_rad_s}, "its velocity");
        parts_->uav.command(sim::FlyWith{from_api(velocity_m_s), yaw_rate_rad_s});
    });
}

void Uav::push(const Vec3& force_n) {
    guarded([&] {
        require_finite({force_n.x, force_n.y, force_n.z}, "the force on it");
        parts_->uav.push(from_api(force_n));
    });
}

void Uav::advance_to(double to_s) {
    guarded([&] {
        constexpr double kMost_s = 3600;
        const double ahead_s = to_s - time_s();
        if (!(ahead_s >= -sim::Uav::kStep_s && ahead_s <= kMost_s))
            throw UsageError("a UAV at " + format_number(time_s()) + " s cannot fly to " +
                             format_number(to_s) + " s: times go on, an hour at once at most");
        parts_->uav.advance_to(to_s);
    });
}

double Uav::time_s() const { return parts_->uav.time_s(); }
Pose Uav::pose() const { return to_api(parts_->uav.state().pose()); }
Vec3 Uav::velocity_m_s() const { return to_api(parts_->uav.state().velocity_m_s); }

Box Uav::body() const {
    const Vec3d half = parts_->uav.parameters().size_m * 0.5;
    return {to_api(-half), to_api(half)};
}

std::vector<Trajectory::Stamped> Uav::take_poses() {
    return guarded([&] {
        const std::vector<StampedPose> inner = parts_->uav.take_poses();
        // Each but the first batch begins with the pose that ended the one before.
        const std::size_t known = std::exchange(parts_->poses_were_taken, true) ? 1 : 0;
        std::vector<Trajectory::Stamped> poses;
        poses.reserve(inner.size());
        for (std::size_t i = known; i < inner.size(); ++i)
            poses.push_back({inner[i].time_s, to_api(inner[i].world_from_body)});
        return poses;
    });
}

std::vector<ImuReading> Uav::take_imu() {
    return guarded([&] {
        std::vector<ImuReading> readings;
        for (const sim::Uav::TimedSample& s : parts_->uav.take_imu())
            readings.push_back({s.time_s, to_api(s.sample.turn_rad_s), to_api(s.sample.force_m_s2)});
        return readings;
    });
}

}  // namespace v1
}  // namespace citysplat::api
