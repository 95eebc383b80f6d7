/// What tools/bench/sessions/cast holds Python against: the same rays by the bare tracer.
#include "bench/bench_clock.hpp"
#include "bench/bench_main.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "tiling/store/city_reader.hpp"
#include "trace/resident_city.hpp"
#include "trace/tracer.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using namespace citysplat;
using namespace citysplat::trace;

namespace {

struct Arguments {
    std::string city, rays;
    std::uint64_t rounds = 3;
    double range_m = 200;
};

/// Rows of six doubles: origin and direction.
std::vector<Ray> read_rays(const std::string& path, float range_m) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in) throw InputError("cannot read " + path);
    std::vector<double> numbers(static_cast<std::size_t>(in.tellg()) / sizeof(double));
    in.seekg(0);
    in.read(reinterpret_cast<char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(double)));
    if (numbers.empty() || numbers.size() % 6 != 0) throw InputError(path + " has no rows of six doubles");
    std::vector<Ray> rays;
    rays.reserve(numbers.size() / 6);
    for (std::size_t i = 0; i < numbers.size(); i += 6) {
        const double* n = numbers.data() + i;
        rays.push_back({{n[0], n[1], n[2]}, vec_cast<float>(Vec3d{n[3], n[4], n[5]}), 0, range_m});
    }
    return rays;
}

void run(const Arguments& arguments, bench::Report& report) {
    const tiling::CityReader city(arguments.city);
    const auto rays = read_rays(arguments.rays, static_cast<float>(arguments.range_m));
    const auto tracer = make_group_tracer({"", static_cast<float>(std::max(arguments.range_m, 250.0))});
    std::vector<TracerTilePtr> tiles;
    for (std::size_t i = 0; i < city.tiles().size(); ++i)
        if (city.tiles()[i].splats > 0) tiles.push_back(tracer->load(city.load(i)));
    const TileSetPtr set = tracer->bind(tiles);
    const std::size_t batch = shared_batch(*tracer, rays);
    std::vector<Hit> hits;
    const bench::Elapsed best = bench::best_of(static_cast<int>(arguments.rounds), [&] {
        hits.assign(rays.size(), Hit{});
        parallel_for((rays.size() + batch - 1) / batch, [&](std::size_t i) {
            const std::size_t first = i * batch, count = std::min(batch, rays.size() - first);
            tracer->closest(*set, std::span(rays).subspan(first, count),
                            std::span(hits).subspan(first, count));
        });
    });
    const auto met =
        static_cast<std::uint64_t>(std::ranges::count_if(hits, [](const Hit& hit) { return hit.exists(); }));
    bench::require_hits(met, rays.size(), "give rays that are in the city");
    report.text(std::to_string(met) + " " + std::to_string(best.wall_s) + " " + std::to_string(best.cpu_s));
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_cast",
         "Casts rays of a file at a city with the bare tracer, all tiles in memory, and prints how many met "
         "something, and seconds of wall clock and of processor, best of some rounds each. "
         "tools/bench/sessions/cast writes the file, and holds Python's cast against it.",
         [&](bench::Flags& flags) {
             flags.required("CITY", arguments.city, "a city that citysplat build made");
             flags.required("RAYS", arguments.rays, "rows of six doubles: origin and direction");
             flags.count("--rounds", arguments.rounds, 1000, "times that all rays are cast");
             flags.number("--range", arguments.range_m, {1, 1000, "m"}, "of the rays");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
