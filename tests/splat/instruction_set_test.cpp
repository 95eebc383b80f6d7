#include "core/math/rng_hd.hpp"
#include "memory_city.hpp"
#include "splat/generation/point_cloud.hpp"
#include "splat/search/neighbour_search.hpp"
#include "splat/search/plane_fit.hpp"
#include "splat/splat_processor.hpp"

#include <catch2/catch.hpp>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

using namespace citysplat;
using namespace citysplat::splat;

namespace {

/// Lets the dispatch choose one instruction set only, and all of them again at the end.
class OnlyTarget {
  public:
    explicit OnlyTarget(std::int64_t target) { choose(target); }
    ~OnlyTarget() { choose(0); }
    OnlyTarget(const OnlyTarget&) = delete;
    OnlyTarget& operator=(const OnlyTarget&) = delete;

  private:
    static void choose(std::int64_t target) {
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
};

/// Dense and sparse surfaces, a thin line, ties on a grid, and far outliers: every way through the search.
PointCloud mixed_cloud() {
    std::vector<TilePoint> points;
    const auto add = [&](double x, double y, double z) {
        points.push_back({static_cast<std::int32_t>(x), static_cast<std::int32_t>(y),
                          static_cast<std::int32_t>(z), 0, 0, 0, TilePoint::kNoSensor, TilePoint::kNoSensor,
                          TilePoint::kNoSensor, TilePoint::kNoSlot});
    };
    for (std::uint64_t i = 0; i < 6000; ++i) {
        const auto u = [&](std::uint64_t n, double low, double high) {
            return rng::uniform(rng::key(31, i), n, low, high);
        };
        add(u(0, 0, 20000), u(1, 0, 20000), u(2, -80, 80));
        if (i % 3 == 0) add(u(3, 0, 400000), u(4, 0, 400000), u(5, 0, 900));
        if (i % 5 == 0) add(30000, 30000, u(6, 0, 60000));
        if (i % 500 == 0) add(u(7, -3e8, 3e8), u(8, -3e8, 3e8), u(9, -3e8, 3e8));
        add(60000.0 + 40.0 * static_cast<double>(i % 60), 40.0 * static_cast<double>(i / 60), 0);
    }
    std::sort(points.begin(), points.end());
    return make_point_cloud({0, 0, 0}, points, {}, ClassMap(), CancelToken());
}

struct Answers {
    std::vector<std::uint64_t> moments, fits;
    std::vector<std::tuple<std::size_t, std::uint32_t, std::uint32_t>> neighbours;
    std::vector<std::uint32_t> reach2;
    friend bool operator==(const Answers&, const Answers&) = default;
};

Answers ask(const PointCloud& c) {
    const NeighbourIndex index(c.x, c.y, c.z, c.rank);
    const std::vector<Reach> reaches{{40, kMaxReach}, {120, 3600}, {13, 400}, {10, 12000}};
    std::vector<std::uint8_t> reach_class(c.size());
    for (std::size_t i = 0; i < c.size(); ++i)
        reach_class[i] = static_cast<std::uint8_t>(rng::mix(i / 50) % 4);
    std::vector<std::uint32_t> queries(c.size());
    std::iota(queries.begin(), queries.end(), 0u);
    const QueryBatch batch{queries, reach_class, reaches};
    SearchScratch scratch;
    NeighbourLists lists;
    std::vector<Moments> moments(c.size());
    std::vector<PlaneFit> fits(c.size());
    find_moments(index, batch, moments, scratch);
    find_neighbours(index, batch, lists, scratch);
    fit_planes(moments, fits);
    Answers a;
    const auto bits = [](std::vector<std::uint64_t>& to, auto... values) {
        (to.push_back(std::bit_cast<std::uint64_t>(values)), ...);
    };
    for (std::size_t q = 0; q < c.size(); ++q) {
        const Moments& m = moments[q];
        bits(a.moments, m.sum_x, m.sum_y, m.sum_z, m.sum_xx, m.sum_yy, m.sum_zz, m.sum_xy, m.sum_xz,
             m.sum_yz);
        a.moments.push_back(static_cast<std::uint64_t>(m.count) << 32 | m.reach2);
        const PlaneFit& f = fits[q];
        bits(a.fits, f.normal.x, f.normal.y, f.normal.z, f.axis.x, f.axis.y, f.axis.z, f.share1, f.share2,
             f.share3, f.variance, f.offset);
        a.fits.push_back(static_cast<std::uint64_t>(f.shape));
        for (std::size_t i = lists.begin[q]; i < lists.begin[q] + lists.count[q]; ++i)
            a.neighbours.emplace_back(q, lists.point[i], lists.distance2[i]);
    }
    a.reach2 = lists.reach2;
    std::sort(a.neighbours.begin(), a.neighbours.end());
    return a;
}

/// Calls the body with one instruction set after the other, of those that this machine has.
template <class Body>
void for_each_instruction_set(const Body& body) {
    const std::int64_t supported = hwy::SupportedTargets() | HWY_SCALAR;
    std::set<std::string> seen{std::string(instruction_set())};
    for (int bit = 0; bit < 63; ++bit) {
        const std::int64_t target = std::int64_t{1} << bit;
        if ((supported & target) == 0) continue;
        const OnlyTarget only(target);
        INFO(instruction_set());
        seen.insert(std::string(instruction_set()));
        body();
    }
    INFO("instruction sets: " << seen.size());
    CHECK(seen.size() >= 2);
}

}  // namespace

TEST_CASE("every instruction set gives the same neighbours, sums and planes, bit for bit") {
    const PointCloud c = mixed_cloud();
    const Answers best = ask(c);
    REQUIRE(best.neighbours.size() > 10 * c.size());
    for_each_instruction_set([&] {
        const Answers answers = ask(c);
        CHECK(answers.moments == best.moments);
        CHECK(answers.fits == best.fits);
        CHECK(answers.neighbours == best.neighbours);
        CHECK(answers.reach2 == best.reach2);
    });
}

TEST_CASE("every instruction set makes the same splats") {
    const test::MemoryCity city(test::small_street(8, 300, 17));
    const tiling::Region region = city.read(city.bounds(), to_lattice(20));
    for (const Method method : kMethods) {
        INFO(to_string(method));
        SplatProcessor processor(SplatParams::of(method), ClassMap::load("synthetic"));
        processor.set_calibration({0.12, 0.01, 7, 1});
        const SplatTile best = processor.process(region, CancelToken()).splats;
        REQUIRE(best.size() > 1000);
        for_each_instruction_set([&] {
            const SplatTile tile = processor.process(region, CancelToken()).splats;
            CHECK(tile.digest() == best.digest());
        });
    }
}
