#include "sim/clearance/clearance.hpp"

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "sim/memory_city.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

constexpr Vec3d kOrigin{651000, 6861000, 35};

/// A rectangle: a corner and two sides.
struct Wall {
    Vec3d corner, u, v;
};

/// A room of 24 × 16 × 4 m, a pillar, and a slanted board.
std::vector<Wall> room() {
    std::vector<Wall> walls{{{0, 0, 0}, {24, 0, 0}, {0, 0, 4}},
                            {{0, 16, 0}, {24, 0, 0}, {0, 0, 4}},
                            {{0, 0, 0}, {0, 16, 0}, {0, 0, 4}},
                            {{24, 0, 0}, {0, 16, 0}, {0, 0, 4}}};
    walls.push_back({{14, 6, 0}, {1, 0, 0}, {0, 0, 4}});
    walls.push_back({{14, 7, 0}, {1, 0, 0}, {0, 0, 4}});
    walls.push_back({{14, 6, 0}, {0, 1, 0}, {0, 0, 4}});
    walls.push_back({{15, 6, 0}, {0, 1, 0}, {0, 0, 4}});
    walls.push_back({{6, 9, 0.5}, {2, 1, 0}, {-0.3, 0.6, 1.5}});
    return walls;
}

/// Discs of 10 cm, 10 cm apart, that stay within 5 cm of the wall's edges.
std::vector<test::WorldDisc> discs_of(const std::vector<Wall>& walls) {
    std::vector<test::WorldDisc> discs;
    for (const Wall& w : walls) {
        const double lu = length(w.u), lv = length(w.v);
        const int nu = static_cast<int>(std::ceil(lu / 0.1)), nv = static_cast<int>(std::ceil(lv / 0.1));
        Vec3d n = cross(w.u, w.v);
        n = (1 / length(n)) * n;
        for (int i = 0; i < nu; ++i)
            for (int j = 0; j < nv; ++j)
                discs.push_back({kOrigin + w.corner + (i + 0.5) / nu * w.u + (j + 0.5) / nv * w.v, n, 0.1});
    }
    return discs;
}

/// Whether a rectangle and a box around the origin have a point in common: separating axes.
bool meet(const Wall& wall, const Pose& wall_to_box, const Box3d& box) {
    const Vec3d c = wall_to_box.apply(wall.corner), u = rotate(wall_to_box.rotation, wall.u),
                v = rotate(wall_to_box.rotation, wall.v);
    const Vec3d corners[4]{c, c + u, c + v, c + u + v};
    std::vector<Vec3d> axes{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, cross(u, v)};
    for (const Vec3d side : {u, v})
        for (const Vec3d axis : {Vec3d{1, 0, 0}, Vec3d{0, 1, 0}, Vec3d{0, 0, 1}})
            axes.push_back(cross(side, axis));
    for (const Vec3d d : axes) {
        if (!(dot(d, d) > 1e-18)) continue;
        double low = 1e300, high = -1e300;
        for (const Vec3d p : corners) low = std::min(low, dot(d, p)), high = std::max(high, dot(d, p));
        const double box_low = convex::Cuboid{box}.lowest(d), box_high = -convex::Cuboid{box}.lowest(-d);
        if (low > box_high || high < box_low) return false;
    }
    return true;
}

struct Verdicts {
    std::uint64_t poses = 0, deep = 0, missed = 0, clear = 0, false_alarms = 0;
};

Verdicts judge(std::uint64_t poses) {
    const std::vector<Wall> walls = room();
    const test::MemoryCity city(discs_of(walls), 16);
    ClearanceProbe probe(city, nullptr, {.limit_m = 0.3});
    const Box3d car{{-2.2, -0.9, 0.2}, {2.2, 0.9, 1.6}};
    const ClearanceBody body(car);
    Verdicts v;
    for (std::uint64_t i = 0; i < poses; ++i) {
        const std::uint64_t key = rng::key(11, i);
        const Pose pose{
            {rng::uniform(key, 0, 0, 24), rng::uniform(key, 1, 0, 16), rng::uniform(key, 2, 0, 1.5)},
            from_yaw_pitch_roll(rng::uniform(key, 3, -3.1, 3.1), rng::uniform(key, 4, -0.2, 0.2),
                                rng::uniform(key, 5, -0.2, 0.2))};
        bool deep = false, near = false;
        for (const Wall& w : walls) {
            deep = deep || meet(w, inverse(pose), car.widened(-0.05));
            near = near || meet(w, inverse(pose), car.widened(0.05));
        }
        const Clearance c = probe.at(body, {pose.translation + kOrigin, pose.rotation}, 0);
        ++v.poses, v.deep += deep, v.clear += !near;
        v.missed += deep && !c.touches;
        v.false_alarms += !near && c.touches;
    }
    return v;
}

}  // namespace

TEST_CASE("distances of discs and boxes are those of their nearest points") {
    const Box3d box{{-1, -0.5, -0.3}, {1, 0.5, 0.3}};
    int met = 0, apart = 0;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        const std::uint64_t key = rng::key(5, i);
        const Vec3d n{rng::uniform(key, 0, -1, 1), rng::uniform(key, 1, -1, 1), rng::uniform(key, 2, -1, 1)};
        const convex::FlatDisc disc{{rng::uniform(key, 3, -1.6, 1.6), rng::uniform(key, 4, -1.1, 1.1),
                                     rng::uniform(key, 5, -0.9, 0.9)},
                                    (1 / length(n)) * n,
                                    rng::uniform(key, 6, 0.02, 0.6)};
        // The rim and rings inside of it, finely: never nearer than the truth, and nearly as near.
        Vec3d u = cross(disc.normal, std::fabs(disc.normal.x) < 0.7 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0});
        u = (1 / length(u)) * u;
        const Vec3d v = cross(disc.normal, u);
        double nearest = 1e300;
        constexpr int kRings = 24, kSteps = 120;
        for (int r = 0; r <= kRings; ++r)
            for (int s = 0; s < kSteps; ++s) {
                const double a = 2 * exact::kPi * s / kSteps, l = disc.radius * r / kRings;
                const Vec3d p = disc.centre + l * (std::cos(a) * u + std::sin(a) * v);
                nearest = std::min(nearest, length(p - convex::Cuboid{box}.nearest(p)));
            }
        const double d = convex::distance(convex::Cuboid{box}, disc, 10.0);
        INFO(i);
        CHECK(d <= nearest + 1.01e-4);
        CHECK(d >= nearest - 0.03);
        const bool meets = convex::meets(disc, box);
        // On the verge both answers are right.
        if (d > 2e-4) CHECK_FALSE(meets);
        if (nearest == 0) CHECK(meets);
        ++(meets ? met : apart);
    }
    CHECK(met > 300);
    CHECK(apart > 300);
}

TEST_CASE("a clearance is the distance that geometry gives") {
    const std::vector<Wall> walls{{{5, -10, 0}, {0, 20, 0}, {0, 0, 4}}};
    const test::MemoryCity city(discs_of(walls), 16);
    ClearanceProbe probe(city, nullptr, {.limit_m = 2});
    const ClearanceBody body(Box3d{{-2, -1, 0.2}, {2, 1, 1.5}});
    for (const double x : {0.0, 1.5, 2.4, 2.99}) {
        const Clearance c = probe.at(body, {kOrigin + Vec3d{x, 0, 0}, {}}, 0);
        const double want = 5 - (x + 2);
        CHECK(c.touches == false);
        CHECK(c.found == (want < 2));
        CHECK(c.distance_m == Approx(std::min(2.0, want)).margin(3e-4));
    }
    CHECK(probe.at(body, {kOrigin + Vec3d{3.001, 0, 0}, {}}, 0).touches);
    // Turned by 45° its corner is the nearest.
    const Pose turned{kOrigin + Vec3d{2, 0, 0}, from_yaw_pitch_roll(exact::kPi / 4, 0, 0)};
    CHECK(probe.at(body, turned, 0).distance_m == Approx(5 - (2 + 3 / std::sqrt(2.0))).margin(3e-4));
}

TEST_CASE("a clearance sees actors at their time and never the body's own vehicle") {
    TriangleMesh cube;
    for (int i = 0; i < 8; ++i)
        cube.vertices.push_back({i & 1 ? 0.5f : -0.5f, i & 2 ? 0.5f : -0.5f, i & 4 ? 1.0f : 0.0f});
    for (const auto& q : {std::array{0u, 2u, 3u, 1u},
                          {4u, 5u, 7u, 6u},
                          {0u, 1u, 5u, 4u},
                          {2u, 6u, 7u, 3u},
                          {0u, 4u, 6u, 2u},
                          {1u, 3u, 7u, 5u}}) {
        cube.triangles.push_back({q[0], q[1], q[2]});
        cube.triangles.push_back({q[0], q[2], q[3]});
    }
    cube.materials.emplace_back();
    Actor other;
    other.name = "other";
    other.instance = 1;
    other.track =
        Track::along("other", Trajectory({{0, {kOrigin, {}}}, {10, {kOrigin + Vec3d{20, 0, 0}, {}}}}));
    Actor own = other;
    own.name = "own", own.instance = 2, own.vehicle = 0;
    own.track = Track::along("own", Trajectory({{0, {kOrigin + Vec3d{10, 0, 0}, {}}}}));
    std::vector<Shape> shapes;
    shapes.push_back({"cube", cube});
    const Traffic traffic(std::move(shapes), {other, own});
    const test::MemoryCity city({{kOrigin + Vec3d{0, 50, 0}, {0, 0, 1}, 0.1}}, 16);
    ClearanceProbe probe(city, &traffic, {.limit_m = 100});
    for (const bool as_mesh : {false, true}) {
        const ClearanceBody body =
            as_mesh ? ClearanceBody(cube, {}) : ClearanceBody(Box3d{{-0.5, -0.5, 0}, {0.5, 0.5, 1}});
        const Pose here{kOrigin + Vec3d{10, 0, 0}, {}};
        const Clearance early = probe.at(body, here, 1, 0);
        CHECK(early.distance_m == Approx(7).margin(2e-4));
        CHECK(early.actor == std::optional(0u));
        CHECK_FALSE(early.touches);
        CHECK(probe.at(body, here, 4.75, 0).touches);
        CHECK(probe.at(body, here, 1).touches);  // on no vehicle, in a place that is taken
        // After its end the other is gone; the city is left.
        CHECK_FALSE(probe.at(body, here, 11, 0).actor);
        const Trajectory way({{0, here}, {10, here}});
        const ClearanceReport report = clearance_along(probe, body, {way, 0, 10, 0.1, 0}, {});
        CHECK(report.poses == 101);
        REQUIRE(report.touched_s.size() == 1);
        CHECK(report.touched_s[0].first == Approx(4.5).margin(0.06));
        CHECK(report.touched_s[0].second == Approx(5.5).margin(0.06));
    }
}

TEST_CASE("no penetration is missed and few alarms are false") {
    const Verdicts v = judge(3000);
    CHECK(v.deep > 500);
    CHECK(v.clear > 500);
    CHECK(v.missed == 0);
    CHECK(v.false_alarms <= v.clear / 1000);
}

TEST_CASE("no penetration is missed in a million poses", "[slow]") {
    const Verdicts v = judge(1'000'000);
    UNSCOPED_INFO(v.deep << " deep, " << v.missed << " missed, " << v.clear << " clear, " << v.false_alarms
                         << " false alarms");
    CHECK(v.missed == 0);
    CHECK(v.false_alarms <= v.clear / 1000);
}
