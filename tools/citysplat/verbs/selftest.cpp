#include "citysplat/context.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/tracer_agreement.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "cuda/find_gpu.hpp"
#include "datasets/synth/synth.hpp"
#include "io/input/open_point_file.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "model/class_map.hpp"
#include "model/trajectory.hpp"
#include "sim/scan/scanner.hpp"
#include "splat/splat_processor.hpp"
#include "tiling/build/builder.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/filesystem_check.hpp"
#include "trace/backend.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

namespace fs = std::filesystem;

struct SelftestFlags {
    std::string filesystem;
    std::string backend = "auto";
    double length_m = 60;
    int scans = 20;
};

/// Share of rays that must agree with the reference within TracerAgreement::kTolerance_m.
constexpr double kLeastAgreement = 0.99999;
constexpr std::uint32_t kDepth = 5;
constexpr float kGap_m = 0.1f;

/// A fresh directory that goes away with the object.
class ScratchDirectory {
  public:
    ScratchDirectory() {
        std::string pattern = (scratch_root() / "citysplat-selftest-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) throw_errno("cannot make a directory like", pattern);
        path_ = pattern;
    }
    ~ScratchDirectory() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    fs::path operator/(const char* name) const { return path_ / name; }

  private:
    fs::path path_;
};

void make_city(Context& context, const SelftestFlags& flags, const fs::path& drive, const fs::path& city) {
    synth::SynthOptions synthetic;
    synthetic.length_m = flags.length_m;
    synthetic.points_per_metre = 5000;
    const auto truth = synth::write_drive(drive, synthetic, context.progress(), context.cancel());

    splat::SplatParams params;
    params.resample = false;
    const ClassMap classes = ClassMap::load("synthetic");
    splat::SplatProcessor processor(params, classes);
    tiling::BuildOptions options;
    for (const auto& scanner : truth.scanners)
        for (const auto& file : scanner.files)
            options.inputs.push_back({drive / file.name, drive / "trajectory.tum"});
    options.open = [](const fs::path& path, const std::string&) { return open_point_file(path); };
    options.load_trajectory = [](const fs::path& path, const std::string&) {
        return Trajectory::read_tum(path);
    };
    options.classes = classes.to_toml();
    options.parameters = "{}";
    options.tile_size_m = 32;
    options.memory_bytes = context.memory_bytes();
    options.threads = context.threads();
    tiling::build_city(city, processor, options, context.cancel(), context.progress());
}

struct Loading {
    std::uint64_t splats = 0, payload_bytes = 0;
    double seconds = 0;
};

BoundTracer load(const TileSource& city, const trace::Tracer& tracer, Loading& loading) {
    std::vector<trace::TracerTilePtr> tiles;
    for (std::uint32_t i = 0; i < city.tiles().size(); ++i) {
        SplatTile tile = city.load(i);
        loading.splats += tile.size();
        loading.payload_bytes += tile.bytes().size();
        const Stopwatch watch;
        tiles.push_back(tracer.load(std::move(tile)));
        loading.seconds += watch.seconds();
    }
    return {tracer, tracer.bind(tiles)};
}

/// HDL-64E scans spread over the drive; every other one averages up to kDepth hits.
template <class F>
void for_each_scan(const fs::path& trajectory_file, int scans, const CancelToken& cancel, F f) {
    sim::SensorRun run;
    run.sensor = sim::Sensor::load("hdl-64e");
    const Trajectory trajectory = read_trajectory(trajectory_file);
    std::vector<sim::Firing> firings;
    sim::fire(run.sensor, 0, firings);
    const double last_s = trajectory.end_s() - sim::sweep_seconds(run.sensor) - 1e-6;
    for (int i = 0; i < scans; ++i) {
        cancel.check();
        const double part = scans > 1 ? static_cast<double>(i) / (scans - 1) : 0.5;
        const double time_s = trajectory.begin_s() + part * (last_s - trajectory.begin_s());
        run.hits = i % 2 ? kDepth : 1;
        run.gap_m = kGap_m;
        const sim::ScanRays scan(run, trajectory, static_cast<std::uint64_t>(i), time_s,
                                 sim::plan_of(firings));
        f(scan.view());
    }
}

nlohmann::json to_json(const TracerAgreement& a, const char* same = "same_splat") {
    return {{"rays", a.rays},
            {"hits", a.hits},
            {same, a.same},
            {"differing", a.differing},
            {"agreement", a.share()},
            {"largest_difference_m", a.largest_difference_m},
            {"rays_per_second", static_cast<double>(a.rays) / a.candidate_s},
            {"reference_rays_per_second", static_cast<double>(a.rays) / a.reference_s}};
}

std::string line(const char* what, const TracerAgreement& a) {
    char text[256];
    std::snprintf(
        text, sizeof text,
        "%-14s %s rays, %s hits, %s differ (largest difference %.3f mm); %.1f Mrays/s, reference %.1f\n",
        what, format_count(a.rays).c_str(), format_count(a.hits).c_str(), format_count(a.differing).c_str(),
        1e3 * a.largest_difference_m, 1e-6 * static_cast<double>(a.rays) / a.candidate_s,
        1e-6 * static_cast<double>(a.rays) / a.reference_s);
    return text;
}

void try_filesystem(Context& context, const std::string& directory) {
    const tiling::FilesystemReport report = tiling::check_filesystem(directory);
    nlohmann::json checks = nlohmann::json::array();
    std::string text = directory + " is on " + report.type + " (" + report.mount + ")\n";
    for (const auto& check : report.checks) {
        checks.push_back({{"name", check.name}, {"passed", check.passed}, {"message", check.message}});
        text += std::string(check.passed ? "  ok      " : "  FAILED  ") + check.name +
                (check.message.empty() ? "" : ": " + check.message) + "\n";
    }
    context.result({{"filesystem", report.type},
                    {"mount", report.mount},
                    {"safe", report.is_safe()},
                    {"checks", checks}},
                   text);
    tiling::require_safe_filesystem(directory);
}

void run(Context& context, const SelftestFlags& flags) {
    if (!flags.filesystem.empty()) return try_filesystem(context, flags.filesystem);
    const trace::Backend backend = trace::make_backend(trace::parse_backend(flags.backend), gpu::find_gpu());
    context.say(backend.note);
    const ScratchDirectory scratch;
    make_city(context, flags, scratch / "drive", scratch / "city");
    const tiling::CityReader city(scratch / "city");

    trace::EmbreeOptions scalar;
    scalar.simd = false;
    const auto reference_tracer = trace::make_embree_tracer(scalar);
    Loading reference_loading, loading;
    const BoundTracer reference = load(city, *reference_tracer, reference_loading);
    const BoundTracer candidate = load(city, *backend.tracer, loading);

    TracerAgreement closest, nearest, returns;
    for_each_scan(scratch / "drive/trajectory.tum", flags.scans, context.cancel(),
                  [&](const sim::ScanView& scan) {
                      sim::RayBatch batch;
                      batch.generate(scan, 0, scan.firings.count);
                      closest += compare_closest(reference, candidate, batch.rays());
                      nearest += compare_nearest(reference, candidate, batch.rays(), kDepth, kGap_m);
                      returns += compare_scans(reference, candidate, scan);
                  });
    const bool passed = closest.hits > 0 && closest.share() >= kLeastAgreement &&
                        nearest.share() >= kLeastAgreement && returns.share() >= kLeastAgreement;
    const double load_rate = static_cast<double>(loading.payload_bytes) / loading.seconds;
    context.result({{"backend", backend.name},
                    {"tracer", backend.tracer->name()},
                    {"version", CITYSPLAT_VERSION},
                    {"tiles", city.tiles().size()},
                    {"splats", loading.splats},
                    {"scans", flags.scans},
                    {"tolerance_m", TracerAgreement::kTolerance_m},
                    {"closest", to_json(closest)},
                    {"nearest", to_json(nearest)},
                    {"returns", to_json(returns, "same_bytes")},
                    {"load_bytes_per_second", load_rate},
                    {"resident_bytes", backend.tracer->resident_bytes()},
                    {"passed", passed}},
                   "citysplat " CITYSPLAT_VERSION ", " + backend.tracer->name() + "\n" +
                       format_count(loading.splats) + " splats in " + std::to_string(city.tiles().size()) +
                       " tiles, loaded at " + format_bytes(static_cast<std::uint64_t>(load_rate)) +
                       "/s, resident " + format_bytes(backend.tracer->resident_bytes()) + "\n" +
                       line("first hit", closest) + line("up to 5 hits", nearest) +
                       line("whole scans", returns) + (passed ? "passed\n" : "FAILED\n"));
    if (!passed)
        throw UnavailableError("the " + backend.name +
                               " backend does not agree with the reference; please send us the report above");
}

}  // namespace

void add_selftest(CLI::App& app, Context& context) {
    auto flags = std::make_shared<SelftestFlags>();
    CLI::App& verb = *app.add_subcommand(
        "selftest", "compare a backend with the reference, ray by ray, on a small synthetic city");
    verb.fallthrough();
    verb.add_option("--filesystem", flags->filesystem,
                    "try instead whether cities in this directory are safe with several processes")
        ->check(CLI::ExistingDirectory)
        ->type_name("DIR");
    verb.add_option("--backend", flags->backend, "auto, cpu or gpu")
        ->check(CLI::IsMember({"auto", "cpu", "gpu"}))
        ->capture_default_str();
    verb.add_option("--length", flags->length_m, "length of the drive through the city")
        ->check(in_range({20, 1000, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--scans", flags->scans, "HDL-64E scans to compare (144 000 rays each)")
        ->check(whole_from(1, 10000))
        ->capture_default_str()
        ->type_name("N");
    verb.footer(
        "Example: citysplat selftest --backend gpu\n"
        "The reference is the scalar CPU tracer. At least 99.999 % of the rays must agree within 1 mm, for\n"
        "first hits, for up to 5 hits, and for the returns of whole scans with noise and drops. The city is\n"
        "made in the system's temporary directory.");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
