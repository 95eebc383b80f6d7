#include "sim/drive/simulation.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "sim/drive/itinerary.hpp"
#include "sim/scan/scan_tracer.hpp"
#include "trace/resident_city.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
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
    Simulation(const SimulationJob& job, ScanSink& sink)
        : run_(job.run),
          trajectory_(job.trajectory),
          sink_(sink),
          times_(scan_times(run_, trajectory_, job.options.schedule)),
          city_(job.city, job.tracer, job.options.cache),
          itinerary_(job.city, run_, trajectory_, times_),
          learned_(learned_pass(run_)) {}

    SimulationReport run(const CancelToken& cancel, Progress& progress);

  private:
    /// Counts what the scans of a leg can meet.
    void look_around(std::size_t first, const Itinerary::Leg& leg);
    Group prepare(std::size_t first, std::size_t count);
    /// How many rays of a group the tracer wants at a time.
    std::size_t batch_rays(const Group& group);
    /// All tiles are there: returns are made at once.
    void trace_at_once(Group& group, const trace::TileSet& tiles);
    /// One scan, whose tiles come in several sets, front to back; hits are kept between them.
    struct KeptHits {
        std::vector<trace::Hit> hits;       ///< if the depth is 1
        std::vector<trace::HitList> lists;  ///< otherwise
    };
    void trace_pass(Group& group, const trace::ResidentCity::Pass& pass, KeptHits& kept);
    void sort_by_distance(const Group& group, std::vector<std::uint32_t>& tiles) const;
    void mark_missing(Group& group, std::span<const std::uint32_t> tiles);
    /// What the gains of the beams and the learned model, if there are any, make of a scan that is otherwise
    /// finished.
    void look_again(Scan& scan);
    void conclude(Group& group);

    const SensorRun& run_;
    const Trajectory& trajectory_;
    ScanSink& sink_;
    std::vector<double> times_;
    trace::ResidentCity city_;
    Itinerary itinerary_;
    std::vector<Firing> pattern_;  ///< of a sensor that repeats it
    tbb::enumerable_thread_specific<RayBatch> batches_;
    std::optional<learn::LearnedPass> learned_;
    tbb::enumerable_thread_specific<learn::PassScratch> passes_;
    std::vector<std::vector<Return>> spare_;  ///< of scans that are done
    std::vector<bool> seen_ = std::vector<bool>(city_.source().tiles().size(), false);
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
    const auto bytes = [this](std::uint32_t tile) { return city_.bytes(tile); };
    for (std::size_t first = 0; first < times_.size();) {
        cancel.check();
        Itinerary::Leg leg = itinerary_.leg(first, scans_per_group(), city_.budget_bytes(), bytes);
        look_around(first, leg);
        Group group = prepare(first, leg.scans);
        if (!leg.fits) sort_by_distance(group, leg.tiles);
        KeptHits kept;
        const std::uint64_t passes_before = city_.passes();
        const auto missing = city_.visit(leg.tiles, cancel, [&](const trace::ResidentCity::Pass& pass) {
            if (!pass.only) return trace_pass(group, pass, kept);
            city_.prefetch(itinerary_.upcoming(first + leg.scans, city_.budget_bytes(), bytes));
            trace_at_once(group, pass.tiles);
        });
        report_.passes += leg.fits ? leg.scans : city_.passes() - passes_before;
        mark_missing(group, missing);
        conclude(group);
        first += leg.scans;
        stage.advance(leg.scans);
    }
    report_.scans = times_.size();
    report_.tiles_in_reach = static_cast<std::uint64_t>(std::count(seen_.begin(), seen_.end(), true));
    report_.cache = city_.statistics();
    report_.digest = digest_.finish();
    sink_.finish();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report_;
}

void Simulation::look_around(std::size_t first, const Itinerary::Leg& leg) {
    for (const std::uint32_t tile : leg.tiles) seen_[tile] = true;
    for (std::size_t i = 0; i < leg.scans; ++i) {
        const Itinerary::Reach& reach = itinerary_.reach(first + i);
        report_.scans_outside += reach.tiles.empty();
        report_.nearest_tile_m = std::min(report_.nearest_tile_m, reach.nearest_m);
    }
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

std::size_t Simulation::batch_rays(const Group& group) {
    const ScanRays& first = group.rays[0];
    RayBatch& sample = batches_.local();
    sample.generate(first.view(), 0, std::min(first.size(), trace::Tracer::kSampleRays));
    return city_.tracer().batch_rays(sample.rays());
}

void Simulation::trace_at_once(Group& group, const trace::TileSet& tiles) {
    const trace::Tracer& tracer = city_.tracer();
    for_each_batch(group, batch_rays(group), [&](std::size_t s, std::size_t first, std::size_t count) {
        const ScanView view = group.rays[s].view();
        trace_scan(tracer, tiles, {view, first, count}, batches_.local(), group.scans[s].returns);
    });
}

void Simulation::sort_by_distance(const Group& group, std::vector<std::uint32_t>& tiles) const {
    const Vec3d origin = group.rays[0].world_from_sensor().translation;
    std::vector<std::pair<double, std::uint32_t>> by_distance;
    for (const std::uint32_t tile : tiles) {
        const TileEntry& entry = city_.source().tiles()[tile];
        by_distance.emplace_back(trace::distance_to_box(origin, {entry.min, entry.max}), tile);
    }
    std::sort(by_distance.begin(), by_distance.end());
    for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i] = by_distance[i].second;
}

void Simulation::trace_pass(Group& group, const trace::ResidentCity::Pass& pass, KeptHits& kept) {
    const trace::Tracer& tracer = city_.tracer();
    const ScanView view = group.rays[0].view();
    const ReturnModel& model = view.model;
    if (model.depth > 1)
        kept.lists.resize(view.firings.count);
    else
        kept.hits.resize(view.firings.count);
    const auto part = [](auto& all, std::size_t first, std::size_t count) {
        return all.empty() ? std::span(all) : std::span(all).subspan(first, count);
    };
    for_each_batch(group, batch_rays(group), [&](std::size_t, std::size_t first, std::size_t count) {
        RayBatch& batch = batches_.local();
        batch.generate(view, first, count);
        const auto hits = part(kept.hits, first, count);
        const auto lists = part(kept.lists, first, count);
        if (model.depth > 1)
            tracer.nearest(pass.tiles, batch.rays(), model.depth, model.gap_m, lists);
        else
            tracer.closest(pass.tiles, batch.rays(), hits);
        if (pass.last) batch.make_returns(view, hits, lists, group.scans[0].returns);
    });
}

void Simulation::mark_missing(Group& group, std::span<const std::uint32_t> tiles) {
    if (tiles.empty()) return;
    for_each_batch(group, batch_rays(group), [&](std::size_t s, std::size_t first, std::size_t count) {
        RayBatch& batch = batches_.local();
        const ScanView view = group.rays[s].view();
        batch.generate(view, first, count);
        // So far behind a return a hit may still have been part of it.
        const double depth_m = (view.model.depth - 1) * static_cast<double>(view.model.gap_m);
        for (std::size_t i = 0; i < count; ++i) {
            Return& r = group.scans[s].returns[batch.firings()[i].ray];
            const double reach_m = static_cast<double>(r.range_m) + depth_m;
            for (const std::uint32_t tile : tiles) {
                const TileEntry& e = city_.source().tiles()[tile];
                const double entry = trace::entry_distance(batch.rays()[i], {e.min, e.max});
                if (entry >= 0 && (r.status == RayStatus::none || entry < reach_m))
                    r.status = RayStatus::missing;
            }
        }
    });
}

/// Both in one walk: returns are read from memory once.
Hash128 count_and_hash(Scan& scan) {
    constexpr std::size_t kPiece = 256;
    std::array<std::byte, kPiece * kDigestedBytes> digested;
    Hasher hasher;
    for (std::size_t begin = 0; begin < scan.returns.size(); begin += kPiece) {
        const auto piece = std::span<const Return>(scan.returns)
                               .subspan(begin, std::min(kPiece, scan.returns.size() - begin));
        std::byte* at = digested.data();
        for (const Return& r : piece) {
            std::memcpy(at, &r, kDigestedBytes);
            at += kDigestedBytes;
            scan.hits += r.status == RayStatus::hit;
            scan.dropped += r.status == RayStatus::dropped;
            scan.missing += r.status == RayStatus::missing;
        }
        hasher.bytes(std::span(digested).first(piece.size() * kDigestedBytes));
    }
    return hasher.finish();
}

void Simulation::look_again(Scan& scan) {
    const auto* head = std::get_if<SpinningHead>(&run_.sensor.rays);
    if (head && !head->gain.empty())
        for (Return& r : scan.returns)
            r.intensity = learn::corrected_intensity(r.intensity, head->gain[r.beam], 0);
    if (!learned_) return;
    const learn::NoiseKeys keys{scan_key(run_.seed, run_.stream, scan.index), learn::place_key(run_.seed)};
    learned_->apply(scan.returns, keys, passes_.local());
}

void Simulation::conclude(Group& group) {
    std::vector<Hash128> hashes(group.scans.size());
    parallel_for(group.scans.size(), [&](std::size_t i) {
        look_again(group.scans[i]);
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

std::optional<learn::LearnedPass> learned_pass(const SensorRun& run) {
    const std::filesystem::path& path = run.sensor.model;
    if (path.empty() || !run.noise) return std::nullopt;
    return learn::LearnedPass(learn::SensorModel::load(path), run.sensor, path.string());
}

SimulationReport simulate(const SimulationJob& job, ScanSink& sink, const CancelToken& cancel,
                          Progress& progress) {
    return Simulation(job, sink).run(cancel, progress);
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
