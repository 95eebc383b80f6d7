#pragma once

#include "citysplat/simulation.hpp"

namespace citysplat::api {
inline namespace v1 {

struct SessionOptions {
    std::uint64_t memory_bytes = std::uint64_t{2} << 30;  ///< for tiles and shapes; never changes a result
    /// So long before the latest scan it is still known where everything was.
    double history_s = 60;
    double max_ray_m = 250;  ///< longest ray that will be cast; sensors see as far as they see
    /// The time of the session, for what moves by itself. Obstacles of a scenario whose sensors are told
    /// where they are need both.
    double from_s = -std::numeric_limits<double>::infinity(), to_s = std::numeric_limits<double>::infinity();
};

/// A box in the frame of a body.
struct Box {
    Vec3 min, max;
};

/// The nearest thing to a body.
struct Clearance {
    double distance_m = 0;  ///< the limit when nothing is nearer; 0: it touches
    bool found = false;     ///< something is nearer than the limit
    bool touches = false;
    std::string actor;        ///< empty: the city
    Vec3 position;            ///< of the disc or triangle, in the world
    std::uint16_t label = 0;  ///< of the disc or triangle
};

/// Where and when a body is, which vehicle it is ("": none: it can meet all of them), and how far from it
/// things matter.
struct ClearanceQuestion {
    Box body;
    Pose pose;
    double time_s = 0;
    std::string vehicle{};
    double limit_m = 1;
};

/// A city and a scenario in which time passes as the caller says: vehicles and objects are told where they
/// are as soon as it is known, and sensors scan one at a time. What a scan contains depends on the scenario,
/// the poses during its sweep and its number: a session that is told the poses of a trajectory returns the
/// scans of simulate(), byte for byte. Whoever is told nothing follows the files of the scenario.
///
/// Used by one thread at a time; works with several. Tiles are resident around the present place, and ahead
/// of it by the present speed.
class Session {
  public:
    /// The sensors, vehicles and things of a scenario file (docs/scenarios.md), in which trajectories may be
    /// missing.
    Session(const City& city, const std::filesystem::path& scenario, const SessionOptions& options = {});
    /// One sensor, on the way "trajectory". Times, rate and memory of `how` do not matter here.
    Session(const City& city, const Sensor& sensor, const SimulationOptions& how,
            const SessionOptions& options = {});
    ~Session();
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;

    std::vector<std::string> sensors() const;  ///< by number
    /// Who can be told where it is: vehicles, actors whose names are their own, and "trajectory": where the
    /// sensors are that are on no vehicle.
    std::vector<std::string> names() const;
    /// What was left out of the scenario or assumed, for people.
    std::vector<std::string> notes() const;

    /// Poses that follow those told before; the first ones replace the scenario's files. Of a vehicle they
    /// are those of its body; of an object those of the middle of its bottom face, x forward. It stands at
    /// the last one. Changes nothing when it throws.
    void advance(const std::string& name, std::span<const Trajectory::Stamped> poses);
    /// The object, or the body of the vehicle, is not there any more from this time on.
    void leave(const std::string& name, double time_s);

    /// The next scan of a sensor. The poses of its whole sweep must have been told: sensors see
    /// Sensor::scans_per_second() sweeps a second.
    Scan scan(std::size_t sensor, double time_s);
    /// What each ray meets first at this time: city, vehicles, objects.
    std::vector<Hit> cast(std::span<const Ray> rays, double time_s);
    Clearance clearance(const ClearanceQuestion& question);

    /// Of all scans of a sensor so far.
    SimulationResult result(std::size_t sensor) const;

    struct Parts;
    Parts& parts() { return *parts_; }  ///< for the library itself

  private:
    std::unique_ptr<Parts> parts_;
};

}  // namespace v1
}  // namespace citysplat::api
