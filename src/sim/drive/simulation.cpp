#include "sim/drive/simulation.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "sim/drive/itinerary.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace citysplat::sim {

std::vector<double> scan_times(const SensorRun& run, const Trajectory& trajectory, const Schedule& schedule) {
    const double rate_hz = schedule.rate_hz > 0 ? schedule.rate_hz : run.sensor.scan_hz;
    const double sweep_s = sweep_seconds(run.sensor);
    const double first = std::max(schedule.from_s, trajectory.begin_s());
    const double latest_end = trajectory.end_s() + sweep_grace_s(trajectory.end_s());
    const double steps = (std::min(schedule.to_s, latest_end - sweep_s) - first) * rate_hz;
    if (!(steps < static_cast<double>(kMostScans)))
        throw UsageError("from " + format_number(first) + " s on, at " + format_number(rate_hz) +
                         " scans a second, there would be more than " + format_count(kMostScans) +
                         " scans; lower --rate, or divide the drive with --from and --to");
    std::vector<double> times;
    for (std::uint64_t k = 0;; ++k) {
        const double t = first + static_cast<double>(k) / rate_hz;
        if (t > schedule.to_s || t + sweep_s > latest_end) break;
        times.push_back(t);
    }
    if (times.empty())
        throw UsageError("no scan of " + std::to_string(sweep_s) + " s fits between " +
                         std::to_string(first) + " s and " +
                         std::to_string(std::min(schedule.to_s, trajectory.end_s())) +
                         " s of the trajectory; see --from, --to and --rate");
    return times;
}

SimulationReport simulate(const SimulationJob& job, ScanSink& sink, const CancelToken& cancel,
                          Progress& progress) {
    const std::vector<double> times = scan_times(job.run, job.trajectory, job.options.schedule);
    std::vector<Sweep> sweeps;
    for (const double time_s : times) sweeps.push_back({time_s, sweep_seconds(job.run.sensor)});
    Session session({job.city, job.tracer, job.options.cache, job.traffic, job.frames, sweeps});
    const std::size_t sensor = session.add({job.run, job.trajectory, job.vehicle});
    Itinerary itinerary(job.city, job.run, job.trajectory, times);
    const auto begin = std::chrono::steady_clock::now();
    Progress::Stage stage(progress, "simulate", times.size(), "scans");
    const auto bytes = [&](std::uint32_t tile) { return session.tile_bytes(tile); };
    for (std::size_t first = 0; first < times.size();) {
        cancel.check();
        const std::size_t most = session.scans_at_once(sensor, std::span(sweeps).subspan(first));
        const Itinerary::Leg leg = itinerary.leg(first, most, session.tile_budget_bytes(), bytes);
        const std::size_t next = first + leg.scans;
        session.scan(sensor,
                     {first, std::span(times).subspan(first, leg.scans), leg.reaches, leg.tiles, leg.fits,
                      [&] { return itinerary.upcoming(next, session.tile_budget_bytes(), bytes); }},
                     sink, cancel);
        first = next;
        stage.advance(leg.scans);
    }
    SimulationReport report = session.report(sensor);
    sink.finish();
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report;
}

std::vector<std::string> warnings_of(const SimulationReport& report, const Sensor& sensor) {
    std::vector<std::string> warnings;
    std::string where = "the city has no splats";
    if (std::isfinite(report.nearest_tile_m))
        where = "the nearest tile is " + format_number(std::round(10 * report.nearest_tile_m) / 10) +
                " m from the sensor's path, and it sees " + format_number(sensor.max_range_m) + " m";
    const bool has_city = std::isfinite(report.nearest_tile_m) || report.parts_in_reach == 0;
    if (has_city && report.scans > 0 && 2 * report.scans_outside > report.scans)
        warnings.push_back(format_count(report.scans_outside) + " of " + format_count(report.scans) +
                           " scans are outside the city: " + where +
                           "; are trajectory and city in the same coordinate system?");
    if (report.hits == 0 && report.dropped == 0)
        warnings.push_back("not one of " + format_count(report.rays) + " rays met the city: " + where);
    if (report.frames > 0 && report.frames_loaded == 0)
        warnings.push_back("none of " + format_count(report.frames) +
                           " recorded frames exists while a scan is taken: are their times on the clock of "
                           "the trajectory? time_offset_s is added to them");
    if (report.missing > 0)
        warnings.push_back(format_count(report.missing) +
                           " rays crossed tiles that could not be loaded and are marked as missing");
    return warnings;
}

}  // namespace citysplat::sim
