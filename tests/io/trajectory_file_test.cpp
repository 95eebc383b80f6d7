#include "io/trajectory/trajectory_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "io/crs/map_projection.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace citysplat;
using Catch::Contains;

namespace {

void write_text(const std::filesystem::path& path, std::string_view text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

Vec3d forward(const Pose& pose) { return rotate(pose.rotation, Vec3d{1, 0, 0}); }

void write_sbet(const std::filesystem::path& path, const std::vector<std::vector<double>>& records,
                std::size_t cut_bytes = 0) {
    std::string bytes;
    for (const auto& r : records) bytes.append(reinterpret_cast<const char*>(r.data()), r.size() * 8);
    bytes.resize(bytes.size() - cut_bytes);
    write_text(path, bytes);
}

std::vector<double> sbet_record(double time_s, double latitude_deg, double longitude_deg,
                                double heading_deg) {
    constexpr double d = exact::kPi / 180;
    std::vector<double> r(17);
    r[0] = time_s, r[1] = latitude_deg * d, r[2] = longitude_deg * d, r[3] = 35, r[9] = heading_deg * d;
    return r;
}

}  // namespace

TEST_CASE("the format of a trajectory is found by its content") {
    test::TempDir dir;
    write_text(dir / "tum", "# a comment\n1.5 10 20 30 0 0 0 1\n2.5 11 20 30 0 0 0 1\n");
    CHECK(read_trajectory(dir / "tum").poses().size() == 2);
    write_text(dir / "csv", "time,x,y,z,qx,qy,qz,qw\n1,2,3,4,0,0,0,1\n2,3,3,4,0,0,0,1\n");
    CHECK(read_trajectory(dir / "csv").poses()[1].world_from_body.translation.x == 3);
    write_text(dir / "kitti", "1 0 0 5 0 1 0 6 0 0 1 7\n1 0 0 6 0 1 0 6 0 0 1 7\n");
    const Trajectory kitti = read_trajectory(dir / "kitti");
    CHECK(kitti.poses()[1].time_s == Approx(0.1));
    CHECK(kitti.poses()[0].world_from_body.translation.z == 7);
    write_text(dir / "other", "1 2 3 4\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "other"), Contains("4 numbers a line") && Contains("TUM"));
    write_text(dir / "empty", "");
    CHECK_THROWS_AS(read_trajectory(dir / "empty"), InputError);
    write_text(dir / "comments", "# nothing\n\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "comments"), Contains("no poses"));
}

TEST_CASE("a byte order mark in front of a trajectory is no part of it") {
    test::TempDir dir;
    write_text(dir / "tum",
               "\xef\xbb\xbf"
               "1 10 20 30 0 0 0 1\n");
    CHECK(read_trajectory(dir / "tum").begin_s() == 1);
    write_text(dir / "csv", "\xef\xbb\xbftime,x,y,z,yaw_deg\n1,2,3,4,0\n");
    CHECK(read_trajectory(dir / "csv").begin_s() == 1);
}

TEST_CASE("CSV headings are compass angles, yaw is mathematical, units come from names or options") {
    test::TempDir dir;
    write_text(
        dir / "h.csv",
        "# made "
        "up\nid,slice_t,E,N,alt,heading_deg,roll_deg,pitch_deg\n7,1,10,20,30,90,0,0\n8,2,11,20,30,0,0,10\n");
    TrajectoryOptions options;
    CHECK_THROWS_WITH(read_trajectory(dir / "h.csv", options), Contains("line 2") && Contains("time"));
    options.columns = {{"time", "slice_t"}};
    options.position_offset_m = {650'000, 6'860'000, 0};
    const Trajectory t = read_trajectory(dir / "h.csv", options);
    CHECK(t.poses()[0].world_from_body.translation.x == 650'010);
    CHECK(length(forward(t.poses()[0].world_from_body) - Vec3d{1, 0, 0}) < 1e-12);  // heading 90° is east
    const Vec3d up = forward(t.poses()[1].world_from_body);                         // north, nose up
    CHECK(up.y == Approx(std::cos(10 * exact::kPi / 180)));
    CHECK(up.z == Approx(std::sin(10 * exact::kPi / 180)));

    write_text(dir / "y.csv", "t;x;y;z;yaw\n1;0;0;0;1.5707963267948966\n2;0;1;0;1.5707963267948966\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "y.csv"), Contains("yaw") && Contains("unit"));
    options = {};
    options.angles = TrajectoryOptions::AngleUnit::radians;
    CHECK(length(forward(read_trajectory(dir / "y.csv", options).poses()[0].world_from_body) -
                 Vec3d{0, 1, 0}) < 1e-12);
    write_text(dir / "bad.csv", "time,x,y,z,yaw_deg\n1,2,3,4,5\n2,2,3\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "bad.csv"), Contains("line 3") && Contains("3 numbers"));
    write_text(dir / "word.csv", "time,x,y,z,yaw_deg\n1,2,abc,4,5\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "word.csv"), Contains("line 2") && Contains("abc"));
}

TEST_CASE("GPS weeks and offsets are explicit") {
    test::TempDir dir;
    write_text(dir / "t", "100 0 0 0 0 0 0 1\n101 1 0 0 0 0 0 1\n");
    TrajectoryOptions options;
    options.gps_week = 2300;
    options.adjusted_gps_time = true;
    options.time_offset_s = -18;
    CHECK(read_trajectory(dir / "t", options).begin_s() == 2300 * 604800.0 + 100 - 1e9 - 18);
    write_text(dir / "standard", "1400000000 0 0 0 0 0 0 1\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "standard", options), Contains("pose 1") && Contains("GPS week"));
}

TEST_CASE("KITTI poses with a calibration become poses of the sensor, with the times beside them") {
    test::TempDir dir;
    // Camera: x right, y down, z forward. The sensor sees x forward, y left, z up.
    write_text(dir / "calib.txt", "P0: 1 0 0 0 0 1 0 0 0 0 1 0\nTr: 0 -1 0 0 0 0 -1 0 1 0 0 0\n");
    write_text(dir / "poses.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 1 0 1 0 -2 0 0 1 3\n");
    write_text(dir / "times.txt", "5.0\n5.5\n");
    const Trajectory t = read_trajectory(dir / "poses.txt");
    CHECK(t.end_s() == 5.5);
    CHECK(length(t.poses()[1].world_from_body.translation - Vec3d{3, -1, 2}) < 1e-12);
    TrajectoryOptions cameras_alone;
    write_text(dir / "calib_cameras.txt", "P0: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    cameras_alone.calibration = dir / "calib_cameras.txt";
    CHECK_THROWS_WITH(read_trajectory(dir / "poses.txt", cameras_alone), Contains("no line \"Tr:\""));
    write_text(dir / "times.txt", "5.0\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "poses.txt"), Contains("1 times for 2 poses"));
    write_text(dir / "times.txt", "1\n2\n");
    write_text(dir / "poses.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n2 0 0 1 0 1 0 -2 0 0 1 3\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "poses.txt"), Contains("pose 2") && Contains("rotation"));
    write_text(dir / "times.txt", "0.5\n0.25\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "poses.txt"),
                      Contains("times.txt: time 2 is 0.25") && Contains("not after the 0.5"));
}

TEST_CASE("SBET records are projected, with grid north instead of true north") {
    test::TempDir dir;
    write_sbet(dir / "a.sbet", {sbet_record(1, 48.85, 2.35, 90), sbet_record(2, 48.85, 2.351, 0)});
    CHECK_THROWS_WITH(read_trajectory(dir / "a.sbet"), Contains("projected system"));
    TrajectoryOptions options;
    options.epsg = 2154;
    const Trajectory t = read_trajectory(dir / "a.sbet", options);
    REQUIRE(t.poses().size() == 2);
    const Vec3d step = t.poses()[1].world_from_body.translation - t.poses()[0].world_from_body.translation;
    const Vec3d along = normalized(step);  // due east on the ground
    CHECK(length(along - forward(t.poses()[0].world_from_body)) < 1e-5);
    write_sbet(dir / "cut.sbet", {sbet_record(1, 48.85, 2.35, 90)}, 1);
    CHECK_THROWS_WITH(read_trajectory(dir / "cut.sbet", options), Contains("135 bytes"));
    options.epsg = 32633;
    CHECK(read_trajectory(dir / "a.sbet", options).poses().size() ==
          2);  // two zones off, as some do on purpose
    options.epsg = 32651;
    CHECK_THROWS_WITH(read_trajectory(dir / "a.sbet", options),
                      Contains("record 0: longitude 2.35") && Contains("EPSG:32651, whose middle is 123.0"));
    options.epsg = 2154;
    write_sbet(dir / "lie.sbet", {sbet_record(1, 48.85, 2.35, 90), sbet_record(2, 148, 2, 0)});
    CHECK_THROWS_WITH(read_trajectory(dir / "lie.sbet", options),
                      Contains("record 1") && Contains("latitude"));
    options.epsg = 4326;
    CHECK_THROWS_AS(read_trajectory(dir / "a.sbet", options), UsageError);
}

TEST_CASE("map projections agree with published coordinates") {
    constexpr double d = exact::kPi / 180;
    // Lambert-93 has its origin at 3° E, 46.5° N with false coordinates 700 km and 6600 km.
    const auto origin = io::MapProjection(2154).project(46.5 * d, 3 * d);
    CHECK(origin.east_m == Approx(700'000).margin(1e-4));
    CHECK(origin.north_m == Approx(6'600'000).margin(1e-4));
    // The arc of the WGS 84 meridian from the equator to 45° is 4 984 944.378 m long.
    const auto mid = io::MapProjection(32631).project(45 * d, 3 * d);
    CHECK(mid.east_m == Approx(500'000).margin(1e-6));
    CHECK(mid.north_m == Approx(0.9996 * 4'984'944.378).margin(1e-3));
    const auto south = io::MapProjection(32731).project(-45 * d, 3 * d);
    CHECK(south.north_m == Approx(1e7 - mid.north_m).margin(1e-6));
    // Conformal: a small square stays a square, of the same size as on the ellipsoid times the scale.
    for (const int epsg : {2154, 32631, 25832}) {
        const io::MapProjection p(epsg);
        const double lat = 47.3 * d, lon = 5.1 * d, h = 1e-6;
        const auto o = p.project(lat, lon), n = p.project(lat + h, lon), e = p.project(lat, lon + h);
        const double f = 1 / 298.257223563, e2 = f * (2 - f), w = 1 - e2 * std::sin(lat) * std::sin(lat);
        const double north_radius = 6378137 * (1 - e2) / (w * std::sqrt(w)),
                     east_radius = 6378137 / std::sqrt(w);
        const double north_scale =
            std::hypot(n.east_m - o.east_m, n.north_m - o.north_m) / (north_radius * h);
        const double east_scale =
            std::hypot(e.east_m - o.east_m, e.north_m - o.north_m) / (east_radius * std::cos(lat) * h);
        CHECK(north_scale == Approx(east_scale).epsilon(1e-6));
        CHECK((n.east_m - o.east_m) * (e.east_m - o.east_m) +
                  (n.north_m - o.north_m) * (e.north_m - o.north_m) ==
              Approx(0).margin(1e-4));
    }
}

TEST_CASE("holes in a recording are refused unless allowed, and standing still is no hole") {
    test::TempDir dir;
    std::string text, still;
    for (int i = 0; i < 50; ++i) {
        const double time = i < 25 ? i * 0.1 : i * 0.1 + 60;
        text += std::to_string(time) + " " + std::to_string(i < 25 ? i : i + 300) + " 0 0 0 0 0 1\n";
        still += std::to_string(time) + " " + std::to_string(i * 0.1) + " 0 0 0 0 0 1\n";
    }
    write_text(dir / "gap", text);
    write_text(dir / "still", still);
    CHECK_THROWS_WITH(read_trajectory(dir / "gap"), Contains("poses 25 and 26"));
    TrajectoryOptions options;
    options.allow_gaps = true;
    CHECK(read_trajectory(dir / "gap", options).poses().size() == 50);
    CHECK(read_trajectory(dir / "still").poses().size() == 50);
    write_text(dir / "unsorted", "2 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n");
    CHECK_THROWS_WITH(read_trajectory(dir / "unsorted"), Contains("pose 2"));
}
