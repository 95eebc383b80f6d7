#include "objects/bank.hpp"

#include "citysplat/context.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/text.hpp"
#include "io/input/input_list.hpp"
#include "io/tracks/track_file.hpp"
#include "io/tracks/track_writer.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "objects/bank_builder.hpp"
#include "view/render.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct BankFlags {
    std::string bank;
    // build
    std::string tracks, track_format = "auto", track_poses, track_calibration, trajectory, classes = "none";
    std::string source, box_times = "auto", aligned;
    std::vector<std::string> scans, only;
    bool no_align = false, no_mirror = false;
    std::uint64_t least_points = objects::BankBuildOptions{}.least_points;
    InputFlags reading;
    TrajectoryFlags how;
    // picture
    std::vector<std::string> names;
    std::string out;
    double azimuth_deg = 45, elevation_deg = 20;
};

std::string fixed(double value, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::vector<Track> tracks_for(const BankFlags& f, Context& context) {
    TrackOptions options;
    options.format = *TrackOptions::kFormats.value(f.track_format);
    options.poses = f.track_poses;
    options.calibration = f.track_calibration;
    TrackFile file = read_tracks(f.tracks, options, context.cancel());
    for (const std::string& note : file.notes) context.say(note);
    if (!f.only.empty())
        std::erase_if(file.tracks, [&](const Track& t) {
            return std::none_of(f.only.begin(), f.only.end(), [&](const std::string& name) {
                return lower_case(name) == lower_case(t.class_name);
            });
        });
    if (file.tracks.empty())
        throw InputError(f.tracks + ": it has no tracks" + (f.only.empty() ? "" : " of these classes"));
    return std::move(file.tracks);
}

/// What objects are named after: the folder of the tracks, unless the user says.
std::string source_for(const BankFlags& f) {
    if (!f.source.empty()) return f.source;
    const std::string folder = fs::absolute(f.tracks).parent_path().filename().string();
    return folder.empty() ? fs::path(f.tracks).stem().string() : folder;
}

json summary(const objects::BankObject& o) {
    double low = 100, mean = 0;
    for (std::size_t a = 0; a < objects::kAzimuths; ++a) {
        const double c = o.coverage[objects::coverage_index(a, 0)];
        low = std::min(low, c);
        mean += c / static_cast<double>(objects::kAzimuths);
    }
    return {{"name", o.name},
            {"class", o.class_name},
            {"size_m", {o.size.length_m, o.size.width_m, o.size.height_m}},
            {"label", o.label},
            {"source", o.source},
            {"track", o.track},
            {"frames", o.frames},
            {"looks", o.looks},
            {"points", o.points},
            {"mirrored_share", o.mirrored_share()},
            {"thickness_m", o.thickness_m},
            {"thickness_by_boxes_m", o.thickness_by_boxes_m},
            {"coverage_percent", o.coverage},
            {"coverage_mean_percent", mean},
            {"coverage_least_percent", low},
            {"splats", o.splats.splats},
            {"bytes", o.splats.bytes}};
}

std::string line_of(const objects::BankObject& o) {
    const json s = summary(o);
    return o.name + "  " + o.class_name + "  " + fixed(o.size.length_m, 2) + " x " +
           fixed(o.size.width_m, 2) + " x " + fixed(o.size.height_m, 2) + " m  frames " +
           std::to_string(o.frames) + "/" + std::to_string(o.looks) + "  points " + format_count(o.points) +
           "  mirrored " + fixed(100 * o.mirrored_share(), 0) + " %  thickness " +
           fixed(100 * o.thickness_m, 1) + " cm  seen " + fixed(s["coverage_mean_percent"].get<double>(), 0) +
           " %  splats " + format_count(o.splats.splats) + "\n";
}

void run_build(Context& context, const BankFlags& f) {
    const Stopwatch watch;
    const std::vector<Track> tracks = tracks_for(f, context);
    objects::ScanInputs scans;
    scans.sources = expand_inputs(f.scans, f.reading.labels(), f.reading.drive_options(!f.trajectory.empty()),
                                  context.cancel());
    scans.reading = f.reading.read_options(f.trajectory, f.how.options());
    if (!f.trajectory.empty()) scans.trajectory = read_trajectory(f.trajectory, f.how.options());
    if (f.classes != "none") scans.classes = ClassMap::load(f.classes);
    objects::BankBuildOptions options;
    options.source = source_for(f);
    options.box_times = *objects::kBoxTimes.value(f.box_times);
    options.align = !f.no_align;
    options.mirror = !f.no_mirror;
    options.least_points = f.least_points;
    options.memory_bytes = context.memory_bytes();
    objects::BankWriter bank(f.bank);
    // Before the work: a place that cannot be written is told at once.
    if (!f.aligned.empty()) OutputFile{f.aligned};
    const objects::BankReport report =
        objects::build_bank(bank, {tracks, scans}, options, context.cancel(), context.progress());
    if (!f.aligned.empty()) write_tracks(f.aligned, report.aligned_tracks());
    bank.commit();
    json kept = json::array(), left_out = json::array();
    std::string text;
    for (const objects::TrackOutcome& t : report.tracks) {
        if (t.object) {
            kept.push_back(summary(*t.object));
            text += line_of(*t.object);
            continue;
        }
        left_out.push_back(
            {{"track", t.track}, {"class", t.class_name}, {"points", t.points}, {"reason", t.reason}});
        context.detail("left out: track " + t.track + " (" + t.class_name + "): " + t.reason);
    }
    if (kept.empty()) context.warn("no track became an object; -v says why");
    text += f.bank + ": " + std::to_string(kept.size()) + " of " + std::to_string(tracks.size()) +
            " tracks became objects, boxes taken as of " + objects::kBoxTimes.of(report.box_times) + ", " +
            format_duration(watch.seconds()) + "\n";
    context.result({{"objects", kept},
                    {"left_out", left_out},
                    {"tracks", tracks.size()},
                    {"box_times", objects::kBoxTimes.of(report.box_times)},
                    {"points_inside_boxes",
                     {{"exact", report.inside[0]},
                      {"begin", report.inside[1]},
                      {"middle", report.inside[2]},
                      {"end", report.inside[3]}}},
                    {"seconds", watch.seconds()}},
                   text);
}

void run_list(Context& context, const BankFlags& f) {
    const objects::Bank bank = objects::Bank::open(f.bank);
    json list = json::array();
    std::string text;
    for (const objects::BankObject& o : bank.objects()) {
        list.push_back(summary(o));
        text += line_of(o);
    }
    context.result({{"objects", list}}, text + std::to_string(list.size()) + " objects\n");
}

/// An object as a city of one tile.
class ObjectView final : public TileSource {
  public:
    ObjectView(const objects::Bank& bank, const objects::BankObject& object) : bank_(bank), object_(object) {
        const auto& b = object.splats.box;
        entries_.push_back(
            {{}, object.splats.splats, object.splats.bytes, {b[0], b[1], b[2]}, {b[3], b[4], b[5]}});
    }
    std::span<const TileEntry> tiles() const override { return entries_; }
    SplatTile load(std::size_t) const override { return bank_.load(object_); }
    const ClassMap& classes() const override { return classes_; }

  private:
    const objects::Bank& bank_;
    const objects::BankObject& object_;
    std::vector<TileEntry> entries_;
    ClassMap classes_;
};

/// Names of objects may contain anything, those of tracks from KITTI-360 a '/'. Different objects get
/// different files.
std::string picture_name(const std::string& object, std::set<std::string>& taken) {
    std::string plain;
    for (const char c : object) plain += c == '/' || static_cast<unsigned char>(c) < 32 ? '_' : c;
    if (plain.starts_with('.')) plain[0] = '_';
    std::string name = plain;
    for (int number = 2; !taken.insert(name).second; ++number) name = plain + "-" + std::to_string(number);
    return name + ".png";
}

void run_picture(Context& context, const BankFlags& f) {
    const objects::Bank bank = objects::Bank::open(f.bank);
    std::vector<const objects::BankObject*> chosen;
    for (const std::string& name : f.names) chosen.push_back(&bank.find(name));
    if (f.names.empty())
        for (const objects::BankObject& o : bank.objects()) chosen.push_back(&o);
    fs::create_directories(f.out);
    std::set<std::string> taken;
    const auto tracer = trace::make_group_tracer();
    json files = json::array();
    for (const objects::BankObject* o : chosen) {
        const ObjectView city(bank, *o);
        const Vec3d middle{0, 0, o->size.height_m / 2};
        const double distance_m =
            1.3 * length(Vec3d{o->size.length_m, o->size.width_m, o->size.height_m}) + 0.5;
        const auto around = exact::sin_cos(f.azimuth_deg * exact::kRadPerDegree);
        const auto up = exact::sin_cos(f.elevation_deg * exact::kRadPerDegree);
        view::View view;
        view.camera.world_from_camera = Camera::look_at(
            middle + Vec3d{up.cos * around.cos, up.cos * around.sin, up.sin} * distance_m, middle);
        view.camera.width = 640;
        view.camera.height = 400;
        view.camera.horizontal_fov_rad = 0.9;
        view.options.shade = view::Shade::normal;
        view.options.far_m = 200;
        const fs::path file = fs::path(f.out) / picture_name(o->name, taken);
        view::render(city, *tracer, view, context.cancel(), context.progress()).picture.write_png(file);
        files.push_back(file.string());
    }
    context.result({{"files", files}}, std::to_string(files.size()) + " pictures in " + f.out + "\n");
}

void add_build_verb(CLI::App& bank, const std::shared_ptr<BankFlags>& flags, Context& context) {
    BankFlags& f = *flags;
    CLI::App& verb = *bank.add_subcommand("build", "make objects from tracked boxes and scans");
    verb.fallthrough();
    verb.add_option("bank", f.bank, "the bank: a new folder, or one to add to")->required();
    verb.add_option("--tracks", f.tracks, "boxes of objects over time (docs/scenarios.md)")
        ->required()
        ->check(CLI::ExistingPath)
        ->type_name("FILE");
    verb.add_option("--scans", f.scans, "clouds with times: files, folders, patterns or @lists")
        ->required()
        ->expected(1, -1);
    verb.add_option("--track-format", f.track_format, "of the tracks")
        ->check(CLI::IsMember(TrackOptions::kFormats.all()))
        ->capture_default_str();
    verb.add_option("--track-poses", f.track_poses, "KITTI tracks: poses of the sensor, one a frame");
    verb.add_option("--track-calibration", f.track_calibration, "KITTI tracks: calibration");
    verb.add_option("--trajectory", f.trajectory, "of the sensor, for scans that do not say where it was");
    f.how.add_to(verb);
    verb.add_option("--classes", f.classes, "class map of the labels: tells ground from objects")
        ->capture_default_str();
    verb.add_option("--only", f.only, "only tracks of these classes, in the words of the tracks")
        ->delimiter(',')
        ->type_name("CLASS,…");
    verb.add_option("--source", f.source,
                    "objects are named SOURCE-TRACK (default: the folder of the tracks)");
    verb.add_option("--box-times", f.box_times,
                    "a box is where it says at exactly its time, or is drawn around a scan that has its "
                    "begin, middle or end then; auto: by which most points are in their boxes")
        ->check(CLI::IsMember(objects::kBoxTimes.all()))
        ->capture_default_str();
    verb.add_option("--least-points", f.least_points, "tracks with fewer points are left out")
        ->check(whole_from(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
        ->capture_default_str();
    verb.add_flag("--no-align", f.no_align, "leave points where the boxes have them");
    verb.add_flag("--no-mirror", f.no_mirror, "do not complete vehicles by their mirror image");
    verb.add_option("--aligned-tracks", f.aligned, "write the tracks as corrected by the alignment (CSV)")
        ->type_name("FILE");
    f.reading.add_to(verb);
    verb.callback([flags, &context] { run_build(context, *flags); });
}

}  // namespace

void add_bank(CLI::App& app, Context& context) {
    const auto flags = std::make_shared<BankFlags>();
    BankFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand("bank", "objects cut out of real scans, to be placed in scenarios");
    verb.fallthrough();
    verb.require_subcommand(1);
    add_build_verb(verb, flags, context);
    CLI::App& list = *verb.add_subcommand("list", "what is in a bank");
    list.fallthrough();
    list.add_option("bank", f.bank, "the bank")->required();
    list.callback([flags, &context] { run_list(context, *flags); });
    CLI::App& picture = *verb.add_subcommand("picture", "a picture of each object, NAME.png");
    picture.fallthrough();
    picture.add_option("bank", f.bank, "the bank")->required();
    picture.add_option("name", f.names, "objects; all when none is named");
    picture.add_option("--out", f.out, "folder for the pictures")->required();
    picture.add_option("--azimuth", f.azimuth_deg, "seen from: counter-clockwise from its front")
        ->check(in_range(ranges::kAngle_deg))
        ->capture_default_str()
        ->type_name("DEG");
    picture.add_option("--elevation", f.elevation_deg, "seen from: above its middle")
        ->check(in_range({-80, 80, "degrees"}))
        ->capture_default_str()
        ->type_name("DEG");
    picture.callback([flags, &context] { run_picture(context, *flags); });
    verb.footer(
        "Example: citysplat bank build bank --tracks drive/tracks.csv --scans drive --classes pandaset\n"
        "         citysplat bank picture bank --out pictures");
}

}  // namespace citysplat::cli
