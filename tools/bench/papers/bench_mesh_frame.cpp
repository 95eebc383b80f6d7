/// Table I and Fig. 8 of "3D Surface Reconstruction from Voxel-based Lidar Data" (Roldão et al. 2019): meshes
/// of single HDL-64E frames against a noise-free sensor of 316 layers in the same place.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/papers/paper_imls.hpp"
#include "bench/papers/point_set.hpp"
#include "core/math/rng_hd.hpp"
#include "datasets/synth/truth.hpp"
#include "mesh/mesh_generation.hpp"
#include "mesh/tsdf_field.hpp"
#include "sim/scan/scanner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

using namespace citysplat;

namespace {

/// The paper does not say how far its sensors see. Table I does: with neighbourhoods of 2³ voxels (CN, k =
/// 1), whose mesh ends near the car, the farthest truth is 65 m from the mesh. Here it is at this range.
constexpr double kRange_m = 83;
/// "similarly to the real KITTI setup": of the sensor above the road there, and of the scanner here.
constexpr double kHeight_m = 1.73, kDriveHeight_m = 2.2;

struct Arguments {
    std::uint64_t frames = 5, seed = 1;
    double voxel_m = 0.2, range_m = kRange_m;
};

constexpr int kBins = 10;
constexpr double kBin_m = 5, kGood_m = 0.2;

/// Sums over frames of what one way of meshing is worth; means of the frames' figures, as in the paper.
struct Score {
    double ae_to_truth = 0, ae_from_truth = 0, hd_to_truth = 0, hd_from_truth = 0, good = 0, cpu_s = 0;
    double to_surface = 0;  ///< as ae_to_truth, but to the surfaces, not to points on them
    std::array<double, kBins> bin_sum{}, bin_count{};
    double frames = 0, triangles = 0;

    void add(const std::vector<Vec3d>& vertices, const bench::PointSet& truth, Vec3d sensor,
             const synth::Truth& surfaces) {
        const bench::PointSet mesh(vertices);
        const std::vector<double> to = truth.distances(vertices), from = mesh.distances(truth.points());
        const auto mean = [](const std::vector<double>& d) {
            double sum = 0;
            for (const double v : d) sum += v;
            return bench::ratio(sum, static_cast<double>(d.size()));
        };
        to_surface += mean(distances_to(surfaces, vertices));
        ae_to_truth += mean(to), ae_from_truth += mean(from);
        hd_to_truth += *std::max_element(to.begin(), to.end());
        hd_from_truth += *std::max_element(from.begin(), from.end());
        good +=
            static_cast<double>(std::count_if(to.begin(), to.end(), [](double d) { return d < kGood_m; })) /
            static_cast<double>(to.size());
        for (std::size_t i = 0; i < to.size(); ++i) {
            const auto bin = static_cast<std::size_t>(length(vertices[i] - sensor) / kBin_m);
            if (bin < kBins) bin_sum[bin] += to[i], ++bin_count[bin];
        }
        ++frames;
    }
    static std::vector<double> distances_to(const synth::Truth& surfaces, const std::vector<Vec3d>& places) {
        constexpr double kFarthest_m = 2;
        std::vector<synth::Truth::Nearest> nearest(places.size());
        surfaces.nearest(places, kFarthest_m, nearest);
        std::vector<double> distances;
        for (const auto& n : nearest) distances.push_back(n.distance_m);
        return distances;
    }
    double ae_sym() const { return 0.5 * (ae_to_truth + ae_from_truth) / frames; }
};

/// Frames of a synthetic street.
class Frames {
  public:
    explicit Frames(const Arguments& arguments) : sensor_(sim::Sensor::load("hdl-64e")) {
        synth::SynthOptions options;
        options.length_m = 200, options.points_per_metre = 100, options.seed = arguments.seed;
        options.localisation_m = 0;
        Progress quiet;
        synth::write_drive(scratch_.path() / "drive", options, quiet, CancelToken());
        truth_ = std::make_unique<synth::Truth>(synth::Truth::load(scratch_.path() / "drive"));
        trajectory_ = Trajectory::read_tum(scratch_.path() / "drive/trajectory.tum");
        sensor_.max_range_m = arguments.range_m;
        sim::fire(sensor_, 0, firings_);
        const auto [low, high] =
            std::minmax_element(firings_.begin(), firings_.end(),
                                [](const auto& a, const auto& b) { return a.direction.z < b.direction.z; });
        lowest_ = std::asin(low->direction.z), highest_ = std::asin(high->direction.z);
    }

    struct Frame {
        Vec3d sensor;
        std::vector<Vec3d> points, truth;
    };
    Frame make(std::uint64_t number, std::uint64_t of) const {
        constexpr int kLayers = 316, kColumns = 2083;
        const double share = (static_cast<double>(number) + 0.5) / static_cast<double>(of);
        Pose pose =
            trajectory_.at(trajectory_.begin_s() + share * (trajectory_.end_s() - trajectory_.begin_s()))
                .value();
        pose.translation.z += kHeight_m - kDriveHeight_m;
        std::vector<Vec3d> pattern, layers;
        for (const sim::Firing& f : firings_) pattern.push_back(vec_cast<double>(f.direction));
        for (int layer = 0; layer < kLayers; ++layer)
            for (int column = 0; column < kColumns; ++column)
                layers.push_back(vec_cast<double>(
                    sim::direction_of(2 * exact::kPi * column / kColumns,
                                      lowest_ + (highest_ - lowest_) * layer / (kLayers - 1))));
        return {pose.translation, cast(pose, pattern, true, number), cast(pose, layers, false, number)};
    }
    const synth::Truth& truth() const { return *truth_; }

  private:
    /// What rays from one place meet, with noise along them.
    std::vector<Vec3d> cast(const Pose& pose, const std::vector<Vec3d>& directions, bool noisy,
                            std::uint64_t key) const {
        std::vector<synth::Truth::WorldRay> rays;
        for (const Vec3d& d : directions)
            rays.push_back({pose.translation, normalized(rotate(pose.rotation, d))});
        std::vector<synth::Truth::Hit> hits(rays.size());
        truth_->intersect(rays, sensor_.max_range_m, hits);
        std::vector<Vec3d> points;
        for (std::size_t i = 0; i < hits.size(); ++i) {
            if (!hits[i].found || hits[i].range_m < sensor_.min_range_m) continue;
            const double range_m = hits[i].range_m;
            const double error_m =
                noisy ? sensor_.error.sigma_m.at(range_m) * rng::gaussian(rng::key(7, key), i) : 0;
            points.push_back(rays[i].origin + rays[i].direction * (range_m + error_m));
        }
        return points;
    }

    bench::ScratchDirectory scratch_;
    sim::Sensor sensor_;
    std::unique_ptr<synth::Truth> truth_;
    Trajectory trajectory_;
    std::vector<sim::Firing> firings_;
    double lowest_ = 0, highest_ = 0;
};

tiling::Region region_of(const Frames::Frame& frame) {
    tiling::Region region;
    region.frame = {static_cast<std::int64_t>(std::floor(frame.sensor.x)),
                    static_cast<std::int64_t>(std::floor(frame.sensor.y)),
                    static_cast<std::int64_t>(std::floor(frame.sensor.z))};
    const LatticePoint o = region.frame.origin();
    const std::int64_t far = 300 * kLatticePerMetre;
    region.core = {o.x - far, o.y - far, o.x + far, o.y + far};
    region.covered = region.core.widened(far);
    for (const Vec3d& p : frame.points) {
        const auto to_sensor = [](double d) {
            return static_cast<std::int16_t>(std::floor(d * TilePoint::kSensorStepsPerMetre + 0.5));
        };
        const Vec3d d = frame.sensor - p;
        region.points.push_back({static_cast<std::int32_t>(to_lattice(p.x) - o.x),
                                 static_cast<std::int32_t>(to_lattice(p.y) - o.y),
                                 static_cast<std::int32_t>(to_lattice(p.z) - o.z), 0, 0, 0, to_sensor(d.x),
                                 to_sensor(d.y), to_sensor(d.z), TilePoint::kNoSlot});
    }
    std::sort(region.points.begin(), region.points.end());
    return region;
}

struct Way {
    std::string name;
    std::function<std::unique_ptr<mesh::CornerField>(const tiling::Region&)> field;
    Score score{};
};

std::vector<Way> ways(double voxel_m) {
    std::vector<Way> result;
    const auto add_tsdf = [&](const std::string& name, mesh::MeshParams params) {
        params.voxel_m = voxel_m;
        params.validate();
        result.push_back(
            {name, [params](const tiling::Region&) { return std::make_unique<mesh::TsdfField>(params); }});
    };
    // The variants of the paper, which knows no thickness.
    const auto variant = [&](const std::string& name, bool adaptive, bool confident, int level) {
        mesh::MeshParams params;
        params.adaptive = adaptive, params.most_level = level, params.most_thickness = 0;
        if (!confident) params.confidence = 0;
        add_tsdf(name + ", k = " + std::to_string(level), params);
    };
    bench::PaperImls::Params imls;
    imls.radius_m = 5 * voxel_m, imls.h_m = imls.radius_m / 3;
    result.push_back({"IMLS", [imls, voxel_m](const tiling::Region& region) {
                          return std::make_unique<bench::PaperImls>(region, to_lattice(voxel_m), imls);
                      }});
    add_tsdf("ours", {});
    for (const int level : {5, 3}) {
        variant("AN+GC", true, true, level);
        variant("AN", true, false, level);
    }
    for (const int level : {5, 3, 1}) {
        variant("CN+GC", false, true, level);
        variant("CN", false, false, level);
    }
    return result;
}

void print(const std::vector<Way>& all, bench::Report& report) {
    std::printf("\n%-14s %28s %28s %8s %10s %10s %8s\n", "", "average error m", "Hausdorff distance m",
                "below", "surface", "triangles", "CPU s");
    std::printf("%-14s %9s %9s %8s %9s %9s %8s %8s\n", "", "P->GT", "GT->P", "sym", "P->GT", "GT->P", "sym",
                "0.2 m");
    for (const Way& w : all) {
        const Score& s = w.score;
        const double n = s.frames;
        std::printf("%-14s %9.3f %9.3f %8.3f %9.2f %9.2f %8.2f %6.1f %% %9.3f %10.0f %8.2f\n", w.name.c_str(),
                    s.ae_to_truth / n, s.ae_from_truth / n, s.ae_sym(), s.hd_to_truth / n,
                    s.hd_from_truth / n, 0.5 * (s.hd_to_truth + s.hd_from_truth) / n, 100 * s.good / n,
                    s.to_surface / n, s.triangles / n, s.cpu_s / n);
    }
    std::printf("\nerror P->GT in m by distance from the sensor (Fig. 8)\n%-14s", "up to");
    for (int bin = 1; bin <= kBins; ++bin) std::printf(" %5.0f m", bin * kBin_m);
    std::printf("\n");
    for (const Way& w : all) {
        std::printf("%-14s", w.name.c_str());
        for (std::size_t bin = 0; bin < kBins; ++bin)
            if (w.score.bin_count[bin] > 0)
                std::printf(" %7.3f", w.score.bin_sum[bin] / w.score.bin_count[bin]);
            else
                std::printf(" %7s", "-");
        std::printf("\n");
    }
    const Score &imls = all[0].score, &ours = all[1].score;
    report.text("");
    report.detail({"adaptive TSDF: average error, symmetric", ours.ae_sym(), "m",
                   bench::Ratio{bench::ratio(ours.ae_sym(), imls.ae_sym()), "IMLS"}, false});
    report.detail({"adaptive TSDF: vertices below 0.2 m", 100 * ours.good / ours.frames, "%", {}, false});
}

void run(const Arguments& arguments, bench::Report& report) {
    const Frames frames(arguments);
    std::vector<Way> all = ways(arguments.voxel_m);
    const std::int64_t voxel_steps = to_lattice(arguments.voxel_m);
    report.text("HDL-64E, " + std::to_string(arguments.frames) +
                " single frames of a synthetic street, voxels of " + bench::three_digits(arguments.voxel_m) +
                " m; GT: 316 noise-free layers");
    for (std::uint64_t i = 0; i < arguments.frames; ++i) {
        const Frames::Frame frame = frames.make(i, arguments.frames);
        const bench::PointSet truth(frame.truth);
        for (Way& way : all) {
            MeshTile tile;
            way.score.cpu_s += bench::measure([&] {
                                   tiling::Region region = region_of(frame);
                                   const auto field = way.field(region);
                                   tile =
                                       mesh::make_mesh(std::move(region), voxel_steps, *field, CancelToken());
                               }).cpu_s;
            std::vector<Vec3d> vertices;
            for (std::size_t v = 0; v < tile.vertex_count(); ++v)
                vertices.push_back(tile.world_m(tile.vertex(v)));
            if (vertices.empty()) throw InputError(way.name + " made no triangle of a frame");
            way.score.triangles += static_cast<double>(tile.triangle_count());
            way.score.add(vertices, truth, frame.sensor, frames.truth());
        }
    }
    print(all, report);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_mesh_frame",
         "Meshes of single HDL-64E frames against 316 noise-free layers: adaptive TSDF, its ablations and "
         "IMLS.",
         [&](bench::Flags& flags) {
             flags.count("--frames", arguments.frames, 1000, "frames, evenly along a street of 200 m");
             flags.count("--seed", arguments.seed, 1'000'000, "of the street");
             flags.number("--range", arguments.range_m, {5, 200, "m"},
                          "how far both sensors see; the default is taken from Table I");
             flags.number("--voxel", arguments.voxel_m, {0.02, 0.25, "m"}, "width of the voxels");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
