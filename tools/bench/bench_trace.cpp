/// Ray casting: the bare Embree loop on the rays of one sensor against the tracer and the whole simulation,
/// in one run. Usage: bench_trace [CITY TRAJECTORY] [--splats N] [--scans N]
///
/// Without a city, a street of N discs along 400 m is made in memory (default 2 million).
#include "bench/bench_city.hpp"
#include "core/embree.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/drive/simulation.hpp"
#include "sim/output/scan_writer.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of all threads of this process: what a busy machine disturbs least.
double cpu_now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Best of a few runs, wall clock and CPU time each for itself.
struct Speed {
    double scans_per_s = 0, cpu_ms = 1e9;  ///< CPU time of one scan
};
template <class F>
Speed best_of(std::size_t scans, F f) {
    Speed best;
    for (int rep = 0; rep < 3; ++rep) {
        const double begin = now(), cpu = cpu_now();
        const double idle_s = f();  ///< time and CPU time that do not count
        const double n = static_cast<double>(scans);
        best.scans_per_s = std::max(best.scans_per_s, n / (now() - begin - idle_s));
        best.cpu_ms = std::min(best.cpu_ms, (cpu_now() - cpu) * 1e3 / n);
    }
    return best;
}

/// All discs of the city in one scene, one primitive each: the loop a program written for the purpose has.
class BareLoop {
  public:
    explicit BareLoop(const TileSource& city, Vec3d anchor) {
        for (std::size_t i = 0; i < city.tiles().size(); ++i) {
            const SplatTile tile = city.load(i);
            const TileFrame f = tile.frame();
            const Vec3d shift =
                Vec3d{static_cast<double>(f.x_m), static_cast<double>(f.y_m), static_cast<double>(f.z_m)} -
                anchor;
            for (std::size_t s = 0; s < tile.size(); ++s) {
                Disc d = tile.disc(s);
                d.centre = vec_cast<float>(vec_cast<double>(d.centre) + shift);
                discs_.push_back(make_trace_disc(d, 0));
                radius_.push_back(d.radius);
            }
        }
        device_ = rtcNewDevice(nullptr);
        scene_ = rtcNewScene(device_);
        RTCGeometry geometry = rtcNewGeometry(device_, RTC_GEOMETRY_TYPE_USER);
        rtcSetGeometryUserPrimitiveCount(geometry, static_cast<unsigned>(discs_.size()));
        rtcSetGeometryUserData(geometry, this);
        rtcSetGeometryBoundsFunction(
            geometry,
            [](const RTCBoundsFunctionArguments* a) {
                const auto& self = *static_cast<const BareLoop*>(a->geometryUserPtr);
                const TraceDisc& d = self.discs_[a->primID];
                const float r = self.radius_[a->primID];
                const auto reach = [r](float n) { return r * std::sqrt(std::max(0.0f, 1 - n * n)); };
                const Vec3f e{reach(d.normal.x), reach(d.normal.y), reach(d.normal.z)};
                *a->bounds_o = {d.centre.x - e.x, d.centre.y - e.y, d.centre.z - e.z, 0,
                                d.centre.x + e.x, d.centre.y + e.y, d.centre.z + e.z, 0};
            },
            nullptr);
        rtcSetGeometryIntersectFunction(geometry, &BareLoop::intersect);
        rtcCommitGeometry(geometry);
        rtcAttachGeometry(scene_, geometry);
        rtcReleaseGeometry(geometry);
        rtcCommitScene(scene_);
    }
    ~BareLoop() {
        rtcReleaseScene(scene_);
        rtcReleaseDevice(device_);
    }
    std::size_t discs() const { return discs_.size(); }

    /// Hits of packets of eight over rays relative to the anchor.
    std::size_t trace(std::span<const Ray> rays, Vec3d anchor) const {
        std::atomic<std::size_t> hits{0};
        tbb::parallel_for(tbb::blocked_range<std::size_t>(0, rays.size() / 8, 128), [&](const auto& range) {
            embree::Context context;
            embree::begin(context);
            alignas(64) RTCRayHit8 p;
            alignas(64) int valid[8];
            std::fill(valid, valid + 8, -1);
            std::size_t found = 0;
            for (std::size_t q = range.begin(); q < range.end(); ++q) {
                for (unsigned k = 0; k < 8; ++k) {
                    const Ray& r = rays[q * 8 + k];
                    const Vec3f o = vec_cast<float>(r.origin - anchor);
                    p.ray.org_x[k] = o.x, p.ray.org_y[k] = o.y, p.ray.org_z[k] = o.z;
                    p.ray.dir_x[k] = r.direction.x, p.ray.dir_y[k] = r.direction.y,
                    p.ray.dir_z[k] = r.direction.z;
                    p.ray.tnear[k] = r.t_min, p.ray.tfar[k] = r.t_max;
                    p.ray.time[k] = 0, p.ray.mask[k] = ~0u, p.ray.id[k] = k, p.ray.flags[k] = 0;
                    p.hit.geomID[k] = RTC_INVALID_GEOMETRY_ID;
                }
                embree::intersect(valid, scene_, context, p);
                for (unsigned k = 0; k < 8; ++k) found += p.hit.geomID[k] != RTC_INVALID_GEOMETRY_ID;
            }
            hits += found;
        });
        return hits;
    }

  private:
    static void intersect(const RTCIntersectFunctionNArguments* a) {
        const auto& self = *static_cast<const BareLoop*>(a->geometryUserPtr);
        const TraceDisc& d = self.discs_[a->primID];
        const unsigned n = a->N;
        RTCRayN* rays = RTCRayHitN_RayN(a->rayhit, n);
        RTCHitN* hits = RTCRayHitN_HitN(a->rayhit, n);
        self.meet(d, reinterpret_cast<float*>(rays), n, a->valid, [&](unsigned i) {
            RTCHitN_primID(hits, n, i) = a->primID;
            RTCHitN_geomID(hits, n, i) = a->geomID;
        });
    }
    template <class F>
    [[gnu::always_inline]] void meet(const TraceDisc& d, float* c, unsigned n, const int* valid,
                                     F found) const {
        float t[16];
        bool inside[16];
        for (unsigned i = 0; i < n; ++i) {
            const Vec3f origin{c[i], c[n + i], c[2 * n + i]},
                direction{c[4 * n + i], c[5 * n + i], c[6 * n + i]};
            inside[i] = meets(d, origin, direction, t[i]);
            inside[i] = inside[i] & (t[i] > c[3 * n + i]) & (t[i] < c[8 * n + i]) & (valid[i] != 0);
        }
        for (unsigned i = 0; i < n; ++i)
            if (inside[i]) c[8 * n + i] = t[i], found(i);
    }

    RTCDevice device_;
    RTCScene scene_;
    std::vector<TraceDisc> discs_;
    std::vector<float> radius_;
};

class NoSink : public ScanSink {
  public:
    void consume(const Scan&) override {}
    void conclude(const Scan&) override {}
};

/// Measures the last two thirds of the scans: by then all tiles are loaded.
class TimedSink : public ScanSink {
  public:
    TimedSink(ScanSink& sink, std::size_t scans) : sink_(sink), first_(scans / 3), last_(scans - 1) {}
    void consume(const Scan& scan) override { sink_.consume(scan); }
    void conclude(const Scan& scan) override {
        sink_.conclude(scan);
        if (scan.index == first_) begin_ = now(), cpu_begin_ = cpu_now();
        if (scan.index == last_) end_ = now(), cpu_end_ = cpu_now();
    }
    double scans_per_s() const { return static_cast<double>(last_ - first_) / (end_ - begin_); }
    double cpu_ms() const { return (cpu_end_ - cpu_begin_) * 1e3 / static_cast<double>(last_ - first_); }

  private:
    ScanSink& sink_;
    std::size_t first_, last_;
    double begin_ = 0, end_ = 0, cpu_begin_ = 0, cpu_end_ = 0;
};

struct Bench {
    const TileSource& city;
    const Trajectory& trajectory;
    SensorRun run;
    Schedule schedule;

    SimulationReport simulate_once(const Tracer& tracer, ScanSink& sink, bool prefetch = true,
                                   std::uint64_t budget = std::uint64_t{16} << 30) const {
        SimulationOptions options;
        options.schedule = schedule;
        options.cache.budget_bytes = budget;
        options.cache.prefetch = prefetch;
        CancelToken cancel;
        Progress progress;
        return simulate({city, tracer, run, trajectory, options}, sink, cancel, progress);
    }
};

}  // namespace

int main(int argc, char** argv) {
    std::size_t splats = 2000000;
    double scans = 60;
    std::vector<std::string> paths;
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "--splats") && i + 1 < argc)
            splats = std::strtoull(argv[++i], nullptr, 10);
        else if (!std::strcmp(argv[i], "--scans") && i + 1 < argc)
            scans = std::atof(argv[++i]);
        else
            paths.push_back(argv[i]);
    }
    const auto city = bench::open_or_make_city(paths, splats);
    const Trajectory trajectory =
        paths.size() > 1 ? read_trajectory(paths[1]) : bench::drive_through_made_city(scans / 10 + 0.01);
    Bench b{*city, trajectory, {Sensor::load("hdl-64e"), {}, 1}, {}};
    b.schedule.to_s = trajectory.begin_s() + scans / 10 - 0.05;
    const auto times = scan_times(b.run, trajectory, b.schedule);

    // Rays of all scans, once.
    std::vector<Firing> firings;
    fire(b.run.sensor, 0, firings);
    const Vec3d anchor = trajectory.poses()[0].world_from_body.translation;
    std::vector<std::vector<Ray>> rays;
    for (std::size_t i = 0; i < times.size(); ++i) {
        const ScanRays scan(b.run, trajectory, i, times[i], plan_of(firings));
        RayBatch batch;
        batch.generate(scan.view(), 0, scan.size());
        rays.emplace_back(batch.rays().begin(), batch.rays().end());
    }
    std::printf("%zu splats in %zu tiles; HDL-64: %zu rays a scan, %zu scans. Ratios are of CPU time.\n",
                static_cast<std::size_t>(bench::count_splats(*city)), city->tiles().size(), firings.size(),
                times.size());
    Speed bare;
    const auto line = [&](const std::string& name, const Speed& v, const std::string& note = "") {
        std::printf("%-46s %7.1f scans/s %8.2f CPU ms  %.2f  %s\n", name.c_str(), v.scans_per_s, v.cpu_ms,
                    bare.cpu_ms / v.cpu_ms, note.c_str());
        std::fflush(stdout);
    };
    std::size_t bare_hits = 0;
    {
        const double begin = cpu_now();
        const BareLoop loop(*city, anchor);
        const double built = cpu_now() - begin;
        bare = best_of(times.size(), [&] {
            bare_hits = 0;
            for (const auto& r : rays) bare_hits += loop.trace(r, anchor);
            return 0.0;
        });
        line("bare Embree loop: one scene, one disc a leaf", bare,
             "built in " + std::to_string(built) + " CPU s");
    }
    for (const unsigned per_leaf : {1u, 2u, 4u, 8u}) {
        const auto tracer = make_embree_tracer({"", true, per_leaf});
        const double begin = cpu_now();
        std::vector<TracerTilePtr> tiles(city->tiles().size());
        for (std::uint32_t i = 0; i < tiles.size(); ++i) tiles[i] = tracer->load(city->load(i));
        const double built = cpu_now() - begin;
        const TileSetPtr set = tracer->bind(tiles);
        std::atomic<std::size_t> hits{0};
        const Speed v = best_of(times.size(), [&] {
            hits = 0;
            for (const auto& r : rays)
                tbb::parallel_for(std::size_t{0}, (r.size() + 1023) / 1024, [&](std::size_t i) {
                    const auto part =
                        std::span(r).subspan(i * 1024, std::min<std::size_t>(1024, r.size() - i * 1024));
                    std::vector<Hit> out(part.size());
                    tracer->closest(*set, part, out);
                    std::size_t n = 0;
                    for (const Hit& h : out) n += h.exists();
                    hits += n;
                });
            return 0.0;
        });
        char note[160];
        std::snprintf(
            note, sizeof note, "built in %.2f CPU s, %.0f B/splat, hits %+.4f %%", built,
            static_cast<double>(tracer->resident_bytes()) / static_cast<double>(bench::count_splats(*city)),
            100 * (static_cast<double>(hits) / static_cast<double>(bare_hits) - 1));
        line("tracer, tiles, " + std::to_string(per_leaf) + " splats a leaf", v, note);
    }

    const auto tracer = make_embree_tracer();
    const auto simulation = [&](ScanSink& sink) {
        Speed best;
        for (int rep = 0; rep < 3; ++rep) {
            TimedSink timed(sink, times.size());
            b.simulate_once(*tracer, timed);
            best.scans_per_s = std::max(best.scans_per_s, timed.scans_per_s());
            best.cpu_ms = std::min(best.cpu_ms, timed.cpu_ms());
        }
        return best;
    };
    NoSink none;
    b.run.noise = false;
    const Speed closest = simulation(none);
    line("simulation: closest hit", closest);
    b.run.noise = true;
    line("simulation: noise", simulation(none));
    for (const char* format : {"kitti", "ply", "las"}) {
        const auto directory = std::filesystem::temp_directory_path() / "citysplat-bench-trace";
        ScanWriterOptions out;
        out.directory = directory;
        out.format = format;
        {
            ScanWriter writer(out);
            line(std::string("simulation: noise, attributes, ") + format + " files", simulation(writer));
        }
        std::filesystem::remove_all(directory);
    }
    b.run.hits = 5;
    b.run.noise = false;
    const Speed five = simulation(none);
    char note[64];
    std::snprintf(note, sizeof note, "%.2f of closest hit", closest.cpu_ms / five.cpu_ms);
    line("simulation: D = 5 hits", five, note);
}
