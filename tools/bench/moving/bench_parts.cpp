/// Parts: what moving things cost. The rays of an HDL-64E at a street with cars in it, in three ways side by
/// side: cars that are frozen during a sweep, cars that are moved 360 times a sweep (LiDARsim §4.1), and cars
/// that every ray meets at its own time; then whole simulations.
#include "bench/bench_city.hpp"
#include "bench/bench_clock.hpp"
#include "bench/bench_main.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "sim/drive/simulation.hpp"
#include "sim/scan/ray_batch.hpp"
#include "sim/traffic/scan_parts.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <string>

using namespace citysplat;
using namespace citysplat::sim;
using namespace citysplat::trace;

namespace {

struct Arguments {
    std::uint64_t splats = 1'800'000, scans = 20, actors = 50, primitives = 20'000, crowd = 5000, rounds = 5;
};

/// A closed surface like that of a car, of about `triangles` triangles.
TriangleMesh car_mesh(std::uint64_t triangles) {
    const auto rows =
        std::max<std::uint32_t>(4, static_cast<std::uint32_t>(std::sqrt(static_cast<double>(triangles) / 2)));
    TriangleMesh mesh;
    for (std::uint32_t i = 0; i <= rows; ++i)
        for (std::uint32_t j = 0; j < rows; ++j) {
            const double latitude = exact::kPi * (static_cast<double>(i) / rows - 0.5),
                         longitude = 2 * exact::kPi * j / rows;
            // A sphere that is pressed towards a box.
            const auto pressed = [](double v) { return v < 0 ? -std::sqrt(-v) : std::sqrt(v); };
            const double x = pressed(exact::cos(latitude) * exact::cos(longitude)),
                         y = pressed(exact::cos(latitude) * exact::sin(longitude)),
                         z = pressed(exact::sin(latitude));
            mesh.vertices.push_back(vec_cast<float>(Vec3d{2.2 * x, 0.9 * y, 0.75 + 0.75 * z}));
        }
    for (std::uint32_t i = 0; i < rows; ++i)
        for (std::uint32_t j = 0; j < rows; ++j) {
            const std::uint32_t a = i * rows + j, b = i * rows + (j + 1) % rows, c = a + rows, d = b + rows;
            mesh.triangles.push_back({a, b, c});
            mesh.triangles.push_back({b, d, c});
        }
    mesh.materials = {{"paint", 10, 0.4f}};
    return mesh;
}

/// A car that stays within 60 m of the sensor, or one of the crowd some kilometres away.
Actor car(std::uint32_t number, bool near, double seconds) {
    const auto random = [&](std::uint64_t i, double low, double high) {
        return rng::uniform(5, 8 * std::uint64_t{number} + i, low, high);
    };
    // Four lanes full of cars, none of them within 5 m.
    const double lanes[4] = {-6.8, -3.4, 3.4, 6.8};
    const double along = (number / 4 % 13 - 6.0) * 9 + random(0, -1.5, 1.5) + (number % 2 ? 4.5 : 0);
    const double x0 = 652100 + (std::fabs(along) < 5 ? along + 10 : along) +
                      (near ? 0 : 3000 + random(1, 0, 5000)),
                 y0 = 6861000 + lanes[number % 4], speed = 10 + random(3, -1, 1), turn = random(4, -0.1, 0.1);
    std::vector<StampedPose> poses;
    for (int i = 0; i <= static_cast<int>(seconds * 10) + 2; ++i)
        poses.push_back(
            {0.1 * i - 0.033, {{x0 + speed * 0.1 * i, y0, 0.05}, from_yaw_pitch_roll(turn * 0.1 * i, 0, 0)}});
    Actor actor;
    actor.name = "car " + std::to_string(number);
    actor.track = Track::along(actor.name, Trajectory(poses));
    actor.instance = static_cast<std::uint16_t>(number % 65535 + 1);
    return actor;
}

Traffic traffic_of(const Arguments& arguments, bool crowded) {
    std::vector<Shape> shapes;
    shapes.push_back({"car", car_mesh(arguments.primitives)});
    std::vector<Actor> actors;
    const std::uint64_t all = crowded ? std::max(arguments.crowd, arguments.actors) : arguments.actors;
    for (std::uint32_t i = 0; i < all; ++i)
        actors.push_back(car(i, i < arguments.actors, static_cast<double>(arguments.scans) / 10));
    return Traffic(std::move(shapes), std::move(actors));
}

class NoSink : public ScanSink {
  public:
    void consume(const Scan&) override {}
    void conclude(const Scan&) override {}
};

/// The same parts, as they are at one time.
struct FrozenParts {
    FrozenParts(std::span<const Part> moving, float time_s) : parts(moving.begin(), moving.end()) {
        keys.reserve(parts.size());
        for (Part& part : parts) {
            keys.push_back(pose_at(part.motion, time_s));
            part.motion = {&keys.back(), nullptr, 0};
        }
    }
    std::vector<PoseKey> keys;
    std::vector<Part> parts;
};

/// CPU time of a scan in ways that are measured in turns, so that what else the machine does hurts all alike.
class PartsBench {
  public:
    PartsBench(const TileSource& city, const Trajectory& trajectory, const Arguments& arguments,
               bench::Report& report)
        : city_(city),
          trajectory_(trajectory),
          arguments_(arguments),
          report_(report),
          traffic_(traffic_of(arguments, false)),
          crowded_(traffic_of(arguments, true)),
          ready_(traffic_, *tracer_) {
        run_.hits = 1;
        run_.noise = false;
        std::vector<TracerTilePtr> tiles;
        for (std::size_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(tracer_->load(city.load(i)));
        tiles_ = tracer_->bind(tiles);
        make_scans();
    }

    void run() {
        std::vector<Way> ways{{"no parts", [&] { return trace_still(0); }},
                              {"parts frozen during a sweep", [&] { return trace_still(1); }},
                              {"parts moved 360 times a sweep", [&] { return trace_still(360); }},
                              {"parts at each ray's own time", [&] { return trace_moving(); }}};
        in_turns("rays at tiles and parts, ", ways);
        std::vector<Way> drives{
            {"no traffic", [&] { return drive(nullptr); }},
            {std::to_string(arguments_.actors) + " actors", [&] { return drive(&traffic_); }},
            {std::to_string(arguments_.crowd) + " actors, " + std::to_string(arguments_.actors) +
                 " of them near",
             [&] { return drive(&crowded_); }}};
        in_turns("simulated, closest hit, ", drives);
    }

  private:
    struct OneScan {
        std::vector<Ray> rays;
        ScanParts parts;
    };
    struct Way {
        std::string name;
        std::function<std::uint64_t()> work;  ///< returns hits on parts
        double cpu_s = 1e300;
        std::uint64_t hits = 0;
    };

    void make_scans() {
        std::vector<Firing> firings;
        fire(run_.sensor, 0, firings);
        std::uint64_t parts = 0;
        for (std::uint64_t i = 0; i < arguments_.scans; ++i) {
            const double time_s = static_cast<double>(i) / 10;
            const ScanRays scan(run_, trajectory_, i, time_s, plan_of(firings));
            RayBatch batch;
            batch.generate(scan.view(), 0, scan.size());
            scans_.push_back({{batch.rays().begin(), batch.rays().end()},
                              ready_.during({time_s, sweep_seconds(run_.sensor)}, {scan.path(), 60})});
            parts += scans_.back().parts.parts().size();
        }
        report_.text(
            std::to_string(bench::count_splats(city_)) +
            " splats; HDL-64E: " + std::to_string(scans_[0].rays.size()) + " rays a scan; on average " +
            bench::three_digits(static_cast<double>(parts) / static_cast<double>(scans_.size())) +
            " parts of " + std::to_string(triangles()) + " triangles within 60 m. Ratios are of CPU time.");
    }
    std::size_t triangles() const {
        return std::get<TriangleMesh>(traffic_.shapes()[0].form).triangles.size();
    }

    void in_turns(const std::string& what, std::vector<Way>& ways) {
        for (std::uint64_t round = 0; round <= arguments_.rounds; ++round)
            for (Way& way : ways) {
                const double cpu_s = bench::measure([&] { way.hits = way.work(); }).cpu_s;
                if (round > 0) way.cpu_s = std::min(way.cpu_s, cpu_s);
            }
        const auto scans = static_cast<double>(arguments_.scans);
        for (const Way& way : ways)
            report_.detail(
                {what + way.name, 1e3 * way.cpu_s / scans, "CPU ms a scan",
                 bench::Ratio{bench::ratio(ways[0].cpu_s, way.cpu_s), "the rate of " + ways[0].name}, true,
                 bench::three_digits(static_cast<double>(way.hits) / scans) + " hits on parts a scan"});
    }

    /// Rays of all scans in `steps` pieces each, the parts as they are at the beginning of a piece; 0: none.
    std::uint64_t trace_still(std::size_t steps) const {
        std::uint64_t hits = 0;
        for (const OneScan& scan : scans_) {
            const std::size_t pieces = std::max<std::size_t>(1, steps);
            const std::size_t piece = (scan.rays.size() + pieces - 1) / pieces;
            for (std::size_t first = 0; first < scan.rays.size(); first += piece) {
                const std::span<const Part> moving = steps ? scan.parts.parts() : std::span<const Part>();
                const FrozenParts frozen(moving, scan.rays[first].time_s);
                hits += count_part_hits(
                    {*tiles_, frozen.parts},
                    std::span(scan.rays).subspan(first, std::min(piece, scan.rays.size() - first)));
            }
        }
        return hits;
    }
    std::uint64_t trace_moving() const {
        std::uint64_t hits = 0;
        for (const OneScan& scan : scans_) hits += count_part_hits({*tiles_, scan.parts.parts()}, scan.rays);
        return hits;
    }
    std::uint64_t count_part_hits(const Scene& scene, std::span<const Ray> rays) const {
        constexpr std::size_t kBatch = 1024;
        std::atomic<std::uint64_t> hits{0};
        tbb::parallel_for(std::size_t{0}, (rays.size() + kBatch - 1) / kBatch, [&](std::size_t i) {
            const auto batch = rays.subspan(i * kBatch, std::min(kBatch, rays.size() - i * kBatch));
            std::vector<Hit> found(batch.size());
            tracer_->closest(scene, batch, found);
            hits += static_cast<std::uint64_t>(
                std::count_if(found.begin(), found.end(), [](const Hit& h) { return h.instance != 0; }));
        });
        return hits;
    }

    std::uint64_t drive(const Traffic* traffic) const {
        SimulationOptions options;
        options.schedule.to_s = trajectory_.begin_s() + static_cast<double>(arguments_.scans) / 10 - 0.05;
        options.cache.budget_bytes = std::uint64_t{16} << 30;
        NoSink sink;
        CancelToken cancel;
        Progress progress;
        return simulate({city_, *tracer_, run_, trajectory_, options, traffic}, sink, cancel, progress)
            .part_hits;
    }

    const TileSource& city_;
    const Trajectory& trajectory_;
    const Arguments& arguments_;
    bench::Report& report_;
    SensorRun run_{Sensor::load("hdl-64e"), {}, 1};
    /// For the range of the sensor, as `simulate` makes it.
    const std::unique_ptr<Tracer> tracer_ =
        make_group_tracer({"", static_cast<float>(run_.sensor.max_range_m)});
    const Traffic traffic_, crowded_;
    const ReadyTraffic ready_;
    TileSetPtr tiles_;
    std::vector<OneScan> scans_;
};

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_parts",
         "Casts the rays of an HDL-64E at a street with cars: frozen during a sweep, moved 360 times a "
         "sweep, and "
         "at each ray's own time, side by side; then whole simulations with and without traffic.",
         [&](bench::Flags& flags) {
             flags.count("--splats", arguments.splats, 1'000'000'000, "splats of the street made in memory");
             flags.count("--scans", arguments.scans, 200, "scans, a tenth of a second each");
             flags.count("--actors", arguments.actors, 10'000, "cars within 60 m of the sensor");
             flags.count("--primitives", arguments.primitives, 10'000'000, "triangles of each, about");
             flags.count("--crowd", arguments.crowd, 10'000'000, "cars in the scenario, those included");
             flags.count("--rounds", arguments.rounds, 1000, "times that everything is measured");
         },
         [&](bench::Report& report) {
             const auto city = bench::open_or_make_city("", arguments.splats);
             const Trajectory trajectory =
                 bench::drive_through_made_city(static_cast<double>(arguments.scans) / 10 + 0.01);
             PartsBench(*city, trajectory, arguments, report).run();
         }},
        argc, argv);
}
