#include "sim/drive/simulation.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "sim/drive/frame_stream.hpp"
#include "sim/drive/itinerary.hpp"
#include "sim/scan/scan_tracer.hpp"
#include "sim/traffic/scan_parts.hpp"
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
    std::vector<ScanParts> parts;
};

/// The memory of tiles is what others leave. Throws UsageError when that is nothing.
void take_off(trace::CacheOptions& options, std::uint64_t bytes, const std::string& what) {
    if (bytes >= options.budget_bytes)
        throw UsageError(what + " take " + format_bytes(bytes) + "; raise --resident (" +
                         format_bytes(options.budget_bytes) + " are left)");
    options.budget_bytes -= bytes;
}

std::optional<ReadyTraffic> ready_traffic(const SimulationJob& job) {
    if (!job.traffic || job.traffic->empty()) return std::nullopt;
    return std::optional<ReadyTraffic>(std::in_place, *job.traffic, job.tracer);
}

class Simulation {
  public:
    Simulation(const SimulationJob& job, ScanSink& sink)
        : run_(job.run),
          trajectory_(job.trajectory),
          sink_(sink),
          times_(scan_times(run_, trajectory_, job.options.schedule)),
          vehicle_(job.vehicle),
          traffic_(ready_traffic(job)),
          cache_(job.options.cache),
          frames_(ready_frames(job)),
          city_(job.city, job.tracer, cache_),
          itinerary_(job.city, run_, trajectory_, times_),
          learned_(learned_pass(run_)) {}

    SimulationReport run(const CancelToken& cancel, Progress& progress);

  private:
    std::optional<FrameStream> ready_frames(const SimulationJob& job) {
        if (traffic_) take_off(cache_, traffic_->bytes(), "the shapes of the scenario's actors");
        if (job.frames.empty()) return std::nullopt;
        std::optional<FrameStream> stream(std::in_place, ReadyFrames(job.frames, job.tracer),
                                          sweep_seconds(run_.sensor));
        take_off(cache_, stream->reserve(times_, cache_.budget_bytes), "the recorded frames of one scan");
        return stream;
    }
    /// Counts what the scans of a leg can meet.
    void look_around(std::size_t first, const Itinerary::Leg& leg);
    Group prepare(std::size_t first, std::size_t count);
    /// How many pulses of a group make as many rays as the tracer wants at a time.
    std::size_t batch_pulses(const Group& group);
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
    std::uint32_t vehicle_;
    std::optional<ReadyTraffic> traffic_;
    trace::CacheOptions cache_;  ///< without the memory of traffic and frames
    std::optional<FrameStream> frames_;
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
        std::size_t most = std::min(scans_per_group(), times_.size() - first);
        if (frames_) most = frames_->scans_that_fit(std::span(times_).subspan(first, most));
        Itinerary::Leg leg = itinerary_.leg(first, most, city_.budget_bytes(), bytes);
        look_around(first, leg);
        Group group = prepare(first, leg.scans);
        if (!leg.fits) sort_by_distance(group, leg.tiles);
        KeptHits kept;
        const std::uint64_t passes_before = city_.passes();
        const auto missing = city_.visit(leg.tiles, cancel, [&](const trace::ResidentCity::Pass& pass) {
            if (!pass.only()) return trace_pass(group, pass, kept);
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
    if (frames_) {
        report_.frames = frames_->frames().frames();
        report_.frames_loaded = frames_->frames().frames_loaded();
        report_.frames_resident = frames_->most_resident();
    }
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
    group.parts.resize(count);
    if (frames_) frames_->make_ready(std::span(times_).subspan(first, count));
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t index = first + i;
        const FiringPlan firings =
            plan_firings(run_.sensor, index, run_.sensor.repeats() ? pattern_ : group.firings[i]);
        group.rays.emplace_back(run_, trajectory_, index, times_[index], firings);
        Scan& scan = group.scans[i];
        scan.index = index;
        scan.time_s = times_[index];
        scan.world_from_sensor = group.rays.back().world_from_sensor();
        const ScanView view = group.rays.back().view();
        scan.keys.assign(view.keys, view.keys + kPoseKeys + 1);
        scan.keys_per_second = view.keys_per_second;
        if (!spare_.empty()) {
            scan.returns = std::move(spare_.back());
            spare_.pop_back();
        }
        scan.returns_per_pulse = sim::returns_per_pulse(view.model.beam);
        scan.returns.resize(std::size_t{firings.count} * scan.returns_per_pulse);
        const Sweep sweep{times_[index], sweep_seconds(run_.sensor)};
        const ScanReach reach{group.rays.back().path(), run_.sensor.max_range_m, vehicle_};
        if (traffic_) group.parts[i] = traffic_->during(sweep, reach);
        if (frames_) frames_->frames().add_to(group.parts[i], sweep, reach);
        report_.parts_in_reach += group.parts[i].parts().size();
    }
    return group;
}

/// Calls f(scan of the group, first pulse, count) for batches of pulses, in parallel.
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

std::size_t Simulation::batch_pulses(const Group& group) {
    const ScanRays& first = group.rays[0];
    const ScanView view = first.view();
    RayBatch& sample = batches_.local();
    sample.generate(view, 0, std::min(first.size(), trace::Tracer::kSampleRays));
    return std::max<std::size_t>(1, city_.tracer().batch_rays(sample.rays()) / view.model.beam.rays);
}

void Simulation::trace_at_once(Group& group, const trace::TileSet& tiles) {
    const trace::Tracer& tracer = city_.tracer();
    for_each_batch(group, batch_pulses(group), [&](std::size_t s, std::size_t first, std::size_t count) {
        const ScanView view = group.rays[s].view();
        trace_scan(tracer, {tiles, group.parts[s].parts()}, {view, first, count}, batches_.local(),
                   group.scans[s].returns);
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
    const std::size_t each = model.beam.rays;
    // Once is enough for the parts: what was met is kept.
    const trace::Scene scene(pass.tiles,
                             pass.first ? group.parts[0].parts() : std::span<const trace::Part>());
    if (model.depth > 1)
        kept.lists.resize(view.firings.count * each);
    else
        kept.hits.resize(view.firings.count * each);
    const auto part = [each](auto& all, std::size_t first, std::size_t count) {
        return all.empty() ? std::span(all) : std::span(all).subspan(first * each, count * each);
    };
    for_each_batch(group, batch_pulses(group), [&](std::size_t, std::size_t first, std::size_t count) {
        RayBatch& batch = batches_.local();
        batch.generate(view, first, count);
        const auto hits = part(kept.hits, first, count);
        const auto lists = part(kept.lists, first, count);
        if (model.depth > 1)
            tracer.nearest(scene, batch.rays(), model.depth, model.gap_m, lists);
        else
            tracer.closest(scene, batch.rays(), hits);
        if (pass.last) batch.make_returns(view, hits, lists, group.scans[0].returns);
    });
}

/// A ray of this number would have met something else at `entry_m`, perhaps.
void mark_behind(double entry_m, const ReturnModel& model, std::uint32_t ray, Scan& scan) {
    // So far behind a return a hit may still have been part of it.
    const double depth_m = (model.depth - 1) * static_cast<double>(model.gap_m);
    for (std::size_t at = ray; at < scan.returns.size(); at += scan.pulses()) {
        Return& r = scan.returns[at];
        if (at != ray && r.status == RayStatus::none)
            break;  // what a second one would have been, is told once
        // Of a pulse with a width another sub-ray may have made the return: it says nothing about this one.
        if (r.status == RayStatus::none || model.beam.rays > 1 ||
            entry_m < static_cast<double>(r.range_m) + depth_m)
            r.status = RayStatus::missing;
    }
}

void Simulation::mark_missing(Group& group, std::span<const std::uint32_t> tiles) {
    if (tiles.empty()) return;
    for_each_batch(group, batch_pulses(group), [&](std::size_t s, std::size_t first, std::size_t count) {
        RayBatch& batch = batches_.local();
        const ScanView view = group.rays[s].view();
        batch.generate(view, first, count);
        for (std::size_t i = 0; i < count; ++i)
            for (std::uint32_t k = 0; k < view.model.beam.rays; ++k) {
                const trace::Ray& ray = batch.rays()[i * view.model.beam.rays + k];
                for (const std::uint32_t tile : tiles) {
                    const TileEntry& e = city_.source().tiles()[tile];
                    const double entry = trace::entry_distance(ray, {e.min, e.max});
                    if (entry >= 0) mark_behind(entry, view.model, batch.firings()[i].ray, group.scans[s]);
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
            scan.part_hits += r.status == RayStatus::hit && r.instance != 0;
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
    const auto first = std::span(scan.returns).first(scan.pulses());
    learned_->apply(first, keys, passes_.local());
    // The model is about pulses: one that is lost has no second return either.
    for (std::size_t i = first.size(); i < scan.returns.size(); ++i)
        if (first[i % first.size()].status == RayStatus::dropped && scan.returns[i].status == RayStatus::hit)
            scan.returns[i].status = RayStatus::dropped;
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
        report_.rays += scan.pulses();
        report_.hits += scan.hits;
        report_.part_hits += scan.part_hits;
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
