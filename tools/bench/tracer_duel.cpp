#include "bench/tracer_duel.hpp"

#include "bench/bench_city.hpp"
#include "bench/bench_clock.hpp"
#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "sim/drive/simulation.hpp"
#include "sim/scan/ray_batch.hpp"
#include "trace/resident_city.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace citysplat::bench {

namespace {

using trace::Hit;
using trace::HitList;
using trace::Ray;

constexpr std::uint32_t kDepth = 5;
constexpr float kGap_m = 0.1f;
const std::string kScattered = "scattered";

/// A tracer with the whole city loaded.
struct Contender {
    std::unique_ptr<trace::Tracer> tracer;
    trace::TileSetPtr tiles{};
    Elapsed loading{};  ///< from the files on
};

Contender enter(std::unique_ptr<trace::Tracer> tracer, const TileSource& city) {
    Contender contender{std::move(tracer)};
    std::vector<trace::TracerTilePtr> tiles;
    contender.loading = best_of(3, [&] {
        tiles.clear();
        for (std::size_t i = 0; i < city.tiles().size(); ++i)
            tiles.push_back(contender.tracer->load(city.load(i)));
    });
    contender.tiles = contender.tracer->bind(tiles);
    return contender;
}

/// Room for the hits of one scan, however many are kept of each ray.
struct Results {
    std::vector<Hit> hits;
    std::vector<HitList> lists;

    void clear(std::size_t rays, std::uint32_t depth) {
        hits.assign(depth == 1 ? rays : 0, Hit{});
        lists.resize(depth == 1 ? 0 : rays);
        for (HitList& list : lists) list.count = 0;
    }
    bool operator==(const Results& other) const {
        if (hits.size() != other.hits.size() || lists.size() != other.lists.size()) return false;
        if (std::memcmp(hits.data(), other.hits.data(), hits.size() * sizeof(Hit)) != 0) return false;
        return std::equal(
            lists.begin(), lists.end(), other.lists.begin(), [](const HitList& a, const HitList& b) {
                return a.count == b.count && std::memcmp(a.hits, b.hits, a.count * sizeof(Hit)) == 0;
            });
    }
};

void trace_all(const Contender& contender, std::span<const Ray> rays, std::uint32_t depth, Results& results) {
    const std::size_t batch = trace::shared_batch(*contender.tracer, rays);
    parallel_for((rays.size() + batch - 1) / batch, [&](std::size_t i) {
        const std::size_t first = i * batch, count = std::min(batch, rays.size() - first);
        const auto part = rays.subspan(first, count);
        if (depth == 1)
            contender.tracer->closest(*contender.tiles, part, std::span(results.hits).subspan(first, count));
        else
            contender.tracer->nearest(*contender.tiles, part, depth, kGap_m,
                                      std::span(results.lists).subspan(first, count));
    });
}

std::vector<std::vector<Ray>> rays_of(const std::string& sensor, const Trajectory& trajectory,
                                      std::uint64_t scans) {
    const sim::SensorRun run{sim::Sensor::load(sensor), {}, 1};
    const std::vector<double> times = sim::scan_times(run, trajectory, {});
    std::vector<std::vector<Ray>> rays;
    std::vector<sim::Firing> firings;
    for (std::uint64_t i = 0; i < scans; ++i) {
        const std::size_t at = times.size() * i / scans;
        if (!run.sensor.repeats()) firings.clear();
        const sim::ScanRays scan(run, trajectory, at, times[at], sim::plan_firings(run.sensor, at, firings));
        sim::RayBatch batch;
        batch.generate(scan.view(), 0, scan.size());
        rays.emplace_back(batch.rays().begin(), batch.rays().end());
    }
    return rays;
}

/// Rays of no sensor: from anywhere on the drive to anywhere.
std::vector<std::vector<Ray>> scattered_rays(const Trajectory& trajectory, std::uint64_t scans) {
    constexpr std::uint64_t kRays = 20'000, kSeed = 5;
    std::vector<std::vector<Ray>> rays(scans);
    for (std::uint64_t i = 0; i < scans * kRays; ++i) {
        const auto& poses = trajectory.poses();
        const Vec3d at = poses[rng::bits(kSeed, 6 * i) % poses.size()].world_from_body.translation;
        const auto random = [&](std::uint64_t k, double size) {
            return rng::uniform(kSeed, 6 * i + k, -size, size);
        };
        const Vec3d origin = at + Vec3d{random(1, 3), random(2, 3), 2};
        rays[i / kRays].push_back(
            {origin, vec_cast<float>(normalized(Vec3d{random(3, 1), random(4, 1), random(5, 0.3)})), 0, 120});
    }
    return rays;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
}

/// What a round took, for each contender.
struct Times {
    std::vector<double> cpu_ms, wall_ms;

    void add(const Elapsed& sum, std::size_t scans) {
        cpu_ms.push_back(sum.cpu_s * 1e3 / static_cast<double>(scans));
        wall_ms.push_back(sum.wall_s * 1e3 / static_cast<double>(scans));
    }
};

/// A sensor, how many hits of each ray it wants, on how many threads.
struct Bout {
    std::string sensor;
    std::uint32_t depth;
    int threads;

    std::string text() const {
        return sensor + (depth == 1 ? ", closest" : ", " + std::to_string(depth) + " hits") +
               (threads == 1 ? ", 1 thread" : ", " + std::to_string(threads) + " threads");
    }
};

/// Embree and the group tracer in turns.
class Duel {
  public:
    Duel(const Contender& embree, const Contender& groups, std::uint64_t rounds)
        : contenders_{&embree, &groups}, rounds_(rounds) {}

    Row run(const Bout& bout, std::span<const std::vector<Ray>> scans) {
        tbb::task_arena arena(bout.threads);
        Times times[2];
        for (std::uint64_t round = 0; round < rounds_; ++round) {
            Elapsed sum[2];
            for (const auto& rays : scans) {
                for (int c = 0; c < 2; ++c) {
                    results_[c].clear(rays.size(), bout.depth);
                    const Elapsed elapsed = measure([&] {
                        arena.execute([&] { trace_all(*contenders_[c], rays, bout.depth, results_[c]); });
                    });
                    sum[c] = {sum[c].wall_s + elapsed.wall_s, sum[c].cpu_s + elapsed.cpu_s};
                }
                if (!(results_[0] == results_[1]))
                    throw CorruptionError(bout.text() + ": the hits of the group tracer are not Embree's");
            }
            for (int c = 0; c < 2; ++c) times[c].add(sum[c], scans.size());
        }
        const double cpu_ms[2] = {median(times[0].cpu_ms), median(times[1].cpu_ms)};
        const double wall_ms[2] = {median(times[0].wall_ms), median(times[1].wall_ms)};
        char note[160];
        std::snprintf(note, sizeof note, "CPU %.2f ms, Embree %.2f; wall clock %.2f ms, Embree %.2f: %.2f x",
                      cpu_ms[1], cpu_ms[0], wall_ms[1], wall_ms[0], ratio(wall_ms[0], wall_ms[1]));
        return {bout.text(), 1e3 / wall_ms[1], "scans/s", Ratio{ratio(cpu_ms[0], cpu_ms[1]), "Embree"}, true,
                note};
    }

  private:
    const Contender* contenders_[2];
    std::uint64_t rounds_;
    Results results_[2];
};

Row loading_row(const Contender& embree, const Contender& groups, double splats) {
    const auto bytes = [&](const Contender& c) {
        return three_digits(static_cast<double>(c.tracer->resident_bytes()) / splats) + " bytes a splat";
    };
    return {
        "tiles from file to traceable, 1 thread",
        1e-6 * splats / groups.loading.cpu_s,
        "Msplats/s",
        Ratio{ratio(embree.loading.cpu_s, groups.loading.cpu_s), "Embree"},
        true,
        groups.tracer->name() + ": " + bytes(groups) + "; " + embree.tracer->name() + ": " + bytes(embree)};
}

}  // namespace

void compare_tracers(const TileSource& city, const Trajectory& trajectory, const DuelOptions& options,
                     Report& report) {
    const Contender embree = enter(trace::make_embree_tracer(), city);
    const Contender groups = enter(trace::make_group_tracer({options.instruction_set}), city);
    report.row(loading_row(embree, groups, static_cast<double>(count_splats(city))));
    std::vector<std::string> sensors = options.sensors;
    if (sensors.empty()) {
        sensors = sim::Sensor::builtin_names();
        sensors.push_back(kScattered);
    }
    Duel duel(embree, groups, options.rounds);
    for (const std::string& sensor : sensors) {
        const auto scans = sensor == kScattered ? scattered_rays(trajectory, options.scans)
                                                : rays_of(sensor, trajectory, options.scans);
        for (const std::uint32_t depth : {1u, kDepth})
            for (const int threads : {1, 2}) {
                const Row row = duel.run({sensor, depth, threads}, scans);
                if (sensor == "hdl-64e" && threads == 1)
                    report.row(row);
                else
                    report.detail(row);
            }
    }
}

}  // namespace citysplat::bench
