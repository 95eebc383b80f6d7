/// How good the model is, method by method: splats, distances, coverage and ghosts on synthetic drives, as in
/// Tables 1-4 of the AdaSplats paper.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "citysplat/truth_metrics.hpp"
#include "compare/compare.hpp"
#include "datasets/synth/synth.hpp"
#include "io/input/input_list.hpp"
#include "io/input/open_point_file.hpp"
#include "model/class_map.hpp"
#include "sim/drive/scenario.hpp"
#include "sim/output/scan_writer.hpp"
#include "splat/splat_processor.hpp"
#include "tiling/build/builder.hpp"
#include "tiling/store/city_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace citysplat;
namespace fs = std::filesystem;

namespace {

struct Row {
    std::string name;
    splat::SplatParams params;
};

std::vector<Row> rows(bool with_paper) {
    using splat::Method;
    using splat::SplatParams;
    const auto without_resampling = [](SplatParams params) {
        params.resample = false;
        return params;
    };
    std::vector<Row> result{{"basic", SplatParams::of(Method::basic)},
                            {"descriptors", SplatParams::of(Method::descriptors)},
                            {"adaptive, 1 generation", without_resampling(SplatParams::of(Method::adaptive))},
                            {"adaptive", SplatParams::of(Method::adaptive)}};
    if (with_paper) {
        result.push_back({"descriptors, paper", SplatParams::paper(Method::descriptors)});
        result.push_back(
            {"adaptive, paper, 1 gen.", without_resampling(SplatParams::paper(Method::adaptive))});
        result.push_back({"adaptive, paper", SplatParams::paper(Method::adaptive)});
    }
    return result;
}

/// Returns by beam.
using Beams = std::vector<std::uint64_t>;

void add(Beams& to, const Beams& more) {
    to.resize(std::max(to.size(), more.size()));
    for (std::size_t beam = 0; beam < more.size(); ++beam) to[beam] += more[beam];
}

/// Counts the returns of each beam as scans go by.
class BeamCounter final : public sim::ScanSink {
  public:
    BeamCounter(sim::ScanSink& next, std::size_t beams) : next_(next), returns(beams) {}
    void consume(const sim::Scan& scan) override { next_.consume(scan); }
    void conclude(const sim::Scan& scan) override {
        for (const sim::Return& r : scan.returns) returns[r.beam] += r.status == sim::RayStatus::hit;
        next_.conclude(scan);
    }

  private:
    sim::ScanSink& next_;

  public:
    Beams returns;
};

/// What one model of one drive is worth; sums over drives.
struct Score {
    std::uint64_t points = 0, splats = 0;
    double seconds = 0;
    compare::DistancesByClass c2c, own_c2c, truth;
    cli::CoverageByClass coverage;
    Beams own, survey;  ///< returns of the survey's own scanner from the model, and in the survey

    void add(const Score& o) {
        ::add(own, o.own), ::add(survey, o.survey);
        points += o.points, splats += o.splats, seconds += o.seconds;
        c2c.add(o.c2c), own_c2c.add(o.own_c2c), truth.add(o.truth);
        coverage.all.add(o.coverage.all);
        for (const auto& [label, part] : o.coverage.classes) coverage.classes[label].add(part);
    }
};

class QualityBench {
  public:
    QualityBench(fs::path work, double length_m) : work_(std::move(work)), length_m_(length_m) {}

    void make_drive(std::uint64_t seed) {
        synth::SynthOptions options;
        options.seed = seed, options.length_m = length_m_;
        // Its name says what it is: a directory that was kept may hold drives of another length.
        drive_ = work_ / ("drive" + std::to_string(seed) + "_" + bench::three_digits(length_m_) + "m");
        if (!fs::exists(drive_ / "truth.json")) synth::write_drive(drive_, options, quiet_, CancelToken());
        truth_.emplace(synth::Truth::load(drive_));
        clouds_.clear();
        std::vector<std::string> names;
        for (const auto& file : truth_->file().scanners[0].files)
            names.push_back((drive_ / file.name).string());
        clouds_ = expand_inputs(names);
        survey_ = count_survey();
    }

    Score run(const splat::SplatParams& params) {
        const fs::path city = work_ / "city", scans = work_ / "scans";
        fs::remove_all(city);
        Score score = build(city, params);
        const tiling::CityReader reader(city);
        const auto tracer = trace::make_group_tracer();
        const auto hdl64 = simulate(reader, *tracer, scans, {"hdl-64e", {{1, 1, -1}, {}}, 1});
        score.c2c = distance_to_drive(hdl64);
        score.truth = cli::distance_to_truth(hdl64, *truth_, CancelToken(), quiet_);
        const auto own = simulate(reader, *tracer, scans, {own_sensor(), own_mount(), 10}, &score.own);
        score.survey = survey_;
        score.own_c2c = distance_to_drive(own);
        score.coverage = cli::coverage({reader, *tracer, clouds_, *truth_}, 500'000, std::uint64_t{2} << 30,
                                       CancelToken(), quiet_);
        return score;
    }

  private:
    Score build(const fs::path& city, const splat::SplatParams& params) {
        splat::SplatProcessor processor(params, classes_);
        tiling::BuildOptions options;
        for (const InputSource& cloud : clouds_)
            options.inputs.push_back({cloud.path, drive_ / "trajectory.tum", {}});
        options.open = [](const fs::path& path, const std::string&) { return open_point_file(path); };
        options.load_trajectory = [](const fs::path& path, const std::string&) {
            return Trajectory::read_tum(path);
        };
        options.classes = classes_.to_toml();
        options.parameters = "{}";
        options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        tiling::BuildReport report;
        Score score;
        score.seconds = bench::measure([&] {
                            report = tiling::build_city(city, processor, options, CancelToken(), quiet_);
                        }).wall_s;
        score.points = report.points.kept, score.splats = report.splats;
        return score;
    }

    compare::DistancesByClass distance_to_drive(const std::vector<InputSource>& scans) {
        const auto openers = [](const std::vector<InputSource>& sources) {
            std::vector<compare::OpenCloud> result;
            for (const InputSource& source : sources) result.push_back([source] { return source.open(); });
            return result;
        };
        const auto simulated = openers(scans), reference = openers(clouds_);
        return compare::cloud_to_cloud({simulated, reference}, work_, CancelToken(), quiet_);
    }

    std::string own_sensor() const { return (drive_ / truth_->file().scanners[0].sensor).string(); }
    static Pose own_mount() { return sim::mount_from({}, {0, -45, 0}, "mount"); }

    /// The beam of a return is the one whose elevation is nearest.
    Beams count_survey() const {
        const auto elevations = truth_->file().scanner().elevations_rad;
        const Trajectory trajectory = Trajectory::read_tum(drive_ / "trajectory.tum");
        Beams returns(elevations.size());
        PointBatch batch;
        for (const InputSource& cloud : clouds_) {
            const auto file = cloud.open();
            for (std::size_t block = 0; block < file->block_count(); ++block) {
                file->read_block(block, batch);
                for (std::size_t i = 0; i < batch.size(); ++i) {
                    const Pose sensor = trajectory.at(batch.gps_time[i]).value() * own_mount();
                    const Vec3d to = Vec3d{batch.x[i], batch.y[i], batch.z[i]} - sensor.translation;
                    const double up = dot(normalized(to), rotate(sensor.rotation, Vec3d{0, 0, 1}));
                    const double elevation = std::asin(std::clamp(up, -1.0, 1.0));
                    const auto nearest = std::ranges::min_element(
                        elevations, {}, [&](double e) { return std::fabs(e - elevation); });
                    ++returns[static_cast<std::size_t>(nearest - elevations.begin())];
                }
            }
        }
        return returns;
    }

    struct Setup {
        std::string sensor;
        Pose mount;
        double rate_hz;
    };
    /// Scans without noise: the hits themselves.
    std::vector<InputSource> simulate(const TileSource& city, const trace::Tracer& tracer,
                                      const fs::path& out, const Setup& setup, Beams* returns = nullptr) {
        fs::remove_all(out);
        sim::SensorRun run;
        run.sensor = sim::Sensor::load(setup.sensor);
        run.noise = false;
        run.body_from_sensor = setup.mount;
        sim::SimulationOptions options;
        options.schedule.rate_hz = setup.rate_hz;
        sim::ScanWriterOptions writing;
        writing.directory = out, writing.format = "las";
        sim::ScanWriter writer(writing);
        BeamCounter counter(writer, 256);
        const Trajectory trajectory = Trajectory::read_tum(drive_ / "trajectory.tum");
        sim::simulate({city, tracer, run, trajectory, options}, counter, CancelToken(), quiet_);
        writer.finish();
        if (returns) *returns = counter.returns;
        return expand_inputs(std::vector<std::string>{(out / "scans").string()});
    }

    fs::path work_;
    double length_m_;
    fs::path drive_;
    std::optional<synth::Truth> truth_;
    std::vector<InputSource> clouds_;
    Beams survey_;
    const ClassMap classes_ = ClassMap::load("synthetic");
    Progress quiet_;
};

constexpr std::uint16_t kBuilding = 1, kFence = 2, kPole = 5, kRoad = 7, kSidewalk = 8, kSign = 12;

using Scores = std::vector<std::pair<std::string, Score>>;

void print_distances(const Scores& scores) {
    const auto cm = [](const compare::DistancesByClass& d, std::uint16_t label) {
        const auto found = d.classes.find(label);
        return found == d.classes.end() ? 0.0 : 100 * found->second.mean_m();
    };
    std::printf("\n%-24s %8s %7s %8s %9s %9s | %7s %7s %7s | %9s %8s\n", "", "splats", "per pt", "seconds",
                "C2C cm", "own C2C", "fences", "poles", "signs", "truth cm", "ghosts %");
    for (const auto& [name, s] : scores)
        std::printf("%-24s %7.2fM %7.3f %8.1f %9.2f %9.2f | %7.2f %7.2f %7.2f | %9.2f %8.3f\n", name.c_str(),
                    static_cast<double>(s.splats) * 1e-6,
                    bench::ratio(static_cast<double>(s.splats), static_cast<double>(s.points)), s.seconds,
                    100 * s.c2c.all.mean_m(), 100 * s.own_c2c.all.mean_m(), cm(s.c2c, kFence),
                    cm(s.c2c, kPole), cm(s.c2c, kSign), 100 * s.truth.all.mean_m(),
                    100 * s.truth.all.share_above(cli::kGhost_m));
}

void print_coverage(const Scores& scores) {
    std::printf("\ncoverage %% (met first)   %15s %15s %15s %15s %15s %15s\n", "road", "sidewalk", "building",
                "pole", "sign", "fence");
    for (const auto& [name, s] : scores) {
        std::printf("%-24s", name.c_str());
        for (const std::uint16_t label : {kRoad, kSidewalk, kBuilding, kPole, kSign, kFence}) {
            const auto found = s.coverage.classes.find(label);
            const cli::Coverage c = found == s.coverage.classes.end() ? cli::Coverage{} : found->second;
            std::printf("  %6.2f (%5.2f)", 100 * c.share(c.covered), 100 * c.share(c.met));
        }
        double least = INFINITY, most = 0;
        for (std::size_t beam = 0; beam < s.survey.size(); ++beam)
            if (s.survey[beam] > 0) {
                const double share = static_cast<double>(s.own[beam]) / static_cast<double>(s.survey[beam]);
                least = std::min(least, share), most = std::max(most, share);
            }
        std::printf("  own scanner: %.2f to %.2f %% of the survey's returns by beam", 100 * least,
                    100 * most);
        std::printf("  %.1f %% of returns seen\n",
                    100 * bench::ratio(static_cast<double>(s.coverage.all.seen),
                                       static_cast<double>(s.coverage.all.rays)));
    }
}

/// What we build by default, against the plain method.
void report_rows(const Scores& scores, bench::Report& report) {
    const auto score_of = [&](const std::string& name) -> const Score& {
        return std::ranges::find(scores, name, &Scores::value_type::first)->second;
    };
    const Score &basic = score_of("basic"), &adaptive = score_of("adaptive");
    const auto row = [&](const std::string& what, const std::string& unit, const auto& figure) {
        const bool depends_on_machine = false;
        report.row({what, figure(adaptive), unit,
                    bench::Ratio{bench::ratio(figure(adaptive), figure(basic)), "basic"},
                    depends_on_machine});
    };
    row("model, adaptive: size", "splats a point", [](const Score& s) {
        return bench::ratio(static_cast<double>(s.splats), static_cast<double>(s.points));
    });
    row("model, adaptive: hits to the true surface", "cm",
        [](const Score& s) { return 100 * s.truth.all.mean_m(); });
    row("model, adaptive: ghosts", "% of hits",
        [](const Score& s) { return 100 * s.truth.all.share_above(cli::kGhost_m); });
}

struct Arguments {
    double length_m = 80;
    std::uint64_t seeds = 3;
    bool with_paper = false;
    std::string keep;
};

void run(const Arguments& arguments, bench::Report& report) {
    std::optional<bench::ScratchDirectory> scratch;
    if (arguments.keep.empty()) scratch.emplace();
    const fs::path work = scratch ? scratch->path() : fs::path(arguments.keep);
    fs::create_directories(work);
    const auto models = rows(arguments.with_paper);
    Scores scores;
    for (const Row& model : models) scores.emplace_back(model.name, Score{});
    QualityBench quality(work, arguments.length_m);
    for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed) {
        quality.make_drive(seed);
        for (std::size_t i = 0; i < models.size(); ++i) {
            scores[i].second.add(quality.run(models[i].params));
            std::fprintf(stderr, "seed %d: %s done\n", static_cast<int>(seed), models[i].name.c_str());
        }
    }
    report.text(std::to_string(arguments.seeds) + " drives of " + bench::three_digits(arguments.length_m) +
                " m; HDL-64E at (1, 1, -1) m without noise; own: the survey's own scanner");
    print_distances(scores);
    print_coverage(scores);
    report.text("");
    report_rows(scores, report);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_quality",
         "How good the model is, method by method: splats, distances, coverage and ghosts on synthetic "
         "drives.",
         [&](bench::Flags& flags) {
             flags.number("--length", arguments.length_m, {10, 10'000, "m"}, "length of each drive");
             flags.count("--seeds", arguments.seeds, 1000, "drives");
             flags.flag("--paper", arguments.with_paper, "also with the paper's parameters");
             flags.text("--keep", arguments.keep, "work in this directory and leave everything there");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
