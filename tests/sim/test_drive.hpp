#pragma once

#include "sim/drive/simulation.hpp"
#include "sim/memory_city.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <vector>

/// Short drives of a small sensor through a MemoryCity.
namespace citysplat::test {

struct Place {
    double east = 652000.25, north = 6861000.5;
};

inline Trajectory straight_drive(double length_m, double seconds, Place at = {}) {
    std::vector<StampedPose> poses;
    for (int i = 0; i <= 20; ++i) {
        const double s = i / 20.0;
        poses.push_back({100 + seconds * s,
                         {{at.east + 2 + length_m * s, at.north + 0.3 * s, 1.9},
                          from_yaw_pitch_roll(0.1 * s, 0.01 * s, -0.02 * s)}});
    }
    return Trajectory(poses);
}

/// A small spinning sensor, so that tests are quick.
inline sim::Sensor small_sensor() {
    return sim::Sensor::parse(R"(
name = "test"
kind = "spinning"
[spin]
rate_hz = 10
columns_per_turn = 360
[beams]
count = 16
first_deg = 10
last_deg = -20
[range]
min_m = 0.5
max_m = 40
[error]
sigma_m = 0.02
)",
                              "test.toml");
}

class Collector : public sim::ScanSink {
  public:
    void consume(const sim::Scan&) override { ++consumed; }
    void conclude(const sim::Scan& scan) override { scans.push_back(scan); }
    std::atomic<int> consumed{0};
    std::vector<sim::Scan> scans;
};

struct DriveOutcome {
    sim::SimulationReport report;
    std::vector<sim::Scan> scans;
};

inline DriveOutcome drive(const sim::SimulationJob& job) {
    Collector sink;
    CancelToken cancel;
    Progress progress;
    DriveOutcome outcome;
    outcome.report = sim::simulate(job, sink, cancel, progress);
    REQUIRE(sink.consumed == static_cast<int>(sink.scans.size()));
    outcome.scans = std::move(sink.scans);
    return outcome;
}

inline DriveOutcome drive(const MemoryCity& city, const sim::SensorRun& run,
                          const sim::SimulationOptions& options, const Trajectory& trajectory) {
    const auto tracer = trace::make_group_tracer();
    return drive({city, *tracer, run, trajectory, options});
}

/// Memory for any city of the tests.
inline constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

inline sim::SimulationOptions with_budget(std::uint64_t bytes, bool prefetch = true) {
    sim::SimulationOptions options;
    options.cache.budget_bytes = bytes;
    options.cache.prefetch = prefetch;
    return options;
}

inline std::uint64_t largest_tile_bytes(const MemoryCity& city) {
    const auto tracer = trace::make_group_tracer();
    std::uint64_t most = 0;
    for (const auto& entry : city.tiles())
        most = std::max<std::uint64_t>(most, tracer->estimated_bytes(entry.splats));
    return most;
}

}  // namespace citysplat::test
