#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "model/trajectory.hpp"
#include "sim/clearance/clearance.hpp"
#include "sim/learn/learned_pass.hpp"
#include "sim/scan/scan_sink.hpp"
#include "sim/scan/scanner.hpp"
#include "sim/session/reach.hpp"
#include "sim/session/scan_report.hpp"
#include "sim/traffic/played_frames.hpp"
#include "sim/traffic/traffic.hpp"
#include "trace/tile_cache.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citysplat::sim {

/// What the learned model of the run's sensor does to its finished scans; nothing when it has none, or when
/// noise is off. Throws as SensorModel::load() and SensorModel::check() do.
std::optional<learn::LearnedPass> learned_pass(const SensorRun& run);

/// A sweep may end so much after the last pose, which is at `end_s`: sweeps of 0.1 s on poses of 0.1 s should
/// not lose the last one to rounding. Times of an epoch in seconds have 2·10⁻⁷ s between them.
double sweep_grace_s(double end_s);

/// What a session looks at. Everything must outlive the session; `traffic` may be told where actors are
/// (Traffic::tell) between two calls of the session.
struct SessionScene {
    const TileSource& city;
    const trace::Tracer& tracer;
    /// Memory of tiles and of everything below.
    trace::CacheOptions cache{};
    const Traffic* traffic = nullptr;     ///< may be nullptr
    std::span<const FramePlay> frames{};  ///< recorded ones of what moved
    std::span<const Sweep> sweeps{};      ///< those that are known to come: their frames are sure to fit
    std::uint64_t clearance_bytes = 0;    ///< of the memory, for questions about clearance; 0: none are asked
};

/// A sensor, where its vehicle is, and which one that is (kNoVehicle: none, whose body could be met). All of
/// it must outlive the session. The trajectory may grow between two calls.
struct SessionSensor {
    const SensorRun& run;
    const Trajectory& way;
    std::uint32_t vehicle = kNoVehicle;
};

/// Consecutive scans of a drive that is known beforehand.
struct KnownLeg {
    std::uint64_t first;  ///< number of the first one
    std::span<const double> times;
    std::span<const Reach* const> reaches;  ///< one for each scan
    std::vector<std::uint32_t> tiles;       ///< of all of them
    bool fits = true;                       ///< the tiles together; otherwise the leg is one scan
    /// What to load meanwhile for what comes next.
    std::function<std::vector<std::uint32_t>()> upcoming{};
};

/// A city with everything that stands and moves in it, in which sensors scan one at a time, as soon as it is
/// known where they were. What a scan contains depends on the scene, on the sensor's run, on the poses during
/// the sweep and on the number of the scan: on nothing that was asked before.
///
/// Used by one thread at a time; works with all. Tiles are resident as the last scan needs them, and those
/// ahead of it, by its present speed, are loaded meanwhile.
class Session {
  public:
    /// Over so long a time before the end of a sweep the speed of its vehicle is measured.
    static constexpr double kSpeed_s = 0.5;

    /// Throws UsageError when shapes and frames leave no memory for tiles.
    explicit Session(const SessionScene& scene);
    ~Session();

    /// Returns the number of the sensor. Throws as learned_pass() does.
    std::size_t add(const SessionSensor& sensor);

    /// The next scan of a sensor, from this time on. Throws UsageError when the trajectory does not cover the
    /// sweep yet, or any more.
    Scan scan(std::size_t sensor, double time_s, const CancelToken& cancel);
    /// Memory of a scan that nobody needs any more, for the next one.
    void recycle(Scan&& scan);
    /// The next scans of a sensor, of a drive that is known. Requires a leg that is not empty, and that the
    /// trajectory covers it.
    void scan(std::size_t sensor, const KnownLeg& leg, ScanSink& sink, const CancelToken& cancel);

    /// What each ray meets first at this time, plus its own Ray::time_s, which may not be negative. Recorded
    /// frames are left out. `hits` are empty.
    void cast(std::span<const trace::Ray> rays, double time_s, std::span<trace::Hit> hits,
              const CancelToken& cancel);

    struct Place {
        const Pose& world_from_body;
        double time_s;
        std::uint32_t vehicle = kNoVehicle;  ///< whose actors are not in its way
    };
    /// How near a body is to the city and to what stands and moves. Throws UsageError when the session keeps
    /// no memory for it.
    Clearance clearance(const ClearanceBody& body, const Place& place, double limit_m);

    /// How many scans of a sensor should be done together, of those whose sweeps are given.
    std::size_t scans_at_once(std::size_t sensor, std::span<const Sweep> sweeps) const;
    std::uint64_t tile_bytes(std::uint32_t tile) const;
    std::uint64_t tile_budget_bytes() const;
    /// All tiles of the city can be resident together.
    bool holds_whole_city() const;

    /// Of all scans of a sensor so far; without `seconds`.
    SimulationReport report(std::size_t sensor) const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace citysplat::sim
