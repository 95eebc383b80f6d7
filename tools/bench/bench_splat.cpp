/// Splat generation alone: points of a drive in memory, splats out. Points per second by method; the ratios
/// are of CPU time, against the method `basic` of the same run.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/point_store.hpp"
#include "core/error.hpp"
#include "model/class_map.hpp"
#include "model/tile_grid.hpp"
#include "model/trajectory.hpp"
#include "splat/search/neighbour_search.hpp"
#include "splat/splat_processor.hpp"

#include <tbb/parallel_for.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>

using namespace citysplat;

namespace {

struct Arguments {
    std::string drive;
    double tile_m = 64;
    std::string method;       ///< empty: all
    std::string generations;  ///< resample, single, or empty: both
};

struct Totals {
    std::atomic<std::uint64_t> splats{0}, widened{0}, points_with_halo{0};
};

void build(const bench::PointStore& store, const splat::SplatProcessor& processor, double tile_m,
           Totals& totals) {
    const TileGrid grid(tile_m);
    const LatticeBox b = store.bounds();
    std::vector<LatticeBox> cores;
    const auto first = grid.base_tile_of(b.min_x, b.min_y), last = grid.base_tile_of(b.max_x, b.max_y);
    for (std::int32_t iy = first.iy; iy <= last.iy; ++iy)
        for (std::int32_t ix = first.ix; ix <= last.ix; ++ix)
            if (const LatticeBox core = grid.core({0, ix, iy}); store.count_at_most(core) > 0)
                cores.push_back(core);
    const CancelToken cancel;
    tbb::parallel_for(std::size_t{0}, cores.size(), [&](std::size_t i) {
        std::int64_t halo = processor.initial_halo_steps();
        for (;;) {
            const tiling::Region region = store.read(cores[i], halo);
            totals.points_with_halo += region.points.size();
            const tiling::TileOutput out = processor.process(region, cancel);
            if (out.certified()) {
                totals.splats += out.splats.size();
                return;
            }
            ++totals.widened;
            halo = out.wanted_halo_steps;
        }
    });
}

void print_stages(const splat::StageTimes& times, double points) {
    for (std::size_t i = 0; i < splat::kStages.size(); ++i) {
        const double s = times.seconds(static_cast<splat::Stage>(i));
        if (s > 0)
            std::printf("    %-24s %8.2f s of CPU  %6.3f us a point\n",
                        std::string(splat::kStages[i].name).c_str(), s, 1e6 * s / points);
    }
    std::printf("    neighbour search is %.0f %% of %.2f s\n", 100 * times.search_share(),
                times.total_seconds());
}

/// What the build took, calibration not included.
bench::Elapsed measure(const bench::PointStore& store, const splat::SplatParams& params, double tile_m) {
    splat::SplatProcessor processor(params, ClassMap::load("synthetic"));
    Progress quiet;
    const auto calibration =
        bench::measure([&] { processor.set_calibration(processor.calibrate(store, CancelToken(), quiet)); });
    Totals totals;
    const auto building = bench::measure([&] { build(store, processor, tile_m, totals); });
    const auto n = static_cast<double>(store.total_points());
    const tiling::Calibration& c = processor.calibration();
    std::printf("%s%s: %llu splats, %.3f a point; calibrated in %.2f s, R %.4f m, E %.5f m, density %.2f\n",
                std::string(splat::to_string(params.method)).c_str(), params.resample ? ", resampled" : "",
                static_cast<unsigned long long>(totals.splats), static_cast<double>(totals.splats) / n,
                calibration.wall_s, c.mean_radius_m, c.mean_error_m, c.mean_density);
    std::printf("    halo %.2f m, %.2f times the points with it, widened %llu times\n",
                to_metres(processor.initial_halo_steps()), static_cast<double>(totals.points_with_halo) / n,
                static_cast<unsigned long long>(totals.widened));
    print_stages(processor.times(), n);
    return building;
}

void run(const Arguments& arguments, bench::Report& report) {
    const std::filesystem::path drive = arguments.drive;
    const auto files = bench::las_files_of(drive);
    const bench::PointStore store(files, Trajectory::read_tum(drive / "trajectory.tum"));
    if (store.total_points() == 0) throw InputError(drive.string() + " has no points");
    report.text(std::to_string(store.total_points()) + " points, tiles of " +
                bench::three_digits(arguments.tile_m) + " m, " + std::string(splat::instruction_set()));
    std::optional<bench::Elapsed> basic;
    for (const auto method : splat::kMethods)
        for (const bool resample : {false, true}) {
            const bool once = method == splat::Method::basic || method == splat::Method::surfels;
            if (once && resample) continue;
            const std::string name(splat::to_string(method));
            if (!arguments.method.empty() && arguments.method != name) continue;
            if (!arguments.generations.empty() && resample != (arguments.generations == "resample")) continue;
            splat::SplatParams params = splat::SplatParams::of(method);
            params.resample = resample;
            const bench::Elapsed building = measure(store, params, arguments.tile_m);
            if (method == splat::Method::basic) basic = building;
            bench::Row row{"splats, " + name + (resample ? ", with resampling" : ", one generation"),
                           static_cast<double>(store.total_points()) * 1e-6 / building.wall_s, "Mpts/s"};
            if (basic) row.ratio = bench::Ratio{bench::ratio(basic->cpu_s, building.cpu_s), "basic"};
            if (method == splat::Method::adaptive)
                report.row(row);
            else
                report.detail(row);
        }
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_splat",
         "Splat generation alone, from points in memory: points per second by method, against the method "
         "basic.",
         [&](bench::Flags& flags) {
             flags.required("DRIVE", arguments.drive, "a directory that citysplat synth made");
             flags.number("TILE_M", arguments.tile_m, {4, 1024, "m"}, "edge of a tile in metres");
             flags.one_of("METHOD", arguments.method, {"basic", "adaptive", "descriptors", "surfels"},
                          "one method (default: all)");
             flags.one_of("GENERATIONS", arguments.generations, {"resample", "single"},
                          "with resampling or without (default: both)");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
