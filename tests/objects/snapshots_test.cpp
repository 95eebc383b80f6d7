#include "objects/snapshots.hpp"

#include "core/error.hpp"
#include "objects/driven_van.hpp"
#include "objects/frames/snapshot_discs.hpp"
#include "objects/object_points.hpp"
#include "temp_dir.hpp"
#include "trace/tracer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace citysplat;
using namespace citysplat::objects;

namespace {

const CancelToken kNeverCancelled;

ScanInputs scans_of(const test::DrivenVan& drive) {
    ScanInputs inputs;
    inputs.sources = expand_inputs(drive.files);
    inputs.trajectory =
        Trajectory(std::vector<StampedPose>{{999, {drive.sensor, {}}}, {1002, {drive.sensor, {}}}});
    return inputs;
}

SnapshotOptions of_cars() {
    SnapshotOptions options;
    options.labels = {13};
    return options;
}

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a snapshot holds what its scan saw of moving things and nothing else") {
    const test::DrivenVan drive;
    Progress silent;
    const auto report =
        make_snapshots(drive.dir / "snapshots", scans_of(drive), of_cars(), kNeverCancelled, silent);
    CHECK(report.frames == 10);
    CHECK(report.points > 2000);
    const Snapshots snapshots = Snapshots::open(drive.dir / "snapshots");
    REQUIRE(snapshots.frames().size() == 10);
    for (std::size_t k = 0; k < 10; ++k) {
        const Snapshot& frame = snapshots.frames()[k];
        CAPTURE(k);
        CHECK(frame.begin_s == Approx(1000 + 0.1 * static_cast<double>(k)).margin(0.001));
        const SplatTile splats = snapshots.load(frame);
        REQUIRE(splats.size() == frame.splats.splats);
        const Vec3d origin = splats.frame().origin_m();
        // The van moved by 1.5 m during the scan: where it was between its begin and its end, and no trail.
        const double from = drive.pose_at(frame.begin_s - 1000).translation.x - 2.3;
        const double to = drive.pose_at(frame.end_s - 1000).translation.x + 2.3;
        for (std::size_t i = 0; i < splats.size(); ++i) {
            const Disc disc = splats.disc(i);
            const Vec3d p = origin + vec_cast<double>(disc.centre);
            REQUIRE(p.x >= from - 0.001);
            REQUIRE(p.x <= to + 0.001);
            REQUIRE(splats.label()[i] == 13);
            REQUIRE(disc.radius <= 0.1401f);
            // It faces the sensor.
            REQUIRE(dot(vec_cast<double>(disc.normal), normalized(drive.sensor - p)) > 0.999);
        }
    }
    // At every moment one frame exists.
    for (double t = 1000.01; t < 1000.98; t += 0.01) CHECK(snapshots.during(t, t).size() == 1);
    CHECK(snapshots.during(1000, 1002).size() == 10);
    CHECK(snapshots.during(900, 950).empty());
}

TEST_CASE("discs of a frame touch one another and cover no ray that passed by") {
    // A plate of 2 × 2 m, turned away from the sensor by 70 degrees, in front of a wall; three times as many
    // rays in a line as there are lines.
    const Vec3d sensor{0, 0, 0};
    std::vector<SeenRay> rays;
    std::vector<TilePoint> points;
    std::vector<Vec3d> on_plate, beside;
    constexpr double kSlope = 2.75;
    for (int line = -20; line <= 20; ++line)
        for (int column = -60; column <= 60; ++column) {
            const Vec3d d = normalized(Vec3d{1, 0.004 * column, 0.012 * line});
            const double range_m = 10 / (d.x - kSlope * d.y);
            const Vec3d p = d * range_m;
            const bool met = range_m > 0 && std::fabs(p.y) < 0.9 && std::fabs(p.z) < 1;
            const Vec3d end = on_lattice(met ? p : d * (20 / d.x));
            rays.push_back({sensor, end, met ? 0 : SeenRay::kStands});
            (met ? on_plate : beside).push_back(d);
            if (!met) continue;
            TilePoint t{};
            t.x = static_cast<std::int32_t>(to_lattice(end.x));
            t.y = static_cast<std::int32_t>(to_lattice(end.y));
            t.z = static_cast<std::int32_t>(to_lattice(end.z));
            const auto steps = [](double v) { return static_cast<std::int16_t>(std::lround(-64 * v)); };
            t.sensor_dx = steps(end.x), t.sensor_dy = steps(end.y), t.sensor_dz = steps(end.z);
            points.push_back(t);
        }
    REQUIRE(points.size() > 300);
    const SplatTile tile({}, discs_facing_sensor(points, {0, 0, 0}, SeenRays(rays), 0, {0.01, 0.14}));
    const auto covered = [&](Vec3d direction) {
        std::size_t discs = 0;
        for (std::size_t i = 0; i < tile.size(); ++i) {
            const Disc disc = tile.disc(i);
            const Vec3d centre = vec_cast<double>(disc.centre);
            const double depth = dot(centre, direction);
            discs += length(centre - direction * depth) < static_cast<double>(disc.radius);
        }
        return discs;
    };
    for (const Vec3d& d : beside) REQUIRE(covered(d) == 0);
    for (const Vec3d& d : on_plate) REQUIRE(covered(d) > 0);
    // Rays half-way between those of a line meet a disc.
    for (const Vec3d& d : on_plate) {
        const Vec3d next = normalized(Vec3d{1, d.y / d.x + 0.004, d.z / d.x});
        const Vec3d between = normalized(d + next);
        if (d.y < next.y && covered(next) > 0) CHECK(covered(between) > 0);
    }
}

TEST_CASE("snapshots are the same for any order of files and are replaced file by file") {
    const test::DrivenVan drive;
    Progress silent;
    make_snapshots(drive.dir / "one", scans_of(drive), of_cars(), kNeverCancelled, silent);
    ScanInputs backwards = scans_of(drive);
    std::reverse(backwards.sources.begin(), backwards.sources.end());
    make_snapshots(drive.dir / "two", backwards, of_cars(), kNeverCancelled, silent);
    const std::string index = text_of(drive.dir / "one/snapshots.json");
    CHECK(text_of(drive.dir / "two/snapshots.json") == index);
    ScanInputs some = scans_of(drive);
    some.sources.resize(3);
    make_snapshots(drive.dir / "one", some, of_cars(), kNeverCancelled, silent);
    CHECK(text_of(drive.dir / "one/snapshots.json") == index);
}

TEST_CASE("instances of the labels are numbered in a frame and its index names them") {
    const test::TempDir dir;
    // 300 things of four points, two of them in the first scan alone, and four points of nothing.
    const auto write_scan = [&](const std::string& name, double begin_s, int things) {
        std::string body;
        for (int thing = 0; thing <= things; ++thing)
            for (int k = 0; k < 4; ++k)
                body += std::to_string(thing % 20) + " " + std::to_string(5 + thing / 20) + " " +
                        std::to_string(0.05 * k) + " " + std::to_string(begin_s + 0.02 * k) + " 100 13 " +
                        std::to_string(thing == 0 ? 0 : 1000 - thing) + "\n";
        std::ofstream(dir / name) << "ply\nformat ascii 1.0\nelement vertex " << 4 * (things + 1)
                                  << "\nproperty double x\nproperty double y\nproperty double z\n"
                                     "property double time\nproperty uchar intensity\nproperty uchar label\n"
                                     "property ushort instance\nend_header\n"
                                  << body;
        return dir / name;
    };
    ScanInputs inputs;
    inputs.sources = expand_inputs(
        std::vector<std::string>{write_scan("a.ply", 1000, 3), write_scan("b.ply", 1000.1, 300)});
    inputs.trajectory = Trajectory(std::vector<StampedPose>{{999, {}}, {1002, {}}});
    Progress silent;
    const auto report = make_snapshots(dir / "s", inputs, of_cars(), kNeverCancelled, silent);
    CHECK(report.objects_uncounted == 45);
    const Snapshots snapshots = Snapshots::open(dir / "s");
    REQUIRE(snapshots.frames().size() == 2);
    const Snapshot &a = snapshots.frames()[0], &b = snapshots.frames()[1];
    CHECK(a.objects == std::vector<std::uint32_t>{997u << 16 | 13, 998u << 16 | 13, 999u << 16 | 13});
    CHECK(b.objects.size() == 255);
    CHECK(b.objects[0] == (700u << 16 | 13));
    const SplatTile splats = snapshots.load(a);
    REQUIRE(splats.size() == 16);
    for (std::size_t i = 0; i < splats.size(); ++i) {
        const double x = splats.frame().origin_m().x + static_cast<double>(splats.disc(i).centre.x);
        // Thing 1 is called 999, which is the third.
        const int thing = static_cast<int>(std::lround(x));
        CHECK(splats.instance()[i] == (thing == 0 ? 0 : 4 - thing));
    }
    std::size_t without = 0;
    const SplatTile many = snapshots.load(b);
    for (const std::uint8_t number : many.instance()) without += number == 0;
    CHECK(without == 4 * (1 + 45));
}

TEST_CASE("damaged snapshots are named") {
    const test::DrivenVan drive;
    Progress silent;
    make_snapshots(drive.dir / "s", scans_of(drive), of_cars(), kNeverCancelled, silent);
    const Snapshots snapshots = Snapshots::open(drive.dir / "s");
    const Snapshot& frame = snapshots.frames()[4];
    const auto payload = SplatFolder(drive.dir / "s/splats").path_of(frame.splats.name);
    std::string bytes = text_of(payload);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    std::ofstream(payload, std::ios::binary) << bytes;
    CHECK_THROWS_WITH(snapshots.load(frame), Catch::Contains("scan4.ply") && Catch::Contains("damaged"));
    std::string index = text_of(drive.dir / "s/snapshots.json");
    index.replace(index.find("\"points\": "), 10, "\"points\": 1");
    CHECK_THROWS_AS(parse_snapshot_index(index, "index"), CorruptionError);
    CHECK_THROWS_AS(Snapshots::open(drive.dir / "nothing"), ConfigError);
    SnapshotOptions none;
    CHECK_THROWS_AS(make_snapshots(drive.dir / "t", scans_of(drive), none, kNeverCancelled, silent),
                    UsageError);
}
