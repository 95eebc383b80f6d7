#include "core/file.hpp"
#include "datasets/synth/truth.hpp"
#include "io/input/open_point_file.hpp"
#include "run_program.hpp"
#include "sim/drive/scenario.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <map>

using namespace citysplat;
using namespace citysplat::synth;

namespace {

SynthOptions small(double length_m = 30, double points_per_metre = 1500) {
    SynthOptions o;
    o.seed = 11;
    o.length_m = length_m;
    o.points_per_metre = points_per_metre;
    o.range_m = 25;  // few blocks to make
    return o;
}

SynthOptions perfect(SynthOptions o) {
    o.noise_m = o.localisation_m = 0;
    o.mixed_pixels = o.outliers = false;
    return o;
}

TruthFile write(const std::filesystem::path& directory, const SynthOptions& options) {
    Progress progress;
    CancelToken cancel;
    return write_drive(directory, options, progress, cancel);
}

/// All points of a drive.
struct Cloud {
    std::vector<Vec3d> points;
    std::vector<double> time;
    std::vector<std::uint16_t> label, intensity;
    std::vector<float> angle;
};
Cloud read_cloud(const std::filesystem::path& directory, const TruthFile& truth) {
    Cloud cloud;
    for (const ScannerRecord& scanner : truth.scanners)
        for (const CloudFile& file : scanner.files) {
            const auto reader = open_point_file(directory / file.name);
            REQUIRE(reader->info().points == file.points);
            PointBatch batch;
            for (std::size_t b = 0; b < reader->block_count(); ++b) {
                reader->read_block(b, batch);
                for (std::size_t i = 0; i < batch.size(); ++i) {
                    cloud.points.push_back({batch.x[i], batch.y[i], batch.z[i]});
                    cloud.time.push_back(batch.gps_time.at(i));
                    cloud.label.push_back(batch.label.at(i));
                    cloud.intensity.push_back(batch.intensity.at(i));
                    cloud.angle.push_back(batch.scan_angle_deg.at(i));
                }
            }
        }
    return cloud;
}

/// Every file of a drive by name.
std::map<std::string, std::vector<std::byte>> bytes_of(const std::filesystem::path& directory) {
    std::map<std::string, std::vector<std::byte>> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        files[entry.path().filename().string()] = read_file(entry.path());
    return files;
}

}  // namespace

TEST_CASE("every point of a perfect survey lies within a millimetre of a true surface of its class") {
    const test::TempDir dir;
    const TruthFile file = write(dir / "drive", perfect(small(80, 600)));
    const Cloud cloud = read_cloud(dir / "drive", file);
    REQUIRE(cloud.points.size() > 30000);
    const Truth truth = Truth::load(dir / "drive");
    std::vector<Truth::Nearest> nearest(cloud.points.size());
    truth.nearest_at(cloud.points, cloud.time, 0.5, nearest);
    double largest = 0;
    std::size_t other_class = 0, dynamic = 0;
    for (std::size_t i = 0; i < nearest.size(); ++i) {
        largest = std::max(largest, nearest[i].distance_m);
        if (nearest[i].label != cloud.label[i]) ++other_class;
        if (is_dynamic(cloud.label[i])) ++dynamic;
    }
    CHECK(largest < 0.001);
    // Where two surfaces touch, either may be a hair nearer than the one that was hit.
    CHECK(other_class < cloud.points.size() / 200);
    CHECK(dynamic > 100);
}

TEST_CASE("the static truth alone holds for every point that does not move") {
    const test::TempDir dir;
    const TruthFile file = write(dir / "drive", perfect(small()));
    const Cloud cloud = read_cloud(dir / "drive", file);
    std::vector<Vec3d> still;
    for (std::size_t i = 0; i < cloud.points.size(); ++i)
        if (!is_dynamic(cloud.label[i])) still.push_back(cloud.points[i]);
    const Truth truth(file);
    std::vector<Truth::Nearest> nearest(still.size());
    truth.nearest(still, 0.5, nearest);
    CHECK(std::all_of(nearest.begin(), nearest.end(),
                      [](const auto& n) { return n.found && n.distance_m < 0.001; }));
}

TEST_CASE("ranges scatter with the stated sigma, and normally") {
    // The same columns with and without noise: the difference is the noise.
    const double sigma = 0.02;
    const SynthOptions options = perfect(small(20, 1500));
    const TruthFile file{options, 0, {}};
    const Drive drive(file.drive_params());
    const Actors actors(options.seed);
    SurveyParams quiet{0, false, false, 600}, noisy{sigma, false, false, 600};
    const Survey a(drive, actors, file.scanner(), quiet, {0, 0, 0}),
        b(drive, actors, file.scanner(), noisy, {0, 0, 0});
    BlockCache cache(options.seed);
    PointBatch p, q;
    std::vector<double> errors;
    for (std::int64_t chunk = 0; chunk < a.chunk_count(); ++chunk) {
        const auto around = a.surroundings(chunk);
        const auto scene = cache.scene(around.centre, around.cells);
        a.fire(chunk, *scene, p);
        b.fire(chunk, *scene, q);
        REQUIRE(p.size() == q.size());
        for (std::size_t i = 0; i < p.size(); ++i) {
            const Vec3d sensor = drive.true_pose_at(p.gps_time[i] - Drive::kBegin_s).translation;
            const Vec3d u{p.x[i], p.y[i], p.z[i]}, v{q.x[i], q.y[i], q.z[i]};
            const Vec3d along = normalized(u - sensor), error = v - u;
            CHECK(length(error - dot(error, along) * along) < 1e-9);  // only along the ray
            errors.push_back(dot(error, along) / sigma);
        }
    }
    REQUIRE(errors.size() > 15000);
    const auto n = static_cast<double>(errors.size());
    double mean = 0, square = 0, fourth = 0;
    for (const double e : errors) mean += e / n, square += e * e / n, fourth += e * e * e * e / n;
    CHECK(std::fabs(mean) < 4 / std::sqrt(n));
    CHECK(square == Approx(1).margin(4 * std::sqrt(2 / n)));
    CHECK(fourth == Approx(3).margin(4 * std::sqrt(96 / n)));
    for (const auto& [k, share] : {std::pair{1.0, 0.682689}, {2.0, 0.954500}, {3.0, 0.997300}}) {
        const auto within =
            std::count_if(errors.begin(), errors.end(), [k = k](double e) { return std::fabs(e) < k; });
        CHECK(static_cast<double>(within) / n ==
              Approx(share).margin(4 * std::sqrt(share * (1 - share) / n)));
    }
}

TEST_CASE("noisy points lie within the stated sigma of the truth once the localisation error is taken out") {
    const test::TempDir dir;
    SynthOptions options = small(60, 500);
    options.noise_m = 0.015;
    options.localisation_m = 0.02;
    options.mixed_pixels = options.outliers = false;
    const TruthFile file = write(dir / "drive", options);
    Cloud cloud = read_cloud(dir / "drive", file);
    const Truth truth(file);
    const auto share_within = [&](double distance_m) {
        std::vector<Truth::Nearest> nearest(cloud.points.size());
        truth.nearest_at(cloud.points, cloud.time, 0.5, nearest);
        const auto n = std::count_if(nearest.begin(), nearest.end(),
                                     [&](const auto& v) { return v.distance_m <= distance_m; });
        return static_cast<double>(n) / static_cast<double>(nearest.size());
    };
    const double as_recorded = share_within(options.noise_m);
    for (std::size_t i = 0; i < cloud.points.size(); ++i)
        cloud.points[i] = truth.without_localisation_error(cloud.points[i], cloud.time[i]);
    // A slanting ray's error leaves the surface by less than its length, so at least these shares.
    CHECK(share_within(options.noise_m) > 0.68);
    CHECK(share_within(2 * options.noise_m) > 0.95);
    CHECK(share_within(4.5 * options.noise_m) > 0.99995);
    CHECK(share_within(options.noise_m) > as_recorded + 0.02);
}

TEST_CASE("the same options give the same bytes, on one thread and on several") {
    const test::TempDir dir;
    SynthOptions options = small();
    options.profile = true;
    std::map<std::string, std::vector<std::byte>> reference;
    for (const std::size_t threads : {1, 3}) {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
        const auto place = dir / ("with" + std::to_string(threads));
        write(place, options);
        const auto files = bytes_of(place);
        if (reference.empty()) reference = files;
        CHECK(files.size() == 8);  // 2 clouds, 2 profiles, 2 sensors, trajectory, truth
        CHECK(files == reference);
    }
    options.seed += 1;
    write(dir / "other", options);
    CHECK(bytes_of(dir / "other")["cloud_000.las"] != reference["cloud_000.las"]);
}

TEST_CASE("the sensor file beside a drive has the rays of the survey") {
    const test::TempDir dir;
    const TruthFile truth = write(dir / "drive", perfect(small(12)));
    const Cloud cloud = read_cloud(dir / "drive", truth);
    const sim::Sensor sensor = sim::Sensor::load((dir / "drive/scanner32.toml").string());
    const Pose body_from_sensor = sim::mount_from({}, {0, -45, 0}, "mount");
    const Trajectory trajectory = Trajectory::read_tum(dir / "drive/trajectory.tum");
    std::vector<sim::Firing> firings;
    sim::fire(sensor, 0, firings);
    const std::size_t beams = truth.scanner().elevations_rad.size(), columns = firings.size() / beams;
    std::vector<Vec3d> aim(firings.size());
    for (const sim::Firing& f : firings) aim[f.ray] = vec_cast<double>(f.direction);
    CHECK(static_cast<double>(columns) * sensor.scan_hz == truth.scanners.at(0).columns_per_s);
    double worst_m = 0;
    for (std::size_t i = 0; i < cloud.points.size(); i += 7) {
        const double turned = (cloud.time[i] - trajectory.begin_s()) * sensor.scan_hz;
        const auto column =
            static_cast<std::size_t>((turned - std::floor(turned)) * static_cast<double>(columns));
        const Pose world_from_sensor = trajectory.at(cloud.time[i]).value() * body_from_sensor;
        const Vec3d to = cloud.points[i] - world_from_sensor.translation;
        double aside_m = INFINITY;
        for (std::size_t beam = 0; beam < beams; ++beam)
            aside_m = std::min(
                aside_m, length(cross(to, rotate(world_from_sensor.rotation, aim[column * beams + beam]))));
        worst_m = std::max(worst_m, aside_m);
    }
    CHECK(worst_m < 1e-3);  // the step of the cloud's coordinates
}

TEST_CASE("LAS and PLY carry the same points") {
    const test::TempDir dir;
    SynthOptions options = small(12, 1000);
    options.files = 3;
    const TruthFile las = write(dir / "las", options);
    options.format = CloudFormat::ply;
    const TruthFile ply = write(dir / "ply", options);
    CHECK(las.scanners[0].files.size() == 3);
    const Cloud a = read_cloud(dir / "las", las), b = read_cloud(dir / "ply", ply);
    REQUIRE(a.points.size() == b.points.size());
    REQUIRE(a.points.size() > 1000);
    double largest = 0;
    for (std::size_t i = 0; i < a.points.size(); ++i)
        largest = std::max(largest, length(a.points[i] - b.points[i]));
    CHECK(largest < 0.0001);
    CHECK(a.label == b.label);
    CHECK(a.intensity == b.intensity);
}

TEST_CASE("the drive has about as many points per metre as asked for") {
    const test::TempDir dir;
    for (const double density : {500.0, 3000.0}) {
        const TruthFile file = write(dir / std::to_string(density), small(20, density));
        CHECK(static_cast<double>(file.points) == Approx(20 * density).epsilon(0.08));
    }
}

TEST_CASE("each point's sensor position is found in the trajectory by its GPS time") {
    const test::TempDir dir;
    const TruthFile file = write(dir / "drive", perfect(small()));
    const Cloud cloud = read_cloud(dir / "drive", file);
    const Trajectory trajectory = Trajectory::read_tum(dir / "drive/trajectory.tum");
    const Truth truth(file);
    const Scanner scanner = file.scanner();
    for (std::size_t i = 0; i < cloud.points.size(); i += 7) {
        const auto pose = trajectory.at(cloud.time[i]);
        REQUIRE(pose);
        CHECK(length(pose->translation - truth.true_pose(cloud.time[i]).translation) < 1e-5);
        // Back in the scanner's frame the point lies on one of the beams.
        const Vec3d in_body = rotate(conjugate(pose->rotation), cloud.points[i] - pose->translation);
        const double c = std::cos(scanner.pitch_rad), s = std::sin(scanner.pitch_rad);
        const Vec3d in_scanner{c * in_body.x + s * in_body.z, in_body.y, c * in_body.z - s * in_body.x};
        const double elevation = std::asin(in_scanner.z / length(in_scanner));
        double nearest = 1;
        for (const double e : scanner.elevations_rad) nearest = std::min(nearest, std::fabs(e - elevation));
        CHECK(nearest < 2e-4);
        const double azimuth_deg = std::atan2(-in_scanner.y, in_scanner.x) * 180 / exact::kPi;
        CHECK(std::fabs(std::remainder(azimuth_deg - static_cast<double>(cloud.angle[i]), 360.0)) < 0.02);
    }
}

TEST_CASE("an imperfect survey has mixed pixels at edges and a few outliers, and no more") {
    const test::TempDir dir;
    SynthOptions options = small(40, 3000);
    options.localisation_m = 0;
    const TruthFile file = write(dir / "drive", options);
    const Cloud cloud = read_cloud(dir / "drive", file);
    const Truth truth(file);
    std::vector<Truth::Nearest> nearest(cloud.points.size());
    truth.nearest_at(cloud.points, cloud.time, 1.0, nearest);
    std::size_t off = 0, outliers = 0;
    for (std::size_t i = 0; i < nearest.size(); ++i) {
        if (nearest[i].distance_m > 5 * options.noise_m) ++off;
        if (cloud.label[i] == 0) ++outliers;
    }
    const auto n = static_cast<double>(cloud.points.size());
    CHECK(static_cast<double>(off) / n > 0.001);
    CHECK(static_cast<double>(off) / n < 0.08);
    CHECK(outliers > 0);
    CHECK(static_cast<double>(outliers) / n < 2e-4);
}

TEST_CASE("truth.json says all that is needed to ask the truth again") {
    const test::TempDir dir;
    SynthOptions options = small(12, 500);
    options.seed = 0xfedcba9876543210ull;
    options.origin_m = {448000, 5411000, 120};
    const TruthFile written = write(dir / "drive", options);
    const TruthFile read = TruthFile::read(dir / "drive/truth.json");
    CHECK(read.options.seed == options.seed);
    CHECK(read.options.length_m == options.length_m);
    CHECK(read.options.origin_m.y == options.origin_m.y);
    CHECK(read.points == written.points);
    CHECK(read.scanners.at(0).columns_per_s == written.scanners.at(0).columns_per_s);
    CHECK(read.scanners.at(0).files.size() == written.scanners.at(0).files.size());
}

TEST_CASE("a drive replaces an earlier drive, but never somebody's files") {
    const test::TempDir dir;
    SynthOptions options = small(10, 200);
    options.files = 4;
    write(dir / "drive", options);
    options.files = 1;
    write(dir / "drive", options);
    CHECK(bytes_of(dir / "drive").size() == 4);  // cloud, sensor, trajectory, truth
    FileWriter other(dir / "notes.txt");
    other.text("mine");
    other.finish();
    CHECK_THROWS_AS(write(dir.path(), options), UsageError);
    CHECK(std::filesystem::exists(dir / "notes.txt"));
}

TEST_CASE("damaged truth files and impossible options are refused with a reason") {
    const test::TempDir dir;
    const auto put = [&](const std::string& text) {
        FileWriter out(dir / "truth.json");
        out.text(text);
        out.finish();
    };
    put("{\"kind\": \"something else\"}");
    CHECK_THROWS_AS(TruthFile::read(dir / "truth.json"), InputError);
    put("{ not json");
    CHECK_THROWS_AS(TruthFile::read(dir / "truth.json"), InputError);
    put("{\"kind\": \"citysplat synthetic drive\", \"city_version\": 99999}");
    CHECK_THROWS_AS(TruthFile::read(dir / "truth.json"), ConfigError);
    CHECK_THROWS_AS(TruthFile::read(dir / "missing.json"), IoError);
    SynthOptions options;
    options.length_m = -1;
    CHECK_THROWS_AS(options.validate(), UsageError);
    options = {};
    options.noise_m = NAN;
    CHECK_THROWS_AS(options.validate(), UsageError);
}

TEST_CASE("cancelling stops the survey and leaves no truth.json") {
    const test::TempDir dir;
    Progress progress;
    CancelToken cancel;
    cancel.request();
    CHECK_THROWS_AS(write_drive(dir / "drive", small(), progress, cancel), Interrupted);
    CHECK_FALSE(std::filesystem::exists(dir / "drive/truth.json"));
}

TEST_CASE("what a stopped survey left is cleared by the next one, and nothing else") {
    const test::TempDir dir;
    const auto drive = dir / "drive";
    const auto put = [&](const char* name, const std::string& text) {
        FileWriter out(drive / name);
        out.text(text);
        out.finish();
    };
    write(dir / "whole", small());
    const auto whole = bytes_of(dir / "whole");

    std::filesystem::create_directory(drive);
    put("cloud_007.las", "half a cloud");
    CHECK_THROWS_AS(write(drive, small()), UsageError);  // nobody knows whose it is
    put("unfinished_drive.txt", "cloud_007.las\n../precious\n");
    FileWriter(dir / "precious").finish();
    write(drive, small());
    CHECK(bytes_of(drive) == whole);
    CHECK(std::filesystem::exists(dir / "precious"));

    // Killed after truth.json, before the list went: still a drive, replaced as any other.
    put("unfinished_drive.txt", "cloud_000.las\n");
    write(drive, small());
    CHECK(bytes_of(drive) == whole);
}

TEST_CASE("rays cast at the truth meet what the survey met") {
    const test::TempDir dir;
    const TruthFile file = write(dir / "drive", perfect(small(20, 300)));
    const Cloud cloud = read_cloud(dir / "drive", file);
    const Truth truth(file);
    std::vector<Truth::WorldRay> rays;
    std::vector<double> ranges;
    for (std::size_t i = 0; i < cloud.points.size(); ++i) {
        if (is_dynamic(cloud.label[i])) continue;
        const Vec3d sensor = truth.true_pose(cloud.time[i]).translation;
        ranges.push_back(length(cloud.points[i] - sensor));
        rays.push_back({sensor, normalized(cloud.points[i] - sensor)});
    }
    std::vector<Truth::Hit> hits(rays.size());
    truth.intersect(rays, 26, hits);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < rays.size(); ++i)
        if (!hits[i].found || std::fabs(hits[i].range_m - ranges[i]) > 0.005) ++differ;
    // The file rounds to 0.1 mm, which moves a few rays across an edge.
    CHECK(differ < rays.size() / 50);
}

TEST_CASE("a drive ten times as long needs hardly more memory", "[slow]") {
    const test::TempDir dir;
    const auto peak_of = [&](const std::string& length_m) {
        const auto run = test::citysplat({"synth", (dir / length_m).string(), "--length", length_m,
                                          "--points-per-metre", "3000", "--range", "25", "--seed", "11"});
        REQUIRE(run.exit_code == 0);
        return run.peak_rss_bytes;
    };
    // After a kilometre the cache of blocks is full. The rest is chance: some blocks are larger than others,
    // and the longer drive meets more of them. A kilobyte that stays for every metre would be 9 MB.
    const std::uint64_t kilometre = peak_of("1000"), ten = peak_of("10000");
    INFO(kilometre << " bytes for 1 km, " << ten << " for 10 km");
    CHECK(ten < kilometre + (std::uint64_t{24} << 20));
}

TEST_CASE("the verb writes a drive and says so in JSON") {
    const test::TempDir dir;
    const std::string out = (dir / "drive").string();
    const auto run = test::citysplat({"synth", out, "--length", "10", "--points-per-metre", "300", "--seed",
                                      "9", "--range", "20", "--format", "ply", "--files", "3", "--origin",
                                      "500000,4649776", "--json"});
    REQUIRE(run.exit_code == 0);
    for (const char* key : {"\"files\"", "\"points\"", "\"length_m\"", "\"seed\":9"})
        CHECK(run.out.find(key) != std::string::npos);
    const TruthFile truth = TruthFile::read(dir / "drive/truth.json");
    CHECK(truth.options.origin_m.x == 500000);
    CHECK(truth.scanners.at(0).files.size() == 3);
    CHECK(std::filesystem::exists(dir / "drive/cloud_002.ply"));
}

TEST_CASE("the verb refuses nonsense with exit code 2") {
    const test::TempDir dir;
    const std::string out = (dir / "drive").string();
    for (const std::vector<std::string>& flags : {std::vector<std::string>{"--length", "0"},
                                                  {"--format", "xyz"},
                                                  {"--noise", "-1"},
                                                  {"--origin", "1"},
                                                  {"--what"}}) {
        std::vector<std::string> arguments{"synth", out};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        CHECK(test::citysplat(arguments).exit_code == 2);
    }
    CHECK_FALSE(std::filesystem::exists(out));
    CHECK(test::citysplat({"synth", "--help"}).out.find("Example:") != std::string::npos);
}
