#include "datasets/synth/city_scene.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>

using namespace citysplat;
using namespace citysplat::synth;

namespace {

constexpr std::uint64_t kSeed = 5;

Vec3d direction_of(Dice& dice) {
    const double z = dice.between(-1, 1), r = std::sqrt(1 - z * z);
    const auto turn = exact::sin_cos(dice.between(0, 2 * exact::kPi));
    return {r * turn.cos, r * turn.sin, z};
}

}  // namespace

TEST_CASE("the pieces of the ground join without a step, across cells too") {
    // Approach every border from both sides: away from kerbs the height may not jump.
    Ground ground(kSeed);
    Dice dice(1);
    const double eps = 1e-7;
    for (int i = 0; i < 4000; ++i) {
        const double along = dice.between(-100, 180);
        const double row = plan::kPitch * dice.below(3) - plan::kPitch;
        for (const double border : {-plan::kStreetHalf, plan::kStreetHalf}) {
            const double across = row + border;
            CHECK(std::fabs(ground.height(along, across - eps) - ground.height(along, across + eps)) < 1e-6);
            CHECK(std::fabs(ground.height(across - eps, along) - ground.height(across + eps, along)) < 1e-6);
        }
        // The edge of a crossing, on the road.
        const double lane = dice.between(-plan::kRoadHalf + 0.01, plan::kRoadHalf - 0.01) + row;
        for (const double border : {-plan::kRoadHalf, plan::kRoadHalf}) {
            CHECK(std::fabs(ground.height(border - eps, lane) - ground.height(border + eps, lane)) < 1e-6);
        }
    }
}

TEST_CASE("no ray from above gets through the ground") {
    BlockCache cache(kSeed);
    const auto cells = cells_near(0, 0, 90, 90, 12);
    const auto scene = cache.scene({0, 0}, cells);
    Dice dice(2);
    for (int i = 0; i < 15000; ++i) {
        const Vec3d from{dice.between(0, 90), dice.between(0, 90), 40};
        // Aimed at a border now and then, where a gap would be.
        Vec3d to{from.x + dice.between(-10, 10), from.y + dice.between(-10, 10), 0};
        if (i % 3 == 0) to.x = plan::kPitch - plan::kStreetHalf;
        if (i % 3 == 1) to.y = plan::kRoadHalf;
        const Ray ray{from, normalized(to - from)};
        const auto hit = scene->intersect(ray, 200);
        REQUIRE(hit);
        CHECK(from.z + hit->t * ray.direction.z > -plan::kNodeRise - 0.01);
    }
}

TEST_CASE("a block is the same whenever it is made, and another one for another seed") {
    const Geometry a = make_block(kSeed, {3, -2}), b = make_block(kSeed, {3, -2}),
                   c = make_block(kSeed + 1, {3, -2});
    REQUIRE(a.size() == b.size());
    bool same = true;
    for (std::size_t i = 0; i < a.of<Frustum>().size(); ++i) {
        const Frustum &p = a.of<Frustum>()[i], &q = b.of<Frustum>()[i];
        same = same && p.base.x == q.base.x && p.base.y == q.base.y && p.height == q.height;
    }
    CHECK(same);
    CHECK(a.size() != c.size());
}

TEST_CASE("nothing of a cell sticks out further than the overhang it is allowed") {
    for (std::int32_t i = -1; i < 3; ++i)
        for (std::int32_t j = -1; j < 3; ++j) {
            const Box3d b = make_block(kSeed, {i, j}).bounds();
            const double low = -plan::kStreetHalf - kOverhang_m,
                         high = plan::kPitch - plan::kStreetHalf + kOverhang_m;
            CHECK(b.min.x > low);
            CHECK(b.min.y > low);
            CHECK(b.max.x < high);
            CHECK(b.max.y < high);
        }
}

TEST_CASE("a few blocks have everything a street has") {
    std::set<int> labels;
    for (std::int32_t i = 0; i < 3; ++i)
        make_block(kSeed, {i, 0}).for_each_kind([&](unsigned, const auto& primitives) {
            for (const auto& p : primitives) labels.insert(p.surface.label);
        });
    for (const int l : {label::building, label::fence, label::pole, label::road, label::sidewalk,
                        label::vegetation, label::parked_vehicle, label::wall, label::traffic_sign,
                        label::traffic_light, label::bench, label::terrain})
        CHECK(labels.count(l) == 1);
    CHECK(labels.count(label::moving_vehicle) == 0);
    CHECK(labels.count(label::pedestrian) == 0);
}

TEST_CASE("rays through the index meet what trying every surface finds, to the last bit") {
    BlockCache cache(kSeed);
    const Cell cell{1, 2};
    const auto scene = cache.scene(cell, std::vector{cell});
    const Geometry geometry = make_block(kSeed, cell);
    Dice dice(3);
    int hits = 0;
    for (int i = 0; i < 400; ++i) {
        const Vec3d local{dice.between(-5, 70), dice.between(-5, 5), dice.between(1.5, 8)};
        const Vec3d direction = direction_of(dice);
        const auto expected = intersect_all(geometry, {local, direction}, 90);
        const auto found = scene->intersect({local + cell.origin(), direction}, 90);
        REQUIRE(found.has_value() == expected.has_value());
        if (!found) continue;
        ++hits;
        // The oracle works in the block's frame; adding and taking the origin rounds once.
        CHECK(std::fabs(found->t - expected->encounter.t) < 1e-12);
        CHECK(found->look.label == expected->look.label);
    }
    CHECK(hits > 150);
}

TEST_CASE("the index finds the nearest surface that trying every surface finds") {
    BlockCache cache(kSeed);
    const Cell cell{1, 2};
    const auto scene = cache.scene(cell, std::vector{cell});
    const Geometry geometry = make_block(kSeed, cell);
    Dice dice(4);
    for (int i = 0; i < 300; ++i) {
        const Vec3d local{dice.between(-5, 70), dice.between(-10, 12), dice.between(-1, 9)};
        const auto expected = nearest_of_all(geometry, local);
        const auto found = scene->nearest(local + cell.origin(), 30);
        REQUIRE(found);
        CHECK(std::fabs(found->distance_m - expected->distance_m) < 1e-12);
        const auto none = scene->nearest(local + cell.origin(), expected->distance_m * 0.999);
        CHECK_FALSE(none);
    }
}

TEST_CASE("the cache of blocks stays within its capacity and gives the same answers after eviction") {
    BlockCache cache(kSeed, 4);
    const Ray ray{{10, 0, 2}, normalized(Vec3d{0.3, 1, 0.05})};
    const auto before = cache.scene({0, 0}, cells_near(0, 0, 0, 0, 10))->intersect(ray, 60);
    REQUIRE(before);
    for (std::int32_t i = 5; i < 8; ++i) {
        cache.scene({i, 0}, std::vector{Cell{i, 0}, Cell{i, 1}});
        CHECK(cache.resident() <= 4);
    }
    const auto after = cache.scene({0, 0}, cells_near(0, 0, 0, 0, 10))->intersect(ray, 60);
    REQUIRE(after);
    CHECK(after->t == before->t);
}

TEST_CASE("the instruction set that Embree chooses does not show in the answers") {
    const Cell cell{0, 0};
    BlockCache plain(kSeed, 4, "isa=sse2"), best(kSeed, 4);
    const auto a = plain.scene(cell, std::vector{cell}), b = best.scene(cell, std::vector{cell});
    Dice dice(6);
    for (int i = 0; i < 5000; ++i) {
        const Ray ray{{dice.between(-5, 70), dice.between(-5, 5), dice.between(1, 8)}, direction_of(dice)};
        const auto p = a->intersect(ray, 80), q = b->intersect(ray, 80);
        REQUIRE(p.has_value() == q.has_value());
        if (p) CHECK((p->t == q->t && p->look.label == q->look.label && p->normal.x == q->normal.x));
        const auto m = a->nearest(ray.origin, 5), n = b->nearest(ray.origin, 5);
        REQUIRE(m.has_value() == n.has_value());
        if (m) CHECK((m->distance_m == n->distance_m && m->look.label == n->look.label));
    }
}
