#include "view/render.hpp"

#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/moving/scene.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/places/ortho.hpp"
#include "citysplat/places/region_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/text.hpp"
#include "io/input/input_list.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "model/region/region_source.hpp"
#include "sim/traffic/scan_parts.hpp"
#include "tiling/store/city_paths.hpp"
#include "tiling/store/city_reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::cli {

namespace {

struct RenderFlags {
    std::vector<std::string> inputs;
    std::string out, shade = "class", size = "1280x720", resident = "2G", trajectory, classes = "synthetic";
    std::vector<double> pose, eye, look_at, offset{0, 0, 0, 0, 0, 0};
    std::string scenario;
    double time_s = 0.5, fov_deg = 75;
    const CLI::Option* time = nullptr;
    int point_px = 2;
    bool no_edges = false;
    view::RenderOptions options;
    TrajectoryFlags how;
    GenerationFlag generation;
    ProductFlag product;
    RegionFlags region;
    OrthoFlags plan;
    const CLI::Option* samples = nullptr;
    std::vector<const CLI::Option*> of_camera;  ///< that have no meaning with --ortho
};

Vec3d vec(const std::vector<double>& v) { return {v[0], v[1], v[2]}; }

/// x,y,z[,yaw[,pitch[,roll]]]: positive pitch looks up. `flag` is where they come from.
Pose pose_from(const std::vector<double>& v, const char* flag) {
    const auto angle = [&](std::size_t i) {
        if (i < v.size() && !ranges::kAngle_deg.contains(v[i]))
            throw UsageError(std::string(flag) + ": the angle " + format_number(v[i]) + " is not a number " +
                             ranges::kAngle_deg.text());
        return i < v.size() ? v[i] * exact::kRadPerDegree : 0.0;
    };
    return {vec(v), from_yaw_pitch_roll(angle(3), -angle(4), angle(5))};
}

/// A place on the trajectory: a time, or a share of the way (0 … 1) when outside its times.
StampedPose along(const RenderFlags& f) {
    const Trajectory trajectory = read_trajectory(f.trajectory, f.how.options());
    double t = f.time_s;
    if (!trajectory.covers(t)) {
        if (t < 0 || t > 1)
            throw UsageError("--time " + std::to_string(t) + " is neither within the trajectory (" +
                             std::to_string(trajectory.begin_s()) + " … " +
                             std::to_string(trajectory.end_s()) + " s) nor a share from 0 to 1");
        t = trajectory.begin_s() + t * (trajectory.end_s() - trajectory.begin_s());
    }
    std::vector<double> offset = f.offset;
    offset.resize(6, 0.0);
    return {t, *trajectory.at(t) * pose_from(offset, "--offset")};
}

/// Where the camera is, and when.
StampedPose camera_pose(const RenderFlags& f) {
    const int ways = !f.pose.empty() + !f.eye.empty() + !f.trajectory.empty();
    if (ways != 1) throw UsageError("render needs one of --pose, --eye with --look-at, or --along");
    if (!f.trajectory.empty()) return along(f);
    const bool timed = f.time->count() > 0;
    if (timed && f.scenario.empty()) throw UsageError("--time needs --along or --scenario");
    if (!timed && !f.scenario.empty())
        throw UsageError("--scenario needs --time: what moves is drawn where it is then");
    if (!f.pose.empty()) return {f.time_s, pose_from(f.pose, "--pose")};
    if (f.look_at.empty()) throw UsageError("--eye needs --look-at");
    return {f.time_s, Camera::look_at(vec(f.eye), vec(f.look_at))};
}

Camera camera_from(const RenderFlags& f, const Pose& world_from_camera) {
    Camera camera;
    camera.world_from_camera = world_from_camera;
    camera.horizontal_fov_rad = f.fov_deg * exact::kRadPerDegree;
    const std::size_t cross = std::min(f.size.find('x'), f.size.size());
    const auto width = parse_whole<int>(std::string_view(f.size).substr(0, cross));
    const auto height = parse_whole<int>(std::string_view(f.size).substr(std::min(cross + 1, f.size.size())));
    constexpr int kMostPixels = 32768;
    if (!width || !height || *width < 1 || *height < 1 || *width > kMostPixels || *height > kMostPixels)
        throw UsageError("--size " + f.size + " is not of the form WIDTHxHEIGHT, from 1x1 to 32768x32768");
    camera.width = *width;
    camera.height = *height;
    return camera;
}

/// What a picture takes while it is made and encoded.
void check_memory(const Camera& camera, std::uint64_t budget_bytes) {
    constexpr std::uint64_t kBytesPerPixel = 24;
    const std::uint64_t bytes =
        kBytesPerPixel * static_cast<std::uint64_t>(camera.width) * static_cast<std::uint64_t>(camera.height);
    if (bytes > budget_bytes)
        throw UsageError("a picture of " + std::to_string(camera.width) + "x" +
                         std::to_string(camera.height) + " takes " + format_bytes(bytes) +
                         "; lower --size or raise --memory (now " + format_bytes(budget_bytes) + ")");
}

void check_is_png(const std::string& name) {
    if (lower_case(std::filesystem::path(name).extension().string()) != ".png")
        throw UsageError("--out " + name + ": pictures are PNG; name a .png file");
}

std::vector<std::filesystem::path> clouds_of(const std::vector<std::string>& inputs) {
    std::vector<std::filesystem::path> paths;
    for (const InputSource& source : expand_inputs(inputs)) paths.push_back(source.path);
    return paths;
}

/// A picture of splats, and of what stands and moves in the scenario.
view::Rendering render_scene(Context& context, const RenderFlags& f, view::View view, double time_s) {
    const auto tracer = trace::make_group_tracer();
    const sim::Scenario scenario = f.scenario.empty() ? sim::Scenario() : sim::Scenario::load(f.scenario);
    const std::string name = f.inputs.empty() ? "" : f.inputs[0];
    const auto city = open_scene({name, f.generation, f.product, f.region}, scenario);
    const Vec3d eye = view.camera.world_from_camera.translation;
    sim::PreparedTraffic traffic;
    sim::ScanParts parts;
    std::optional<sim::ReadyTraffic> ready;
    if (!f.scenario.empty()) {
        const Trajectory here(std::vector<StampedPose>{{time_s, view.camera.world_from_camera},
                                                       {time_s + 1, view.camera.world_from_camera}});
        trace::ResidentCity ground(*city, *tracer, trace::CacheOptions{view.options.budget_bytes});
        const sim::SensorWay way{here, time_s, time_s, view.options.far_m};
        traffic = traffic_of(scenario, {&way, 1}, ground, context);
        if (!traffic.frames.empty()) context.warn("[[snapshots]] are not drawn");
        ready.emplace(traffic.traffic, *tracer);
        parts = ready->during({time_s, 0}, {{eye, eye}, view.options.far_m});
    }
    view.parts = parts.parts();
    return view::render(*city, *tracer, view, context.cancel(), context.progress());
}

bool is_city(const RenderFlags& f) {
    return f.inputs.empty() || (f.inputs.size() == 1 && tiling::CityPaths(f.inputs[0]).is_city());
}

/// From above instead of through a camera.
void run_plan(Context& context, const RenderFlags& f) {
    for (const CLI::Option* option : f.of_camera)
        if (option->count() > 0)
            throw UsageError(option->get_name() + " has no meaning with --ortho, which looks straight down");
    if (f.inputs.empty() || !is_city(f)) throw UsageError("render --ortho needs a city");
    if (!f.plan.per_tile) check_is_png(f.out);
    const auto whole = std::make_shared<tiling::CityReader>(f.inputs[0], f.generation.number(f.inputs[0]));
    if (whole->tiles().empty()) throw UsageError(f.inputs[0] + " has no splats to draw");
    OrthoWish wish;
    wish.tile_size_m = whole->generation().tile_size_m;
    wish.region = f.region.region(*whole, wish.tile_size_m);
    wish.city = f.region.cut(whole);
    wish.out = f.out;
    wish.options.shade = view::shade_from(f.shade);
    if (f.samples->count() > 0) wish.options.samples = f.options.samples;
    wish.options.budget_bytes = parse_bytes(f.resident, "--resident");
    run_ortho(context, f.plan, std::move(wish));
}

void run(Context& context, RenderFlags f) {
    if (f.plan.ortho) return run_plan(context, f);
    for (const CLI::Option* option : f.plan.options)
        if (option->count() > 0) throw UsageError(option->get_name() + " belongs to --ortho");
    const Stopwatch watch;
    check_is_png(f.out);
    if (f.inputs.empty() && f.scenario.empty())
        throw UsageError("render needs a city, clouds or a --scenario");
    const auto [time_s, pose] = camera_pose(f);
    const Camera camera = camera_from(f, pose);
    check_memory(camera, context.memory_bytes());
    f.options.shade = view::shade_from(f.shade);
    f.options.edges = !f.no_edges;
    f.options.budget_bytes = parse_bytes(f.resident, "--resident");
    const bool of_city = is_city(f);
    if (!of_city && f.region.given())
        throw UsageError(f.region.text() + ": parts of a city; " + f.inputs[0] + " is none");
    if (!of_city && !f.scenario.empty())
        throw UsageError("--scenario is drawn in a city, or without one; " + f.inputs[0] + " is no city");
    const view::View view{camera, f.options};
    const auto made = [&]() -> view::Rendering {
        if (!of_city)
            return view::render_points(clouds_of(f.inputs), ClassMap::load(f.classes), view, f.point_px,
                                       context.cancel());
        return render_scene(context, f, view, time_s);
    }();
    made.picture.write_png(f.out);
    context.result({{"width", camera.width},
                    {"height", camera.height},
                    {"seconds", watch.seconds()},
                    {"rays", made.rays},
                    {"hits", made.hits},
                    {"tiles", made.tiles},
                    {"file", f.out}},
                   f.out + ": " + f.size + ", " + format_duration(watch.seconds()) + ", " +
                       format_count(made.hits) + " of " + format_count(made.rays) +
                       (of_city ? " rays hit\n" : " points seen\n"));
}

}  // namespace

void add_render(CLI::App& app, Context& context) {
    auto flags = std::make_shared<RenderFlags>();
    RenderFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand("render", "a picture of a city, or of cloud files");
    verb.fallthrough();
    verb.add_option("input", f.inputs,
                    "a city, or clouds: files, folders, patterns or @lists; none: the scenario's own things");
    verb.add_option("--scenario", f.scenario,
                    "also draw what stands and moves in this scenario file, where it is at --time");
    verb.add_option("--out", f.out, "PNG file to write; with --per-tile a directory")->required();
    verb.add_option("--size", f.size, "picture size")->capture_default_str()->type_name("WxH");
    verb.add_option("--pose", f.pose,
                    "camera: x,y,z[,yaw[,pitch[,roll]]], metres and degrees; yaw 0 looks east")
        ->delimiter(',')
        ->expected(3, 6)
        ->check(in_range(ranges::kPosition_m));
    CLI::Option* eye = verb.add_option("--eye", f.eye, "camera position x,y,z, with --look-at")
                           ->delimiter(',')
                           ->expected(3)
                           ->check(in_range(ranges::kPosition_m));
    verb.add_option("--look-at", f.look_at, "what the camera looks at, x,y,z")
        ->delimiter(',')
        ->expected(3)
        ->check(in_range(ranges::kPosition_m))
        ->needs(eye);
    CLI::Option* way =
        verb.add_option("--along", f.trajectory, "camera on this trajectory, see --time and --offset");
    f.how.add_to(verb);
    f.time = verb.add_option("--time", f.time_s,
                             "time in seconds, of --along and --scenario; with --along also a share of the "
                             "way from 0 to 1")
                 ->check(in_range(ranges::kTime_s))
                 ->capture_default_str();
    verb.add_option("--offset", f.offset, "with --along: x,y,z[,yaw[,pitch[,roll]]] in the vehicle's frame")
        ->delimiter(',')
        ->expected(3, 6)
        ->check(in_range(ranges::kLever_m))
        ->needs(way);
    verb.add_option("--fov", f.fov_deg, "horizontal field of view")
        ->check(in_range({1, 170, "degrees"}))
        ->capture_default_str()
        ->type_name("DEG");
    verb.add_option("--shade", f.shade, "class, normal, height, intensity, range or splat")
        ->capture_default_str();
    f.samples = verb.add_option("--samples", f.options.samples,
                                "rays per pixel and axis; 1: no anti-aliasing (default with --ortho)")
                    ->check(whole_from(1, 8))
                    ->capture_default_str();
    verb.add_flag("--no-edges", f.no_edges, "do not darken depth edges");
    verb.add_option("--far", f.options.far_m, "farthest distance seen")
        ->check(in_range({1, 10000, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--resident", f.resident, "memory for tiles")->capture_default_str()->type_name("SIZE");
    verb.add_option("--point-size", f.point_px, "pixels of a point, for cloud files")
        ->check(whole_from(1, 64))
        ->capture_default_str();
    verb.add_option("--classes", f.classes, "class map with the colours, for cloud files")
        ->capture_default_str();
    f.generation.add_to(verb);
    f.product.add_to(verb);
    f.region.add_to(verb, "what stands");
    f.plan.add_to(verb);
    for (const char* name : {"--scenario", "--size", "--pose", "--eye", "--look-at", "--along", "--time",
                             "--offset", "--fov", "--no-edges", "--far", "--point-size", "--classes"})
        f.of_camera.push_back(verb.get_option(name));
    verb.footer(
        "Example: citysplat render city --along drive/trajectory.tum --time 0.5 --offset -8,0,3,0,-10 --out "
        "v.png\n"
        "         citysplat render scans/scans/000100.las --eye 0,-30,20 --look-at 0,0,0 --out scan.png\n"
        "         citysplat render city --ortho --resolution 0.02 --shade intensity --per-tile --out maps");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
