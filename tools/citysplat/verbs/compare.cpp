#include "compare/compare.hpp"

#include "citysplat/cast_flags.hpp"
#include "citysplat/comparing/distance_report.hpp"
#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/generations/product_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/places/region_flags.hpp"
#include "citysplat/ray_report.hpp"
#include "citysplat/truth_metrics.hpp"
#include "citysplat/verbs.hpp"
#include "compare/distance_file.hpp"
#include "compare/range_image.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "io/input/input_list.hpp"
#include "objects/stored/stored_folders.hpp"
#include "sim/drive/prepared_traffic.hpp"
#include "sim/recorded/learned_rays.hpp"
#include "sim/recorded/lesson.hpp"
#include "sim/recorded/ray_caster.hpp"
#include "sim/recorded/recorded_drive.hpp"
#include "sim/traffic/played_frames.hpp"
#include "tiling/care/own_files.hpp"
#include "tiling/points/city_cloud.hpp"
#include "tiling/store/city_paths.hpp"
#include "tiling/store/city_reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct CompareFlags {
    std::vector<std::string> simulated, reference;
    std::string truth, city, classes, distances, resident = "2G";
    std::uint64_t coverage_rays = 1000000;

    std::vector<std::string> rays;
    std::string trajectory;
    InputFlags reading;
    TrajectoryFlags trajectory_reading;
    sim::CastOptions cast;
    bool no_empty = false, per_tile = false;
    GenerationFlag generation;
    ProductFlag product;
    RegionFlags region;
    std::string sensor, model, picture, snapshots;
    bool model_beside = false;
    std::optional<double> most_lost_percent;
    std::size_t picture_scan = 0;             ///< counted from 1; 0: the middle one
    std::vector<const CLI::Option*> of_rays;  ///< what has a meaning with --rays alone
};

/// The clouds that truth.json names, in its directory.
std::vector<InputSource> clouds_of(const synth::Truth& truth, const std::filesystem::path& path) {
    const auto directory = std::filesystem::is_directory(path) ? path : path.parent_path();
    std::vector<std::string> names;
    if (!truth.file().scanners.empty())
        for (const auto& file : truth.file().scanners[0].files)
            names.push_back((directory / file.name).string());
    return expand_inputs(names);
}

std::vector<compare::OpenCloud> openers_of(const std::vector<InputSource>& sources) {
    std::vector<compare::OpenCloud> clouds;
    for (const InputSource& source : sources) clouds.push_back([source] { return source.open(); });
    return clouds;
}

bool is_city(const std::vector<std::string>& arguments) {
    return arguments.size() == 1 && tiling::CityPaths(arguments[0]).is_city();
}

/// The file of distances must not replace a cloud that is compared, or a file of a city.
void refuse_inputs(const CompareFlags& f, const std::vector<InputSource>& simulated) {
    tiling::refuse_files_of_city(f.distances);
    if (!std::filesystem::exists(f.distances)) return;
    std::vector<InputSource> all = simulated;
    if (!is_city(f.reference))
        for (InputSource& source : expand_inputs(f.reference)) all.push_back(std::move(source));
    for (const InputSource& source : all)
        if (std::filesystem::equivalent(source.path, f.distances))
            throw UsageError("--distances " + f.distances +
                             " is one of the clouds that are compared; give another name");
}

/// Point files, or the points a city was made from.
std::vector<compare::OpenCloud> reference_clouds(const CompareFlags& f) {
    if (is_city(f.reference))
        return {[city = f.reference[0], generation = f.generation.number(f.reference[0])] {
            return tiling::open_city_cloud(city, generation);
        }};
    return openers_of(expand_inputs(f.reference));
}

/// What the labels are called: as told, as in the city that is part of the comparison, as in the synthetic
/// city when its truth is; else they are numbers.
ClassMap class_names(const CompareFlags& f) {
    if (!f.classes.empty()) return ClassMap::load(f.classes);
    const auto classes_of = [&f](const std::string& city) {
        const auto generation = f.generation.number(city);
        return tiling::CityReader(city, generation, f.product.kind(city, generation)).classes();
    };
    if (!f.city.empty()) return classes_of(f.city);
    if (is_city(f.reference)) return classes_of(f.reference[0]);
    return f.truth.empty() ? ClassMap() : ClassMap::load("synthetic");
}

/// Returns on what moves, scan by scan, real and simulated. Which classes move is known from what the played
/// frames brought back.
class MovingCounts {
  public:
    void add(const RecordedScan& scan, std::span<const sim::Return> simulated) {
        auto& counts = scans_.emplace_back();
        for (std::size_t i = 0; i < scan.rays.size(); ++i) {
            if (scan.rays[i].met_city()) ++counts[scan.rays[i].label].real;
            if (simulated[i].status != sim::RayStatus::hit || simulated[i].instance == 0) continue;
            ++counts[simulated[i].label].simulated;
            labels_.insert(simulated[i].label);
        }
    }
    nlohmann::json json() const {
        std::uint64_t real = 0, simulated = 0;
        std::vector<double> ratios;
        for (const auto& scan : scans_) {
            Count sum;
            for (const std::uint16_t label : labels_)
                if (const auto found = scan.find(label); found != scan.end())
                    sum.real += found->second.real, sum.simulated += found->second.simulated;
            real += sum.real, simulated += sum.simulated;
            if (sum.real > 0)
                ratios.push_back(static_cast<double>(sum.simulated) / static_cast<double>(sum.real));
        }
        std::sort(ratios.begin(), ratios.end());
        nlohmann::json all{{"real", real}, {"simulated", simulated}, {"scans", ratios.size()}};
        if (!ratios.empty())
            all.update({{"ratio_least", ratios.front()},
                        {"ratio_median", ratios[ratios.size() / 2]},
                        {"ratio_most", ratios.back()}});
        return all;
    }

  private:
    struct Count {
        std::uint64_t real = 0, simulated = 0;
    };
    std::vector<std::map<std::uint16_t, Count>> scans_;
    std::set<std::uint16_t> labels_;
};

/// What the scans of a drive say, beside their rays.
struct RayCounts {
    std::uint64_t rays = 0, without_sensor = 0, no_return = 0;
    double azimuth_step_rad = 0;

    void add(const RecordedScan& scan) {
        rays += scan.rays.size();
        without_sensor += scan.without_sensor;
        no_return += scan.no_return;
        if (scan.azimuth_step_rad > 0) azimuth_step_rad = scan.azimuth_step_rad;
    }
};

sim::RecordedDrive drive_of(Context& context, const CompareFlags& f) {
    Trajectory trajectory;
    if (!f.trajectory.empty()) trajectory = read_trajectory(f.trajectory, f.trajectory_reading.options());
    sim::RecordedDrive drive(expand_inputs(f.rays, f.reading.labels(),
                                           f.reading.drive_options(!f.trajectory.empty()), context.cancel()),
                             f.reading.read_options(f.trajectory, f.trajectory_reading.options()),
                             std::move(trajectory));
    if (const auto missing = missing_labels(drive.sources())) context.warn(*missing);
    if (f.picture_scan > drive.sources().size())
        throw UsageError("--picture-scan " + std::to_string(f.picture_scan) + ": there are only " +
                         std::to_string(drive.sources().size()) + " scans");
    if (!f.no_empty) drive.find_beams(context.cancel());
    if (!f.sensor.empty()) drive.use_beams(sim::beams_for(sim::Sensor::load(f.sensor), drive.beams()));
    if (!f.picture.empty() && drive.beams().size() == 0)
        throw InputError("--picture " + f.picture +
                         ": the beams of the sensor are not known, so there is no range image");
    return drive;
}

/// The frames that rays meet beside the city; without a source when there are none.
sim::FramePlay play_of(const CompareFlags& f) {
    sim::FramePlay play;
    if (f.snapshots.empty()) return play;
    play.source = objects::StoredFolders().frames(f.snapshots);
    for (std::size_t i = 0; i < play.source->size(); ++i)
        for (const std::uint32_t object : play.source->frame(i).objects) play.instances[object] = 1;
    return play;
}

/// Adds what of the frames the rays of a scan can meet. Returns the time from which parts count.
double add_frames(sim::ReadyFrames& frames, const RecordedScan& scan, sim::ScanParts& parts) {
    if (scan.rays.empty()) return 0;
    Box3d path = kEmptyBox;
    double begin_s = scan.rays[0].time_s, end_s = begin_s;
    for (const RecordedRay& ray : scan.rays) {
        path.grow(ray.origin);
        begin_s = std::min(begin_s, ray.time_s), end_s = std::max(end_s, ray.time_s);
    }
    const sim::Sweep sweep{begin_s, end_s - begin_s};
    frames.make_ready(std::span(&sweep, 1));
    frames.add_to(parts, sweep, {path, static_cast<double>(trace::kMaxRange_m)});
    return begin_s;
}

/// Real scans ray by ray.
void run_rays(Context& context, const CompareFlags& f) {
    if (f.city.empty()) throw UsageError("compare --rays needs --city");
    if (!f.distances.empty()) throw UsageError("--distances are those of simulated clouds from --reference");
    if (!f.simulated.empty() || !f.reference.empty() || !f.truth.empty())
        throw UsageError(
            "compare --rays casts real rays at --city; leave out simulated clouds, --reference and --truth");
    if (f.per_tile) throw UsageError("--per-tile is for clouds; --rays has no tiles");
    if (f.sensor.empty() != f.model.empty()) throw UsageError("--sensor and --model belong together");
    for (const auto& [given, flag] :
         {std::pair{f.model_beside, "--model-beside"}, {f.most_lost_percent.has_value(), "--most-lost"}})
        if (given && f.model.empty()) throw UsageError(std::string(flag) + " needs --sensor and --model");
    const auto generation = f.generation.number(f.city);
    const tiling::CityReader city(f.city, generation, f.product.kind(f.city, generation));
    const ClassMap classes = class_names(f);
    const Stopwatch watch;
    const sim::RecordedDrive drive = drive_of(context, f);
    const std::size_t files = drive.sources().size();
    const std::size_t pictured = f.picture_scan > 0 ? f.picture_scan - 1 : files / 2;
    const auto tracer = trace::make_group_tracer();
    trace::ResidentCity model(city, *tracer, trace::CacheOptions{parse_bytes(f.resident, "--resident")});
    std::optional<sim::LearnedRays> learned, likely;  // the second with --model-beside
    if (!f.model.empty()) {
        sim::Sensor sensor = sim::Sensor::load(f.sensor);
        sensor.model = f.model;
        if (!f.model_beside) sensor.most_lost_percent = f.most_lost_percent;
        learned.emplace(sensor, drive.beams());
        sensor.likely_drops = true;
        sensor.most_lost_percent = f.most_lost_percent;
        if (f.model_beside && (f.most_lost_percent || sim::learn::SensorModel::load(f.model).likely_above))
            likely.emplace(sensor, drive.beams());
    }
    const Region region = f.region.region(city, city.generation().tile_size_m);
    // All but the first with --model-beside.
    compare::RayComparison comparison(region), with_model(region), with_likely(region);
    RayCounts counts;
    MovingCounts moving;
    const sim::FramePlay play = play_of(f);
    std::optional<sim::ReadyFrames> frames;
    sim::CastOptions cast = f.cast;
    if (play.source) frames.emplace(std::span(&play, 1), *tracer);
    Progress::Stage stage(context.progress(), "cast real rays", files, "files");
    for (std::size_t i = 0; i < files; ++i) {
        drive.read(i, context.cancel(), [&](const RecordedScan& scan) {
            sim::ScanParts parts;
            if (frames) cast.begin_s = add_frames(*frames, scan, parts);
            cast.parts = parts.parts();
            auto simulated = sim::cast_again(scan.rays, cast, model, context.cancel());
            moving.add(scan, simulated);
            const std::uint64_t index = comparison.scans();
            if (!learned || f.model_beside) comparison.add(scan, simulated);
            if (likely) {
                auto returns = simulated;
                likely->apply(scan, index, returns);
                with_likely.add(scan, returns);
            }
            if (learned) {
                learned->apply(scan, index, simulated);
                (f.model_beside ? with_model : comparison).add(scan, simulated);
            }
            counts.add(scan);
            if (i == pictured && !f.picture.empty() && scan.beams > 0)
                compare::range_images(scan, simulated).write_png(f.picture);
        });
        stage.advance(1);
    }
    if (f.region.given() && comparison.all().returns == 0)
        throw UsageError(f.region.text() + ": no real return lies there");
    const auto warnings = ray_warnings(counts.without_sensor, drive.beams().size() == 0 && !f.no_empty);
    for (const std::string& warning : warnings) context.warn(warning);
    nlohmann::json result = ray_report_json(comparison, drive.beams(), classes);
    result["rays"] = counts.rays;
    result["points_without_sensor"] = counts.without_sensor;
    result["no_return"] = counts.no_return;
    result["azimuth_step_deg"] = counts.azimuth_step_rad * exact::kDegreesPerRad;
    if (frames) result["moving"] = moving.json();
    result["seconds"] = watch.seconds();
    result["warnings"] = warnings;
    std::string text = ray_report_text(comparison, drive.beams(), classes);
    if (f.model_beside) {
        result["with_model"] = model_report_json(with_model.all());
        text += model_report_text(with_model.all(), "the model of the sensor, drawn,");
    }
    if (likely) {
        result["with_likely_drops"] = model_report_json(with_likely.all());
        if (f.most_lost_percent) result["with_likely_drops"]["most_lost_percent"] = *f.most_lost_percent;
        text += model_report_text(with_likely.all(), f.most_lost_percent
                                                         ? "the likeliest drops up to --most-lost " +
                                                               format_number(*f.most_lost_percent) + " %"
                                                         : "the drops that it finds most likely");
    }
    context.result(result, text);
}

/// Where distances are asked for, and the side of the tiles that there may be.
struct ComparedPlace {
    Region region;
    std::int64_t tile_size_m = 64;
};

ComparedPlace place_of(const CompareFlags& f) {
    const std::string city = !f.city.empty() ? f.city : is_city(f.reference) ? f.reference[0] : "";
    if (city.empty()) return {f.region.region(sim::NoCity(ClassMap()), {})};
    const auto generation = f.generation.number(city);
    const tiling::CityReader reader(city, generation, f.product.kind(city, generation));
    return {f.region.region(reader, reader.generation().tile_size_m), reader.generation().tile_size_m};
}

/// Distances from clouds to clouds, and by tile where that is asked for.
void add_distances(Context& context, const CompareFlags& f, const std::vector<InputSource>& simulated,
                   DistanceReport& report) {
    const ComparedPlace place = place_of(f);
    std::optional<compare::DistanceFile> file;
    if (!f.distances.empty()) {
        refuse_inputs(f, simulated);
        file.emplace(f.distances);
    }
    const TileGrid grid(static_cast<double>(place.tile_size_m));
    std::map<TileKey, compare::DistanceStatistics> tiles;
    compare::TakeDistances take;
    if (file || f.per_tile)
        take = [&](std::span<const compare::PointDistance> points) {
            if (file) file->write(points);
            if (f.per_tile)
                for (const auto& p : points)
                    tiles[grid.base_tile_of(to_lattice(p.at.x), to_lattice(p.at.y))].add(p.distance_m);
        };
    const auto ours = openers_of(simulated), theirs = reference_clouds(f);
    const auto distances = compare::cloud_to_cloud({ours, theirs, &place.region}, scratch_root(),
                                                   context.cancel(), context.progress(), take);
    if (f.region.given() && distances.all.count() == 0)
        throw UsageError(f.region.text() + ": no simulated point lies there");
    report.distances("c2c", distances);
    for (const auto& [key, statistics] : tiles) report.tile(key.text(), statistics);
    if (file) file->commit();
}

void run(Context& context, const CompareFlags& f) {
    if (!f.rays.empty()) return run_rays(context, f);
    for (const CLI::Option* option : f.of_rays)
        if (option->count() > 0) throw UsageError(option->get_name() + " belongs to compare --rays");
    if (f.simulated.empty() && f.city.empty())
        throw UsageError("compare needs simulated clouds, or --city with --truth");
    if (f.reference.empty() && f.truth.empty()) throw UsageError("compare needs --reference or --truth");
    if (!f.distances.empty() && (f.simulated.empty() || f.reference.empty()))
        throw UsageError("--distances are those of simulated clouds from --reference");
    if ((f.region.given() || f.per_tile) && (!f.truth.empty() || f.simulated.empty()))
        throw UsageError((f.per_tile ? "--per-tile" : f.region.text()) +
                         ": of simulated clouds and --reference, or of --rays; not of --truth");
    std::optional<tiling::CityReader> city;
    if (!f.city.empty()) {
        const auto generation = f.generation.number(f.city);
        city.emplace(f.city, generation, f.product.kind(f.city, generation));
    }
    const ClassMap classes = class_names(f);
    DistanceReport report(classes);
    std::optional<synth::Truth> truth;  // before the long work: what is missing is said at once
    if (!f.truth.empty()) truth.emplace(synth::Truth::load(f.truth));
    const auto simulated = f.simulated.empty() ? std::vector<InputSource>{} : expand_inputs(f.simulated);
    const Stopwatch watch;
    if (!simulated.empty() && !f.reference.empty()) add_distances(context, f, simulated, report);
    if (truth) {
        if (!simulated.empty()) {
            const auto distances = distance_to_truth(simulated, *truth, context.cancel(), context.progress());
            report.distances("truth", distances);
            report.ghosts(distances);
        }
        if (city) {
            const auto tracer = trace::make_group_tracer();
            const auto drive = clouds_of(*truth, f.truth);
            report.coverage(coverage({*city, *tracer, drive, *truth}, f.coverage_rays,
                                     parse_bytes(f.resident, "--resident"), context.cancel(),
                                     context.progress()));
        }
    }
    nlohmann::json result = report.json();
    result["seconds"] = watch.seconds();
    context.result(result, report.text());
}

/// The flags of --rays, among themselves in the help.
void add_ray_flags(CLI::App& verb, CompareFlags& f) {
    verb.add_option("--rays", f.rays,
                    "real scans: cast each of their rays at --city and hold what comes back "
                    "against what came back then")
        ->type_name("INPUT");
    const std::size_t before = verb.get_options().size();
    verb.add_option("--trajectory", f.trajectory, "where the sensor was, by the times of the points")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    add_cast_flags(verb, f.cast);
    verb.add_option("--reach", f.cast.reach_m, "length of rays that did not come back")
        ->check(in_range({1, static_cast<double>(trace::kMaxRange_m), "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option(
            "--snapshots", f.snapshots,
            "rays also meet recorded frames of what moved: a folder that `snapshots` made, or its city")
        ->type_name("DIR");
    verb.add_flag("--no-empty", f.no_empty, "neither beams nor rays that did not come back");
    verb.add_option("--sensor", f.sensor, "with --model: a name of `citysplat sensors`, or a TOML file");
    verb.add_option("--model", f.model, "what learn-sensor found out about the sensor, as for simulate")
        ->type_name("FILE");
    verb.add_flag("--model-beside", f.model_beside,
                  "the table is of the city alone, and what the model makes of it is said beside it");
    verb.add_option("--most-lost", f.most_lost_percent,
                    "with --model: the likeliest drops are taken, as for simulate; with --model-beside they "
                    "are said beside the drawn ones")
        ->check(in_range(sim::Sensor::kMostLost_percent))
        ->type_name("PERCENT");
    verb.add_option("--picture", f.picture, "write range images of one scan: real, simulated, difference")
        ->type_name("FILE");
    verb.add_option("--picture-scan", f.picture_scan, "which scan, counted from 1 (default: the middle one)")
        ->check(whole_from(std::size_t{1}, std::size_t{100'000'000}))
        ->type_name("N");
    f.reading.add_to(verb);
    f.trajectory_reading.add_to(verb);
    const std::vector<CLI::Option*> options = verb.get_options();
    f.of_rays.assign(options.begin() + static_cast<std::ptrdiff_t>(before), options.end());
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
    auto flags = std::make_shared<CompareFlags>();
    CompareFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand(
        "compare",
        "how far simulated clouds are from the originals and the truth, and rays from those of real scans");
    verb.fallthrough();
    verb.add_option("simulated", f.simulated,
                    "simulated clouds: files, folders of `simulate`, patterns, @lists");
    verb.add_option("--reference", f.reference,
                    "the original clouds, in the same ways, or the city itself: the points it was made from");
    verb.add_option("--distances", f.distances,
                    "with --reference: write every simulated point and its distance, as PLY; view "
                    "--distances shows them")
        ->type_name("FILE");
    verb.add_option("--truth", f.truth,
                    "a synthetic drive or its truth.json: distance to true surfaces, ghosts");
    verb.add_option("--city", f.city,
                    "with --truth: share of the true surface the city covers; with --rays: what is judged");
    verb.add_option("--coverage-rays", f.coverage_rays, "rays of the survey to cast again")
        ->check(whole_from(std::uint64_t{1}, std::uint64_t{1} << 40))
        ->capture_default_str()
        ->type_name("N");
    verb.add_option("--classes", f.classes,
                    "class map with the names (default: the city's own, or synthetic with --truth)")
        ->capture_default_str();
    verb.add_option("--resident", f.resident, "memory for tiles")->capture_default_str()->type_name("SIZE");
    f.generation.add_to(verb);
    f.product.add_to(verb);
    f.region.add_to(verb, "points of the simulated clouds, or real returns,");
    verb.add_flag("--per-tile", f.per_tile, "also the distances of each base tile");
    add_ray_flags(verb, f);
    verb.footer(
        "Example: citysplat compare scans --reference 'drive/*.las' --truth drive --city city\n"
        "         citysplat compare --rays 'left-out/*.ply' --trajectory poses.tum --city city");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
