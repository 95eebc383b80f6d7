#pragma once

#include "core/cancel.hpp"
#include "core/hash.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"
#include "model/trajectory.hpp"
#include "sim/learn/learned_pass.hpp"
#include "sim/scan/scan_sink.hpp"
#include "sim/scan/scanner.hpp"
#include "sim/traffic/played_frames.hpp"
#include "sim/traffic/traffic.hpp"
#include "trace/tile_cache.hpp"
#include "trace/tracer.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citysplat::sim {

/// When the scans of a run begin: from `from_s` in steps of 1/rate, as long as the trajectory covers the
/// whole sweep and the beginning is not after `to_s`.
struct Schedule {
    double from_s = -std::numeric_limits<double>::infinity();
    double to_s = std::numeric_limits<double>::infinity();
    double rate_hz = 0;  ///< 0: the sensor's own
};

struct SimulationOptions {
    Schedule schedule;
    trace::CacheOptions cache;
};

struct SimulationReport {
    std::uint64_t scans = 0, rays = 0, hits = 0, dropped = 0, missing = 0;
    std::uint64_t tiles_in_reach = 0;   ///< different tiles that some ray could have met
    std::uint64_t parts_in_reach = 0;   ///< actors that rays could have met, in all scans together
    std::uint64_t part_hits = 0;        ///< of `hits`, those on actors
    std::uint64_t frames = 0;           ///< recorded ones that could be played
    std::uint64_t frames_loaded = 0;    ///< those that scans needed, each time it was read
    std::uint64_t frames_resident = 0;  ///< of them at most at a time
    std::uint64_t passes = 0;           ///< more than one per scan: its surroundings exceeded the budget
    std::uint64_t scans_outside = 0;    ///< farther from every tile than the sensor sees
    double nearest_tile_m = std::numeric_limits<double>::infinity();  ///< from any scan to any tile
    double seconds = 0;
    trace::CacheStatistics cache;
    Hash128 digest;  ///< of all returns, in order of scans and rays
};

/// Times at which scans begin. Throws UsageError when there is none, or more than kMostScans.
std::vector<double> scan_times(const SensorRun& run, const Trajectory& trajectory, const Schedule& schedule);

/// What the learned model of the run's sensor does to its finished scans; nothing when it has none, or when
/// noise is off. Throws as SensorModel::load() and SensorModel::check() do.
std::optional<learn::LearnedPass> learned_pass(const SensorRun& run);

/// One sensor on its way through a city. The returns depend on these alone: not on threads, prefetching or
/// the tracer's instruction set, nor on the budget.
struct SimulationJob {
    const TileSource& city;
    const trace::Tracer& tracer;
    const SensorRun& run;
    const Trajectory& trajectory;
    SimulationOptions options{};
    /// What stands or moves besides the city; may be nullptr. The memory of its shapes is part of
    /// CacheOptions::budget_bytes.
    const Traffic* traffic = nullptr;
    std::uint32_t vehicle = kNoVehicle;  ///< that carries the sensor: its actors are not met
    /// Recorded frames of what moved. They are in memory for as long as the scans under way need them, and
    /// their memory is part of the budget, too.
    std::span<const FramePlay> frames{};
};
SimulationReport simulate(const SimulationJob& job, ScanSink& sink, const CancelToken& cancel,
                          Progress& progress);

/// What a user should hear about a run that went through: nothing met, or most of it outside the city.
std::vector<std::string> warnings_of(const SimulationReport& report, const Sensor& sensor);

}  // namespace citysplat::sim
