#include "core/math/rng_hd.hpp"
#include "splat/generation/point_cloud.hpp"
#include "splat/search/neighbour_search.hpp"
#include "splat/search/plane_fit.hpp"

#include <Eigen/Eigenvalues>
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

using namespace citysplat;
using namespace citysplat::splat;

namespace {

using Make = std::function<TilePoint(std::uint64_t i)>;

PointCloud cloud_of(std::size_t n, const Make& make) {
    std::vector<TilePoint> points;
    for (std::size_t i = 0; i < n; ++i) points.push_back(make(i));
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return make_point_cloud({0, 0, 0}, points, {}, ClassMap(), CancelToken());
}

std::int32_t pick(std::uint64_t i, int column, std::int32_t low, std::int32_t high) {
    return static_cast<std::int32_t>(
        rng::uniform(rng::key(99, i), static_cast<std::uint64_t>(column), low, high));
}

TilePoint at(std::int32_t x, std::int32_t y, std::int32_t z) {
    return {x,
            y,
            z,
            0,
            0,
            0,
            TilePoint::kNoSensor,
            TilePoint::kNoSensor,
            TilePoint::kNoSensor,
            TilePoint::kNoSlot};
}

struct Found {
    std::vector<std::uint32_t> points;
    std::uint32_t reach2;
};

/// All points, sorted by (distance², rank), cut.
Found brute_force(const PointCloud& c, std::size_t query, const Reach& reach) {
    struct Entry {
        std::int64_t distance2;
        std::uint32_t rank, point;
    };
    std::vector<Entry> all;
    for (std::size_t i = 0; i < c.size(); ++i) {
        const std::int64_t dx = c.x[i] - c.x[query], dy = c.y[i] - c.y[query], dz = c.z[i] - c.z[query];
        const std::int64_t d2 = dx * dx + dy * dy + dz * dz;
        if (d2 <= std::int64_t{reach.radius} * reach.radius)
            all.push_back({d2, c.rank[i], static_cast<std::uint32_t>(i)});
    }
    std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.distance2, a.rank) < std::tie(b.distance2, b.rank);
    });
    const bool full = all.size() >= static_cast<std::size_t>(reach.k);
    if (full) all.resize(static_cast<std::size_t>(reach.k));
    Found found{{},
                full ? static_cast<std::uint32_t>(all.back().distance2)
                     : static_cast<std::uint32_t>(reach.radius * reach.radius)};
    for (const Entry& e : all) found.points.push_back(e.point);
    std::sort(found.points.begin(), found.points.end());
    return found;
}

/// Numbers for the reach, right or wrong, change no neighbour.
void check_expected_reach(const NeighbourIndex& index, QueryBatch batch, const NeighbourLists& lists) {
    SearchScratch scratch;
    NeighbourLists again;
    std::vector<std::uint32_t> reach2(index.size());
    for (const int how : {0, 1, 2}) {
        for (std::size_t q = 0; q < batch.points.size(); ++q) {
            const std::uint64_t noise = rng::mix(q) % 5;
            reach2[batch.points[q]] = how == 0   ? lists.reach2[q]
                                      : how == 1 ? static_cast<std::uint32_t>(lists.reach2[q] * noise / 2)
                                                 : static_cast<std::uint32_t>(rng::mix(q));
        }
        batch.reach2 = reach2;
        find_neighbours(index, batch, again, scratch);
        for (std::size_t q = 0; q < batch.points.size(); ++q) {
            REQUIRE(again.reach2[q] == lists.reach2[q]);
            std::vector<std::uint32_t> expected(lists[q].point.begin(), lists[q].point.end()),
                found(again[q].point.begin(), again[q].point.end());
            std::sort(expected.begin(), expected.end());
            std::sort(found.begin(), found.end());
            REQUIRE(found == expected);
        }
    }
}

void check_against_brute_force(const PointCloud& c, std::span<const Reach> reaches, std::size_t every) {
    const NeighbourIndex index(c.x, c.y, c.z, c.rank);
    std::vector<std::uint8_t> reach_class(c.size());
    for (std::size_t i = 0; i < c.size(); ++i)
        reach_class[i] = static_cast<std::uint8_t>(rng::mix(i / 7) % reaches.size());
    std::vector<std::uint32_t> queries;
    for (std::size_t i = 0; i < c.size(); i += every) queries.push_back(static_cast<std::uint32_t>(i));
    const QueryBatch batch{queries, reach_class, reaches};
    SearchScratch scratch;
    NeighbourLists lists;
    std::vector<Moments> moments(queries.size());
    find_neighbours(index, batch, lists, scratch);
    find_moments(index, batch, moments, scratch);
    check_expected_reach(index, batch, lists);
    for (std::size_t q = 0; q < queries.size(); ++q) {
        const Found expected = brute_force(c, queries[q], reaches[reach_class[queries[q]]]);
        std::vector<std::uint32_t> found(lists.point.begin() + lists.begin[q],
                                         lists.point.begin() + lists.begin[q] + lists.count[q]);
        std::sort(found.begin(), found.end());
        REQUIRE(found == expected.points);
        REQUIRE(lists.reach2[q] == expected.reach2);
        REQUIRE(moments[q].reach2 == expected.reach2);
        REQUIRE(moments[q].count == static_cast<std::int32_t>(expected.points.size()));
        std::int64_t sx = 0, sy = 0, sz = 0, sxx = 0, syy = 0, szz = 0, sxy = 0, sxz = 0, syz = 0;
        for (const std::uint32_t p : expected.points) {
            const std::int64_t dx = c.x[p] - c.x[queries[q]], dy = c.y[p] - c.y[queries[q]],
                               dz = c.z[p] - c.z[queries[q]];
            sx += dx, sy += dy, sz += dz, sxx += dx * dx, syy += dy * dy, szz += dz * dz;
            sxy += dx * dy, sxz += dx * dz, syz += dy * dz;
        }
        REQUIRE(moments[q].sum_x == static_cast<double>(sx));
        REQUIRE(moments[q].sum_y == static_cast<double>(sy));
        REQUIRE(moments[q].sum_z == static_cast<double>(sz));
        REQUIRE(moments[q].sum_yy == static_cast<double>(syy));
        REQUIRE(moments[q].sum_xz == static_cast<double>(sxz));
        REQUIRE(moments[q].sum_xx == static_cast<double>(sxx));
        REQUIRE(moments[q].sum_xy == static_cast<double>(sxy));
        REQUIRE(moments[q].sum_yz == static_cast<double>(syz));
        REQUIRE(moments[q].sum_zz == static_cast<double>(szz));
    }
}

const std::vector<Reach> kReaches{{40, 1200}, {120, 3600}, {13, 400}, {10, 300}, {40, 40960}};

}  // namespace

TEST_CASE("neighbours of random clouds are those of brute force") {
    const auto c = cloud_of(4000, [](std::uint64_t i) {
        return at(pick(i, 0, -20000, 20000), pick(i, 1, -20000, 20000), pick(i, 2, -3000, 3000));
    });
    check_against_brute_force(c, kReaches, 3);
}

TEST_CASE(
    "neighbours on a plane, a line and a lattice-aligned grid are those of brute force, ties included") {
    const auto plane =
        cloud_of(4000, [](std::uint64_t i) { return at(pick(i, 0, 0, 16000), pick(i, 1, 0, 16000), 77); });
    check_against_brute_force(plane, kReaches, 5);
    const auto line = cloud_of(3000, [](std::uint64_t i) { return at(pick(i, 0, 0, 90000), 5, 5); });
    check_against_brute_force(line, kReaches, 5);
    const auto grid = cloud_of(6400, [](std::uint64_t i) {
        return at(static_cast<std::int32_t>(i % 80) * 100, static_cast<std::int32_t>(i / 80) * 100, 0);
    });
    check_against_brute_force(grid, kReaches, 11);
    const auto cube = cloud_of(8000, [](std::uint64_t i) {
        const auto n = static_cast<std::int32_t>(i);
        return at(n % 20, n / 20 % 20, n / 400);
    });
    check_against_brute_force(cube, kReaches, 37);
}

TEST_CASE("densities that differ by orders of magnitude do not disturb the search") {
    const auto c = cloud_of(6000, [](std::uint64_t i) {
        const std::int32_t size = i % 3 == 0 ? 30 : i % 3 == 1 ? 2000 : 400000;
        const std::int32_t far = i % 3 == 0 ? 5000 : 0;
        return at(far + pick(i, 0, 0, size), pick(i, 1, 0, size), pick(i, 2, 0, size));
    });
    check_against_brute_force(c, kReaches, 7);
}

TEST_CASE("a ball of more points than the search likes at a time is found whole") {
    const auto c = cloud_of(9000, [](std::uint64_t i) {
        return at(pick(i, 0, -400, 400), pick(i, 1, -400, 400), pick(i, 2, -400, 400));
    });
    const std::vector<Reach> reaches{
        {std::numeric_limits<std::int32_t>::max(), 1500}, {7000, 1500}, {20, 1500}};
    check_against_brute_force(c, reaches, 400);
}

TEST_CASE("duplicates at one place are one point, and a handful of points has a handful of neighbours") {
    const auto c = cloud_of(5000, [](std::uint64_t i) {
        TilePoint p = at(static_cast<std::int32_t>(i % 5) * 10, 0, 0);
        p.intensity = static_cast<std::uint16_t>(i);
        return p;
    });
    REQUIRE(c.size() == 5);
    check_against_brute_force(c, kReaches, 1);
    const auto one = cloud_of(1, [](std::uint64_t) { return at(3, 4, 5); });
    check_against_brute_force(one, kReaches, 1);
}

TEST_CASE("places far from the frame and far apart keep distances exact") {
    const auto c = cloud_of(3000, [](std::uint64_t i) {
        const std::int32_t base = i % 2 == 0 ? (1 << 28) : -(1 << 28);
        return at(base + pick(i, 0, 0, 50000), base + pick(i, 1, 0, 50000), pick(i, 2, 0, 50000));
    });
    check_against_brute_force(c, kReaches, 5);
}

TEST_CASE("normals of searched neighbourhoods are those of a double-precision reference") {
    // A tilted plane with noise, a slab, and a bent surface; covariances about the mean, solved by Eigen.
    const auto c = cloud_of(6000, [](std::uint64_t i) {
        const std::int32_t u = pick(i, 0, 0, 12000), v = pick(i, 1, 0, 12000), noise = pick(i, 2, -60, 60);
        if (i % 3 == 0) return at(u, v, (u + 2 * v) / 5 + noise);
        if (i % 3 == 1) return at(20000 + noise, 20000 + u / 3, v / 4);
        return at(40000 + u, v, static_cast<std::int32_t>(std::int64_t{u} * u / 30000) + noise / 4);
    });
    const NeighbourIndex index(c.x, c.y, c.z, c.rank);
    const Reach reach{40, 4000};
    const std::vector<std::uint8_t> reach_class(c.size(), 0);
    std::vector<std::uint32_t> queries(c.size());
    std::iota(queries.begin(), queries.end(), 0u);
    std::vector<Moments> moments(c.size());
    std::vector<PlaneFit> fits(c.size());
    SearchScratch scratch;
    find_moments(index, {queries, reach_class, {&reach, 1}}, moments, scratch);
    fit_planes(moments, fits);
    std::size_t looked_at = 0, compared = 0;
    for (std::size_t q = 0; q < c.size(); q += 7) {
        ++looked_at;
        const Found found = brute_force(c, q, reach);
        const auto n = static_cast<double>(found.points.size());
        Vec3d mean{0, 0, 0};
        for (const std::uint32_t p : found.points) mean = mean + Vec3d{c.x[p] / n, c.y[p] / n, c.z[p] / n};
        Eigen::Matrix3d covariance = Eigen::Matrix3d::Zero();
        for (const std::uint32_t p : found.points) {
            const Eigen::Vector3d d(c.x[p] - mean.x, c.y[p] - mean.y, c.z[p] - mean.z);
            covariance += d * d.transpose();
        }
        const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(covariance);
        if (fits[q].shape != PlaneFit::Shape::plane) continue;
        if (solver.eigenvalues()(1) < 1.05 * solver.eigenvalues()(0)) continue;  // no direction stands out
        const Eigen::Vector3d normal(fits[q].normal.x, fits[q].normal.y, fits[q].normal.z);
        REQUIRE(normal.cross(solver.eigenvectors().col(0)).norm() < 0.01 / 57.3);
        ++compared;
    }
    CHECK(compared > looked_at * 9 / 10);
}
