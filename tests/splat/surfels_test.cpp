#include "core/math/math_hd.hpp"
#include "seen_discs.hpp"

#include <Eigen/Dense>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

using namespace citysplat;
using namespace citysplat::splat;
using test::WorldPoint;

namespace {

constexpr std::int64_t kCube = 328;  // 4 cm in lattice steps, rounded
using Cube = std::array<std::int64_t, 3>;

Cube cube_of(const LatticePoint& p) {
    return {floor_div(p.x, kCube), floor_div(p.y, kCube), floor_div(p.z, kCube)};
}

Vec3d metres(const LatticePoint& p) { return {to_metres(p.x), to_metres(p.y), to_metres(p.z)}; }

SplatTile surfels_of(const std::vector<WorldPoint>& points, const SplatParams& params) {
    const test::MemoryCity city(points);
    const SplatProcessor processor(params, ClassMap::load("synthetic"));
    auto out = processor.process(city.read(city.bounds(), processor.initial_halo_steps()), CancelToken());
    REQUIRE(out.certified());
    return std::move(out.splats);
}

LatticePoint centre_of(const SplatTile& tile, std::size_t i) {
    const LatticePoint o = tile.frame().origin();
    const Splat s = tile.splat(i);
    return {o.x + s.x, o.y + s.y, o.z + s.z};
}

/// Normal of the k points of `cloud` that are nearest to `at`, within 20 cm, by Eigen; nothing where a tie at
/// the last place leaves it open.
std::optional<Eigen::Vector3d> normal_at(const LatticePoint& at, const std::vector<LatticePoint>& cloud,
                                         std::size_t k) {
    const double reach_m = to_metres(to_lattice(0.2));
    std::vector<std::pair<double, Eigen::Vector3d>> near;
    for (const LatticePoint& p : cloud) {
        const Vec3d d = metres(p) - metres(at);
        if (dot(d, d) <= reach_m * reach_m) near.push_back({dot(d, d), {d.x, d.y, d.z}});
    }
    std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (near.size() > k && near[k - 1].first == near[k].first) return std::nullopt;
    near.resize(std::min(near.size(), k));
    Eigen::Vector3d mean = Eigen::Vector3d::Zero();
    for (const auto& entry : near) mean += entry.second / static_cast<double>(near.size());
    Eigen::Matrix3d covariance = Eigen::Matrix3d::Zero();
    for (const auto& entry : near) covariance += (entry.second - mean) * (entry.second - mean).transpose();
    return Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(covariance).eigenvectors().col(0);
}

/// A waving surface of 1.2 × 1.2 m, seen from above; its left half is of another class.
std::vector<WorldPoint> waves(int count) {
    const Vec3d sensor{0.5, 0.7, 2.5};
    std::vector<WorldPoint> points;
    for (int i = 0; i < count; ++i) {
        const auto n = static_cast<std::uint64_t>(i);
        const double x = rng::uniform(1, n, 0, 1.2), y = rng::uniform(2, n, 0, 1.2),
                     z = 0.08 * std::sin(6 * x) + rng::uniform(3, n, -0.01, 0.01);
        points.push_back(test::seen_from({x, y, z}, sensor, x < 0.6 ? 7 : 8));
        points.back().intensity = static_cast<std::uint16_t>(i);
    }
    return points;
}

}  // namespace

TEST_CASE("surfels are one point of each cube with the normal of its neighbourhood") {
    std::vector<WorldPoint> points = waves(4000);
    std::map<LatticePoint, WorldPoint> by_place;
    std::map<Cube, int> in_cube;
    for (const WorldPoint& p : points) by_place.emplace(p.place, p), ++in_cube[cube_of(p.place)];
    REQUIRE(in_cube.size() * 2 < points.size());
    points.push_back(test::seen_from({0.6, 0.6, 0.5}, {0.5, 0.7, 2.5}, 20));  // a car that drove by
    for (const int most : {200, 12}) {
        INFO("at most " << most << " neighbours");
        SplatParams params = SplatParams::of(Method::surfels);
        params.surfel_neighbours = most;
        const SplatTile tile = surfels_of(points, params);
        REQUIRE(tile.size() == in_cube.size());
        std::vector<LatticePoint> centres;
        for (std::size_t i = 0; i < tile.size(); ++i) centres.push_back(centre_of(tile, i));
        for (std::size_t i = 0; i < tile.size(); ++i) {
            const Cube cube = cube_of(centres[i]);
            const auto found = by_place.find(centres[i]);
            REQUIRE(found != by_place.end());
            const WorldPoint& p = found->second;
            const Splat s = tile.splat(i);
            REQUIRE(s.point_count == in_cube[cube]);
            in_cube[cube] = -in_cube[cube];  // a second disc of the cube would not match
            REQUIRE((s.label == p.label && s.intensity == p.intensity));
            REQUIRE(s.radius == to_lattice(params.surfel_radius_m));
            const Vec3d n = vec_cast<double>(tile.disc(i).normal);
            const Vec3d ray = Vec3d{1.0 * p.sensor_dx, 1.0 * p.sensor_dy, 1.0 * p.sensor_dz} * (1.0 / 64);
            const double cosine = dot(n, ray) / length(ray);
            REQUIRE(cosine > 0);
            REQUIRE(std::abs(s.range - length(ray)) < 0.52);
            REQUIRE(std::abs(s.incidence - std::acos(cosine) / (exact::kPi / 2) * 254) < 0.6);
            if (const auto normal = normal_at(centres[i], centres, static_cast<std::size_t>(most)))
                REQUIRE(std::fabs(normal->dot(Eigen::Vector3d(n.x, n.y, n.z))) > 0.99999);
        }
        for (auto& [cube, count] : in_cube) count = -count;
    }
}

TEST_CASE("surfels close a surface that has a point in each cube") {
    std::vector<WorldPoint> points;
    for (std::uint64_t i = 0; i < 40'000; ++i) {
        const double x = rng::uniform(1, i, 0, 1.5), y = rng::uniform(2, i, 0, 1.5);
        points.push_back(test::seen_from({x, y, 0.3 * x - 0.2 * y}, {0.5, 0.7, 2.5}, 7));
    }
    const auto discs = test::discs_of(points, SplatParams::of(Method::surfels));
    REQUIRE(discs.size() < 5000);
    const Vec3d normal = normalized(Vec3d{-0.3, 0.2, 1});
    for (const test::WorldDisc& d : discs) {
        REQUIRE(dot(d.normal, normal) > 1 - 1e-6);
        REQUIRE(std::fabs(dot(d.centre, normal)) < 2e-4);
    }
    for (std::uint64_t i = 0; i < 2000; ++i) {
        const double x = rng::uniform(3, i, 0.1, 1.4), y = rng::uniform(4, i, 0.1, 1.4);
        const Vec3d place{x, y, 0.3 * x - 0.2 * y};
        REQUIRE(std::any_of(discs.begin(), discs.end(),
                            [&](const test::WorldDisc& d) { return length(place - d.centre) < d.radius; }));
    }
}
