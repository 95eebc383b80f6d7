#include "core/error.hpp"
#include "io/drive/kitti_raw_writer.hpp"
#include "io/drive/own_car.hpp"
#include "io/input/reading.hpp"
#include "io/room_drive.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

using namespace citysplat;
using namespace citysplat::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

PointBatch read(const InputSource& source, const ReadOptions& options = {}) {
    const auto file = source.open(options);
    REQUIRE(file->block_count() == 1);
    PointBatch batch;
    file->read_block(0, batch);
    batch.check();
    return batch;
}

/// The largest differences between what was read and the truth.
struct Differences {
    double place_m = 0, sensor_m = 0, time_s = 0;
};

/// Of all scans, the truth without what has no return; times up to `clock_s`, which readers cannot know.
Differences differences(const std::vector<InputSource>& sources, const Scans& truth, double clock_s = 0) {
    REQUIRE(sources.size() == truth.size());
    Differences most;
    for (std::size_t k = 0; k < sources.size(); ++k) {
        const PointBatch b = read(sources[k]);
        const std::vector<TrueRay> rays = returns_of(truth[k]);
        REQUIRE(b.size() == rays.size());
        REQUIRE(b.sensor.size() == rays.size());
        REQUIRE(b.gps_time.size() == rays.size());
        for (std::size_t i = 0; i < rays.size(); ++i) {
            most.place_m = std::max(most.place_m, length(Vec3d{b.x[i], b.y[i], b.z[i]} - rays[i].world));
            most.sensor_m = std::max(most.sensor_m, length(b.sensor[i] - rays[i].sensor));
            most.time_s = std::max(most.time_s, std::fabs(b.gps_time[i] - clock_s - rays[i].time_s));
        }
    }
    return most;
}

}  // namespace

TEST_CASE("a KITTI raw drive is deskewed: points, rays and times are those of the truth") {
    test::TempDir dir;
    const KittiRaw kitti;
    const Scans truth = kitti.write(dir / "drive_sync", true, true);
    const auto sources = expand(dir / "drive_sync", kitti.options());
    const Differences off = differences(sources, truth, kStampZero_s);
    CHECK(off.place_m < 0.01);
    CHECK(off.sensor_m < 0.01);
    CHECK(off.time_s < 1e-4);
    const io::Drive& drive = *sources[0].drive;
    CHECK(drive.kind == "KITTI raw");
    CHECK(drive.assumptions.empty());
    CHECK(length(drive.lever_arm_m - RoomDrive::body_from_sensor().translation) < 1e-9);
    for (const double t : {0.3, 1.0, 2.5})
        CHECK(length(drive.trajectory.at(t + kStampZero_s)->translation -
                     kitti.drive.sensor_at(t).translation) < 0.01);
    // Without deskewing the same points would be decimetres off.
    io::DriveOptions still = kitti.options();
    still.compensated = io::DriveOptions::Compensated::middle;
    CHECK(differences(expand(dir / "drive_sync", still), truth, kStampZero_s).place_m > 0.3);
}

TEST_CASE("KITTI raw without timestamps finds its times by way and speed") {
    test::TempDir dir;
    const KittiRaw kitti;
    const bool scan_stamps = GENERATE(false, true);
    const Scans truth = kitti.write(dir / "drive_sync", false, scan_stamps);
    const auto sources = expand(dir / "drive_sync", kitti.options());
    // The first record is at 0.25 s; the clock begins there, or is that of the scans.
    const Differences off = differences(sources, truth, scan_stamps ? kStampZero_s : -0.25);
    CHECK(off.place_m < 0.03);  // at the ends of the drive; on walls 45 m away
    CHECK(off.sensor_m < 0.02);
    CHECK(off.time_s < 0.002);
    CHECK_THAT(fact(*sources[0].drive, "clock"), Contains("by way and speed"));
    CHECK(sources[0].drive->rate_hz == Approx(1 / 0.1034).epsilon(0.002));
}

TEST_CASE("KITTI raw that stands still is taken to have ten turns a second, and says so") {
    test::TempDir dir;
    KittiRaw kitti;
    kitti.drive.speed_m_s = 1e-3;
    kitti.scans = 5;
    kitti.write(dir / "drive_sync", false, false);
    const auto sources = expand(dir / "drive_sync", kitti.options());
    REQUIRE(sources[0].drive->assumptions.size() == 1);
    CHECK_THAT(sources[0].drive->assumptions[0],
               Contains("10 frames a second are assumed") && Contains("--rate"));
    CHECK(sources[1].scan->sweep.begin_s - sources[0].scan->sweep.begin_s == Approx(0.1));
    CHECK(sources[0].drive->own_car.empty());
}

TEST_CASE("the origin of KITTI raw is its first record unless another is given") {
    test::TempDir dir;
    KittiRaw kitti;
    kitti.scans = 4;
    kitti.write(dir / "drive_sync", true, true);
    const auto here = expand(dir / "drive_sync"), there = expand(dir / "drive_sync", kitti.options());
    const PointBatch a = read(here[2]), b = read(there[2]);
    const Vec3d first = kitti.drive.body_at(0.25).translation;
    CHECK(b.x[100] - a.x[100] == Approx(first.x).margin(1e-3));
    CHECK(b.y[100] - a.y[100] == Approx(first.y).margin(1e-3));
    CHECK(b.z[100] - a.z[100] == Approx(first.z).margin(1e-6));
}

TEST_CASE("KITTI raw is found from any of its folders and above the day") {
    test::TempDir dir;
    KittiRaw kitti;
    kitti.scans = 4;
    const fs::path day = dir / "2011_09_26", folder = day / "2011_09_26_drive_0005_sync";
    const Scans truth = kitti.write(folder, true, true);
    for (const fs::path& given :
         {dir.path(), day, folder, folder / "velodyne_points", folder / "velodyne_points/data"}) {
        INFO(given);
        CHECK(differences(expand(given, kitti.options()), truth, kStampZero_s).place_m < 0.01);
    }
    // Two drives of a day need to be told what they have in common.
    kitti.write(day / "2011_09_26_drive_0009_sync", true, true);
    CHECK_THROWS_WITH(expand(day), Contains("need one origin") && Contains("--origin 49.0"));
    CHECK(expand(day, kitti.options()).size() == 8);
    // Beside point files of other kinds, folders with scans are not meant.
    write_text(day / "cloud.xyz", "1 2 3\n");
    CHECK(expand(day).size() == 1);
}

TEST_CASE("excerpts of KITTI raw work with what they have") {
    test::TempDir dir;
    KittiRaw kitti;
    const fs::path folder = dir / "drive_sync";
    Scans truth = kitti.write(folder, false, false);
    const auto most = [&] { return differences(expand(folder, kitti.options()), truth, kitti.first_s); };
    SECTION("scans from the middle, records of the whole drive, timestamps of the scans alone") {
        std::string begins, middles, ends;
        const double half = kitti.drive.sensor().period_s / 2;
        for (int k = 0; k < kitti.scans; ++k) {
            const double t = kitti.forward_s(k);
            if (k >= 10 && k < 20)
                begins += stamp(t - half), middles += stamp(t), ends += stamp(t + half);
            else
                fs::remove(folder / "velodyne_points/data" / (file_number(k) + ".bin"));
        }
        write_text(folder / "velodyne_points/timestamps.txt", middles);
        write_text(folder / "velodyne_points/timestamps_start.txt", begins);
        write_text(folder / "velodyne_points/timestamps_end.txt", ends);
        truth = {truth.begin() + 10, truth.begin() + 20};
        CHECK(differences(expand(folder, kitti.options()), truth, kStampZero_s).place_m < 0.03);
    }
    SECTION("scans with the times of begin and end alone") {
        std::string begins, ends;
        const double half = kitti.drive.sensor().period_s / 2;
        for (int k = 0; k < kitti.scans; ++k)
            begins += stamp(kitti.forward_s(k) - half), ends += stamp(kitti.forward_s(k) + half);
        write_text(folder / "velodyne_points/timestamps_start.txt", begins);
        write_text(folder / "velodyne_points/timestamps_end.txt", ends);
        CHECK(differences(expand(folder, kitti.options()), truth, kStampZero_s).place_m < 0.03);
    }
    SECTION("times of begin and end for frames without a file, and not as many of each") {
        std::string begins, ends;
        const double half = kitti.drive.sensor().period_s / 2;
        for (int k = 0; k < kitti.scans; ++k)
            begins += stamp(kitti.forward_s(k) - half), ends += stamp(kitti.forward_s(k) + half);
        begins += stamp(kitti.forward_s(kitti.scans) - half);
        write_text(folder / "velodyne_points/timestamps_start.txt", begins);
        write_text(folder / "velodyne_points/timestamps_end.txt", ends);
        CHECK(differences(expand(folder, kitti.options()), truth, kStampZero_s).place_m < 0.03);
    }
    SECTION("empty lines where frames have no time") {
        std::string records, middles;
        for (int k = 0; k < kitti.scans; ++k) {
            records += k == 5 ? "\n" : stamp(std::round(kitti.forward_s(k) * 100) / 100);
            middles += k == 8 ? "\n" : stamp(kitti.forward_s(k));
        }
        write_text(folder / "oxts/timestamps.txt", records);
        write_text(folder / "velodyne_points/timestamps.txt", middles);
        const auto sources = expand(folder, kitti.options());
        CHECK(differences(sources, truth, kStampZero_s).place_m < 0.08);  // 5 ms of the record at 9 m/s
        REQUIRE(sources[0].drive->assumptions.size() == 1);
        CHECK_THAT(sources[0].drive->assumptions[0],
                   Contains("2 lines of timestamps are empty or do not follow"));
        write_text(folder / "velodyne_points/timestamps.txt", stamp(0.25) + std::string(29, '\n'));
        CHECK_THROWS_WITH(expand(folder),
                          Contains("no time for frame 1 and 28 others") && Contains("without the file"));
    }
    SECTION("a scan that is a link to nothing is not a scan less") {
        const fs::path scan = folder / "velodyne_points/data" / (file_number(3) + ".bin");
        fs::remove(scan);
        fs::create_symlink("elsewhere.bin", scan);
        CHECK_THROWS_WITH(expand(folder), Contains(scan.string()));
    }
    SECTION("a record is missing") {
        fs::remove(folder / "oxts/data/0000000012.txt");
        CHECK(most().place_m < 0.03);
    }
    SECTION("without the folders named data, with the calibration in a folder of its own") {
        for (const char* part : {"velodyne_points", "oxts"}) {
            for (const auto& entry : fs::directory_iterator(folder / part / "data"))
                fs::rename(entry.path(), folder / part / entry.path().filename());
            fs::remove(folder / part / "data");
        }
        write_text(folder / "oxts/dataformat.txt", "lat: latitude of the oxts-unit (deg)\n");
        fs::create_directory(folder / "calib");
        fs::rename(dir / "calib_imu_to_velo.txt", folder / "calib/calib_imu_to_velo.txt");
        CHECK(most().place_m < 0.03);
    }
    SECTION("records whose numbers have no zeros in front") {
        for (int k = 0; k < kitti.scans; ++k)
            fs::rename(folder / "oxts/data" / (file_number(k) + ".txt"),
                       folder / "oxts/data" / (std::to_string(k) + ".txt"));
        CHECK(most().place_m < 0.03);
    }
    SECTION("a number that no list could be as long as") {
        fs::rename(folder / "velodyne_points/data/0000000029.bin",
                   folder / "velodyne_points/data/4000000000.bin");
        CHECK_THROWS_WITH(expand(folder), Contains("4000000000.bin") && Contains("more than a second away"));
    }
}

TEST_CASE("an unsynchronised KITTI drive: text scans, a record every 10 ms, clocks that step back") {
    test::TempDir dir;
    const KittiRaw kitti;
    const fs::path folder = dir / "2011_09_26_drive_0005_extract", data = folder / "velodyne_points/data";
    const Scans truth = kitti.write(folder, true, true);
    for (int k = 0; k < kitti.scans; ++k) {
        std::string text;
        for (const TrueRay& ray : truth[static_cast<std::size_t>(k)]) {
            const Vec3d p = into(kitti.drive.sensor_at(ray.time_s), ray.world);
            text += number(std::round(p.x * 1000) / 1000) + " " + number(std::round(p.y * 1000) / 1000) +
                    " " + number(std::round(p.z * 1000) / 1000) + " 0.5\n";
        }
        fs::remove(data / (file_number(k) + ".bin"));
        write_text(data / (file_number(k) + ".txt"), text);
    }
    fs::remove_all(folder / "oxts");
    std::string stamps;
    constexpr int kRecords = 360;
    for (int i = 0; i < kRecords; ++i) {
        write_text(folder / "oxts/data" / (file_number(i) + ".txt"), kitti.oxts.line(kitti.drive, i * 0.01));
        stamps += stamp(i == 100 ? 0.93 : i == 201 ? 2.04 : i * 0.01);
    }
    write_text(folder / "oxts/timestamps.txt", stamps);
    const auto sources = expand(folder, kitti.options());
    CHECK(differences(sources, truth, kStampZero_s).place_m < 0.015);
    REQUIRE(sources[0].drive->assumptions.size() == 1);
    CHECK_THAT(sources[0].drive->assumptions[0], Contains("2 of 360 OXTS records are left out"));
    // Numbers of records are not those of scans.
    for (const char* file : {"oxts/timestamps.txt", "velodyne_points/timestamps.txt"})
        fs::remove(folder / file);
    CHECK_THROWS_WITH(expand(folder, kitti.options()),
                      Contains("a record every 10 ms") && Contains("oxts/timestamps.txt"));
}

TEST_CASE("folders that lack what makes a drive are told what it is") {
    test::TempDir dir;
    write_text(dir / "a/velodyne/000000.bin", std::string(16, '\0'));
    CHECK_THROWS_WITH(expand(dir / "a"), Contains("no poses.txt"));
    write_text(dir / "b/samples/LIDAR_TOP/x.pcd.bin", std::string(20, '\0'));
    CHECK_THROWS_WITH(expand(dir / "b"), Contains("sample_data.json, ego_pose.json"));
    write_text(dir / "c/oxts/data/0000000000.txt", "49 8 100 0 0 0 0 0\n");
    CHECK_THROWS_WITH(expand(dir / "c"), Contains("no velodyne_points"));
}

TEST_CASE("damaged KITTI raw drives are refused with the way out") {
    test::TempDir dir;
    KittiRaw kitti;
    kitti.scans = 3;
    const fs::path folder = dir / "drive_sync";
    kitti.write(folder, true, true);
    const auto message = [&] {
        try {
            expand(folder);
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    const fs::path record = folder / "oxts/data/0000000001.txt";
    write_text(record, "49.0 8.4 115\n");
    CHECK_THAT(message(), Contains("0000000001.txt") && Contains("3 columns") &&
                              Contains("roll is missing") && Contains("without this file"));
    write_text(record, "490 8.4 115 0 0 0 0 0\n");
    CHECK_THAT(message(), Contains("column 1: the latitude is \"490\""));
    write_text(record, "49 8.4 nan 0 0 0 0 0\n");
    CHECK_THAT(message(), Contains("the altitude is \"nan\""));
    write_text(record, kitti.oxts.line(kitti.drive, 0.36) + kitti.oxts.line(kitti.drive, 0.46));
    CHECK_THAT(message(), Contains("line 2: more than one record"));
    write_text(record, kitti.oxts.line(kitti.drive, 0.36));
    CHECK(message().empty());
    write_text(folder / "oxts/timestamps.txt", "2011-09-26 13:00:00\nyesterday\n2011-09-26 13:00:01\n");
    CHECK_THAT(message(), Contains("timestamps.txt: line 2") && Contains("yesterday"));
    write_text(folder / "oxts/timestamps.txt", stamp(0.25) + stamp(0.36));
    CHECK_THAT(message(), Contains("2 times for 3 files"));
    write_text(folder / "oxts/timestamps.txt", stamp(0.46) + stamp(0.36) + stamp(0.56));
    CHECK_THAT(message(), Contains("does not follow"));
    write_text(folder / "oxts/timestamps.txt", stamp(90) + stamp(91) + stamp(92));
    CHECK_THAT(message(), Contains("more than a second away from the records of OXTS"));
    fs::remove(folder / "oxts/timestamps.txt");
    fs::remove(dir / "calib_imu_to_velo.txt");
    CHECK_THAT(message(), Contains("no calib_imu_to_velo.txt") && Contains("the one above it"));
    write_text(dir / "calib_imu_to_velo.txt", "R: 1 0 0 0 1 0 0 0 2\nT: 0 0 0\n");
    CHECK_THAT(message(), Contains("R is not a rotation"));
    fs::remove_all(folder / "oxts");
    CHECK_THAT(message(), Contains("no oxts/data"));
}

TEST_CASE(
    "compensated scans of KITTI odometry stay where they are, and their rays begin where the sensor was") {
    test::TempDir dir;
    const RoomDrive drive{RoomDrive::Sensor{}};
    const double period = drive.sensor().period_s;
    Scans truth;
    std::string poses, times;
    for (int k = 0; k < 6; ++k) {
        const double t = 0.5 + k * period;
        truth.push_back(by_ring(returns_of(drive.turn(t - period / 2))));
        const std::string bytes =
            records(truth.back(), [&](const TrueRay& ray) { return into(drive.sensor_at(t), ray.world); });
        write_text(dir / "seq/velodyne" / (file_number(k) + ".bin"), bytes);
        poses += matrix_line(drive.sensor_at(t));
        times += number(t) + "\n";
    }
    write_text(dir / "seq/poses.txt", poses);
    write_text(dir / "seq/times.txt", times);
    const auto sources = expand(dir / "seq");
    CHECK(sources[0].scan->sweep.frame == Sweep::Frame::fixed);
    CHECK_THAT(fact(*sources[0].drive, "compensated"), Contains("middle of the turn"));
    const Differences off = differences(sources, truth);
    CHECK(off.place_m < 1e-4);
    CHECK(off.sensor_m < 0.01);
    CHECK(off.time_s < 0.001);
}

namespace {

/// Scans of an HDL-32E as nuScenes has them: a record for every firing, compensated to the end of the turn;
/// rays that met nothing are records where the sensor was.
RoomDrive hdl32() {
    return RoomDrive(RoomDrive::Sensor{32, 1085, -30.67, 10.67, 1085 * 46.08e-6, exact::kPi, true});
}

Scans write_hdl32_sequence(const fs::path& folder, const RoomDrive& drive, int scans) {
    Scans truth;
    std::string poses;
    const double period = drive.sensor().period_s;
    for (int k = 0; k < scans; ++k) {
        const double end_s = k * period;
        truth.push_back(drive.turn(end_s - period));
        const auto place = [&](const TrueRay& ray) { return into(drive.sensor_at(end_s), ray.world); };
        write_text(folder / "velodyne" / (file_number(k) + ".bin"), records(truth.back(), place));
        poses += matrix_line(drive.sensor_at(end_s));
    }
    write_text(folder / "poses.txt", poses);
    return truth;
}

}  // namespace

TEST_CASE("an HDL-32E in a KITTI folder: rate, compensation and empty rays are found in the records") {
    test::TempDir dir;
    const RoomDrive drive = hdl32();
    const Scans truth = write_hdl32_sequence(dir / "seq", drive, 4);
    const auto sources = expand(dir / "seq");
    const io::Drive& found = *sources[0].drive;
    CHECK(found.rate_hz == Approx(20.0).epsilon(0.001));
    CHECK_THAT(fact(found, "rate"), Contains("HDL-32E"));
    CHECK_THAT(fact(found, "compensated"), Contains("end of the turn") && Contains("way of the sensor"));
    const Differences off = differences(sources, truth);
    CHECK(off.place_m < 1e-4);
    CHECK(off.sensor_m < 0.005);
    CHECK(off.time_s < 1e-6);

    const PointBatch b = read(sources[2]);
    std::vector<TrueRay> empties = truth[2];
    std::erase_if(empties, [](const TrueRay& ray) { return !ray.empty; });
    REQUIRE(b.no_return == empties.size());
    REQUIRE(b.empty_rays.size() == empties.size());
    double worst = 0;
    for (std::size_t i = 0; i < empties.size(); ++i) {
        CHECK(b.empty_rays[i].beam == empties[i].beam);
        const double t = empties[i].time_s,
                     turned = (t - (2 - 1) * drive.sensor().period_s) / drive.sensor().period_s;
        const double up = drive.elevation_rad(empties[i].beam),
                     azimuth = exact::kPi - 2 * exact::kPi * turned;
        const Vec3d local{std::cos(up) * std::cos(azimuth), std::cos(up) * std::sin(azimuth), std::sin(up)};
        worst =
            std::max(worst, length(b.empty_rays[i].direction - rotate(drive.sensor_at(t).rotation, local)));
        CHECK(length(b.empty_rays[i].origin - empties[i].sensor) < 0.005);
    }
    CHECK(worst < 0.2 * exact::kRadPerDegree);
}

TEST_CASE("a rate that is given goes before one that is found") {
    test::TempDir dir;
    write_hdl32_sequence(dir / "seq", hdl32(), 3);
    io::DriveOptions options;
    options.rate_hz = 10;
    const auto sources = expand(dir / "seq", options);
    CHECK(sources[0].drive->rate_hz == Approx(10));
    CHECK(sources[2].scan->sweep.end_s - sources[1].scan->sweep.end_s == Approx(0.1));
}
