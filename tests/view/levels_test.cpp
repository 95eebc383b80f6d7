#include "sim/memory_city.hpp"
#include "splat/levels/level_pyramid.hpp"
#include "splat/levels/voxel_merge.hpp"

#include <catch2/catch.hpp>
#include <tbb/global_control.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

using namespace citysplat;
using namespace citysplat::splat;
using test::MemoryCity;
using test::Splits;
using test::WorldDisc;

namespace {

const CancelToken kGoOn;

/// A street that crosses cells of 64 m in x, y and z, with something high above it.
std::vector<WorldDisc> hilly_street(double x0, double y0) {
    auto discs = test::street(x0, y0, 90, 0.5);
    for (WorldDisc& d : discs) d.centre.z += 60 + 0.1 * (d.centre.x - x0);
    discs.push_back({{x0 + 10, y0, 700}, {0, 0, 1}, 7.5, 3, 100});
    discs.push_back({{x0 + 10, y0, 700}, {0, 0, 1}, 7.5, 3, 101});
    return discs;
}

/// Every cube of the pyramid below the roots, as bytes.
std::map<CubeId, Hash128> all_cubes(LevelPyramid& pyramid) {
    std::map<CubeId, Hash128> found;
    const std::function<void(const CubeId&)> visit = [&](const CubeId& id) {
        const LevelCubePtr cube = pyramid.cube(id, kGoOn);
        Hasher hasher;
        hasher.bytes(cube->discs.bytes()).number(cube->children).number(cube->incomplete);
        for (const Piece& p : cube->pieces) {
            hasher.number(p.first).number(p.count).number(p.place);
            for (std::size_t i = 0; i < 3; ++i) hasher.number(p.min[i]).number(p.max[i]);
        }
        if (!cube->discs.empty()) found.emplace(id, hasher.finish());
        for (int octant = 0; octant < 8; ++octant) {
            if (!(cube->children >> octant & 1)) continue;
            if (id.level > kLastCellLevel)
                visit({id.level - 1, 2 * id.x + (octant & 1), 2 * id.y + (octant >> 1 & 1),
                       2 * id.z + (octant >> 2)});
            else
                visit({id.level - 1, id.x, id.y, id.z});
        }
    };
    for (const CubeId& root : pyramid.roots()) visit(root);
    return found;
}

std::map<CubeId, Hash128> all_cubes(const TileSource& city, const PyramidOptions& options = {}) {
    LevelPyramid pyramid(city, options);
    return all_cubes(pyramid);
}

}  // namespace

TEST_CASE("levels are the same bytes for tiles of 16 to 128 m, any order of splats, threads and memory") {
    auto discs = hilly_street(-40.5, 6861000.25);
    const auto expected = all_cubes(MemoryCity(discs, 64));
    REQUIRE(expected.size() > 20);
    CHECK(expected.begin()->first.level == 0);
    CHECK(expected.rbegin()->first.level > 5);

    for (const double tile_m : {16.0, 32.0, 50.0, 100.0, 128.0}) {
        INFO(tile_m);
        CHECK(all_cubes(MemoryCity(discs, tile_m)) == expected);
    }
    CHECK(all_cubes(MemoryCity(discs, 64, Splits::mixed)) == expected);

    std::shuffle(discs.begin(), discs.end(), std::mt19937(3));
    CHECK(all_cubes(MemoryCity(discs, 64)) == expected);

    const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
    CHECK(all_cubes(MemoryCity(discs, 64)) == expected);
    CHECK(all_cubes(MemoryCity(discs, 64), {.cache_bytes = 0, .tile_bytes = 0}) == expected);
}

TEST_CASE("cubes that several threads ask for at once are the same") {
    const MemoryCity city(hilly_street(651000, 6861000), 32);
    const auto expected = all_cubes(city);
    LevelPyramid shared(city, {.cache_bytes = 200'000});
    std::vector<std::map<CubeId, Hash128>> seen(4);
    std::vector<std::thread> threads;
    for (auto& mine : seen) threads.emplace_back([&] { mine = all_cubes(shared); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& mine : seen) CHECK(mine == expected);
}

TEST_CASE("the leaves hold every splat once, and pieces hold their discs") {
    const MemoryCity city(hilly_street(651000, 6861000), 50);
    std::multiset<std::uint64_t> expected, found;
    for (std::size_t t = 0; t < city.tiles().size(); ++t)
        for (std::size_t i = 0; i < city.tile(t).size(); ++i)
            expected.insert(MemoryCity::id(city.tile(t), i));

    LevelPyramid pyramid(city, {});
    for (const auto& [id, bytes] : all_cubes(pyramid)) {
        const LevelCubePtr cube = pyramid.cube(id, kGoOn);
        std::uint32_t next = 0;
        for (const Piece& piece : cube->pieces) {
            CHECK(piece.first == next);
            next += piece.count;
            for (std::uint32_t i = piece.first; i < next; ++i) {
                const LevelDisc disc = cube->disc(i);
                REQUIRE(cube_of(disc.centre, id.level) == id);
                const Splat s = cube->discs.splat(i);
                REQUIRE((s.x - s.radius >= piece.min[0] && s.x + s.radius <= piece.max[0]));
                REQUIRE((s.z - s.radius >= piece.min[2] && s.z + s.radius <= piece.max[2]));
                if (id.level == 0)
                    found.insert(splat_id({disc.centre.x, disc.centre.y, disc.centre.z, disc.normal,
                                           static_cast<std::uint16_t>(disc.radius), disc.label,
                                           disc.intensity, disc.range, disc.incidence}));
            }
        }
        CHECK(next == cube->discs.size());
    }
    CHECK(found == expected);
}

TEST_CASE("a coarser level has fewer discs, all classes, and covers no more than the one below") {
    const MemoryCity city(test::street(651000, 6861000, 60), 64);
    LevelPyramid pyramid(city, {});
    std::map<int, std::size_t> discs;
    std::map<int, double> area;
    std::map<int, std::set<std::uint16_t>> labels;
    for (const auto& [id, bytes] : all_cubes(pyramid)) {
        const LevelCubePtr cube = pyramid.cube(id, kGoOn);
        discs[id.level] += cube->discs.size();
        for (std::size_t i = 0; i < cube->discs.size(); ++i) {
            const LevelDisc d = cube->disc(i);
            area[id.level] += static_cast<double>(d.radius) * static_cast<double>(d.radius);
            labels[id.level].insert(d.label);
        }
    }
    for (int level = 2; level <= discs.rbegin()->first; ++level) {
        INFO(level);
        CHECK(discs[level] < discs[level - 1]);
        CHECK(area[level] < 1.15 * area[level - 1]);
        CHECK(labels[level] == labels[0]);
    }
}

TEST_CASE("a plane stays where it is and stays closed for three levels") {
    std::vector<WorldDisc> plane;
    for (double x = 0; x < 16; x += 0.1)
        for (double y = 0; y < 16; y += 0.1) plane.push_back({{x, y, 3}, {0, 0, 1}, 0.08, 7});
    const MemoryCity city(plane, 64);
    LevelPyramid pyramid(city, {});
    for (int level = 1; level <= 3; ++level) {
        const LevelCubePtr cube = pyramid.cube({level, 0, 0, 0}, kGoOn);
        std::vector<std::pair<Vec3d, double>> discs;
        for (std::size_t i = 0; i < cube->discs.size(); ++i) {
            const LevelDisc d = cube->disc(i);
            CHECK(std::abs(d.centre.z - 3 * kLatticePerMetre) <= kLatticePerMetre >> (13 - level));
            CHECK(unpack_normal(d.normal).z > 0.999f);
            discs.push_back({{to_metres(d.centre.x), to_metres(d.centre.y), 0}, d.radius * kLatticeStep_m});
        }
        for (double x = 1; x < 15; x += 0.37)
            for (double y = 1; y < 15; y += 0.41) {
                INFO("level " << level << " at " << x << ", " << y);
                CHECK(std::any_of(discs.begin(), discs.end(), [&](const auto& d) {
                    return std::hypot(d.first.x - x, d.first.y - y) < d.second;
                }));
            }
    }
}

TEST_CASE("discs of other classes, or facing another side, are not merged") {
    VoxelMerge merge(voxel_shift(1));
    CHECK(facing_side(pack_normal({1, 0, 0})) == 0);
    CHECK(facing_side(pack_normal({-0.9, 0.4, 0.1})) == 1);
    CHECK(facing_side(pack_normal({0.1, 0.2, -0.97})) == 5);
    const MemoryCity city({{{1.01, 1, 1}, {0, 0, 1}, 0.05, 1},
                           {{1.02, 1, 1}, {0, 0, 1}, 0.05, 2},
                           {{1.03, 1, 1}, {0, 1, 0}, 0.05, 2},
                           {{1.04, 1, 1}, {0, 0, 1}, 0.05, 2}},
                          64);
    LevelPyramid pyramid(city, {});
    CHECK(pyramid.cube({1, 0, 0, 0}, kGoOn)->discs.size() == 3);
}

TEST_CASE("a damaged tile is told, and the rest of the city is there") {
    MemoryCity city(test::street(651000, 6861000, 120), 32);
    city.damaged.insert(1);
    LevelPyramid pyramid(city, {});
    bool incomplete = false;
    std::size_t leaves = 0;
    for (const auto& [id, bytes] : all_cubes(pyramid)) {
        const LevelCubePtr cube = pyramid.cube(id, kGoOn);
        if (id == pyramid.roots().front()) incomplete = cube->incomplete;
        if (id.level == 0) leaves += cube->discs.size();
    }
    std::size_t expected = 0;
    for (std::size_t t = 0; t < city.tiles().size(); ++t) expected += t == 1 ? 0 : city.tiles()[t].splats;
    CHECK(leaves == expected);
    CHECK(incomplete);
    REQUIRE(pyramid.missing().size() == 1);
    CHECK(pyramid.missing().contains(1));
}

TEST_CASE("what cannot exist is empty, and an empty city has no roots") {
    const MemoryCity city(test::street(0, 0, 20), 64);
    LevelPyramid pyramid(city, {});
    CHECK_FALSE(pyramid.may_exist({0, 1000, 0, 0}));
    CHECK_FALSE(pyramid.may_exist({19, 0, 0, 0}));
    CHECK_FALSE(pyramid.may_exist({-1, 0, 0, 0}));
    CHECK(pyramid.cube({0, 0, 0, 77}, kGoOn)->discs.empty());
    const MemoryCity nothing({}, 64);
    CHECK(LevelPyramid(nothing, {}).roots().empty());
}
