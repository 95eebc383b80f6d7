#include "objects/snapshots.hpp"

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "core/parallel.hpp"
#include "objects/frames/snapshot_discs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

namespace citysplat::objects {

namespace fs = std::filesystem;

namespace {

fs::path index_of(const fs::path& folder) { return folder / "snapshots.json"; }
fs::path splats_of(const fs::path& folder) { return folder / "splats"; }

/// The dynamic points of one file by slot of time; a sweep has one slot.
struct Slot {
    double begin_s, end_s;
    std::vector<LatticePoint> places;
    std::vector<TilePoint> points;       ///< without their places
    std::vector<std::uint32_t> objects;  ///< of the points: (instance << 16 | label), or 0 without instance
    std::vector<SeenRay> rays;           ///< of the points, and of all other points of a sweep
};

class SlotCollector {
  public:
    SlotCollector(const SnapshotOptions& options, SnapshotReport& report, std::mutex& mutex)
        : options_(options), report_(report), mutex_(mutex) {}

    void add(const ScanPiece& piece) {
        const PointBatch& b = piece.points;
        if (b.label.empty()) return;
        std::uint64_t without = 0;
        for (std::size_t i = 0; i < b.size(); ++i) {
            if (!options_.labels.contains(b.label[i])) {
                if (piece.sweep && !b.sensor.empty()) passing_.push_back(ray_of(b, i, SeenRay::kStands));
                continue;
            }
            if (b.sensor.empty()) {
                ++without;
                continue;
            }
            const double number = piece.sweep ? 0 : std::floor(b.gps_time[i] / options_.period_s);
            auto [slot, is_new] = slots_.try_emplace(number);
            if (is_new && piece.sweep) slot->second = {piece.begin_s, piece.end_s, {}, {}, {}, {}};
            if (is_new && !piece.sweep)
                slot->second = {number * options_.period_s, (number + 1) * options_.period_s, {}, {}, {}, {}};
            slot->second.places.push_back({to_lattice(b.x[i]), to_lattice(b.y[i]), to_lattice(b.z[i])});
            slot->second.points.push_back(described(b, i));
            slot->second.objects.push_back(object_of(b, i));
            slot->second.rays.push_back(ray_of(b, i, object_of(b, i)));
        }
        if (piece.sweep && !slots_.empty()) {
            std::vector<SeenRay>& rays = slots_.begin()->second.rays;
            rays.insert(rays.end(), passing_.begin(), passing_.end());
        }
        passing_.clear();
        if (without == 0) return;
        const std::lock_guard lock(mutex_);
        report_.without_sensor += without;
    }
    const std::map<double, Slot>& slots() const { return slots_; }

  private:
    /// Instances are counted within their class in some data sets: both together name an object.
    static std::uint32_t object_of(const PointBatch& b, std::size_t i) {
        if (b.instance.empty() || b.instance[i] == 0) return 0;
        return std::uint32_t{b.instance[i]} << 16 | b.label[i];
    }
    static SeenRay ray_of(const PointBatch& b, std::size_t i, std::uint64_t thing) {
        const auto snapped = [](double v) { return to_metres(to_lattice(v)); };
        return {b.sensor[i], {snapped(b.x[i]), snapped(b.y[i]), snapped(b.z[i])}, thing};
    }
    static TilePoint described(const PointBatch& b, std::size_t i) {
        TilePoint p{};
        p.label = b.label[i];
        p.intensity = b.intensity.empty() ? std::uint16_t{0} : b.intensity[i];
        const Vec3d to = b.sensor[i] - Vec3d{b.x[i], b.y[i], b.z[i]};
        const auto steps = [](double m) {
            constexpr double kLimit_m = 511;
            return static_cast<std::int16_t>(
                std::floor(std::clamp(m, -kLimit_m, kLimit_m) * TilePoint::kSensorStepsPerMetre + 0.5));
        };
        p.sensor_dx = steps(to.x), p.sensor_dy = steps(to.y), p.sensor_dz = steps(to.z);
        return p;
    }

    const SnapshotOptions& options_;
    SnapshotReport& report_;
    std::mutex& mutex_;
    std::map<double, Slot> slots_;
    std::vector<SeenRay> passing_;
};

/// Whole metres at the lower corner of all points.
TileFrame frame_of(std::span<const LatticePoint> places) {
    LatticePoint low = places.front();
    for (const LatticePoint& p : places)
        low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    return {floor_div(low.x, kLatticePerMetre), floor_div(low.y, kLatticePerMetre),
            floor_div(low.z, kLatticePerMetre)};
}

/// The points of a slot by object, each sorted, none twice.
std::map<std::uint32_t, std::vector<TilePoint>> points_by_object(const Slot& slot, const TileFrame& frame,
                                                                 const std::string& source) {
    const LatticePoint origin = frame.origin();
    std::map<std::uint32_t, std::vector<TilePoint>> by_object;
    for (std::size_t i = 0; i < slot.points.size(); ++i) {
        TilePoint point = slot.points[i];
        const LatticePoint& at = slot.places[i];
        for (const std::int64_t away : {at.x - origin.x, at.y - origin.y, at.z - origin.z})
            if (away > kMaxSplatSteps)
                throw InputError(source +
                                 ": the dynamic points of one scan lie more than 1 km apart; "
                                 "--max-range leaves out those that cannot be right");
        point.x = static_cast<std::int32_t>(at.x - origin.x);
        point.y = static_cast<std::int32_t>(at.y - origin.y);
        point.z = static_cast<std::int32_t>(at.z - origin.z);
        by_object[slot.objects[i]].push_back(point);
    }
    for (auto& [object, points] : by_object) {
        std::sort(points.begin(), points.end());
        points.erase(std::unique(points.begin(), points.end()), points.end());
    }
    return by_object;
}

/// What is made of one slot.
struct Made {
    Snapshot snapshot;
    std::uint64_t objects_uncounted = 0;
};

Made made(const Slot& slot, const std::string& source, const SnapshotOptions& options,
          const SplatFolder& folder, const CancelToken& cancel) {
    constexpr std::size_t kMostObjects = 255;  // Splat::instance is a byte
    const TileFrame frame = frame_of(slot.places);
    Made result{{slot.begin_s, slot.end_s, source, 0, {}, {}}};
    Snapshot& snapshot = result.snapshot;
    std::vector<Splat> splats;
    const SeenRays rays(slot.rays);
    const DiscBounds bounds{options.least_radius_m, options.most_radius_m};
    for (const auto& [object, points] : points_by_object(slot, frame, source)) {
        const bool counted = object != 0 && snapshot.objects.size() < kMostObjects;
        result.objects_uncounted += object != 0 && !counted;
        if (counted) snapshot.objects.push_back(object);
        const auto number = static_cast<std::uint8_t>(counted ? snapshot.objects.size() : 0);
        cancel.check();
        for (Splat splat : discs_facing_sensor(points, frame.origin_m(), rays, object, bounds)) {
            splat.instance = number;
            splats.push_back(splat);
        }
        snapshot.points += points.size();
    }
    snapshot.splats = folder.write(SplatTile(frame, splats), snapshot.points);
    return result;
}

auto order_of(const Snapshot& s) { return std::tie(s.begin_s, s.end_s, s.source); }

/// A sweep exists until the next one begins, if that follows at once.
void close_gaps(std::vector<Snapshot>& frames) {
    std::sort(frames.begin(), frames.end(),
              [](const Snapshot& a, const Snapshot& b) { return order_of(a) < order_of(b); });
    for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
        const double lasts = frames[i].end_s - frames[i].begin_s;
        const double next = frames[i + 1].begin_s;
        // Sweeps of another sensor begin in the middle.
        if (next > frames[i].end_s - 0.2 * lasts && next < frames[i].end_s + 0.5 * lasts)
            frames[i].end_s = next;
    }
}

}  // namespace

void SnapshotOptions::validate() const {
    if (labels.empty())
        throw UsageError(
            "no class is dynamic: build the city with a class map that has some, or name classes "
            "with --class");
    if (!(period_s > 0) || !(least_radius_m > 0) || !(most_radius_m >= least_radius_m))
        throw UsageError("the period and the radii of snapshots must be above 0");
}

SnapshotReport make_snapshots(const fs::path& folder, const ScanInputs& scans, const SnapshotOptions& options,
                              const CancelToken& cancel, Progress& progress) {
    options.validate();
    create_directories_durably(folder);
    OutputFile index(index_of(folder));
    std::vector<Snapshot> frames;
    if (fs::exists(index_of(folder))) {
        const Snapshots before = Snapshots::open(folder);
        frames.assign(before.frames().begin(), before.frames().end());
        std::set<std::string> again;
        for (const InputSource& source : scans.sources) again.insert(source.path.string());
        std::erase_if(frames, [&](const Snapshot& s) { return again.contains(s.source); });
    }
    SnapshotReport report;
    std::mutex mutex;
    const SplatFolder splats(splats_of(folder));
    Progress::Stage stage(progress, "snapshots", scans.sources.size(), "files");
    parallel_tasks(scans.sources.size(), [&](std::size_t file) {
        cancel.check();
        SlotCollector collector(options, report, mutex);
        read_pieces(scans, file, cancel, [&](const ScanPiece& piece) { collector.add(piece); });
        for (const auto& [number, slot] : collector.slots()) {
            const auto [snapshot, objects_uncounted] =
                made(slot, scans.sources[file].path.string(), options, splats, cancel);
            const std::lock_guard lock(mutex);
            ++report.frames;
            report.objects_uncounted += objects_uncounted;
            report.points += snapshot.points;
            report.splats += snapshot.splats.splats;
            frames.push_back(snapshot);
        }
        stage.advance(1);
    });
    close_gaps(frames);
    index.writer().text(snapshot_index_text(frames));
    index.commit(true);
    return report;
}

Snapshots Snapshots::open(const fs::path& folder) {
    if (!fs::is_regular_file(index_of(folder)))
        throw ConfigError(folder.string() + ": there are no snapshots; citysplat snapshots makes them");
    Snapshots result;
    result.folder_ = folder;
    result.frames_ = parse_snapshot_index(read_text_file(index_of(folder)), index_of(folder).string());
    for (const Snapshot& s : result.frames_)
        result.longest_s_ = std::max(result.longest_s_, s.end_s - s.begin_s);
    return result;
}

std::vector<std::size_t> Snapshots::during(double begin_s, double end_s) const {
    const auto first = std::lower_bound(frames_.begin(), frames_.end(), begin_s - longest_s_,
                                        [](const Snapshot& s, double t) { return s.begin_s < t; });
    std::vector<std::size_t> result;
    for (auto s = first; s != frames_.end() && s->begin_s <= end_s; ++s)
        if (s->end_s > begin_s) result.push_back(static_cast<std::size_t>(s - frames_.begin()));
    return result;
}

SplatTile Snapshots::load(const Snapshot& frame) const {
    return SplatFolder(splats_of(folder_)).read(frame.splats, "snapshot of " + frame.source);
}

}  // namespace citysplat::objects
