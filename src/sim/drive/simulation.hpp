#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "sim/session/session.hpp"

#include <cstdint>
#include <limits>
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

/// Times at which scans begin. Throws UsageError when there is none, or more than kMostScans.
std::vector<double> scan_times(const SensorRun& run, const Trajectory& trajectory, const Schedule& schedule);

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
/// A loop over a Session that knows all poses beforehand: scans are done some at a time, and tiles loaded in
/// the order of the drive.
SimulationReport simulate(const SimulationJob& job, ScanSink& sink, const CancelToken& cancel,
                          Progress& progress);

/// What a user should hear about a run that went through: nothing met, or most of it outside the city.
std::vector<std::string> warnings_of(const SimulationReport& report, const Sensor& sensor);

}  // namespace citysplat::sim
