#include "datasets/synth/truth.hpp"
#include "io/input/open_point_file.hpp"
#include "memory_city.hpp"
#include "model/class_map.hpp"
#include "splat/generation/tile_generation.hpp"
#include "splat/splat_processor.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>

using namespace citysplat;
using namespace citysplat::splat;
using test::MemoryCity;
using test::WorldPoint;

namespace {

/// Returns of a drive with the sensor positions that its trajectory gives them.
struct SeenPoints {
    std::vector<WorldPoint> points;
    std::vector<Vec3d> place, sensor;
};

SeenPoints read_drive(const std::filesystem::path& directory, const synth::TruthFile& truth) {
    const Trajectory trajectory = Trajectory::read_tum(directory / "trajectory.tum");
    SeenPoints seen;
    PointBatch batch;
    for (const auto& name : truth.scanners[0].files) {
        const auto file = open_point_file(directory / name.name);
        for (std::size_t block = 0; block < file->block_count(); ++block) {
            file->read_block(block, batch);
            for (std::size_t i = 0; i < batch.size(); ++i) {
                const Vec3d p{batch.x[i], batch.y[i], batch.z[i]};
                const Vec3d s = trajectory.at(batch.gps_time[i]).value().translation;
                const auto steps = [](double m) { return static_cast<std::int16_t>(std::lround(m * 64)); };
                WorldPoint w;
                w.place = {to_lattice(p.x), to_lattice(p.y), to_lattice(p.z)};
                w.label = batch.label[i];
                w.sensor_dx = steps(s.x - p.x), w.sensor_dy = steps(s.y - p.y),
                w.sensor_dz = steps(s.z - p.z);
                seen.points.push_back(w), seen.place.push_back(p), seen.sensor.push_back(s);
            }
        }
    }
    return seen;
}

/// The return nearest to a place, within 30 cm of it, by cells of that size.
class NearestReturn {
  public:
    explicit NearestReturn(const SeenPoints& seen) : seen_(seen) {
        for (std::size_t i = 0; i < seen.place.size(); ++i) cells_[cell(seen.place[i])].push_back(i);
    }
    std::optional<std::size_t> to(Vec3d p) const {
        std::optional<std::size_t> best;
        double best2 = kReach_m * kReach_m;
        const auto c = cell(p);
        for (std::int64_t k = 0; k < 27; ++k) {
            const auto found = cells_.find({c[0] + k % 3 - 1, c[1] + k / 3 % 3 - 1, c[2] + k / 9 - 1});
            if (found == cells_.end()) continue;
            for (const std::size_t i : found->second) {
                const Vec3d d = seen_.place[i] - p;
                if (dot(d, d) < best2) best2 = dot(d, d), best = i;
            }
        }
        return best;
    }

  private:
    static constexpr double kReach_m = 0.3;
    using Cell = std::array<std::int64_t, 3>;
    static Cell cell(Vec3d p) {
        const auto index = [](double v) { return static_cast<std::int64_t>(std::floor(v / kReach_m)); };
        return {index(p.x), index(p.y), index(p.z)};
    }
    const SeenPoints& seen_;
    std::map<Cell, std::vector<std::size_t>> cells_;
};

}  // namespace

TEST_CASE("normals point to where a synthetic drive saw the surface from") {
    const test::TempDir temp;
    synth::SynthOptions options;
    options.length_m = 8, options.points_per_metre = 20000, options.range_m = 30, options.seed = 3;
    Progress quiet;
    const auto truth = synth::write_drive(temp.path() / "drive", options, quiet, CancelToken());
    const SeenPoints seen = read_drive(temp.path() / "drive", truth);
    const NearestReturn nearest(seen);
    const MemoryCity city(seen.points);
    for (const Method method : kMethods) {
        INFO(to_string(method));
        SplatProcessor processor(SplatParams::of(method), ClassMap::load("synthetic"));
        processor.set_calibration(processor.calibrate(city, CancelToken(), quiet));
        const auto out = processor.process(city.read(city.bounds(), to_lattice(20)), CancelToken());
        REQUIRE(out.certified());
        const TileFrame f = out.splats.frame();
        const Vec3d origin{static_cast<double>(f.x_m), static_cast<double>(f.y_m),
                           static_cast<double>(f.z_m)};
        int away = 0, all = 0;
        for (std::size_t i = 0; i < out.splats.size(); ++i) {
            const Disc d = out.splats.disc(i);
            const Vec3d centre = origin + vec_cast<double>(d.centre);
            const auto at = nearest.to(centre);
            if (!at) continue;
            ++all;
            // The nearest return need not be the seed: a disc seen edge-on, to 3°, may have been seen from
            // both sides.
            away += dot(vec_cast<double>(d.normal), normalized(seen.sensor[*at] - centre)) < -0.05;
        }
        CHECK(all > 10'000);
        CHECK(away * 1000 <= all);
    }
}

TEST_CASE("no normal points away from the sensor that saw its seed") {
    const auto street = test::small_street(10, 400, 5);
    const MemoryCity city(street);
    const ClassMap classes = ClassMap::load("synthetic");
    for (const Method method : {Method::basic, Method::adaptive, Method::descriptors}) {
        INFO(to_string(method));
        tiling::Region region = city.read(city.bounds(), to_lattice(20));
        const GenerationSettings settings(SplatParams::of(method), {0.12, 0.01, 7, 1});
        const FirstGeneration first = generate_first(region, classes, settings, CancelToken());
        REQUIRE(first.generation.splats.size() > 1000);
        int away = 0;
        for (const SeededSplat& s : first.generation.splats) {
            constexpr double kStep = static_cast<double>(kLatticePerMetre) / TilePoint::kSensorStepsPerMetre;
            const PointCloud& c = first.cloud;
            const Vec3d centre{static_cast<double>(s.splat.x - c.x[s.seed]),
                               static_cast<double>(s.splat.y - c.y[s.seed]),
                               static_cast<double>(s.splat.z - c.z[s.seed])};
            const Vec3d to_sensor = normalized(c.attributes[s.seed].to_sensor() * kStep - centre);
            REQUIRE(s.oriented);
            away += dot(vec_cast<double>(s.normal), to_sensor) < -1e-6;
            away += dot(vec_cast<double>(unpack_normal(s.splat.normal)), to_sensor) < -1e-3;
        }
        CHECK(away == 0);
    }
}
