#pragma once

#include "sim/session/session.hpp"
#include "sim/uav/uav.hpp"

#include <memory>
#include <string>
#include <vector>

namespace citysplat::sim {

/// A UAV and what it carries.
struct FleetMember {
    std::string name;
    UavParameters parameters;
    Pose start;
    SensorRun run;  ///< its LiDAR; the mount is from the centre of mass
};

/// UAVs that fly in a city at the same time, see it with their LiDARs, and see each other. One thread at a
/// time.
///
/// Each is a box of its size to the others; its own LiDAR does not meet it. How they move depends on their
/// commands and on the times at which these are given, not on what is asked of the fleet.
class Fleet {
  public:
    /// City and tracer must outlive the fleet.
    Fleet(const TileSource& city, const trace::Tracer& tracer, const std::vector<FleetMember>& members,
          double time_s, const trace::CacheOptions& cache = {});
    ~Fleet();

    std::size_t size() const { return members_.size(); }
    Uav& uav(std::size_t i) { return members_[i]->uav; }
    double time_s() const { return time_s_; }

    /// Moves all of them.
    void advance_to(double time_s);
    /// What the LiDAR of one sees in a sweep that begins at this time and is over by now.
    Scan scan(std::size_t i, double begin_s, const CancelToken& cancel);
    /// How near one is now to the city and to the others, up to a limit.
    Clearance clearance(std::size_t i, double limit_m);

  private:
    struct Member {
        std::string name;
        Uav uav;
        SensorRun run;
        std::vector<StampedPose> poses;  ///< of the last seconds
        Trajectory way;
        std::size_t sensor = 0;
    };
    void tell();

    std::vector<std::unique_ptr<Member>> members_;
    double time_s_;
    Traffic traffic_;
    std::unique_ptr<Session> session_;
};

}  // namespace citysplat::sim
