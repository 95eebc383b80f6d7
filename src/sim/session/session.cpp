#include "sim/session/session.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "sim/session/frame_stream.hpp"
#include "sim/session/reach.hpp"
#include "sim/session/scan_group.hpp"
#include "trace/resident_city.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>

namespace citysplat::sim {

std::optional<learn::LearnedPass> learned_pass(const SensorRun& run) {
    const std::filesystem::path& path = run.sensor.model;
    if (path.empty() || !run.noise) return std::nullopt;
    return learn::LearnedPass(learn::SensorModel::load(path), run.sensor, path.string());
}

double sweep_grace_s(double end_s) {
    constexpr double kLeast_s = 1e-9;
    return std::max(kLeast_s, 2 * std::numeric_limits<double>::epsilon() * std::fabs(end_s));
}

namespace {

/// The memory of tiles is what others leave. Throws UsageError when that is nothing.
void take_off(trace::CacheOptions& options, std::uint64_t bytes, const std::string& what) {
    if (bytes >= options.budget_bytes)
        throw UsageError(what + " take " + format_bytes(bytes) + "; raise --resident (" +
                         format_bytes(options.budget_bytes) + " are left)");
    options.budget_bytes -= bytes;
}

std::optional<ReadyTraffic> ready_traffic(const SessionScene& scene) {
    if (!scene.traffic || scene.traffic->empty()) return std::nullopt;
    return std::optional<ReadyTraffic>(std::in_place, *scene.traffic, scene.tracer);
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

/// One sensor and what became of its scans.
struct SensorState {
    SensorState(const SessionSensor& which, std::size_t tiles)
        : sensor(which), learned(learned_pass(which.run)), seen(tiles, false) {}

    Sweep sweep(double time_s) const { return {time_s, sweep_seconds(sensor.run.sensor)}; }

    SessionSensor sensor;
    std::optional<learn::LearnedPass> learned;
    std::vector<Firing> pattern;  ///< of a sensor that repeats it
    std::vector<bool> seen;       ///< tiles that some ray could have met
    std::uint64_t next_index = 0;
    SimulationReport report{};
    Hasher digest{};
};

/// For a scan that its caller takes.
class NoSink final : public ScanSink {
  public:
    void consume(const Scan&) override {}
    void conclude(const Scan&) override {}
};

}  // namespace

struct Session::Parts {
    explicit Parts(const SessionScene& scene)
        : traffic(ready_traffic(scene)),
          cache(scene.cache),
          frames(ready_frames(scene)),
          city(scene.city, scene.tracer, cache),
          scanner(city) {
        if (scene.clearance_bytes > 0)
            probe.emplace(scene.city, scene.traffic, ClearanceOptions{1, scene.clearance_bytes});
    }

    std::optional<FrameStream> ready_frames(const SessionScene& scene) {
        if (traffic) take_off(cache, traffic->bytes(), "the shapes of the scenario's actors");
        if (scene.clearance_bytes > 0) take_off(cache, scene.clearance_bytes, "questions about clearance");
        if (scene.frames.empty()) return std::nullopt;
        std::optional<FrameStream> stream(std::in_place, ReadyFrames(scene.frames, scene.tracer));
        take_off(cache, stream->reserve(scene.sweeps, cache.budget_bytes), "the recorded frames of one scan");
        return stream;
    }

    ScanGroup prepare(SensorState& state, std::uint64_t first, std::span<const double> times);
    /// What the gains of the beams and the learned model, if there are any, make of a scan that is otherwise
    /// finished.
    void look_again(const SensorState& state, Scan& scan);
    void conclude(SensorState& state, ScanGroup& group, ScanSink& sink);
    void look_around(SensorState& state, const Reach& reach) const;
    std::vector<std::uint32_t> ahead(const SensorState& state, const Box3d& path, double time_s) const;

    std::optional<ReadyTraffic> traffic;
    trace::CacheOptions cache;  ///< without the memory of everything else
    std::optional<FrameStream> frames;
    trace::ResidentCity city;
    GroupScanner scanner;
    std::optional<ClearanceProbe> probe;
    tbb::enumerable_thread_specific<learn::PassScratch> passes;
    std::vector<std::vector<Return>> spare;  ///< of scans that are done
    std::list<SensorState> sensors;          ///< they stay where they are

    SensorState& at(std::size_t sensor) {
        if (sensor >= sensors.size())
            throw UsageError("the session has " + std::to_string(sensors.size()) + " sensors, not a sensor " +
                             std::to_string(sensor));
        return *std::next(sensors.begin(), static_cast<std::ptrdiff_t>(sensor));
    }
};

Session::Session(const SessionScene& scene) : parts_(std::make_unique<Parts>(scene)) {}
Session::~Session() = default;

std::size_t Session::add(const SessionSensor& sensor) {
    parts_->sensors.emplace_back(sensor, parts_->city.source().tiles().size());
    return parts_->sensors.size() - 1;
}

std::uint64_t Session::tile_bytes(std::uint32_t tile) const { return parts_->city.bytes(tile); }
std::uint64_t Session::tile_budget_bytes() const { return parts_->city.budget_bytes(); }

bool Session::holds_whole_city() const {
    std::uint64_t bytes = 0;
    const auto tiles = static_cast<std::uint32_t>(parts_->city.source().tiles().size());
    for (std::uint32_t tile = 0; tile < tiles; ++tile) bytes += tile_bytes(tile);
    return bytes <= tile_budget_bytes();
}

std::size_t Session::scans_at_once(std::size_t sensor, std::span<const Sweep> sweeps) const {
    // Enough to keep all threads busy, few enough to keep returns small in memory.
    const auto most =
        static_cast<std::size_t>(std::clamp(2 * tbb::this_task_arena::max_concurrency(), 4, 64));
    constexpr std::uint64_t kReturnBytes = std::uint64_t{1} << 30;
    const Sensor& kind = parts_->at(sensor).sensor.run.sensor;
    const std::uint64_t scan_bytes = std::uint64_t{kind.rays_per_scan()} *
                                     (kind.beam.returns == ReturnMode::dual ? 2 : 1) * sizeof(Return);
    const std::size_t fit = std::max<std::size_t>(1, kReturnBytes / std::max<std::uint64_t>(1, scan_bytes));
    const auto some = sweeps.first(std::min({most, fit, sweeps.size()}));
    return parts_->frames ? parts_->frames->sweeps_that_fit(some) : some.size();
}

ScanGroup Session::Parts::prepare(SensorState& state, std::uint64_t first, std::span<const double> times) {
    const SensorRun& run = state.sensor.run;
    ScanGroup group;
    group.scans.resize(times.size());
    group.firings.resize(times.size());
    group.parts.resize(times.size());
    if (frames) {
        std::vector<Sweep> sweeps;
        for (const double time_s : times) sweeps.push_back(state.sweep(time_s));
        frames->make_ready(sweeps);
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
        const std::uint64_t index = first + i;
        const FiringPlan firings =
            plan_firings(run.sensor, index, run.sensor.repeats() ? state.pattern : group.firings[i]);
        group.rays.emplace_back(run, state.sensor.way, index, times[i], firings);
        Scan& scan = group.scans[i];
        scan.index = index;
        scan.time_s = times[i];
        scan.world_from_sensor = group.rays.back().world_from_sensor();
        const ScanView view = group.rays.back().view();
        scan.keys.assign(view.keys, view.keys + kPoseKeys + 1);
        scan.keys_per_second = view.keys_per_second;
        if (!spare.empty()) {
            scan.returns = std::move(spare.back());
            spare.pop_back();
        }
        scan.returns_per_pulse = sim::returns_per_pulse(view.model.beam);
        scan.returns.resize(std::size_t{firings.count} * scan.returns_per_pulse);
        const Sweep sweep = state.sweep(times[i]);
        const ScanReach reach{group.rays.back().path(), run.sensor.max_range_m, state.sensor.vehicle};
        if (traffic) group.parts[i] = traffic->during(sweep, reach);
        if (frames) frames->frames().add_to(group.parts[i], sweep, reach);
        state.report.parts_in_reach += group.parts[i].parts().size();
    }
    return group;
}

void Session::Parts::look_again(const SensorState& state, Scan& scan) {
    const SensorRun& run = state.sensor.run;
    const auto* head = std::get_if<SpinningHead>(&run.sensor.rays);
    if (head && !head->gain.empty())
        for (Return& r : scan.returns)
            r.intensity = learn::corrected_intensity(r.intensity, head->gain[r.beam], 0);
    if (!state.learned) return;
    const learn::NoiseKeys keys{scan_key(run.seed, run.stream, scan.index), learn::place_key(run.seed)};
    const auto first = std::span(scan.returns).first(scan.pulses());
    state.learned->apply(first, keys, passes.local());
    // The model is about pulses: one that is lost has no second return either.
    for (std::size_t i = first.size(); i < scan.returns.size(); ++i)
        if (first[i % first.size()].status == RayStatus::dropped && scan.returns[i].status == RayStatus::hit)
            scan.returns[i].status = RayStatus::dropped;
}

void Session::Parts::conclude(SensorState& state, ScanGroup& group, ScanSink& sink) {
    std::vector<Hash128> hashes(group.scans.size());
    parallel_for(group.scans.size(), [&](std::size_t i) {
        look_again(state, group.scans[i]);
        hashes[i] = count_and_hash(group.scans[i]);
        sink.consume(group.scans[i]);
    });
    for (std::size_t i = 0; i < group.scans.size(); ++i) {
        const Scan& scan = group.scans[i];
        sink.conclude(scan);
        state.digest.number(scan.time_s).hash(hashes[i]);
        ++state.report.scans;
        state.report.rays += scan.pulses();
        state.report.hits += scan.hits;
        state.report.part_hits += scan.part_hits;
        state.report.dropped += scan.dropped;
        state.report.missing += scan.missing;
    }
    state.next_index = group.scans.back().index + 1;
}

void Session::Parts::look_around(SensorState& state, const Reach& reach) const {
    state.report.scans_outside += reach.tiles.empty();
    state.report.nearest_tile_m = std::min(state.report.nearest_tile_m, reach.nearest_m);
    for (const std::uint32_t tile : reach.tiles) state.seen[tile] = true;
}

void Session::scan(std::size_t sensor, const KnownLeg& leg, ScanSink& sink, const CancelToken& cancel) {
    SensorState& state = parts_->at(sensor);
    for (const Reach* reach : leg.reaches) parts_->look_around(state, *reach);
    ScanGroup group = parts_->prepare(state, leg.first, leg.times);
    state.report.passes += parts_->scanner.fire(group, {leg.tiles, leg.fits, leg.upcoming}, cancel);
    parts_->conclude(state, group, sink);
    for (Scan& scan : group.scans) parts_->spare.push_back(std::move(scan.returns));
}

std::vector<std::uint32_t> Session::Parts::ahead(const SensorState& state, const Box3d& path,
                                                 double time_s) const {
    // So far ahead tiles are loaded; some tenths of a second are enough to load one.
    constexpr double kAhead_s = 3;
    const Trajectory& way = state.sensor.way;
    const double to_s = std::min(time_s + state.sweep(time_s).seconds, way.end_s());
    const double from_s = std::max(to_s - kSpeed_s, way.begin_s());
    Box3d soon = path;
    if (to_s > from_s) {
        const Vec3d moved = way.at(to_s)->translation - way.at(from_s)->translation;
        const Vec3d further = (kAhead_s / (to_s - from_s)) * moved;
        soon.grow(path.min + further);
        soon.grow(path.max + further);
    }
    std::vector<std::pair<double, std::uint32_t>> by_distance;
    const auto entries = city.source().tiles();
    for (const std::uint32_t tile :
         reach_from(city.source(), soon, state.sensor.run.sensor.max_range_m).tiles)
        by_distance.emplace_back(distance_between(path, {entries[tile].min, entries[tile].max}), tile);
    std::sort(by_distance.begin(), by_distance.end());
    std::vector<std::uint32_t> tiles;
    std::uint64_t used = 0;
    for (const auto& [distance, tile] : by_distance) {
        used += city.bytes(tile);
        if (used > city.budget_bytes()) break;
        tiles.push_back(tile);
    }
    return tiles;
}

Scan Session::scan(std::size_t sensor, double time_s, const CancelToken& cancel) {
    Parts& parts = *parts_;
    SensorState& state = parts.at(sensor);
    const Trajectory& way = state.sensor.way;
    const double end_s = time_s + state.sweep(time_s).seconds;
    if (way.empty() || !(time_s >= way.begin_s()) || !(end_s <= way.end_s() + sweep_grace_s(way.end_s())))
        throw UsageError("a scan from " + format_number(time_s) + " to " + format_number(end_s) +
                         " s: the poses of its vehicle are known " +
                         (way.empty() ? std::string("for no time")
                                      : "from " + format_number(way.begin_s()) + " to " +
                                            format_number(way.end_s()) + " s") +
                         "; tell the session those of the whole sweep first");
    const Box3d path = path_during(state.sensor.run, way, time_s);
    const Reach reach = reach_from(parts.city.source(), path, state.sensor.run.sensor.max_range_m);
    parts.look_around(state, reach);
    std::uint64_t bytes = 0;
    for (const std::uint32_t tile : reach.tiles) bytes += parts.city.bytes(tile);
    ScanGroup group = parts.prepare(state, state.next_index, std::span(&time_s, 1));
    state.report.passes += parts.scanner.fire(
        group,
        {reach.tiles, bytes <= parts.city.budget_bytes(), [&] { return parts.ahead(state, path, time_s); }},
        cancel);
    NoSink nowhere;
    parts.conclude(state, group, nowhere);
    return std::move(group.scans[0]);
}

void Session::recycle(Scan&& scan) { parts_->spare.push_back(std::move(scan.returns)); }

void Session::cast(std::span<const trace::Ray> rays, double time_s, std::span<trace::Hit> hits,
                   const CancelToken& cancel) {
    if (rays.empty()) return;
    ScanParts met;
    if (parts_->traffic) {
        ScanReach reach{kEmptyBox, 0};
        float last_s = 0;
        for (const trace::Ray& ray : rays) {
            reach.path.grow(ray.origin);
            reach.range_m = std::max(reach.range_m, static_cast<double>(ray.t_max));
            last_s = std::max(last_s, ray.time_s);
        }
        met = parts_->traffic->during({time_s, static_cast<double>(last_s)}, reach);
    }
    parts_->city.closest(rays, hits, cancel, met.parts());
}

Clearance Session::clearance(const ClearanceBody& body, const Place& place, double limit_m) {
    if (!parts_->probe) throw UsageError("this session keeps no memory for questions about clearance");
    parts_->probe->set_limit(limit_m);
    return parts_->probe->at(body, place.world_from_body, place.time_s, place.vehicle);
}

SimulationReport Session::report(std::size_t sensor) const {
    const SensorState& state = parts_->at(sensor);
    SimulationReport report = state.report;
    report.tiles_in_reach =
        static_cast<std::uint64_t>(std::count(state.seen.begin(), state.seen.end(), true));
    report.cache = parts_->city.statistics();
    if (parts_->frames) {
        report.frames = parts_->frames->frames().frames();
        report.frames_loaded = parts_->frames->frames().frames_loaded();
        report.frames_resident = parts_->frames->most_resident();
    }
    report.digest = state.digest.finish();
    return report;
}

}  // namespace citysplat::sim
