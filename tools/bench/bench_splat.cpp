// Splat generation alone: points of a drive in memory, splats out. Seconds and points per second by method.
//   bench_splat DRIVE_DIR [TILE_M [METHOD [resample|single]]]
#include "model/class_map.hpp"
#include "model/tile_grid.hpp"
#include "model/trajectory.hpp"
#include "point_store.hpp"
#include "splat/search/neighbour_search.hpp"
#include "splat/splat_processor.hpp"

#include <tbb/parallel_for.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

using namespace citysplat;

namespace {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

}  // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    if (argc < 2) {
        std::cerr << "usage: bench_splat DRIVE_DIR [TILE_M [METHOD [resample|single]]]\n";
        return 2;
    }
    const std::filesystem::path drive = argv[1];
    const double tile_m = argc > 2 ? std::atof(argv[2]) : 64;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(drive))
        if (entry.path().extension() == ".las") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    const bench::PointStore store(files, Trajectory::read_tum(drive / "trajectory.tum"));
    std::printf("%llu points, tiles of %g m, %s\n", static_cast<unsigned long long>(store.total_points()),
                tile_m, std::string(splat::instruction_set()).c_str());
    std::printf("%-12s %-8s %9s %9s %9s %9s %8s %8s %9s %7s %7s\n", "method", "resample", "cal s", "build s",
                "Mpts/s", "splats", "per pt", "R m", "E m", "dens", "halo m");
    for (const auto method : {splat::Method::basic, splat::Method::adaptive, splat::Method::descriptors})
        for (const bool resample : {false, true}) {
            if (method == splat::Method::basic && resample) continue;
            if (argc > 3 && splat::to_string(method) != argv[3]) continue;
            if (argc > 4 && resample != (std::string(argv[4]) == "resample")) continue;
            splat::SplatParams params = splat::SplatParams::of(method);
            params.resample = resample;
            splat::SplatProcessor processor(params, ClassMap::load("synthetic"));
            Progress quiet;
            const double t0 = now_s();
            processor.set_calibration(processor.calibrate(store, CancelToken(), quiet));
            const double t1 = now_s();
            Totals totals;
            build(store, processor, tile_m, totals);
            const double t2 = now_s();
            const auto n = static_cast<double>(store.total_points());
            const tiling::Calibration& c = processor.calibration();
            std::printf(
                "%-12s %-8s %9.2f %9.2f %9.3f %9llu %8.3f %8.4f %9.5f %7.2f %7.2f  halo points %.2f, widened "
                "%llu\n",
                std::string(splat::to_string(method)).c_str(), resample ? "yes" : "no", t1 - t0, t2 - t1,
                n / (t2 - t1) / 1e6, static_cast<unsigned long long>(totals.splats),
                static_cast<double>(totals.splats) / n, c.mean_radius_m, c.mean_error_m, c.mean_density,
                to_metres(processor.initial_halo_steps()), static_cast<double>(totals.points_with_halo) / n,
                static_cast<unsigned long long>(totals.widened));
            print_stages(processor.times(), n);
        }
}
