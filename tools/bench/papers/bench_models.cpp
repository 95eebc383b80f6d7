/// Tables 1 to 5 of AdaSplats in shape: every model of the same drive, how long it takes to make, how large
/// it is, how fast it is seen and scanned, and how far what a LiDAR sees of it is from the drive and the
/// truth.
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/papers/model_judge.hpp"
#include "core/error.hpp"
#include "mesh/imls_field.hpp"
#include "mesh/tsdf_field.hpp"

#include <cstdio>
#include <functional>
#include <optional>

using namespace citysplat;
using bench::PaperDrive;
using bench::Thin;
using bench::TracedModel;

namespace {

struct Arguments {
    bench::DriveWords drive;
    double length_m = 60, points_per_metre = 30'000;
    std::uint64_t scans = 8, seed = 3;  // a street with fences, poles and signs
    std::string only;
    bench::PoissonOptions poisson;
};

struct Entry {
    std::string name;
    std::function<TracedModel(const PaperDrive&)> make;
    bool needs_classes = false;
};

std::vector<Entry> entries(const Arguments& arguments) {
    using splat::Method;
    using splat::SplatParams;
    std::vector<Entry> all;
    const auto splats = [&](std::string name, SplatParams params, bool resample) {
        params.resample = resample;
        all.push_back({std::move(name),
                       [params](const PaperDrive& drive) { return TracedModel::of_splats(drive, params); },
                       params.method == Method::adaptive});
    };
    splats("basic splats", SplatParams::of(Method::basic), false);
    splats("descriptors, 1 generation", SplatParams::of(Method::descriptors), false);
    splats("descriptors, resampled", SplatParams::of(Method::descriptors), true);
    splats("adaptive, 1 generation", SplatParams::of(Method::adaptive), false);
    splats("adaptive, resampled", SplatParams::of(Method::adaptive), true);
    splats("surfels (LiDARsim)", SplatParams::of(Method::surfels), false);
    all.push_back({"mesh, IMLS 7 cm", [](const PaperDrive& drive) {
                       const mesh::ImlsParams params;
                       return TracedModel::of_mesh(drive, params.voxel_steps(), mesh::ImlsField(params));
                   }});
    for (const double voxel_m : {0.2, 0.1})
        all.push_back(
            {"mesh, TSDF " + bench::three_digits(100 * voxel_m) + " cm", [voxel_m](const PaperDrive& drive) {
                 mesh::MeshParams params;
                 params.voxel_m = voxel_m;
                 return TracedModel::of_mesh(drive, params.voxel_steps(), mesh::TsdfField(params));
             }});
    all.push_back({"mesh, Poisson", [poisson = arguments.poisson](const PaperDrive& drive) {
                       return TracedModel::of_poisson(drive, poisson);
                   }});
    return all;
}

std::string text_of(const std::optional<double>& cm) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2f", cm.value_or(0));
    return cm ? text : "-";
}

/// All, each thin thing, and their average.
std::string text_of(const bench::ThinMeans& means) {
    const std::optional<double> columns[]{means.cm(), means.cm(Thin::fence), means.cm(Thin::pole),
                                          means.cm(Thin::sign), means.average_cm()};
    std::string text;
    for (const auto& column : columns) text += " " + text_of(column) + " |";
    return text;
}

void print_head() {
    std::puts(
        "| model | made, CPU s | million primitives | pictures/s | scans/s | returns, % | C2C, HDL-64E | "
        "fence "
        "| pole | sign | thin | C2C, own rays | fence | pole | sign | thin | truth |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
}

void print(const std::string& name, const TracedModel& model, const bench::Seen& s) {
    std::printf("| %s | %.1f | %.3f | %.2f | %.1f | %.1f |%s%s %s |\n", name.c_str(), model.made_cpu_s,
                static_cast<double>(model.primitives) * 1e-6, bench::ratio(1, s.picture_cpu_s),
                bench::ratio(1, s.scan_cpu_s),
                100 * bench::ratio(static_cast<double>(s.hits), static_cast<double>(s.rays)),
                text_of(s.c2c).c_str(), text_of(s.own_c2c).c_str(), text_of(s.truth.cm()).c_str());
    std::fflush(stdout);
}

PaperDrive drive_of(const Arguments& arguments, const std::filesystem::path& scratch) {
    if (!arguments.drive.inputs.empty()) return bench::open_paper_drive(arguments.drive);
    synth::SynthOptions options;
    options.length_m = arguments.length_m, options.points_per_metre = arguments.points_per_metre;
    options.seed = arguments.seed;
    return bench::make_paper_drive(scratch / "drive", options);
}

void run(const Arguments& arguments, bench::Report& report) {
    const bench::ScratchDirectory scratch;
    const PaperDrive drive = drive_of(arguments, scratch.path());
    const bench::ModelJudge judge(drive, arguments.scans);
    report.text(std::to_string(judge.points()) + " points; HDL-64E at (1, 1, -1) m without noise, " +
                std::to_string(arguments.scans) +
                " scans; own: the survey's own rays; distances in cm. Pictures of 2560 x 1440 and scans are "
                "those of one core. Poisson: depth " +
                std::to_string(arguments.poisson.depth) + ", from surfels, trimmed at " +
                bench::three_digits(100 * arguments.poisson.farthest_m) + " cm.\n");
    print_head();
    for (const Entry& entry : entries(arguments)) {
        if (!arguments.only.empty() && entry.name.find(arguments.only) == std::string::npos) continue;
        try {
            if (entry.needs_classes && drive.classes.classes().empty())
                throw InputError("nobody says what the classes of the points are; give --classes");
            const TracedModel model = entry.make(drive);
            print(entry.name, model, judge.look(model));
        } catch (const InputError& e) {
            std::printf("| %s | missing: %s |\n", entry.name.c_str(), e.what());
            std::fflush(stdout);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_models",
         "Tables 1 to 5 of AdaSplats in shape: splats, surfels and meshes of one drive, made, seen and "
         "scanned.",
         [&](bench::Flags& flags) {
             flags.text("--drive", arguments.drive.inputs,
                        "a directory that citysplat synth made, or the clouds of another drive: a folder, "
                        "pattern or @list (default: one is made)");
             flags.text("--trajectory", arguments.drive.trajectory,
                        "of the sensor of another drive (default: as citysplat info understands it)");
             flags.text("--classes", arguments.drive.classes, "class map of another drive");
             flags.number("--length", arguments.length_m, {10, 500, "m"}, "length of the drive that is made");
             flags.number("--points-per-metre", arguments.points_per_metre, {100, 1e6, ""}, "of that drive");
             flags.count("--seed", arguments.seed, 1'000'000, "of that drive");
             flags.count("--scans", arguments.scans, 1000, "scans, evenly along the drive");
             flags.text("--only", arguments.only, "models whose names contain this");
             flags.text("--poisson", arguments.poisson.program,
                        "the program that makes the Poisson mesh, as pcl_poisson_reconstruction does");
             flags.count("--poisson-depth", arguments.poisson.depth, 14, "of its octree");
             flags.count("--poisson-seconds", arguments.poisson.most_s, 1'000'000,
                         "after which it is ended and its mesh is missing");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
