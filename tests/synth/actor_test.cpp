#include "datasets/synth/truth.hpp"
#include "io/input/open_point_file.hpp"
#include "sim/clearance/convex.hpp"
#include "sim/drive/scenario.hpp"
#include "sim/traffic/traffic_plan.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>

using namespace citysplat;
using namespace citysplat::synth;

namespace {

/// A perfect survey of a street with traffic, and its moving things as files.
struct LivelyDrive {
    test::TempDir directory;
    TruthFile truth;
    std::vector<Vec3d> points;
    std::vector<double> times;
    std::vector<std::uint16_t> labels;

    LivelyDrive() {
        SynthOptions o;
        o.seed = 11;
        o.length_m = 60;
        o.points_per_metre = 4000;
        o.range_m = 40;
        o.noise_m = o.localisation_m = 0;
        o.mixed_pixels = o.outliers = false;
        o.actors = true;
        Progress progress;
        const CancelToken cancel;
        truth = write_drive(directory.path(), o, progress, cancel);
        for (const CloudFile& file : truth.scanners[0].files) {
            const auto reader = open_point_file(directory / file.name);
            PointBatch batch;
            for (std::size_t b = 0; b < reader->block_count(); ++b) {
                reader->read_block(b, batch);
                for (std::size_t i = 0; i < batch.size(); ++i) {
                    points.push_back({batch.x[i], batch.y[i], batch.z[i]});
                    times.push_back(batch.gps_time[i]);
                    labels.push_back(batch.label[i]);
                }
            }
        }
    }
    bool moves(std::size_t i) const {
        return labels[i] == label::moving_vehicle || labels[i] == label::pedestrian;
    }
};

const LivelyDrive& lively() {
    static const LivelyDrive drive;
    return drive;
}

}  // namespace

TEST_CASE("rays at their own time meet what the survey met when everything moves") {
    const LivelyDrive& d = lively();
    const Truth truth(d.truth);
    std::vector<Truth::WorldRay> rays;
    std::vector<double> ranges;
    for (std::size_t i = 0; i < d.points.size(); ++i) {
        const Vec3d from = truth.true_pose(d.times[i]).translation, way = d.points[i] - from;
        ranges.push_back(length(way));
        rays.push_back({from, (1 / length(way)) * way});
    }
    std::vector<Truth::Hit> hits(rays.size());
    truth.intersect_at(rays, d.times, 45, hits);
    std::size_t moving = 0, wrong = 0;
    for (std::size_t i = 0; i < rays.size(); ++i) {
        moving += d.moves(i);
        // Points are written to a millimetre; a ray that grazes an edge may meet the other side of it.
        wrong +=
            !hits[i].found || std::fabs(hits[i].range_m - ranges[i]) > 0.01 || hits[i].label != d.labels[i];
    }
    CHECK(moving > 200);
    CHECK(static_cast<double>(wrong) <= 0.0005 * static_cast<double>(rays.size()));
}

TEST_CASE("meshes with tracks are where the truth has everything that moves") {
    const LivelyDrive& d = lively();
    const sim::Scenario scenario = sim::Scenario::load(d.directory / "actors/scenario.toml");
    const sim::TrafficSpan span{Drive::kBegin_s, Drive::kBegin_s + 1000, {{0, 0, 0}, {1e7, 1e7, 0}}};
    const sim::TrafficPlan plan = sim::plan_traffic(scenario.things, ClassMap::load("synthetic"), span, {});
    REQUIRE(plan.actors.size() > 20);
    std::size_t asked = 0, off = 0;
    double worst = 0;
    for (std::size_t i = 0; i < d.points.size(); i += 3) {
        if (!d.moves(i)) continue;
        double nearest = 1;
        std::uint16_t label = 0;
        for (std::size_t a = 0; a < plan.actors.size(); ++a) {
            const sim::Actor& actor = plan.actors[a];
            if (!actor.track.exists(d.times[i])) continue;
            const Pose world_from_shape = actor.track.pose_at(d.times[i]) * actor.object_from_shape;
            if (length(d.points[i] - world_from_shape.translation) > 5) continue;
            const Vec3d p = inverse(world_from_shape).apply(d.points[i]);
            const auto& mesh = std::get<TriangleMesh>(plan.shapes[actor.shape].form);
            for (const auto& t : mesh.triangles) {
                const sim::convex::Triangle triangle{vec_cast<double>(mesh.vertices[t[0]]),
                                                     vec_cast<double>(mesh.vertices[t[1]]),
                                                     vec_cast<double>(mesh.vertices[t[2]])};
                const double distance = length(p - triangle.nearest(p));
                if (distance < nearest) nearest = distance, label = mesh.materials[0].label;
            }
        }
        ++asked;
        worst = std::max(worst, nearest);
        // Points are written to a millimetre, and round things have 48 sides.
        off += nearest > 0.0025 || label != d.labels[i];
    }
    INFO(asked << " points, worst " << worst << " m");
    CHECK(asked > 70);
    CHECK(off == 0);
}
