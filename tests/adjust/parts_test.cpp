#include "adjust/block_solver.hpp"
#include "adjust/box_street.hpp"
#include "adjust/correction.hpp"
#include "adjust/moved_on.hpp"
#include "adjust/patch_sums.hpp"
#include "adjust/sights.hpp"
#include "adjust/thickness.hpp"
#include "core/error.hpp"
#include "io/input/adjusted_file.hpp"

#include <Eigen/Dense>
#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::adjust;

namespace {

/// Points of a square of `edge_m` at height z, seen from `sensor`.
PassOfCell square_at(double z, Vec3d sensor, double time_s, double edge_m = 0.45) {
    Moments moments;
    for (int i = 0; i < 10; ++i)
        for (int j = 0; j < 10; ++j) moments += {1, {edge_m * i / 10, edge_m * j / 10, z}, {}};
    return {moments, sensor, time_s};
}

}  // namespace

TEST_CASE("the gap of a cell is the largest difference of its passes along the normal") {
    const Vec3d above{3, 4, 5}, below{3, 4, -5};
    const auto gap = gap_of(std::vector{square_at(0.10, above, 10), square_at(0.22, above, 11),
                                        square_at(0.15, above, 15), square_at(-0.1, below, 12)});
    REQUIRE(gap);
    CHECK(gap->gap_m == Approx(0.12).margin(1e-12));
    CHECK(gap->first_s == 10);
    CHECK(gap->second_s == 11);
    CHECK_FALSE(gap_of(std::vector{square_at(0, above, 10), square_at(0.2, below, 11)}));
    CHECK_FALSE(gap_of(std::vector{square_at(0, above, 10)}));
    CHECK_FALSE(gap_of(std::vector{square_at(0, above, 10, 0.02), square_at(0.2, above, 11, 0.02)}));
}

TEST_CASE("thickness adds up in any order") {
    Thickness forward, backward, halves;
    std::vector<CellGap> gaps;
    for (int i = 0; i < 300; ++i) gaps.push_back({0.001 * (i * 37 % 300), {7.0 * i, 0, 0}, 0.01, 0, 1, 0, 0});
    for (const CellGap& gap : gaps) forward.add(gap);
    for (std::size_t i = gaps.size(); i-- > 0;) backward.add(gaps[i]);
    for (int half = 0; half < 2; ++half) {
        Thickness part;
        for (int i = 0; i < 150; ++i) part.add(gaps[static_cast<std::size_t>(2 * i + half)]);
        halves.add(part);
    }
    CHECK(forward.cells() == 300);
    CHECK(forward.share_thick() == Approx(199.0 / 300).margin(0.004));
    CHECK(forward.quantile_m(0.5) == Approx(0.15).margin(0.002));
    for (const Thickness* other : {&backward, &halves}) {
        CHECK(other->thick_cells() == forward.thick_cells());
        REQUIRE(other->worst().size() == Thickness::kWorst);
        for (std::size_t i = 0; i < Thickness::kWorst; ++i) {
            CHECK(other->worst()[i].gap_m == forward.worst()[i].gap_m);
            CHECK(other->worst()[i].place_m.x == forward.worst()[i].place_m.x);
        }
    }
    CHECK(forward.worst()[0].gap_m == Approx(0.299));
}

TEST_CASE("equations of blocks have the solution that a dense solver finds") {
    constexpr std::size_t kGroups = 30;
    BlockEquations equations(kGroups);
    Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(6 * kGroups, 6 * kGroups);
    Eigen::VectorXd right(6 * kGroups);
    auto random = [n = std::uint64_t{0}]() mutable { return rng::uniform(3, n++, -1, 1); };
    for (std::size_t a = 0; a < kGroups; ++a)
        for (const std::size_t b : {a, a + 1, a + 7, (a * a) % kGroups}) {
            if (b >= kGroups) continue;
            // A square of a difference of two groups keeps the matrix positive.
            Eigen::MatrixXd j = Eigen::MatrixXd::Zero(1, 6 * kGroups);
            for (std::size_t k = 0; k < 6; ++k) {
                j(0, static_cast<Eigen::Index>(6 * a + k)) += random();
                j(0, static_cast<Eigen::Index>(6 * b + k)) += random();
            }
            dense += j.transpose() * j;
        }
    dense += 0.1 * Eigen::MatrixXd::Identity(6 * kGroups, 6 * kGroups);
    for (std::size_t a = 0; a < kGroups; ++a)
        for (std::size_t k = 0; k < 6; ++k) {
            const auto row = static_cast<Eigen::Index>(6 * a + k);
            equations.row(a).right[k] = right(row) = random();
            for (std::size_t b = 0; b <= a; ++b)
                for (std::size_t l = 0; l < 6; ++l)
                    if (const double v = dense(row, static_cast<Eigen::Index>(6 * b + l)); v != 0)
                        equations.at(a, b)[6 * k + l] = v;
        }
    const Eigen::VectorXd expected = dense.ldlt().solve(right);
    const auto solved = equations.solve(1 << 30, CancelToken());
    for (std::size_t a = 0; a < kGroups; ++a)
        for (std::size_t k = 0; k < 6; ++k)
            CHECK(solved[a][k] == Approx(expected(static_cast<Eigen::Index>(6 * a + k))).margin(1e-9));
    CHECK_THROWS_AS(equations.solve(1000, CancelToken()), ResourceError);
    CancelToken cancelled;
    cancelled.request();
    CHECK_THROWS_AS(equations.solve(1 << 30, cancelled), Interrupted);
}

TEST_CASE("a slot saw through a place when all it saw in that direction lies well behind it") {
    Sights sights(3);
    const Vec3d wall{12, 5, -1};
    sights.add(1, wall);
    sights.add(1, 2.0 * wall);  // behind the wall: says nothing new
    CHECK(sights.passes(1, 0.8 * wall));
    CHECK_FALSE(sights.passes(1, 0.97 * wall));  // less than half a metre in front of it
    CHECK_FALSE(sights.passes(1, 1.2 * wall));
    CHECK_FALSE(sights.passes(1, -0.8 * wall));  // nothing was seen there
    CHECK_FALSE(sights.passes(2, 0.8 * wall));   // nor by another slot
    // Directions near each other share a bin wherever they point; opposite ones never do.
    for (std::uint64_t i = 0; i < 300; ++i) {
        const Vec3d d{rng::uniform(1, i, -1, 1), rng::uniform(2, i, -1, 1), rng::uniform(3, i, -1, 1)};
        Sights one(1);
        one.add(0, 30.0 * d);
        CHECK(one.passes(0, 10.0 * d) == (20 * length(d) > 0.5 + 0.3 * length(d)));
        CHECK_FALSE(one.passes(0, -10.0 * d));
    }
    // The place of the sensor itself lies in no direction, whatever was seen around it.
    for (const double x : {-9.0, 0.0, 9.0})
        for (const double y : {-9.0, 0.0, 9.0})
            for (const double z : {-9.0, 9.0}) sights.add(0, {x, y, z});
    CHECK_FALSE(sights.passes(0, {0, 0, 0}));
}

TEST_CASE("a wall that the rays of a second later pass through was a bus") {
    std::vector<StampedPose> poses;
    for (int i = 0; i <= 60; ++i) poses.push_back({0.1 * i, {{1.0 * i, 0, 0}, {}}});
    std::vector<Correction> drives;
    drives.emplace_back(Trajectory(poses), 0.1);
    const Corrections corrections(std::move(drives));
    REQUIRE(corrections.slots() == 60);
    const Vec3d place{30, 3, 0};
    std::vector<SlotOfCell> sighting;
    for (std::uint32_t slot = 24; slot < 36; ++slot)
        sighting.push_back({{5, place, {}}, {slot + 0.5, 0, 0}, 0.1 * slot + 0.05, 0.5, slot, 0});
    /// All other slots see something so many times as far away, in the direction of the place.
    const auto moved = [&](double factor, std::uint32_t from, std::uint32_t to) {
        Sights sights(60);
        for (std::uint32_t slot = from; slot < to; ++slot)
            sights.add(slot, factor * (place - Vec3d{slot + 0.5, 0, 0}));
        return moved_on(sighting, corrections, sights);
    };
    CHECK(moved(3, 0, 60));
    CHECK_FALSE(moved(1, 0, 60));    // it is still there
    CHECK_FALSE(moved(0.5, 0, 60));  // something stands in front of it
    CHECK(moved(3, 36, 60));         // seen through afterwards only
    CHECK_FALSE(moved(3, 36, 41));   // by five slots, where twelve saw it
    CHECK_FALSE(moved(3, 24, 36));   // what those saw that saw it, does not count
}

TEST_CASE("a standing car has a knot every two seconds and not one a scan") {
    std::vector<StampedPose> poses;
    for (int i = 0; i < 6000; ++i) poses.push_back({0.1 * i, {{0.001 * (i % 2), 0, 0}, {}}});
    for (int i = 0; i < 100; ++i) poses.push_back({600 + 0.1 * i, {{1.0 * i, 0, 0}, {}}});
    const Correction correction(Trajectory(poses), 0.1);
    CHECK(correction.knots().size() < 300 + 102);
    CHECK(correction.knots().size() > 300 + 95);
    for (std::size_t i = 1; i < correction.knot_times_s().size(); ++i)
        CHECK(correction.knot_times_s()[i] - correction.knot_times_s()[i - 1] < 2.11);
}

TEST_CASE("corrections are linear between knots and turn about the sensor") {
    Correction correction(test::true_trajectory(0, 1, 10), 0.2);
    REQUIRE(correction.knots().size() == 6);
    correction.knots()[1] = {{1, 0, 0}, {0, 0, 0.1}};
    const Trajectory corrected = correction.corrected();
    const auto at = [&](std::size_t i) { return corrected.poses()[i].world_from_body; };
    const auto given = [&](std::size_t i) { return correction.given().poses()[i].world_from_body; };
    CHECK(at(2).translation.x - given(2).translation.x == Approx(1));
    CHECK(at(1).translation.x - given(1).translation.x == Approx(0.5));
    CHECK(at(3).translation.x - given(3).translation.x == Approx(0.5));
    CHECK(at(4).translation.x == given(4).translation.x);
    const Quaternion turn = at(2).rotation * conjugate(given(2).rotation);
    CHECK(2 * std::asin(turn.z) == Approx(0.1));
}

TEST_CASE("patches that were spilled in runs come back once each, with exact sums") {
    PatchRuns small(std::filesystem::temp_directory_path(), 200 * sizeof(PatchSums));
    PatchRuns large(std::filesystem::temp_directory_path(), 1 << 30);
    std::vector<PatchSums> sums;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        PatchSums patch = PatchSums::of({static_cast<std::int64_t>(rng::bits(1, i) % 40000) - 20000,
                                         static_cast<std::int64_t>(rng::bits(2, i) % 40000), -77});
        patch.slot = static_cast<std::uint32_t>(i % 3);
        sums.push_back(patch);
        if (sums.size() == 50) small.add(sums), large.add(sums), sums.clear();
    }
    const auto merged = [](PatchRuns& runs) {
        std::vector<PatchSums> all;
        runs.merge(CancelToken(), [&](const PatchSums& s) { all.push_back(s); });
        return all;
    };
    const auto a = merged(small), b = merged(large);
    REQUIRE(a.size() == b.size());
    std::uint64_t points = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(a[i].key() == b[i].key());
        CHECK(a[i].second[1] == b[i].second[1]);
        if (i > 0) CHECK(a[i - 1].key() < a[i].key());
        points += a[i].points;
    }
    CHECK(points == 5000);
}

TEST_CASE("points that an adjusted trajectory does not cover stay, and have no sensor") {
    const Trajectory given = test::true_trajectory(0, 1);
    auto blocks = std::make_shared<std::vector<PointBatch>>(1);
    PointBatch& batch = (*blocks)[0];
    for (const double t : {0.5, 7.0}) {
        batch.x.push_back(1), batch.y.push_back(2), batch.z.push_back(3);
        batch.gps_time.push_back(t);
    }
    auto adjustment = std::make_shared<Adjustment>();
    adjustment->given = given;
    adjustment->adjusted = test::drifted(given, 0);
    ReadOptions options;
    options.adjustment = adjustment;
    PointBatch out;
    io::with_adjusted_poses(std::make_unique<test::BlocksFile>(blocks), options, "b")->read_block(0, out);
    CHECK(out.x[0] != 1);
    CHECK(std::isfinite(out.sensor[0].x));
    CHECK(out.x[1] == 1);
    CHECK(std::isnan(out.sensor[1].x));
    adjustment->given = Trajectory();
    CHECK_THROWS_WITH(io::with_adjusted_poses(std::make_unique<test::BlocksFile>(blocks), options, "b"),
                      Catch::Contains("--trajectory"));
}
