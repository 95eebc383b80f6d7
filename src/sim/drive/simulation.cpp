#include "sim/drive/simulation.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "sim/drive/itinerary.hpp"
#include "sim/scan/scan_tracer.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace citysplat::sim {

std::vector<double> scan_times(const SensorRun& run, const Trajectory& trajectory, const Schedule& schedule) {
    const double rate_hz = schedule.rate_hz > 0 ? schedule.rate_hz : run.sensor.scan_hz;
    const double sweep_s = sweep_seconds(run.sensor);
    const double first = std::max(schedule.from_s, trajectory.begin_s());
    // A nanosecond of grace: 0.1 s sweeps on 0.1 s poses should not lose the last one to rounding.
    const double latest_end = trajectory.end_s() + 1e-9;
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

namespace {

/// Some consecutive scans whose tiles are resident together.
struct Group {
    std::vector<ScanRays> rays;
    std::vector<Scan> scans;
    std::vector<std::vector<Firing>> firings;  ///< lists of patterns that do not repeat
};

class Simulation {
  public:
    Simulation(const TileSource& city, const trace::Tracer& tracer, const SensorRun& run,
               const Trajectory& trajectory, const SimulationOptions& options, ScanSink& sink)
        : city_(city),
          tracer_(tracer),
          run_(run),
          trajectory_(trajectory),
          sink_(sink),
          times_(scan_times(run, trajectory, options.schedule)),
          cache_(city, tracer, options.cache),
          itinerary_(city, run, trajectory, times_) {}

    SimulationReport run(const CancelToken& cancel, Progress& progress);

  private:
    Group prepare(std::size_t first, std::size_t count);
    /// All tiles are there: returns are made at once.
    void trace(Group& group, const trace::TileSet& tiles);
    /// One scan, whose tiles come in several sets, front to back; hits are kept between them.
    void trace_in_passes(Group& group, std::span<const std::uint32_t> tiles, const CancelToken& cancel);
    void mark_missing(Group& group);
    void conclude(Group& group);
    std::vector<std::vector<std::uint32_t>> split_by_budget(const Group& group,
                                                            std::span<const std::uint32_t> tiles) const;

    const TileSource& city_;
    const trace::Tracer& tracer_;
    const SensorRun& run_;
    const Trajectory& trajectory_;
    ScanSink& sink_;
    std::vector<double> times_;
    trace::TileCache cache_;
    Itinerary itinerary_;
    std::vector<Firing> pattern_;  ///< of a sensor that repeats it
    tbb::enumerable_thread_specific<RayBatch> batches_;
    std::vector<std::vector<Return>> spare_;  ///< of scans that are done
    std::vector<trace::TileBox> missing_;
    std::vector<bool> seen_ = std::vector<bool>(city_.tiles().size(), false);
    SimulationReport report_;
    Hasher digest_;
};

/// Scans in flight at a time: enough to keep all threads busy, few enough to keep returns small in memory.
std::size_t scans_per_group() {
    return static_cast<std::size_t>(std::clamp(2 * tbb::this_task_arena::max_concurrency(), 4, 64));
}

SimulationReport Simulation::run(const CancelToken& cancel, Progress& progress) {
    const auto begin = std::chrono::steady_clock::now();
    Progress::Stage stage(progress, "simulate", times_.size(), "scans");
    for (std::size_t first = 0; first < times_.size();) {
        cancel.check();
        const Itinerary::Leg leg = itinerary_.leg(first, scans_per_group(), cache_.budget_bytes(),
                                                  [this](std::uint32_t tile) { return cache_.bytes(tile); });
        for (const std::uint32_t tile : leg.tiles) seen_[tile] = true;
        for (std::size_t i = 0; i < leg.scans; ++i) {
            const Itinerary::Reach& reach = itinerary_.reach(first + i);
            report_.scans_outside += reach.tiles.empty();
            report_.nearest_tile_m = std::min(report_.nearest_tile_m, reach.nearest_m);
        }
        Group group = prepare(first, leg.scans);
        if (leg.fits) {
            trace::TileCache::Acquired acquired = cache_.acquire(leg.tiles);
            for (const std::uint32_t tile : acquired.missing)
                missing_.push_back({city_.tiles()[tile].min, city_.tiles()[tile].max});
            const trace::TileSetPtr set = tracer_.bind(acquired.tiles);
            acquired.tiles.clear();
            cache_.plan(itinerary_.upcoming(first + leg.scans, cache_.budget_bytes(),
                                            [this](std::uint32_t tile) { return cache_.bytes(tile); }));
            trace(group, *set);
            report_.passes += leg.scans;
        } else {
            trace_in_passes(group, leg.tiles, cancel);
        }
        mark_missing(group);
        conclude(group);
        missing_.clear();
        first += leg.scans;
        stage.advance(leg.scans);
    }
    report_.scans = times_.size();
    report_.tiles_in_reach = static_cast<std::uint64_t>(std::count(seen_.begin(), seen_.end(), true));
    report_.cache = cache_.statistics();
    report_.digest = digest_.finish();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report_;
}

Group Simulation::prepare(std::size_t first, std::size_t count) {
    Group group;
    group.scans.resize(count);
    group.firings.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t index = first + i;
        const FiringPlan firings =
            plan_firings(run_.sensor, index, run_.sensor.repeats() ? pattern_ : group.firings[i]);
        group.rays.emplace_back(run_, trajectory_, index, times_[index], firings);
        Scan& scan = group.scans[i];
        scan.index = index;
        scan.time_s = times_[index];
        scan.world_from_sensor = group.rays.back().world_from_sensor();
        if (!spare_.empty()) {
            scan.returns = std::move(spare_.back());
            spare_.pop_back();
        }
        scan.returns.resize(firings.count);
    }
    return group;
}

/// Calls f(scan of the group, first ray, count) for batches of rays, in parallel.
template <class F>
void for_each_batch(const Group& group, std::size_t batch, F f) {
    std::vector<std::size_t> begins{0};
    for (const ScanRays& rays : group.rays)
        begins.push_back(begins.back() + (rays.size() + batch - 1) / batch);
    parallel_for(begins.back(), [&](std::size_t i) {
        const auto scan =
            static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), i) - begins.begin()) - 1;
        const std::size_t first = (i - begins[scan]) * batch;
        f(scan, first, std::min(batch, group.rays[scan].size() - first));
    });
}

void Simulation::trace(Group& group, const trace::TileSet& tiles) {
    for_each_batch(group, tracer_.batch_rays(), [&](std::size_t s, std::size_t first, std::size_t count) {
        const ScanView view = group.rays[s].view();
        trace_scan(tracer_, tiles, {view, first, count}, batches_.local(), group.scans[s].returns);
    });
}

std::vector<std::vector<std::uint32_t>> Simulation::split_by_budget(
    const Group& group, std::span<const std::uint32_t> tiles) const {
    const Vec3d origin = group.rays[0].world_from_sensor().translation;
    std::vector<std::pair<double, std::uint32_t>> by_distance;
    for (const std::uint32_t tile : tiles) {
        const TileEntry& entry = city_.tiles()[tile];
        if (cache_.bytes(tile) > cache_.budget_bytes())
            throw UsageError("tile " + entry.key.text() + " alone takes " + format_bytes(cache_.bytes(tile)) +
                             "; raise --resident (now " + format_bytes(cache_.budget_bytes()) + ")");
        by_distance.emplace_back(trace::distance_to_box(origin, {entry.min, entry.max}), tile);
    }
    std::sort(by_distance.begin(), by_distance.end());
    // Half of the budget for the pass, the other half for the prefetch of the next.
    std::vector<std::vector<std::uint32_t>> passes;
    std::uint64_t used = 0;
    for (const auto& [distance, tile] : by_distance) {
        if (passes.empty() || used + cache_.bytes(tile) > cache_.budget_bytes() / 2) {
            passes.emplace_back();
            used = 0;
        }
        passes.back().push_back(tile);
        used += cache_.bytes(tile);
    }
    return passes;
}

void Simulation::trace_in_passes(Group& group, std::span<const std::uint32_t> tiles,
                                 const CancelToken& cancel) {
    const auto passes = split_by_budget(group, tiles);
    const ScanView view = group.rays[0].view();
    const ReturnModel& model = view.model;
    std::vector<trace::Hit> hits(model.depth > 1 ? 0 : view.firings.count);
    std::vector<trace::HitList> lists(model.depth > 1 ? view.firings.count : 0);
    const auto part = [](auto& all, std::size_t first, std::size_t count) {
        return all.empty() ? std::span(all) : std::span(all).subspan(first, count);
    };
    for (std::size_t p = 0; p < passes.size(); ++p) {
        cancel.check();
        trace::TileCache::Acquired acquired = cache_.acquire(passes[p]);
        for (const std::uint32_t tile : acquired.missing)
            missing_.push_back({city_.tiles()[tile].min, city_.tiles()[tile].max});
        const trace::TileSetPtr set = tracer_.bind(acquired.tiles);
        acquired.tiles.clear();
        if (p + 1 < passes.size()) cache_.plan(passes[p + 1]);
        for_each_batch(group, tracer_.batch_rays(), [&](std::size_t, std::size_t first, std::size_t count) {
            RayBatch& batch = batches_.local();
            batch.generate(view, first, count);
            const auto batch_hits = part(hits, first, count);
            const auto batch_lists = part(lists, first, count);
            if (model.depth > 1)
                tracer_.nearest(*set, batch.rays(), model.depth, model.gap_m, batch_lists);
            else
                tracer_.closest(*set, batch.rays(), batch_hits);
            if (p + 1 == passes.size())
                batch.make_returns(view, batch_hits, batch_lists, group.scans[0].returns);
        });
    }
    report_.passes += passes.size();
}

void Simulation::mark_missing(Group& group) {
    if (missing_.empty()) return;
    for_each_batch(group, tracer_.batch_rays(), [&](std::size_t s, std::size_t first, std::size_t count) {
        RayBatch& batch = batches_.local();
        batch.generate(group.rays[s].view(), first, count);
        for (std::size_t i = 0; i < count; ++i) {
            Return& r = group.scans[s].returns[batch.firings()[i].ray];
            for (const trace::TileBox& box : missing_) {
                const double entry = trace::entry_distance(batch.rays()[i], box);
                if (entry >= 0 && (r.status == RayStatus::none || entry < static_cast<double>(r.range_m)))
                    r.status = RayStatus::missing;
            }
        }
    });
}

/// Both in one walk: returns are read from memory once.
Hash128 count_and_hash(Scan& scan) {
    constexpr std::size_t kPiece = 256;
    Hasher hasher;
    for (std::size_t begin = 0; begin < scan.returns.size(); begin += kPiece) {
        const auto piece = std::span<const Return>(scan.returns)
                               .subspan(begin, std::min(kPiece, scan.returns.size() - begin));
        for (const Return& r : piece) {
            scan.hits += r.status == RayStatus::hit;
            scan.dropped += r.status == RayStatus::dropped;
            scan.missing += r.status == RayStatus::missing;
        }
        hasher.bytes(std::as_bytes(piece));
    }
    return hasher.finish();
}

void Simulation::conclude(Group& group) {
    std::vector<Hash128> hashes(group.scans.size());
    parallel_for(group.scans.size(), [&](std::size_t i) {
        hashes[i] = count_and_hash(group.scans[i]);
        sink_.consume(group.scans[i]);
    });
    for (std::size_t i = 0; i < group.scans.size(); ++i) {
        const Scan& scan = group.scans[i];
        sink_.conclude(scan);
        digest_.number(scan.time_s).hash(hashes[i]);
        report_.rays += scan.returns.size();
        report_.hits += scan.hits;
        report_.dropped += scan.dropped;
        report_.missing += scan.missing;
    }
    for (Scan& scan : group.scans) spare_.push_back(std::move(scan.returns));
}

}  // namespace

SimulationReport simulate(const TileSource& city, const trace::Tracer& tracer, const SensorRun& run,
                          const Trajectory& trajectory, const SimulationOptions& options, ScanSink& sink,
                          const CancelToken& cancel, Progress& progress) {
    return Simulation(city, tracer, run, trajectory, options, sink).run(cancel, progress);
}

std::vector<std::string> warnings_of(const SimulationReport& report, const Sensor& sensor) {
    std::vector<std::string> warnings;
    std::string where = "the city has no splats";
    if (std::isfinite(report.nearest_tile_m))
        where = "the nearest tile is " + format_number(std::round(10 * report.nearest_tile_m) / 10) +
                " m from the sensor's path, and it sees " + format_number(sensor.max_range_m) + " m";
    if (report.scans > 0 && 2 * report.scans_outside > report.scans)
        warnings.push_back(format_count(report.scans_outside) + " of " + format_count(report.scans) +
                           " scans are outside the city: " + where +
                           "; are trajectory and city in the same coordinate system?");
    if (report.hits == 0 && report.dropped == 0)
        warnings.push_back("not one of " + format_count(report.rays) + " rays met the city: " + where);
    if (report.missing > 0)
        warnings.push_back(format_count(report.missing) +
                           " rays crossed tiles that could not be loaded and are marked as missing");
    return warnings;
}

}  // namespace citysplat::sim
