#include "core/error.hpp"
#include "io/drive/kitti_raw_writer.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <functional>

using namespace citysplat;
using namespace citysplat::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// The stamps of all scans, each moved as `shift_s` says.
void write_stamps(const KittiRaw& kitti, const fs::path& file, double from_forward_s,
                  const std::function<double(int)>& shift_s) {
    std::string text;
    for (int k = 0; k < kitti.scans; ++k) text += stamp(kitti.forward_s(k) + from_forward_s + shift_s(k));
    write_text(file, text);
}

const io::Drive& drive_of(const std::vector<InputSource>& sources) { return *sources.front().drive; }

}  // namespace

TEST_CASE("frames of KITTI raw whose times do not follow are timed by those around them, or refused") {
    TempDir dir;
    const KittiRaw kitti;
    const fs::path folder = dir / "drive_sync", stamps = folder / "velodyne_points";
    kitti.write(folder, true, true);
    const double half = kitti.drive.sensor().period_s / 2;
    const auto write_all = [&](const std::function<double(int)>& shift_s) {
        write_stamps(kitti, stamps / "timestamps.txt", 0, shift_s);
        write_stamps(kitti, stamps / "timestamps_start.txt", -half, shift_s);
        write_stamps(kitti, stamps / "timestamps_end.txt", half, shift_s);
    };
    SECTION("a stamp that is there twice") {
        write_all([&](int k) { return k == 7 ? -kitti.drive.sensor().period_s : 0; });
        const auto sources = expand(folder, kitti.options());
        CHECK(std::fabs(sources[7].scan->sweep.begin_s - (kStampZero_s + kitti.forward_s(7) - half)) < 1e-5);
        REQUIRE(drive_of(sources).assumptions.size() == 1);
        CHECK_THAT(drive_of(sources).assumptions[0], Contains("2 lines of timestamps"));
    }
    SECTION("times that descend, and times that are all the same") {
        write_all([&](int k) { return -2 * k * kitti.drive.sensor().period_s + 5; });
        CHECK_THROWS_WITH(expand(folder), Contains("29 of 30 frames do not follow those before them") &&
                                              Contains("Without the file"));
        write_all([&](int k) { return -k * kitti.drive.sensor().period_s; });
        CHECK_THROWS_WITH(expand(folder), Contains("30 of 30 frames do not follow"));
    }
    SECTION("turns that end too late, and turns that end before they begin") {
        write_stamps(kitti, stamps / "timestamps_end.txt", half, [](int k) { return k == 4 ? 0.7 : 0; });
        const auto sources = expand(folder, kitti.options());
        CHECK(std::fabs(sources[4].scan->sweep.end_s - (kStampZero_s + kitti.forward_s(4) + half)) < 1e-4);
        REQUIRE(drive_of(sources).assumptions.size() == 1);
        CHECK_THAT(drive_of(sources).assumptions[0], Contains("1 lines of timestamps"));
        write_stamps(kitti, stamps / "timestamps_end.txt", -2 * half, [](int) { return 0; });
        CHECK_THROWS_WITH(expand(folder), Contains("the turn of frame 0 takes -0.0516") &&
                                              Contains("Without timestamps_start and timestamps_end"));
    }
}

TEST_CASE("scans that are missing between others are told") {
    TempDir dir;
    const KittiRaw kitti;
    const fs::path folder = dir / "drive_sync", data = folder / "velodyne_points/data";
    kitti.write(folder, true, true);
    CHECK(fact(drive_of(expand(folder)), "missing").empty());
    for (const int k : {9, 10, 11, 17}) fs::remove(data / (file_number(k) + ".bin"));
    CHECK_THAT(fact(drive_of(expand(folder)), "missing"),
               Contains("4 scans between the first and the last") && Contains("after 0000000008.bin"));
    for (int k = 1; k < kitti.scans; k += 2) fs::remove(data / (file_number(k) + ".bin"));
    CHECK_THAT(fact(drive_of(expand(folder)), "missing"), Contains("1 scans"));
}

TEST_CASE("a calibration that shears is no rotation") {
    TempDir dir;
    KittiRaw kitti;
    kitti.scans = 3;
    kitti.write(dir / "drive_sync", true, true);
    write_text(dir / "calib_imu_to_velo.txt", "R: 1 3 0 0 1 0 0 0 1\nT: 0 0 0\n");
    CHECK_THROWS_WITH(expand(dir / "drive_sync"), Contains("R is not a rotation"));
}

TEST_CASE("poses that jump to another place are refused with the time") {
    TempDir dir;
    const KittiRaw kitti;
    const fs::path folder = dir / "drive_sync", record = folder / "oxts/data/0000000012.txt";
    kitti.write(folder, true, true);
    OxtsWriter elsewhere;
    elsewhere.latitude_deg += 0.01;
    write_text(record, elsewhere.line(kitti.drive, 1.49));
    CHECK_THROWS_WITH(expand(folder), Contains("its poses jump by") && Contains("--trajectory"));
    elsewhere.latitude_deg = kitti.oxts.latitude_deg + 0.00003;  // 3 m: navigation that finds itself again
    write_text(record, elsewhere.line(kitti.drive, 1.49));
    CHECK_NOTHROW(expand(folder));
}

TEST_CASE("scans between poses that are far apart are told") {
    TempDir dir;
    const KittiRaw kitti;
    const fs::path folder = dir / "drive_sync";
    kitti.write(folder, true, true);
    for (int k = 10; k < 22; ++k) fs::remove(folder / "oxts/data" / (file_number(k) + ".txt"));
    const auto sources = expand(folder, kitti.options());
    REQUIRE(drive_of(sources).assumptions.size() == 1);
    CHECK_THAT(drive_of(sources).assumptions[0],
               Contains("8 scans lie where there are no poses (1317042001."));
}

TEST_CASE("records of zeros are no returns, also in scans that were compensated") {
    TempDir dir;
    const RoomDrive drive{RoomDrive::Sensor{}};
    const double period = drive.sensor().period_s;
    std::string poses, times;
    for (int k = 0; k < 3; ++k) {
        const double t = 0.5 + k * period;
        std::string bytes = records(by_ring(returns_of(drive.turn(t - period / 2))),
                                    [&](const TrueRay& ray) { return into(drive.sensor_at(t), ray.world); });
        for (std::size_t i = 0; i < 20; ++i) bytes.replace(16 * 50 * i, 12, std::string(12, '\0'));
        write_text(dir / "seq/velodyne" / (file_number(k) + ".bin"), bytes);
        poses += matrix_line(drive.sensor_at(t));
        times += number(t) + "\n";
    }
    write_text(dir / "seq/poses.txt", poses);
    write_text(dir / "seq/times.txt", times);
    const auto sources = expand(dir / "seq");
    REQUIRE(sources[0].scan->sweep.frame == Sweep::Frame::fixed);
    PointBatch batch;
    sources[1].open({})->read_block(0, batch);
    CHECK(batch.no_return == 20);
}
