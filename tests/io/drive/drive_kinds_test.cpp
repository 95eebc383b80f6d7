#include "core/error.hpp"
#include "io/drive/own_car.hpp"
#include "io/drive_writer.hpp"
#include "io/input/input_list.hpp"
#include "io/input/reading.hpp"
#include "io/room_drive.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace citysplat;
using namespace citysplat::test;
using Catch::Contains;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

Vec3d into(const Pose& frame, Vec3d world) {
    return rotate(conjugate(frame.rotation), world - frame.translation);
}

PointBatch read(const InputSource& source, const ReadOptions& options = {}) {
    PointBatch batch;
    source.open(options)->read_block(0, batch);
    batch.check();
    return batch;
}

/// Scans of a sensor in world coordinates with the time of every point, and its poses at the end of each
/// turn.
struct PosedClouds {
    static constexpr double kBegin_s = 320 * exact::kPi;  // 40 times round the bend
    RoomDrive drive{RoomDrive::Sensor{}};
    int scans = 8;
    bool in_sensor_frame = false;

    std::vector<std::vector<TrueRay>> write(const fs::path& folder) const {
        std::vector<std::vector<TrueRay>> truth;
        std::string poses;
        const double period = drive.sensor().period_s;
        for (int k = 0; k < scans; ++k) {
            auto rays = drive.turn(kBegin_s + k * period);
            std::erase_if(rays, [](const TrueRay& ray) { return ray.empty; });
            std::string rows;
            for (const TrueRay& ray : rays) {
                const Vec3d p = in_sensor_frame ? into(drive.sensor_at(ray.time_s), ray.world) : ray.world;
                rows += number(p.x) + " " + number(p.y) + " " + number(p.z) + " " + number(ray.time_s) + "\n";
            }
            write_text(folder / "scans" / (file_number(k) + ".ply"),
                       "ply\nformat ascii 1.0\nelement vertex " + std::to_string(rays.size()) +
                           "\nproperty double x\nproperty double y\nproperty double z\nproperty double time\n"
                           "end_header\n" +
                           rows);
            const double t = kBegin_s + (k + 1) * period;
            const auto& [place, q] = drive.sensor_at(t);
            for (const double v : {t, place.x, place.y, place.z, q.x, q.y, q.z, q.w})
                poses += number(v) + " ";
            poses += "\n";
            truth.push_back(std::move(rays));
        }
        write_text(folder / "poses.tum", poses);
        return truth;
    }
};

/// The tables of a data set with scenes of a few sweeps each, as the documentation of nuScenes has them.
struct Nuscenes {
    RoomDrive drive{RoomDrive::Sensor{32, 1085, -30.67, 10.67, 0.05, exact::kPi, true}};
    int scans = 3;
    std::vector<std::string> scenes{"scene-0061"};
    json sensor, calibrated, ego, sample, scene, data;

    static json pose_of(const Pose& pose) {
        const auto& [t, q] = pose;
        return {{"translation", {t.x, t.y, t.z}}, {"rotation", {q.w, q.x, q.y, q.z}}};
    }
    std::vector<std::vector<TrueRay>> write(const fs::path& folder) {
        std::vector<std::vector<TrueRay>> truth;
        sensor = {{{"token", "s1"}, {"channel", "CAM_FRONT"}, {"modality", "camera"}},
                  {{"token", "s2"}, {"channel", "LIDAR_TOP"}, {"modality", "lidar"}}};
        calibrated = json::array({pose_of(Pose{}), pose_of(RoomDrive::body_from_sensor())});
        for (int i = 0; i < 2; ++i)
            calibrated[i].update(
                {{"token", "c" + std::to_string(i + 1)}, {"sensor_token", "s" + std::to_string(i + 1)}});
        ego = sample = scene = data = json::array();
        for (const std::string& name : scenes) {
            scene.push_back({{"token", "scene " + name}, {"name", name}});
            sample.push_back({{"token", "sample " + name}, {"scene_token", "scene " + name}});
            for (int k = 0; k < scans; ++k) {
                const std::int64_t stamp_us = 1531883530449377 + 50'000 * k;
                const double end_s = 0.05 * (k + 1);
                const std::string key = name + std::to_string(k),
                                  file = "sweeps/LIDAR_TOP/" + key + ".pcd.bin";
                ego.push_back(pose_of(drive.body_at(end_s)));
                ego.back().update({{"token", "ego " + key}, {"timestamp", stamp_us}});
                data.push_back({{"token", key},
                                {"sample_token", "sample " + name},
                                {"ego_pose_token", "ego " + key},
                                {"calibrated_sensor_token", "c2"},
                                {"timestamp", stamp_us},
                                {"filename", file}});
                truth.push_back(drive.turn(end_s - 0.05));
                const auto place = [&](const TrueRay& ray) {
                    return into(drive.sensor_at(end_s), ray.world);
                };
                write_text(folder / file, records(truth.back(), place, true));
            }
        }
        data.push_back({{"token", "image"},
                        {"sample_token", "sample " + scenes[0]},
                        {"ego_pose_token", "ego image"},
                        {"calibrated_sensor_token", "c1"},
                        {"timestamp", 5},
                        {"filename", "samples/CAM_FRONT/a.jpg"}});
        write_tables(folder);
        return truth;
    }
    void write_tables(const fs::path& folder) const {
        const std::pair<const char*, const json*> tables[]{
            {"sensor", &sensor}, {"calibrated_sensor", &calibrated},
            {"ego_pose", &ego},  {"sample", &sample},
            {"scene", &scene},   {"sample_data", &data}};
        for (const auto& [name, table] : tables)
            write_text(folder / "v1.0-mini" / (std::string(name) + ".json"), table->dump(1));
    }
};

std::vector<InputSource> expand(const fs::path& folder, const io::DriveOptions& options = {}) {
    return expand_inputs(std::vector{folder.string()}, {}, options);
}

template <class Do>
std::string message_of(const Do& action) {
    try {
        action();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("clouds with times and poses.tum are a drive: their rays begin where the sensor was") {
    test::TempDir dir;
    PosedClouds clouds;
    clouds.in_sensor_frame = GENERATE(false, true);
    const auto truth = clouds.write(dir.path());
    const auto sources = expand(dir.path());
    REQUIRE(sources.size() == truth.size());
    CHECK(sources[0].drive->kind == "clouds with poses");
    for (std::size_t k = 0; k < truth.size(); ++k) {
        const PointBatch b = read(sources[k]);
        REQUIRE(b.size() == truth[k].size());
        double place = 0, sensor = 0;
        for (std::size_t i = 0; i < b.size(); ++i) {
            place = std::max(place, length(Vec3d{b.x[i], b.y[i], b.z[i]} - truth[k][i].world));
            sensor = std::max(sensor, length(b.sensor[i] - truth[k][i].sensor));
            REQUIRE(b.gps_time[i] == Approx(truth[k][i].time_s).margin(1e-9));
        }
        CHECK(place < 0.02);  // the first turn is before the first pose
        CHECK(sensor < 0.02);
    }
    // A trajectory of the user's own goes before poses.tum, and --no-drive before both.
    io::DriveOptions other;
    other.use_poses_tum = false;
    CHECK_FALSE(expand(dir.path(), other)[0].drive);
    other = {};
    other.recognise = false;
    CHECK_FALSE(expand(dir.path(), other)[0].drive);
}

TEST_CASE("clouds on another clock than poses.tum are refused") {
    test::TempDir dir;
    PosedClouds clouds;
    clouds.scans = 2;
    clouds.write(dir.path());
    write_text(dir / "poses.tum", "5 0 0 0 0 0 0 1\n6 0 0 0 0 0 0 1\n");
    CHECK_THAT(message_of([&] { expand(dir.path()); }),
               Contains("are not those of poses.tum") && Contains("clock"));
}

TEST_CASE("a scene of nuScenes is a drive with its poses, mounts, rings and empty rays") {
    test::TempDir dir;
    Nuscenes set;
    const auto truth = set.write(dir.path());
    const auto sources = expand(dir.path());
    REQUIRE(sources.size() == 3);
    const io::Drive& drive = *sources[0].drive;
    CHECK(drive.kind == "nuScenes");
    CHECK(drive.rate_hz == Approx(20));
    CHECK(length(drive.lever_arm_m - RoomDrive::body_from_sensor().translation) < 1e-9);
    for (std::size_t k = 0; k < truth.size(); ++k) {
        const PointBatch b = read(sources[k]);
        std::size_t i = 0;
        double place = 0, sensor = 0;
        for (const TrueRay& ray : truth[k]) {
            if (ray.empty) continue;
            REQUIRE(i < b.size());
            place = std::max(place, length(Vec3d{b.x[i], b.y[i], b.z[i]} - ray.world));
            sensor = std::max(sensor, length(b.sensor[i] - ray.sensor));
            REQUIRE(b.beam[i] == ray.beam);
            REQUIRE(b.gps_time[i] - 1531883530.399377 == Approx(ray.time_s).margin(1e-5));
            ++i;
        }
        CHECK(i == b.size());
        CHECK(b.no_return == truth[k].size() - i);
        CHECK(b.empty_rays.size() == b.no_return);
        CHECK(place < 1e-3);
        CHECK(sensor < 0.005);
    }
}

TEST_CASE("of several nuScenes scenes one is chosen by name") {
    test::TempDir dir;
    Nuscenes set;
    set.scenes = {"scene-0061", "scene-0103"};
    set.scans = 2;
    set.write(dir.path());
    CHECK_THAT(message_of([&] { expand(dir.path()); }),
               Contains("--scene") && Contains("scene-0061, scene-0103"));
    io::DriveOptions options;
    options.scene = "scene-0103";
    const auto sources = expand(dir.path(), options);
    REQUIRE(sources.size() == 2);
    CHECK_THAT(sources[0].path.string(), Contains("scene-01030"));
    options.scene = "scene-9999";
    CHECK_THAT(message_of([&] { expand(dir.path(), options); }), Contains("no sweeps of scene-9999"));
}

TEST_CASE("excerpts of nuScenes work with what they have") {
    test::TempDir dir;
    Nuscenes set;
    set.scans = 6;
    const auto truth = set.write(dir.path());
    // Points of the scans that are left, against the truth of scans `first` and on.
    const auto check = [&](const std::vector<InputSource>& sources, std::size_t first) {
        REQUIRE(sources.size() == truth.size() - first);
        for (std::size_t k = 0; k < sources.size(); ++k) {
            const PointBatch b = read(sources[k]);
            std::size_t i = 0;
            double place = 0, sensor = 0;
            for (const TrueRay& ray : truth[first + k]) {
                if (ray.empty) continue;
                REQUIRE(i < b.size());
                place = std::max(place, length(Vec3d{b.x[i], b.y[i], b.z[i]} - ray.world));
                sensor = std::max(sensor, length(b.sensor[i] - ray.sensor));
                ++i;
            }
            CHECK(i == b.size());
            CHECK(place < 1e-3);
            CHECK(sensor < 0.005);
        }
    };
    const fs::path sweeps = dir / "sweeps/LIDAR_TOP";
    SECTION("some of the sweeps: the others still have poses") {
        for (int k = 0; k < 3; ++k) fs::remove(sweeps / ("scene-0061" + std::to_string(k) + ".pcd.bin"));
        check(expand(dir.path()), 3);
        check(expand(sweeps), 3);
    }
    SECTION("sweeps and tables flat in one folder") {
        for (const auto& entry : fs::directory_iterator(sweeps))
            fs::rename(entry.path(), dir / entry.path().filename());
        for (const auto& entry : fs::directory_iterator(dir / "v1.0-mini"))
            fs::rename(entry.path(), dir / entry.path().filename());
        check(expand(dir.path()), 0);
    }
    SECTION("only the tables that say where the sensor was") {
        for (const char* table : {"scene", "sample", "sensor"})
            fs::remove(dir / "v1.0-mini" / (std::string(table) + ".json"));
        check(expand(dir.path()), 0);
    }
    SECTION("tables of another version beside, without sweeps") {
        set.data = set.ego = json::array();
        set.write_tables(dir / "other");
        fs::rename(dir / "other/v1.0-mini", dir / "v1.0-a");
        check(expand(dir.path()), 0);
    }
    SECTION("a scan that lost a packet is timed by directions, and its points stay") {
        const fs::path file = sweeps / "scene-00612.pcd.bin";
        const std::string bytes = read_text_file(file);
        constexpr std::size_t kPacket = 20 * 32 * 60;
        write_text(file, bytes.substr(0, 4 * kPacket) + bytes.substr(5 * kPacket));
        const auto sources = expand(dir.path());
        const PointBatch b = read(sources[2]);
        std::size_t i = 0;
        for (std::size_t k = 0; k < truth[2].size(); ++k) {
            const TrueRay& ray = truth[2][k];
            if (ray.empty || (k >= 4 * 32 * 60 && k < 5 * 32 * 60)) continue;
            REQUIRE(i < b.size());
            CHECK(length(Vec3d{b.x[i], b.y[i], b.z[i]} - ray.world) < 1e-3);
            CHECK(length(b.sensor[i] - ray.sensor) < 0.02);
            ++i;
        }
        CHECK(i == b.size());
    }
    SECTION("tables that name a sweep twice") {
        set.data.push_back(set.data[2]);
        set.ego.push_back(set.ego[2]);
        set.write_tables(dir.path());
        check(expand(dir.path()), 0);
    }
    SECTION("a damaged sweep is refused when it is read, not while the drive is understood") {
        const fs::path cut = sweeps / "scene-00610.pcd.bin", empty = sweeps / "scene-00611.pcd.bin";
        write_text(cut, read_text_file(cut).substr(0, 20 * 32 * 700 + 3));
        write_text(empty, "");
        const auto sources = expand(dir.path());
        REQUIRE(sources.size() == 6);
        CHECK_THAT(message_of([&] { read(sources[0]); }), Contains("00610") && Contains("--salvage reads"));
        CHECK_THAT(message_of([&] { read(sources[1]); }), Contains("00611") && Contains("--salvage takes"));
        CHECK(read(sources[2]).size() > 0);
        ReadOptions options;
        options.salvage = true;
        CHECK(sources[0].open(options)->info().points == 32 * 700);
        CHECK(sources[1].open(options)->info().points == 0);
        REQUIRE(sources[1].open(options)->info().notes.size() == 1);
    }
    SECTION("a sweep of the folder that no table knows is refused by name") {
        write_text(sweeps / "unknown.pcd.bin", std::string(20 * 64, '\0'));
        CHECK_THAT(message_of([&] { expand(sweeps / "unknown.pcd.bin"); }),
                   Contains("unknown.pcd.bin: not one of the 6 scans") && Contains("--scene"));
    }
}

TEST_CASE("a drive is not understood any further once it is cancelled") {
    test::TempDir dir;
    Nuscenes set;
    set.write(dir.path());
    CancelToken cancel;
    cancel.request();
    CHECK_THROWS_AS(expand_inputs(std::vector{dir.path().string()}, {}, {}, cancel), Interrupted);
}

TEST_CASE("damaged nuScenes tables are refused by table, row and field") {
    test::TempDir dir;
    Nuscenes set;
    set.scans = 2;
    set.write(dir.path());
    const auto message = [&](const auto& damage) {
        Nuscenes copy = set;
        damage(copy);
        copy.write_tables(dir.path());
        return message_of([&] { expand(dir.path()); });
    };
    CHECK(message([](Nuscenes&) {}).empty());
    CHECK_THAT(message([](Nuscenes& n) { n.data[1].erase("timestamp"); }),
               Contains("sample_data.json: row 2: timestamp"));
    CHECK_THAT(message([](Nuscenes& n) {
                   n.ego[1]["rotation"] = {1, 1, 0, 0};
               }),
               Contains("ego_pose.json: row 2: rotation") && Contains("length 1"));
    CHECK_THAT(message([](Nuscenes& n) {
                   n.ego[0]["translation"] = {1, 2, "3"};
               }),
               Contains("ego_pose.json: row 1: translation") && Contains("3 numbers"));
    CHECK_THAT(message([](Nuscenes& n) { n.ego.erase(1); }), Contains("no row has the token"));
    CHECK_THAT(message([](Nuscenes& n) { n.sensor.erase(1); }),
               Contains("no sensor has the channel LIDAR_TOP"));
    CHECK_THAT(message([](Nuscenes& n) { n.scene = "none"; }),
               Contains("scene.json: expected an array of rows"));
    set.write_tables(dir.path());
    write_text(dir / "v1.0-mini/ego_pose.json", "[{\"token\": \"a\",");
    CHECK_THAT(message_of([&] { expand(dir.path()); }), Contains("ego_pose.json: behind row 0"));
    fs::remove(dir / "v1.0-mini/ego_pose.json");
    CHECK_THAT(message_of([&] { expand(dir.path()); }), Contains("cannot open") && Contains("ego_pose.json"));
}

TEST_CASE("the recording car is found and left out, and nothing else") {
    test::TempDir dir;
    PosedClouds clouds;
    clouds.drive.has_bonnet = true;
    clouds.scans = 12;
    const auto truth = clouds.write(dir.path());
    const auto sources = expand(dir.path());
    CHECK_FALSE(sources[0].drive->own_car.empty());
    std::uint64_t removed = 0, bonnet = 0, left = 0;
    for (std::size_t k = 0; k < truth.size(); ++k) {
        const PointBatch b = read(sources[k]);
        removed += b.masked[static_cast<std::size_t>(SensorMask::Reason::own_car)];
        left += b.size();
        std::size_t next = 0;
        for (const TrueRay& ray : truth[k]) {
            bonnet += ray.own_car;
            const bool there = next < b.size() && b.gps_time[next] == Approx(ray.time_s).margin(1e-9) &&
                               length(Vec3d{b.x[next], b.y[next], b.z[next]} - ray.world) < 0.01;
            next += there;
            const Vec3d p = into(clouds.drive.sensor_at(ray.time_s), ray.world);
            INFO("scan " << k << ", " << p.x << " " << p.y << " " << p.z);
            REQUIRE(there != ray.own_car);
        }
    }
    CHECK(bonnet > 400);
    CHECK(removed == bonnet);
    CHECK(left + removed ==
          std::accumulate(truth.begin(), truth.end(), std::uint64_t{0},
                          [](std::uint64_t n, const auto& rays) { return n + rays.size(); }));
    io::DriveOptions keep;
    keep.own_car = false;
    CHECK(expand(dir.path(), keep)[0].drive->own_car.empty());
}

TEST_CASE("a car that stands finds nothing that is its own, whatever is around it") {
    test::TempDir dir;
    PosedClouds clouds;
    clouds.drive.has_bonnet = true;
    clouds.drive.speed_m_s = 1e-4;
    clouds.write(dir.path());
    CHECK(expand(dir.path())[0].drive->own_car.empty());
}

TEST_CASE("cells of the sensor are occupied in a share of the scans, in any order") {
    io::SensorOccupancy occupancy, reversed;
    const std::vector<std::vector<Vec3d>> scans{{{1.05, 0.05, 0.05}, {1.06, 0.05, 0.05}, {0, 2, 0}},
                                                {{1.15, 0.15, 0.15}, {7, 0, 0}},
                                                {{-5.9, -5.9, -5.9}}};
    for (const auto& scan : scans) occupancy.add_scan(scan);
    for (auto scan = scans.rbegin(); scan != scans.rend(); ++scan) reversed.add_scan(*scan);
    const std::vector<std::uint32_t> half{*SensorCell::of({1.1, 0.1, 0.1})};
    CHECK(occupancy.cells(0.5) == half);
    CHECK(reversed.cells(0.5) == half);
    CHECK(occupancy.cells(0.3).size() == 3);
    CHECK_FALSE(SensorCell::of({6, 0, 0}));
    CHECK(length(SensorCell::centre(half[0]) - Vec3d{1.1, 0.1, 0.1}) < 1e-9);
}

TEST_CASE("ranges and boxes leave out points by where the sensor saw them, and count them") {
    test::TempDir dir;
    PosedClouds clouds;
    clouds.scans = 2;
    const auto truth = clouds.write(dir.path());
    const auto source = expand(dir.path())[1];
    ReadOptions options;
    options.mask.min_range_m = 6;
    options.mask.max_range_m = 30;
    options.mask.boxes = {{{5, -2, -3}, {12, 2, 3}}};
    std::uint64_t near = 0, far = 0, box = 0, left = 0;
    for (const TrueRay& ray : truth[1]) {
        const Vec3d p = into(clouds.drive.sensor_at(ray.time_s), ray.world);
        const double range = length(p);
        // Half a millimetre of interpolation decides none of them.
        REQUIRE(std::min(std::fabs(range - 6), std::fabs(range - 30)) > 1e-4);
        if (range < 6)
            ++near;
        else if (range > 30)
            ++far;
        else if (p.x >= 5 && p.x <= 12 && std::fabs(p.y) <= 2)
            ++box;
        else
            ++left;
    }
    CHECK(near > 100);
    CHECK(far > 100);
    CHECK(box > 20);
    const PointBatch b = read(source, options);
    CHECK(b.masked == SensorMask::Counts{near, far, box, 0});
    CHECK(b.size() == left);
    // They are part of what the source is, and come back from its words.
    const std::string words = io::reading_of(source, options, {});
    CHECK(words != io::reading_of(source, {}, {}));
    PointBatch again;
    io::ReadingOpener{}(source.path, words)->read_block(0, again);
    CHECK(again.x == b.x);
    CHECK(again.gps_time == b.gps_time);
    CHECK(again.sensor.back().z == b.sensor.back().z);
    CHECK(again.masked == b.masked);
}

TEST_CASE("masks need to know the sensor") {
    test::TempDir dir;
    write_text(dir / "a.xyz", "1 2 3\n");
    const InputSource source = expand(dir.path())[0];
    ReadOptions options;
    options.mask.min_range_m = 1;
    CHECK_THAT(message_of([&] { source.open(options); }),
               Contains("--min-range") && Contains("where the sensor was"));
    write_text(dir / "b.csv", "x,y,z,sensor_x,sensor_y,sensor_z\n1,0,0,0,0,0\n0.5,0,0,0,0,0\n9,0,0,0,0,0\n");
    options.mask.max_range_m = 5;
    PointBatch b;
    const InputSource cloud = expand_inputs(std::vector{(dir / "b.csv").string()})[0];
    cloud.open(options)->read_block(0, b);
    CHECK(b.x == std::vector<double>{1});
    CHECK(b.masked == SensorMask::Counts{1, 1, 0, 0});
    options.mask.boxes = {{{0, 0, 0}, {1, 1, 1}}};
    CHECK_THAT(message_of([&] { cloud.open(options); }), Contains("--mask-box"));
}

TEST_CASE("a scan that is named alone is read as in its drive") {
    test::TempDir dir;
    PosedClouds clouds;
    clouds.scans = 3;
    clouds.write(dir.path());
    const auto all = expand(dir.path());
    const auto one = expand_inputs(std::vector{all[1].path.string()});
    const auto some = expand_inputs(std::vector{(dir / "scans").string() + "/*[12].ply"});
    REQUIRE(some.size() == 2);
    CHECK(io::reading_of(one[0], {}, {}) == io::reading_of(all[1], {}, {}));
    CHECK(io::reading_of(some[1], {}, {}) == io::reading_of(all[2], {}, {}));
}
