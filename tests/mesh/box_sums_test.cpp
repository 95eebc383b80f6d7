#include "mesh/box_sums.hpp"

#include "mesh/scenes.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::mesh;
using namespace citysplat::test;

namespace {

std::vector<TilePoint> random_points(const TileFrame& frame, int count) {
    std::vector<WorldPoint> cloud;
    add_patch(cloud, {{401, 800, 49}, {5, 1, 3}, {-1, 6, 2}, {390, 790, 60}, count, 1, 0.8});
    cloud[0].sensor_dx = TilePoint::kNoSensor;  // of this one nobody knows
    std::vector<TilePoint> points;
    for (const WorldPoint& p : cloud) points.push_back(p.in(frame));
    return points;
}

/// By going through all points.
VoxelSums sums_by_hand(const VoxelGrid& grid, const std::vector<TilePoint>& points, const Voxel& corner,
                       int level) {
    VoxelSums sums;
    for (const TilePoint& p : points) {
        const Voxel v{grid.voxel(0, p.x), grid.voxel(1, p.y), grid.voxel(2, p.z)};
        const auto near = [level](std::int32_t voxel, std::int32_t c) {
            return voxel >= c - level && voxel < c + level;
        };
        if (!near(v.x, corner.x) || !near(v.y, corner.y) || !near(v.z, corner.z)) continue;
        sums.add(p.x - grid.corner(0, corner.x), p.y - grid.corner(1, corner.y),
                 p.z - grid.corner(2, corner.z), sight_line(p));
    }
    return sums;
}

}  // namespace

TEST_CASE("voxels of a region are those of the world") {
    const VoxelGrid here({401, 799, 0}, 1638), there({-3, 20, 11}, 1638);
    const LatticePoint a{401 * kLatticePerMetre, 799 * kLatticePerMetre, 0};
    const LatticePoint b{-3 * kLatticePerMetre, 20 * kLatticePerMetre, 11 * kLatticePerMetre};
    for (const std::int64_t x : {0, 1, 1637, 1638, 1639, 100000, 12345678}) {
        const std::int64_t low_here = here.corner(0, here.voxel(0, static_cast<std::int32_t>(x - a.x))) + a.x;
        const std::int64_t low_there =
            there.corner(0, there.voxel(0, static_cast<std::int32_t>(x - b.x))) + b.x;
        CHECK(low_here == floor_div(x, 1638) * 1638);
        CHECK(low_there == low_here);
        CHECK(here.corner(0, here.first_corner(0, x)) + a.x == -floor_div(-x, 1638) * 1638);
    }
}

TEST_CASE("sums over boxes of voxels are those of going through all points, bit for bit") {
    const TileFrame frame{400, 799, 40};
    const VoxelGrid grid(frame, 1638);
    const auto points = random_points(frame, 3000);
    const VoxelPoints voxels(grid, points);
    const Voxel block{grid.voxel(0, 20000), grid.voxel(1, 20000), grid.voxel(2, 90000)};
    for (const int most : {1, 5}) {
        BoxSums sums(most);
        REQUIRE(sums.load(voxels, block));
        std::size_t with_points = 0;
        for (std::int32_t z = 0; z < kBlockCorners; z += 4)
            for (std::int32_t y = 0; y < kBlockCorners; y += 4)
                for (std::int32_t x = 0; x < kBlockCorners; x += 4)
                    for (int level = 1; level <= most; ++level) {
                        const VoxelSums truth =
                            sums_by_hand(grid, points, {block.x + x, block.y + y, block.z + z}, level);
                        REQUIRE(sums.sums({x, y, z}, level) == truth);
                        REQUIRE(sums.count({x, y, z}, level) == truth.of[VoxelSums::n]);
                        if (truth.of[VoxelSums::n] > 0) ++with_points;
                        std::int64_t visited = 0;
                        sums.visit({x, y, z}, level, [&](std::size_t i) {
                            visited += static_cast<std::int64_t>(voxels.points(i).size());
                        });
                        REQUIRE(visited == truth.of[VoxelSums::n]);
                    }
        CHECK(with_points > 10);
    }
    BoxSums sums(5);
    CHECK_FALSE(sums.load(voxels, {block.x + 1000, block.y, block.z}));
}

TEST_CASE("points in any order fill voxels alike") {
    const TileFrame frame{400, 799, 40};
    const VoxelGrid grid(frame, 819);
    auto points = random_points(frame, 500);
    const VoxelPoints forth(grid, points);
    std::reverse(points.begin(), points.end());
    const VoxelPoints back(grid, points);
    REQUIRE(forth.size() == back.size());
    for (std::size_t i = 0; i < forth.size(); ++i) {
        CHECK(forth.voxel(i) == back.voxel(i));
        CHECK(forth.points(i).size() == back.points(i).size());
    }
}
