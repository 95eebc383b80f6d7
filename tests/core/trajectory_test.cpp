#include "model/trajectory.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;

namespace {

void write_text(const std::filesystem::path& path, std::string_view text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

}  // namespace

TEST_CASE("a trajectory interpolates position linearly and rotation spherically") {
    const Trajectory t({{10, {{0, 0, 0}, from_yaw_pitch_roll(0, 0, 0)}},
                        {12, {{4, 2, -2}, from_yaw_pitch_roll(exact::kPi / 2, 0, 0)}}});
    const Pose half = t.at(11).value();
    CHECK(half.translation.x == Approx(2));
    CHECK(half.translation.z == Approx(-1));
    const Vec3d forward = rotate(half.rotation, Vec3d{1, 0, 0});
    CHECK(forward.x == Approx(std::sqrt(0.5)));
    CHECK(forward.y == Approx(std::sqrt(0.5)));
    CHECK_FALSE(t.at(9.999));
    CHECK_FALSE(t.at(12.001));
    CHECK(t.at(12)->translation.x == 4);
    CHECK(t.length_m() == Approx(std::sqrt(24.0)));
}

TEST_CASE("a pose and its inverse cancel, and a rotation matrix gives the same quaternion") {
    const Pose pose{{1, 2, 3}, from_yaw_pitch_roll(2.5, -0.7, 3.0)};
    const Vec3d v{0.3, -4, 9};
    const Vec3d back = inverse(pose).apply(pose.apply(v));
    CHECK(length(back - v) < 1e-12);
    const Vec3d x = rotate(pose.rotation, Vec3d{1, 0, 0}), y = rotate(pose.rotation, Vec3d{0, 1, 0}),
                z = rotate(pose.rotation, Vec3d{0, 0, 1});
    const Quaternion q = from_rotation_matrix({x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z});
    CHECK(length(rotate(q, v) - rotate(pose.rotation, v)) < 1e-12);
}

TEST_CASE("TUM files round-trip, and broken ones are named by line") {
    test::TempDir dir;
    TumWriter out(dir / "t.tum");
    out.write({1.5, {{651000.25, 6860000.125, 35}, {}}});
    out.write({2.5, {{651001, 6860002, 35}, {0, 0, 0.6, 0.8}}});
    CHECK_THROWS_WITH(out.write({2.5, {}}), Catch::Contains("t.tum: pose 3") && Catch::Contains("sort"));
    out.finish();
    const Trajectory back = Trajectory::read_tum(dir / "t.tum");
    REQUIRE(back.poses().size() == 2);
    CHECK(back.poses()[0].world_from_body.translation.y == 6860000.125);
    CHECK(back.poses()[1].world_from_body.rotation.w == Approx(0.8));

    write_text(dir / "short", "# comment\n1 2 3\n");
    CHECK_THROWS_WITH(Trajectory::read_tum(dir / "short"), Catch::Contains("line 2"));
    write_text(dir / "nan", "1 2 3 nan 0 0 0 1\n");
    CHECK_THROWS_WITH(Trajectory::read_tum(dir / "nan"), Catch::Contains("finite"));
    write_text(dir / "unsorted", "2 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n");
    CHECK_THROWS_WITH(Trajectory::read_tum(dir / "unsorted"),
                      Catch::Contains("pose 2") && Catch::Contains("sort"));
    write_text(dir / "empty", "");
    CHECK_THROWS_AS(Trajectory::read_tum(dir / "empty"), InputError);
}
