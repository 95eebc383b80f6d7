#include "tiling/build/build_inputs.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "tiling/points/partition.hpp"
#include "tiling/points/point_archive.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

/// Room that an input needs on disk while it is read: its archive, and the spilled points of the worst case.
std::uint64_t disk_bytes_for(std::uint64_t points, std::uint64_t memory_bytes) {
    const std::uint64_t raw = points * sizeof(TilePoint);
    return raw / 2 + (raw > memory_bytes / 2 ? raw : 0);
}

constexpr std::size_t kMostQueued = 128;
/// Each holds its file, a file of labels and its archive open until all are read.
constexpr std::size_t kFilesPerInput = 3;

class InputResolver {
  public:
    InputResolver(const OpenCity& city, const BuildOptions& options, BuildReport& report,
                  const CancelToken& cancel, Progress& progress)
        : catalog_(city.catalog),
          store_(city.store),
          options_(options),
          cancel_(cancel),
          progress_(progress),
          report_(report) {}

    std::vector<InputRow> run() {
        list_inputs();
        if (options_.exactly_but) refuse_if_most_vanished();
        if (rows_.empty() && options_.remove.empty())
            throw UsageError("nothing to build from: the city has no inputs yet, name some");
        std::vector<const InputRow*> resolved;
        for (auto& [path, row] : rows_) {
            cancel_.check();
            if (resolve(row)) resolved.push_back(&row);
        }
        read_queue();
        std::vector<InputRow> rows;
        for (const InputRow* row : resolved) rows.push_back(*row);
        if (options_.exactly_but) forget_others(rows);
        drop_renamed(rows);
        report_.inputs = rows.size();
        return rows;
    }

  private:
    /// The inputs of the latest generation, changed by what the options say. New ones have no source yet.
    void list_inputs() {
        if (const auto latest = catalog_.latest())
            for (InputRow& row : catalog_.inputs(latest->id)) rows_.emplace(row.path, row);
        known_ = rows_.size();
        for (const fs::path& path : options_.remove)
            if (rows_.erase(input_name(path)) == 0)
                throw UsageError("--remove " + path.string() +
                                 ": the city has no such input; citysplat status -v "
                                 "lists them");
        for (auto& [name, row] : rows_) set_reading(row, options_.refresh(row.reading));
        for (const BuildInput& input : options_.inputs) {
            const std::string name = input_name(input.path);
            named_.insert(name);
            InputRow& row = rows_[name];
            row.path = name;
            set_reading(row, input.reading);
            if (!input.trajectory.empty()) {
                const std::string trajectory = input_name(input.trajectory);
                if (row.trajectory != trajectory) row.trajectory_stamp = {};
                row.trajectory = trajectory;
            }
        }
    }

    /// A file that is read in another way is another source.
    static void set_reading(InputRow& row, const std::string& reading) {
        if (row.reading != reading) row.stamp = {};
        row.reading = reading;
    }

    /// Brings one row up to date, or queues it for that. False when there is nothing to be had from it.
    bool resolve(InputRow& row) {
        const bool known = row.source != 0;
        if (!fs::exists(row.path)) {
            if (named_.contains(row.path)) stamp_of(row.path);  // throws the system's words
            gone_.insert(row.path);
            check_archive(row);
            return true;
        }
        const FileStamp stamp = stamp_of(row.path);
        const bool same_trajectory = row.trajectory.empty() || !fs::exists(row.trajectory) ||
                                     stamp_of(row.trajectory) == row.trajectory_stamp;
        if (known && stamp == row.stamp && same_trajectory && archive_is_there(row.source)) return true;
        const SourceTrajectory* trajectory = nullptr;
        if (!row.trajectory.empty()) {
            const LoadedTrajectory& loaded = load_trajectory(row);
            row.trajectory_stamp = loaded.stamp;
            trajectory = &loaded.trajectory;
        }
        row.stamp = stamp;
        row.source = find_by_content(row, trajectory);
        if (row.source == 0) {
            if (options_.dry_run) return predict(row);
            enqueue(row, trajectory);
        }
        return true;
    }

    bool archive_is_there(std::int64_t source) {
        const SourceRow row = catalog_.source(source);
        return store_.size_of(row.object) == row.object_bytes;
    }

    void check_archive(const InputRow& row) {
        if (archive_is_there(row.source)) return;
        if (const Hash128 object = catalog_.source(row.source).object; store_.intact(object))
            throw CorruptionError("the catalog does not fit the points of " + row.path + " (object " +
                                  object.hex() + "), which are whole; citysplat repair rebuilds the catalog");
        throw CorruptionError("the points of " + row.path +
                              " are missing from the city and the file itself is gone; put the file back, or "
                              "build with --remove " +
                              row.path);
    }

    /// With the stamp from before it was read: all inputs that use it say how old it is, however long reading
    /// them takes.
    struct LoadedTrajectory {
        FileStamp stamp;
        SourceTrajectory trajectory;
    };

    const LoadedTrajectory& load_trajectory(const InputRow& row) {
        const auto key = std::pair(row.trajectory, row.reading);
        const auto found = trajectories_.find(key);
        if (found != trajectories_.end()) return found->second;
        const FileStamp stamp = stamp_of(row.trajectory);
        SourceTrajectory loaded(options_.load_trajectory(row.trajectory, row.reading));
        return trajectories_.emplace(key, LoadedTrajectory{stamp, std::move(loaded)}).first->second;
    }

    /// Touched and renamed files are found by their bytes. A file of a size never seen is not read for it.
    std::int64_t find_by_content(const InputRow& row, const SourceTrajectory* trajectory) {
        if (!catalog_.has_content(row.stamp.size)) return 0;
        ++report_.inputs_hashed;
        const Hash128 content = hash_file(row.path, cancel_);
        const auto source = catalog_.find_source(source_identity(content, trajectory, row.reading));
        return source && archive_is_there(source->id) ? source->id : 0;
    }

    /// An input that has to be read.
    struct Queued {
        InputRow& row;
        const SourceTrajectory* trajectory;
        OpenedInput input;
        Partitioned result{};
        std::exception_ptr error{};
    };

    /// Small inputs are read side by side and become durable together: what a file of its own costs, an fsync
    /// and a transaction, is paid once for many. A large one is read by all threads, alone.
    void enqueue(InputRow& row, const SourceTrajectory* trajectory) {
        OpenedInput input(row.path, options_.open, row.reading);
        const std::uint64_t points = input.file->info().points;
        constexpr std::uint64_t kBytesPerPoint = sizeof(TilePoint) + SegmentEncoder::kBytesPerPoint;
        if (queue_.size() >= most_queued_ ||
            queued_points_ + points > options_.memory_bytes / 4 / kBytesPerPoint)
            read_queue();
        check_disk(row, queued_disk_bytes_ += disk_bytes_for(points, options_.memory_bytes));
        row.stamp = input.stamp;
        queued_points_ += points;
        queue_.push_back({row, trajectory, std::move(input)});
    }

    void check_disk(const InputRow& row, std::uint64_t needed) const {
        const std::uint64_t free = free_disk_bytes(store_.paths().root());
        if (needed <= free) return;
        throw ResourceError("reading " + row.path + " needs about " + format_bytes(needed) + " in " +
                            store_.paths().root().string() + ", which has " + format_bytes(free) +
                            "; free some space and run the same command again");
    }

    /// Reads what is queued. What could be read is kept even when something else could not; of several errors
    /// the first input's is thrown.
    void read_queue() {
        if (queue_.empty()) return;
        std::vector<Queued> queue = std::exchange(queue_, {});
        queued_disk_bytes_ = 0;
        {
            const std::string what = queue.size() == 1 ? fs::path(queue[0].row.path).filename().string()
                                                       : std::to_string(queue.size()) + " inputs";
            Progress::Stage stage(progress_, "read " + what, std::exchange(queued_points_, 0), "pts");
            parallel_tasks(queue.size(), [&](std::size_t i) { isolated([&] { read(queue[i], stage); }); });
        }
        store_.flush();
        std::vector<CitySource> sources;
        for (const Queued& queued : queue)
            if (!queued.error) sources.push_back(queued.result.source);
        std::vector<std::int64_t> ids;
        if (!sources.empty()) ids = catalog_.add_sources(sources);
        auto id = ids.begin();
        std::exception_ptr error;
        for (Queued& queued : queue) {
            if (queued.error) {
                if (!error) error = queued.error;
                continue;
            }
            queued.row.source = *id++;
            report(queued);
        }
        if (error) std::rethrow_exception(error);
    }

    void read(Queued& queued, Progress::Stage& stage) const {
        try {
            cancel_.check();
            queued.result =
                partition({queued.input, queued.trajectory, options_.memory_bytes}, store_, cancel_, stage);
        } catch (...) {
            queued.error = std::current_exception();
        }
    }

    void report(const Queued& queued) {
        ++report_.inputs_read;
        report_.spilled_bytes += queued.result.spilled_bytes;
        for (std::size_t i = 0; i < report_.masked.size(); ++i) report_.masked[i] += queued.result.masked[i];
        const PointCounts& counts = queued.result.source.row.counts;
        if (queued.trajectory && counts.without_sensor > 0)
            warn_of_times(queued.row, *queued.trajectory, *queued.input.file, counts);
    }

    /// Points that the trajectory does not cover are kept; their normals cannot be oriented to the sensor.
    void warn_of_times(const InputRow& row, const SourceTrajectory& trajectory, const PointFile& file,
                       const PointCounts& counts) {
        std::string of_cloud = "the cloud has no GPS times";
        if (file.info().has_gps_time && file.block_count() > 0) {
            PointBatch first, last;
            file.read_block(0, first);
            file.read_block(file.block_count() - 1, last);
            if (!first.gps_time.empty() && !last.gps_time.empty())
                of_cloud = "the cloud begins at " + std::to_string(first.gps_time.front()) +
                           " s and ends at " + std::to_string(last.gps_time.back()) + " s";
        }
        report_.warnings.push_back(
            row.path + ": " + format_count(counts.without_sensor) + " of " + format_count(counts.accepted()) +
            " points have no sensor position: " + of_cloud + ", " + row.trajectory + " covers " +
            std::to_string(trajectory.path.begin_s()) + " to " + std::to_string(trajectory.path.end_s()) +
            " s; look at --time-offset, --gps-week and --adjusted-gps-time");
    }

    bool predict(const InputRow& row) {
        const auto file = options_.open(row.path, row.reading);
        ++report_.inputs_read;
        report_.points.read += file->info().points;
        report_.predicted_disk_bytes += disk_bytes_for(file->info().points, options_.memory_bytes);
        return false;
    }

    /// Inputs of the city that are neither named nor have the content of one that is.
    std::vector<std::string> others(const std::vector<InputRow>& rows) const {
        std::set<std::int64_t> named_sources;
        for (const InputRow& row : rows)
            if (named_.contains(row.path)) named_sources.insert(row.source);
        std::vector<std::string> paths;
        for (const InputRow& row : rows)
            if (!named_.contains(row.path) && !named_sources.contains(row.source)) paths.push_back(row.path);
        return paths;
    }

    void refuse(const std::vector<std::string>& vanished) const {
        constexpr std::size_t kShown = 10;
        std::string text;
        for (std::size_t i = 0; i < std::min(kShown, vanished.size()); ++i) text += "\n  " + vanished[i];
        if (vanished.size() > kShown) text += "\n  and " + format_count(vanished.size() - kShown) + " others";
        throw ConfigError(format_count(vanished.size()) + " of the " + format_count(known_) +
                          " inputs of the city are no longer among those given, more than may vanish at "
                          "once: is a disk not mounted? Nothing was changed; --most-gone lets them go:" +
                          text);
    }

    bool too_many(std::size_t vanished) const {
        return static_cast<double>(vanished) > *options_.exactly_but * static_cast<double>(known_);
    }

    /// Before anything is read, by names alone: when hardly a known input is named and there is nothing new
    /// that could be the old under another name.
    void refuse_if_most_vanished() const {
        std::vector<std::string> missing;
        std::size_t fresh = 0;
        for (const auto& [path, row] : rows_) {
            if (!named_.contains(path)) missing.push_back(path);
            fresh += row.source == 0;
        }
        if (missing.size() > fresh && too_many(missing.size() - fresh)) refuse(missing);
    }

    void forget_others(std::vector<InputRow>& rows) {
        report_.inputs_forgotten = others(rows);
        if (too_many(report_.inputs_forgotten.size())) refuse(report_.inputs_forgotten);
        std::erase_if(rows, [this](const InputRow& row) { return !named_.contains(row.path); });
        for (const std::string& path : report_.inputs_forgotten)
            report_.warnings.push_back(path + " is no longer among the inputs; its points leave the city");
    }

    /// A file that is gone while another input has its content has been renamed; otherwise its points stay.
    void drop_renamed(std::vector<InputRow>& rows) {
        std::set<std::int64_t> present;
        for (const InputRow& row : rows)
            if (!gone_.contains(row.path)) present.insert(row.source);
        std::erase_if(rows, [&](const InputRow& row) {
            return gone_.contains(row.path) && present.contains(row.source);
        });
        for (const InputRow& row : rows)
            if (gone_.contains(row.path))
                report_.warnings.push_back(row.path +
                                           " is gone; its points stay in the city (--remove takes them out)");
    }

    Catalog& catalog_;
    ObjectStore& store_;
    const BuildOptions& options_;
    const CancelToken& cancel_;
    Progress& progress_;
    BuildReport& report_;
    std::map<std::string, InputRow> rows_;
    std::set<std::string> named_, gone_;
    std::size_t known_ = 0;  ///< inputs that the city has
    std::map<std::pair<std::string, std::string>, LoadedTrajectory> trajectories_;
    const std::size_t most_queued_ =
        std::clamp<std::size_t>(descriptor_budget() / kFilesPerInput, 1, kMostQueued);
    std::vector<Queued> queue_;
    std::uint64_t queued_points_ = 0, queued_disk_bytes_ = 0;
};

}  // namespace

std::string input_name(const fs::path& path) { return fs::weakly_canonical(fs::absolute(path)).string(); }

std::vector<InputRow> resolve_inputs(const OpenCity& city, const BuildOptions& options, BuildReport& report,
                                     const CancelToken& cancel, Progress& progress) {
    return InputResolver(city, options, report, cancel, progress).run();
}

}  // namespace citysplat::tiling
