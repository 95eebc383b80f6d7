#pragma once

#include "core/cancel.hpp"
#include "sim/drive/scenario.hpp"
#include "sim/traffic/traffic_plan.hpp"
#include "trace/resident_city.hpp"

#include <span>
#include <string>
#include <vector>

namespace citysplat::sim {

/// A scene without a city: meshes alone.
class NoCity final : public TileSource {
  public:
    explicit NoCity(ClassMap classes) : classes_(std::move(classes)) {}
    std::span<const TileEntry> tiles() const override { return {}; }
    /// There is no tile to ask for.
    SplatTile load(std::size_t) const override { return {}; }
    const ClassMap& classes() const override { return classes_; }

  private:
    ClassMap classes_;
};

/// What stands and moves in a scenario, ready for its run.
struct PreparedTraffic {
    Traffic traffic;
    std::vector<ActorRow> rows;        ///< one for each actor
    std::vector<FramePlay> frames;     ///< of [[snapshots]]
    std::vector<FrameRow> frame_rows;  ///< one for each of their instances
    std::vector<std::string> notes;    ///< what was left out or assumed, for people
};

/// Where a sensor, or a body without one, goes.
struct SensorWay {
    const Trajectory& trajectory;
    double from_s, to_s;  ///< infinite: all of it
    double reach_m;
    double sweep_s = 0;  ///< a scan may begin at `to_s` and lasts so long
};

/// What exists until a time does not exist at that time, so that even a moment needs some time after it.
inline constexpr double kMoment_s = 1e-3;

/// The times and places that matter to all of them. Requires one. Trajectories must outlive it.
TrafficSpan span_of(std::span<const SensorWay> ways);

/// Reads the files of the scenario and stands on the city's ground what asks for it. Throws InputError or
/// ConfigError naming file or table.
PreparedTraffic prepare_traffic(const ScenarioThings& things, const TrafficSpan& span,
                                const TrafficSources& sources, trace::ResidentCity& city,
                                const CancelToken& cancel);

}  // namespace citysplat::sim
