#include "adjust/adjust.hpp"

#include "adjust/box_street.hpp"
#include "core/error.hpp"
#include "io/input/adjusted_file.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

using namespace citysplat;
using namespace citysplat::test;

namespace {

adjust::AdjustReport run(std::vector<adjust::AdjustDrive> drives, adjust::AdjustOptions options = {}) {
    options.scratch = std::filesystem::temp_directory_path();
    options.knots_s = 0.3;  // saves time
    Progress silent;
    return adjust::adjust(drives, options, CancelToken(), silent);
}

Residual residual_of(const adjust::AdjustReport& report) {
    std::vector<Trajectory> adjusted;
    for (const auto& drive : report.drives) adjusted.push_back(drive.adjusted);
    return test::residual_of(adjusted);
}

/// One lap takes 15.7 s: half of the street is seen twice from nearby.
constexpr double kDrive_s = 24;

}  // namespace

TEST_CASE("a drift of 30 cm and 0.3 degrees over more than a lap is found to a centimetre and a half") {
    const Trajectory given = drifted(true_trajectory(0, kDrive_s), 0.5);
    const Trajectory as_given[]{given};
    REQUIRE(residual_of(as_given).rms_m > 0.2);
    const auto report =
        run({{"drive", given, {cloud_of(scan({.end_s = kDrive_s, .traffic = true}, given))}}});
    CHECK_FALSE(report.refusal);
    CHECK(residual_of(report).rms_m < 0.015);
    CHECK(report.before.share_thick() > 0.2);
    CHECK(report.after.share_thick() < 0.01);
    CHECK(report.drives[0].knots_seen == report.drives[0].knots);
}

TEST_CASE("two drives with clocks of their own are adjusted to each other", "[slow]") {
    std::vector<adjust::AdjustDrive> drives;
    for (const double phase : {0.0, 2.5}) {
        const Trajectory given = drifted(true_trajectory(0, 16), phase);
        drives.push_back({"drive", given, {cloud_of(scan({.end_s = 16}, given))}});
    }
    const auto report = run(drives);
    CHECK_FALSE(report.refusal);
    CHECK(residual_of(report).rms_m < 0.015);
}

TEST_CASE("a good trajectory moves by less than a centimetre") {
    const Trajectory given = true_trajectory(0, 16);
    const auto report = run({{"drive", given, {cloud_of(scan({.end_s = 16, .traffic = true}, given))}}});
    CHECK_FALSE(report.refusal);
    CHECK(report.drives[0].most_shift_m < 0.01);
    CHECK(report.before.share_thick() < adjust::kMostThick);
}

TEST_CASE("poses without height, roll and pitch are found again on a hilly road") {
    std::vector<StampedPose> poses;
    const Trajectory truth = true_trajectory(0, 5);
    for (StampedPose p : truth.poses()) {
        // As if the road rose and fell by half a metre, at up to 4 degrees, and nobody had said so.
        const double phase = 2 * exact::kPi * p.time_s / 6;
        Pose& pose = p.world_from_body;
        pose.translation.z -= 0.5 * exact::sin(phase);
        const Vec3d across = rotate(pose.rotation, {0, 1, 0});
        pose.rotation =
            adjust::rotation_from(4 * exact::kRadPerDegree * exact::cos(phase) * across) * pose.rotation;
        poses.push_back(p);
    }
    const Trajectory given(std::move(poses));
    const auto report = run({{"drive", given, {cloud_of(scan({.end_s = 5}, given))}}});
    INFO((report.refusal ? *report.refusal : "") << report.after.share_thick());
    CHECK_FALSE(report.refusal);
    CHECK(report.drives[0].most_turn_rad > 2 * exact::kRadPerDegree);
    CHECK(residual_of(report).rms_m < 0.015);
}

TEST_CASE("what was seen is taken off the memory, and said when there is none left for the rest") {
    const Trajectory given = true_trajectory(0, 5);
    const auto blocks = scan({.end_s = 5, .beams = 16, .columns = 100}, given);
    CHECK_THROWS_WITH(run({{"drive", given, {cloud_of(blocks)}}}, {.memory_bytes = std::uint64_t{200} << 10}),
                      Catch::Contains("more than half") && Catch::Contains("--memory"));
}

TEST_CASE("a pass that sees nothing twice from behind is found by what it sees in front for long") {
    // A quarter of a lap. Few returns a cell and scan, as of far surfaces: they tie distant scans together.
    const Trajectory given = drifted(true_trajectory(0, 5), 0.5);
    const auto report =
        run({{"drive", given, {cloud_of(scan({.end_s = 5, .beams = 16, .columns = 200}, given))}}});
    CHECK_FALSE(report.refusal);
    CHECK(residual_of(report).rms_m < 0.015);
}

TEST_CASE("scans that were left out take the correction of those between which they are", "[slow]") {
    const Trajectory given = drifted(true_trajectory(0, kDrive_s), 1.5);
    const auto report = run({{"drive", given, {cloud_of(scan({.end_s = kDrive_s}, given, 2, 0))}}});
    CHECK_FALSE(report.refusal);
    CHECK(residual_of(report).rms_m < 0.015);
    // The other half, moved by the correction, lies where the adjusted trajectory would have placed it.
    const auto others = scan({.end_s = kDrive_s}, given, 2, 1);
    ReadOptions options;
    auto adjustment = std::make_shared<Adjustment>();
    adjustment->given = given;
    adjustment->adjusted = report.drives[0].adjusted;
    options.adjustment = adjustment;
    const auto moved = io::with_adjusted_poses(std::make_unique<BlocksFile>(others), options, "others");
    const auto expected = scan({.end_s = kDrive_s}, report.drives[0].adjusted, 2, 1);
    PointBatch batch;
    moved->read_block(100, batch);
    const PointBatch& right = (*expected)[100];
    REQUIRE(batch.size() == right.size());
    REQUIRE(batch.sensor.size() == batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
        CHECK(std::abs(batch.x[i] - right.x[i]) < 1e-6);
        CHECK(std::abs(batch.z[i] - right.z[i]) < 1e-6);
        const Vec3d sensor = report.drives[0].adjusted.at(batch.gps_time[i])->translation;
        CHECK(length(batch.sensor[i] - sensor) < 1e-9);
    }
}

TEST_CASE("the order of clouds, threads and memory do not change a bit of the result") {
    const Trajectory given = drifted(true_trajectory(0, 12), 0);
    std::vector<adjust::OpenCloud> clouds;
    for (int part = 0; part < 3; ++part) clouds.push_back(cloud_of(scan({.end_s = 12}, given, 3, part)));
    adjust::AdjustOptions options;
    const auto first = run({{"drive", given, clouds}}, options);
    std::swap(clouds[0], clouds[2]);
    options.memory_bytes = std::uint64_t{24} << 20;  // spills
    const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
    const auto second = run({{"drive", given, clouds}}, options);
    const auto a = first.drives[0].adjusted.poses(), b = second.drives[0].adjusted.poses();
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(a[i].world_from_body.translation.x == b[i].world_from_body.translation.x);
        CHECK(a[i].world_from_body.translation.z == b[i].world_from_body.translation.z);
        CHECK(a[i].world_from_body.rotation.w == b[i].world_from_body.rotation.w);
        CHECK(a[i].world_from_body.rotation.x == b[i].world_from_body.rotation.x);
    }
    CHECK(first.after.thick_cells() == second.after.thick_cells());
    CHECK(first.patches == second.patches);
}

TEST_CASE("what corrections of poses do not explain is refused") {
    const Trajectory given = true_trajectory(0, 16);
    SECTION("a sensor that is broken") {
        const auto report = run({{"drive", given, {cloud_of(scan({.end_s = 16, .broken = true}, given))}}});
        INFO(report.before.share_thick() << " before, " << report.after.share_thick() << " after");
        REQUIRE(report.refusal);
    }
    SECTION("ranges that are too long") {
        // As if the whole street were larger: no cloud can contradict it, but the trajectory does.
        const auto report =
            run({{"drive", given, {cloud_of(scan({.end_s = 8, .stretch = 1.05, .columns = 240}, given))}}});
        REQUIRE(report.refusal);
        CHECK(report.drives[0].stretch > 0.03);
        CHECK(report.refusal->find("longer") != std::string::npos);
    }
    SECTION("corrections beyond a limit") {
        const Trajectory wrong = drifted(given, 0);
        const auto report =
            run({{"drive", wrong, {cloud_of(scan({.end_s = 8}, wrong))}}}, {.most_shift_m = 0.05});
        REQUIRE(report.refusal);
        CHECK(report.refusal->find("--most-shift") != std::string::npos);
    }
    SECTION("nothing was seen twice") {
        const auto blocks = scan({.end_s = 0.1}, given);
        CHECK_THROWS_AS(run({{"drive", given, {cloud_of(blocks)}}}), InputError);
    }
    SECTION("points without times") {
        auto blocks = std::make_shared<std::vector<PointBatch>>(*scan({.end_s = 1}, given));
        for (PointBatch& block : *blocks) block.gps_time.clear();
        CHECK_THROWS_WITH(run({{"drive", given, {cloud_of(blocks)}}}), Catch::Contains("no time"));
    }
}
