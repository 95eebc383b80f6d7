#include "datasets/synth/synth.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/parallel.hpp"
#include "io/write/point_sink.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <sstream>
#include <system_error>

namespace citysplat::synth {

namespace fs = std::filesystem;

void SynthOptions::validate() const {
    const auto require = [](bool holds, const char* message) {
        if (!holds) throw UsageError(message);
    };
    require(length_m >= 5 && length_m <= 1e6, "--length must be between 5 m and 1000 km");
    require(points_per_metre >= 10 && points_per_metre <= 1e7,
            "--points-per-metre must be between 10 and 10 million");
    require(noise_m >= 0 && noise_m <= 1, "--noise must be between 0 and 1 m");
    require(localisation_m >= 0 && localisation_m <= 1, "--localisation must be between 0 and 1 m");
    require(range_m >= 5 && range_m <= 200, "--range must be between 5 and 200 m");
    require(files >= 0 && files <= 10000, "--files must be between 1 and 10000");
    for (const double v : {origin_m.x, origin_m.y, origin_m.z})
        require(std::fabs(v) <= 5e7 && v == std::floor(v), "--origin must be whole metres within 50 000 km");
}

double calibrate_columns_per_s(const Drive& drive, const Actors& actors, const Scanner& scanner,
                               double points, BlockCache& cache) {
    constexpr double kTrial_s = 60;
    constexpr std::int64_t kTrials = 48, kEvery = 16;
    SurveyParams params;
    params.columns_per_s = 20000;
    const Survey trial(drive, actors, scanner, params, {0, 0, 0});
    const auto usable = static_cast<std::int64_t>(static_cast<double>(trial.chunk_count()) *
                                                  std::min(1.0, kTrial_s / drive.duration_s()));
    const std::int64_t step = std::max<std::int64_t>(1, usable / kTrials);
    PointBatch batch;
    std::int64_t rays = 0, returns = 0;
    for (std::int64_t chunk = 0; chunk < std::max<std::int64_t>(usable, 1); chunk += step) {
        const auto around = trial.surroundings(chunk);
        rays += trial.fire(chunk, *cache.scene(around.centre, around.cells), batch, kEvery);
        returns += static_cast<std::int64_t>(batch.size());
    }
    const double share = static_cast<double>(std::max<std::int64_t>(returns, 1)) / static_cast<double>(rays);
    const double beams = static_cast<double>(scanner.elevations_rad.size());
    const double rate = points / (drive.duration_s() * beams * share);
    const double per_turn = std::floor(rate / scanner.revolutions_per_s + 0.5);
    return scanner.revolutions_per_s * std::max(1.0, per_turn);
}

namespace {

/// The names of all files of a drive, one a line, in a file of their own until truth.json is there. What a
/// stopped run left behind is thereby known to be a drive: the same command clears it and begins anew.
class BegunFiles {
  public:
    static constexpr const char* kName = "unfinished_drive.txt";

    /// Makes room for a drive without ever deleting what is not one.
    explicit BegunFiles(fs::path directory) : directory_(std::move(directory)) {
        std::error_code ec;
        fs::create_directories(directory_, ec);
        if (ec) throw IoError("cannot make directory " + directory_.string() + ": " + ec.message());
        const std::vector<std::string> old = earlier_drive();
        file_ = File(directory_ / kName, File::Mode::truncate);
        for (const std::string& name : old) add(name);
        fs::remove(directory_ / "truth.json");  // first: from here on the old drive is incomplete
        for (const std::string& name : old) fs::remove(directory_ / name);
    }
    /// Before the file is made. Returns its path.
    fs::path add(const std::string& name) {
        const std::string line = name + "\n";
        file_.append(std::as_bytes(std::span(line)));
        return directory_ / name;
    }
    /// All are complete.
    void finish() {
        file_.close();
        fs::remove(directory_ / kName);
    }

  private:
    std::vector<std::string> earlier_drive() const {
        std::vector<std::string> names;
        const auto keep = [&](const std::string& name) {
            if (const auto inside = fs::path(name).filename(); !inside.empty()) names.push_back(inside);
        };
        if (const fs::path list = directory_ / kName; fs::exists(list)) {
            std::istringstream lines(read_text_file(list));
            for (std::string name; std::getline(lines, name);) keep(name);
        }
        if (const fs::path truth = directory_ / "truth.json"; fs::exists(truth)) {
            for (const ScannerRecord& scanner : TruthFile::read(truth).scanners) {
                keep(scanner.trajectory);
                keep(scanner.sensor);
                for (const CloudFile& file : scanner.files) keep(file.name);
            }
        } else if (!fs::exists(directory_ / kName) && !fs::is_empty(directory_)) {
            throw UsageError(directory_.string() +
                             " is not empty and holds no synthetic drive (no truth.json); give a new "
                             "directory");
        }
        return names;
    }

    fs::path directory_;
    File file_;
};

std::string numbered(const std::string& stem, int index, const std::string& extension) {
    std::string digits = std::to_string(index);
    if (digits.size() < 3) digits.insert(0, 3 - digits.size(), '0');
    return stem + "_" + digits + extension;
}

struct Job {
    std::int64_t chunk = 0;
    std::shared_ptr<const CityScene> scene;
    PointBatch points;
};

/// Fires all chunks of a survey: scenes are made in order, chunks fired in parallel, points handed to `take`
/// in order. The number of chunks in flight bounds the memory. The first failure stops the input and is
/// rethrown after the end.
template <class Take>
void run_survey(const Survey& survey, BlockCache& cache, const CancelToken& cancel, Take&& take) {
    std::int64_t next = 0;
    std::exception_ptr failure;
    std::atomic<bool> failed{false};
    const auto guarded = [&](auto&& work) {
        if (failed) return;
        try {
            work();
        } catch (...) {
            if (!failed.exchange(true)) failure = std::current_exception();
        }
    };
    const auto make = [&] {
        std::unique_ptr<Job> job;
        if (next < survey.chunk_count() && !cancel.requested())
            guarded([&] {
                job = std::make_unique<Job>();
                job->chunk = next++;
                const auto around = survey.surroundings(job->chunk);
                job->scene = cache.scene(around.centre, around.cells);
            });
        if (failed) job.reset();
        return job;
    };
    const auto fire = [&](Job& job) {
        guarded([&] { survey.fire(job.chunk, *job.scene, job.points); });
        job.scene.reset();
    };
    const auto hand_on = [&](Job& job) { guarded([&] { take(job.chunk, job.points); }); };
    const auto in_flight = static_cast<std::size_t>(3 * tbb::this_task_arena::max_concurrency());
    parallel_pipeline<Job>(in_flight, make, fire, hand_on);
    if (failure) std::rethrow_exception(failure);
    cancel.check();
}

/// Writes the points of a survey to its files; each file gets an equal share of the chunks.
class CloudWriter {
  public:
    CloudWriter(BegunFiles& begun, const SynthOptions& options, std::string stem, int files,
                std::int64_t chunks)
        : begun_(begun), options_(options), stem_(std::move(stem)), files_(files), chunks_(chunks) {}

    void take(std::int64_t chunk, const PointBatch& points) {
        const auto wanted = static_cast<std::size_t>(chunk * files_ / chunks_);
        while (written_.size() <= wanted) open_next();
        if (points.size() > 0) sink_->write(points);
    }
    std::vector<CloudFile> finish() {
        while (written_.size() < static_cast<std::size_t>(files_)) open_next();
        close();
        return std::move(written_);
    }

  private:
    void open_next() {
        close();
        const bool las = options_.format == CloudFormat::las;
        written_.push_back({numbered(stem_, static_cast<int>(written_.size()), las ? ".las" : ".ply"), 0});
        SinkOptions sink;
        sink.offset_m = options_.origin_m;
        const fs::path path = begun_.add(written_.back().name);
        sink_ = las ? create_las(path, sink) : create_ply(path, sink);
    }
    void close() {
        if (!sink_) return;
        sink_->finish();
        written_.back().points = sink_->points();
        sink_.reset();
    }

    BegunFiles& begun_;
    const SynthOptions& options_;
    std::string stem_;
    int files_;
    std::int64_t chunks_;
    std::unique_ptr<PointSink> sink_;
    std::vector<CloudFile> written_;
};

void write_trajectory(const Drive& drive, Vec3d origin, const fs::path& path) {
    TumWriter out(path);
    for (std::int64_t k = 0; k < drive.pose_count(); ++k) {
        Pose pose = drive.recorded_pose(k);
        pose.translation = pose.translation + origin;
        out.write({Drive::kBegin_s + Drive::pose_time_s(k), pose});
    }
    out.finish();
}

}  // namespace

bool holds_drive(const fs::path& directory) {
    std::error_code ec;
    return fs::exists(directory / "truth.json", ec) && !fs::exists(directory / BegunFiles::kName, ec);
}

TruthFile write_drive(const fs::path& directory, const SynthOptions& options, Progress& progress,
                      const CancelToken& cancel) {
    options.validate();
    BegunFiles begun(directory);
    TruthFile truth{options, 0, {}};
    const Drive drive(truth.drive_params());
    const Actors actors(options.seed);
    BlockCache cache(options.seed);

    const auto survey_with = [&](const Scanner& scanner, const std::string& stem, double points) {
        ScannerRecord record{scanner.name,
                             "trajectory.tum",
                             scanner.name + ".toml",
                             calibrate_columns_per_s(drive, actors, scanner, points, cache),
                             {}};
        const Survey survey(drive, actors, scanner, truth.survey_params(record.columns_per_s),
                            options.origin_m);
        const int files = options.files > 0 ? options.files : std::max(2, static_cast<int>(points / 1e7));
        CloudWriter writer(begun, options, stem, files, survey.chunk_count());
        Progress::Stage stage(progress, "survey", static_cast<std::uint64_t>(points), "points");
        run_survey(survey, cache, cancel, [&](std::int64_t chunk, const PointBatch& batch) {
            writer.take(chunk, batch);
            truth.points += batch.size();
            stage.advance(batch.size());
        });
        record.files = writer.finish();
        const std::string sensor = sensor_toml(scanner, record.columns_per_s, options.noise_m);
        write_file_atomically(begun.add(record.sensor), std::as_bytes(std::span(sensor)));
        truth.scanners.push_back(std::move(record));
    };
    const double points = options.length_m * options.points_per_metre;
    survey_with(truth.scanner(), "cloud", points);
    if (options.profile) survey_with(truth.profile_scanner(), "profile", 0.3 * points);
    write_trajectory(drive, options.origin_m, begun.add("trajectory.tum"));
    if (options.actors) {
        create_directories_durably(directory / "actors");
        write_actor_files(actors, drive, options.origin_m, directory / "actors");
    }
    truth.write(directory / "truth.json");
    begun.finish();
    return truth;
}

}  // namespace citysplat::synth
