#pragma once

#include "sim/drive/prepared_traffic.hpp"
#include "sim/drive/scenario.hpp"
#include "sim/session/session.hpp"
#include "sim/session/told_path.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citysplat::sim {

/// The name of the way of sensors that are on no vehicle, as the key of a scenario calls it.
inline constexpr const char* kOwnWay = "trajectory";

struct ScenarioSessionOptions {
    trace::CacheOptions cache{};
    /// So long before the latest scan it is still known where everything was that is told.
    double history_s = 60;
    /// The time of the session, for what moves by itself: obstacles need ends that are finite.
    double from_s = -std::numeric_limits<double>::infinity(), to_s = std::numeric_limits<double>::infinity();
};

/// A session in which a scenario is played, and where vehicles and actors are told where they are as it
/// becomes known. Whoever is told nothing follows the files of the scenario. Used by one thread at a time.
class ScenarioSession {
  public:
    /// What the scenario is opened with. City, tracer and folders must outlive the session.
    struct Sources {
        const TileSource& city;
        const trace::Tracer& tracer;
        const StoredThings* folders = nullptr;
    };
    /// Throws as prepare_traffic() and Session do.
    ScenarioSession(const Sources& sources, Scenario scenario, const ScenarioSessionOptions& options,
                    const CancelToken& cancel);

    const Scenario& scenario() const { return scenario_; }
    const Traffic& traffic() const { return traffic_.traffic; }
    /// What was left out or assumed, for people.
    std::span<const std::string> notes() const { return traffic_.notes; }
    /// Who can be told where it is: kOwnWay if a sensor is on it, vehicles, and actors whose names are their
    /// own.
    std::vector<std::string> names() const;

    /// Poses of a vehicle's body, or of an object (Track says in which frame), that follow those told before.
    /// The first ones replace what the scenario's files say. Throws UsageError when nobody has the name,
    /// InputError naming the pose that cannot be; nothing is changed then.
    void advance(const std::string& name, std::span<const StampedPose> poses);
    /// The object, or the body of the vehicle, is not there any more from this time on.
    void leave(const std::string& name, double time_s);

    /// Sensors are numbered as the scenario has them. See Session::scan().
    Scan scan(std::size_t sensor, double time_s, const CancelToken& cancel);
    /// How near a body is to the city and to everything that stands or moves, but for the body of the vehicle
    /// `own`; "": of none.
    struct Question {
        const ClearanceBody& body;
        const Pose& world_from_body;
        double time_s;
        std::string own{};
        double limit_m = 1;
    };
    Clearance clearance(const Question& question);

    /// See Session::cast().
    void cast(std::span<const trace::Ray> rays, double time_s, std::span<trace::Hit> hits,
              const CancelToken& cancel);
    bool holds_whole_city() const { return session_->holds_whole_city(); }
    void recycle(Scan&& scan) { session_->recycle(std::move(scan)); }
    SimulationReport report(std::size_t sensor) const { return session_->report(sensor); }

  private:
    /// Where a vehicle goes, or sensors that are on none.
    struct Way {
        Trajectory path;  ///< of the file; of what is told: as much as the present question needs
        std::optional<ToldPath> told{};
        std::uint32_t vehicle = kNoVehicle;
    };
    void name_everybody();
    void read_ways();
    void prepare(const Sources& sources, const CancelToken& cancel);
    Way& way_of(const ScenarioSensor& sensor);
    /// Puts everybody who is told where it is during this time.
    void place_actors(double begin_s, double end_s);
    [[noreturn]] void refuse(const std::string& name) const;

    Scenario scenario_;
    ScenarioSessionOptions options_;
    std::map<std::string, Way> ways_;  ///< by the name of the vehicle, or kOwnWay
    std::map<std::uint32_t, ToldPath> told_actors_;
    std::map<std::string, std::uint32_t> actors_;  ///< by their names, if one alone has it, and by vehicles'
    PreparedTraffic traffic_;
    std::unique_ptr<Session> session_;
};

}  // namespace citysplat::sim
