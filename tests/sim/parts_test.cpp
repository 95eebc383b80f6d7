#include "sim/memory_city.hpp"
#include "sim/part_rig.hpp"
#include "trace/tracer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace citysplat;
using namespace citysplat::trace;
using namespace citysplat::test;

namespace {

constexpr double kEast = 652000.25, kNorth = 6861000.5;
const Vec3d kHere{kEast, kNorth, 40};

std::unique_ptr<Tracer> either_tracer() {
    return GENERATE(true, false) ? make_group_tracer() : make_embree_tracer();
}

TileSetPtr tiles_of(const Tracer& tracer, const MemoryCity& city) {
    std::vector<TracerTilePtr> tiles;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) tiles.push_back(tracer.load(city.load(i)));
    return tracer.bind(tiles);
}

Ray ray_at(Vec3d from, Vec3d to, float time_s = 0, float t_max = 200) {
    return {from, vec_cast<float>(normalized(to - from)), 0.0f, t_max, time_s};
}

/// A track that drives in a circle.
Track circling(Vec3d start, double speed_mps, double turn_radps, double seconds) {
    std::vector<StampedPose> poses;
    const double yaw0 = 0.7;
    for (int i = 0; i <= 100; ++i) {
        const double t = seconds * i / 100, yaw = yaw0 + turn_radps * t;
        const Vec3d at = turn_radps != 0 ? Vec3d{exact::sin(yaw) - exact::sin(yaw0),
                                                 exact::cos(yaw0) - exact::cos(yaw), 0} *
                                               (speed_mps / turn_radps)
                                         : Vec3d{exact::cos(yaw0), exact::sin(yaw0), 0} * (speed_mps * t);
        poses.push_back({1000 + t, {start + at, from_yaw_pitch_roll(yaw, 0.02 * t, -0.03 * t)}});
    }
    return Track::along("circle", Trajectory(poses));
}

/// A ray meets a box that stands in its own frame: slabs, in double precision.
struct BoxTruth {
    bool hit;
    double range_m;
};
BoxTruth meet_box(const Pose& world_from_box, Vec3d size, const Ray& ray) {
    const Quaternion back = conjugate(world_from_box.rotation);
    const Vec3d o = rotate(back, ray.origin - world_from_box.translation),
                d = rotate(back, vec_cast<double>(ray.direction));
    const double low[3] = {-size.x / 2, -size.y / 2, 0}, high[3] = {size.x / 2, size.y / 2, size.z};
    const double from[3] = {o.x, o.y, o.z}, along[3] = {d.x, d.y, d.z};
    double near = -1e300, far = 1e300;
    for (int i = 0; i < 3; ++i) {
        const double a = (low[i] - from[i]) / along[i], b = (high[i] - from[i]) / along[i];
        near = std::max(near, std::min(a, b));
        far = std::min(far, std::max(a, b));
    }
    return {near <= far && near > 0, near};
}

/// Whether all rays within `margin_m` of this one agree on whether they meet the box.
bool is_clear(const Pose& pose, Vec3d size, const Ray& ray, double margin_m) {
    const Vec3d d = vec_cast<double>(ray.direction);
    const Vec3d side = normalized(cross(d, std::fabs(d.z) < 0.9 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0})),
                up = cross(d, side);
    const bool hit = meet_box(pose, size, ray).hit;
    for (int i = 0; i < 8; ++i) {
        const double angle = exact::kPi / 4 * i;
        Ray moved = ray;
        moved.origin = ray.origin + (side * exact::cos(angle) + up * exact::sin(angle)) * margin_m;
        if (meet_box(pose, size, moved).hit != hit) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("a tile that is a part and stands still gives the bits of the tile") {
    std::vector<WorldDisc> discs;
    for (std::uint64_t i = 0; i < 1500; ++i)
        discs.push_back({kHere + Vec3d{rng::uniform(1, 4 * i, -12, 12), rng::uniform(1, 4 * i + 1, -12, 12),
                                       rng::uniform(1, 4 * i + 2, -5, 5)},
                         random_unit(2, i), rng::uniform(1, 4 * i + 3, 0.05, 0.9),
                         static_cast<std::uint16_t>(i % 3)});
    const MemoryCity city(discs, 64);
    std::vector<Ray> rays;
    for (std::uint64_t i = 0; i < 2000; ++i)
        rays.push_back(ray_at(kHere + random_unit(3, i) * rng::uniform(4, i, 5, 60), discs[i % 1500].centre,
                              static_cast<float>(i) * 1e-4f));
    const auto tracer = either_tracer();
    const PartHits as_tiles = ask(*tracer, *tiles_of(*tracer, city), rays, 512);
    Parts parts(*tracer);
    for (std::size_t i = 0; i < city.tiles().size(); ++i) {
        const SplatTile tile = city.load(i);
        parts.add_standing(parts.shape(tile), {tile.frame().origin_m(), {}}).facts = {};
    }
    REQUIRE(parts.all().size() >= 1);
    const PartHits as_parts = ask(*tracer, {*tracer->bind({}), parts}, rays, 512);
    CHECK(as_parts.differences(as_tiles) == 0);
    CHECK(std::ranges::count_if(as_tiles.closest, [](const Hit& h) { return h.exists(); }) > 1000);
}

TEST_CASE("groups meet moving parts as brute force does with any instruction set and batch") {
    std::vector<WorldDisc> ground;
    for (int x = -20; x <= 20; ++x)
        for (int y = -20; y <= 20; ++y)
            ground.push_back({kHere + Vec3d{x * 1.0, y * 1.0, 0}, {0, 0, 1}, 0.6, 7});
    const MemoryCity city(ground, 16);
    std::vector<WorldDisc> ball;
    for (std::uint64_t i = 0; i < 400; ++i) {
        const Vec3d n = random_unit(9, i);
        ball.push_back({Vec3d{8, 8, 8} + n * 1.5, n, 0.2, 20});
    }
    const MemoryCity ball_city(ball, 16);
    const sim::Sweep sweep{1000.3, 0.1};
    const auto parts_of = [&](const Tracer& tracer, Parts& parts) {
        const auto box = parts.shape(box_mesh({4, 2, 1.5}));
        const auto sphere = parts.shape(bumpy_sphere(12, 16, 1.2, 5));
        const auto discs = parts.shape(ball_city.load(0));
        for (std::uint64_t i = 0; i < 12; ++i) {
            const Vec3d start =
                kHere + Vec3d{rng::uniform(6, 2 * i, -15, 15), rng::uniform(6, 2 * i + 1, -15, 15), 0.3};
            const Track track = circling(start, 3.0 * static_cast<double>(i), i % 3 == 0 ? 0 : 2.5, 2);
            Part& part = parts.add(i % 3 == 0 ? box : i % 3 == 1 ? sphere : discs, track, 15, sweep);
            if (i % 4 == 3) part.from_s = 0.03f, part.to_s = 0.07f;
            if (i % 2 == 0) part.facts.label = 99;
        }
        // Two copies in one place: only ids tell them apart.
        parts.add(box, circling(kHere, 5, 1, 2), 3, sweep);
        parts.add(box, circling(kHere, 5, 1, 2), 3, sweep);
        static_cast<void>(tracer);
    };
    std::vector<Ray> scan, anywhere;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        const double azimuth = 2 * exact::kPi * static_cast<double>(i / 32) / 94,
                     z = -0.02 * static_cast<double>(i % 32);
        const auto time_s = static_cast<float>(0.1 * static_cast<double>(i) / 3000);
        scan.push_back(ray_at(kHere + Vec3d{0, 0, 2},
                              kHere + Vec3d{exact::cos(azimuth), exact::sin(azimuth), 2 + z}, time_s));
        const Vec3d from = kHere + random_unit(11, i) * rng::uniform(12, i, 0, 40);
        anywhere.push_back(
            ray_at(from, kHere + random_unit(13, i) * 8.0, static_cast<float>(rng::uniform(14, i, 0, 0.1))));
    }
    const auto reference = make_embree_tracer();
    Parts reference_parts(*reference);
    parts_of(*reference, reference_parts);
    const auto reference_tiles = tiles_of(*reference, city);
    for (const auto& rays : {scan, anywhere}) {
        const PartHits expected = ask(*reference, {*reference_tiles, reference_parts}, rays, 1024);
        const auto on = [&](auto test) { return std::ranges::count_if(expected.closest, test); };
        CHECK(on([](const Hit& h) { return h.instance != 0; }) > 200);
        CHECK(on([](const Hit& h) { return h.exists() && h.instance == 0; }) > 200);
        CHECK(on([](const Hit& h) { return h.label == 99; }) > 10);
        for (const std::string& set : group_instruction_sets())
            for (const std::size_t batch : {3000, 700, 1}) {
                if (batch == 1 && set != group_instruction_sets()[0]) continue;
                CAPTURE(set, batch);
                const auto groups = make_group_tracer({set, 500});
                Parts parts(*groups);
                parts_of(*groups, parts);
                const auto tiles = tiles_of(*groups, city);
                CHECK(ask(*groups, {*tiles, parts}, rays, batch).differences(expected) == 0);
                if (batch != 700) continue;
                std::reverse(parts.all().begin(), parts.all().end());
                CHECK(ask(*groups, {*tiles, parts}, rays, batch).differences(expected) == 0);
            }
    }
}

TEST_CASE("a ray meets a moving box where the box is at the ray's own time") {
    const auto tracer = either_tracer();
    const Vec3d size{4.5, 1.8, 1.5};
    double worst = 0;
    std::size_t met = 0, checked = 0;
    for (std::uint64_t n = 0; n < 60; ++n) {
        const double distance = rng::uniform(21, 8 * n, 5, 100), speed = rng::uniform(21, 8 * n + 1, 0, 30),
                     turn = rng::uniform(21, 8 * n + 2, -3, 3);
        const Vec3d start = kHere + Vec3d{distance, rng::uniform(21, 8 * n + 3, -2, 2), -1};
        const Track track = circling(start, speed, n % 4 == 0 ? 0 : turn, 2);
        const sim::Sweep sweep{1000 + rng::uniform(21, 8 * n + 4, 0, 1.8), 0.1};
        Parts parts(*tracer);
        parts.add(parts.shape(box_mesh(size)), track, 3, sweep);
        std::vector<Ray> rays;
        for (std::uint64_t i = 0; i < 400; ++i) {
            const auto time_s = static_cast<float>(rng::uniform(22, 1000 * n + i, 0, 0.1));
            const Pose pose = track.pose_at(sweep.begin_s + static_cast<double>(time_s));
            const Vec3d aim =
                pose.apply({rng::uniform(23, 1000 * n + i, -2.5, 2.5), rng::uniform(24, 1000 * n + i, -1, 1),
                            rng::uniform(25, 1000 * n + i, -0.1, 1.7)});
            rays.push_back(ray_at(kHere, aim, time_s));
        }
        std::vector<Hit> hits(rays.size());
        tracer->closest({*tracer->bind({}), parts}, rays, hits);
        for (std::size_t i = 0; i < rays.size(); ++i) {
            const Pose pose = track.pose_at(sweep.begin_s + static_cast<double>(rays[i].time_s));
            if (!is_clear(pose, size, rays[i], 1e-3)) continue;
            const BoxTruth truth = meet_box(pose, size, rays[i]);
            ++checked;
            REQUIRE(hits[i].exists() == truth.hit);
            if (!truth.hit) continue;
            ++met;
            worst = std::max(worst, std::fabs(hits[i].range_m - truth.range_m));
        }
    }
    CHECK(met > 10000);
    CHECK(checked > met + 500);
    INFO("worst error " << worst * 1e6 << " um");
    CHECK(worst < 1e-4);
}

TEST_CASE("a sensor and an object with the same motion are as if both stood") {
    const auto tracer = either_tracer();
    const Track track = circling(kHere, 20, 1.5, 2);
    const sim::Sweep sweep{1000.42, 0.1};
    Parts moving(*tracer), standing(*tracer);
    const auto box = moving.shape(box_mesh({4, 2, 1.5}));
    const Pose ahead{{12, 3, 0}, from_yaw_pitch_roll(0.5, 0, 0)};
    moving.add(box, sim::motion_during(track, ahead, 3, sweep));
    standing.add_standing(box, ahead);
    std::vector<Ray> fired, still;
    for (std::uint64_t i = 0; i < 2000; ++i) {
        const auto time_s = static_cast<float>(i) * 5e-5f;
        const Vec3d aim{12 + rng::uniform(31, 3 * i, -1.5, 1.5), 3 + rng::uniform(31, 3 * i + 1, -0.5, 0.5),
                        rng::uniform(31, 3 * i + 2, 0.2, 1.3)};
        const Pose pose = track.pose_at(sweep.begin_s + static_cast<double>(time_s));
        fired.push_back(ray_at(pose.apply({0, 0, 1}), pose.apply(aim), time_s));
        still.push_back(ray_at({0, 0, 1}, aim, time_s));
    }
    std::vector<Hit> a(fired.size()), b(still.size());
    tracer->closest({*tracer->bind({}), moving}, fired, a);
    tracer->closest({*tracer->bind({}), standing}, still, b);
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        REQUIRE((a[i].exists() && b[i].exists()));
        worst = std::max(worst, std::fabs(a[i].range_m - b[i].range_m));
    }
    CHECK(worst < 1e-4);
}

namespace {

/// A closed mesh, seen from all points within `core_m` of `middle` without hiding a part of itself.
struct ClosedMesh {
    TriangleMesh mesh;
    Vec3d middle;
    double core_m;
};
std::vector<ClosedMesh> closed_meshes() {
    std::vector<ClosedMesh> meshes;
    meshes.push_back({box_mesh({4.5, 1.8, 1.5}), {0, 0, 0.7}, 0.6});
    meshes.push_back({bumpy_sphere(24, 32, 1.5, 77), {0, 0, 0}, 0});
    meshes.push_back({bumpy_sphere(60, 80, 0.9, 78), {0, 0, 0}, 0});
    return meshes;
}

/// Aims rays at the edges and corners of a closed mesh so that they go on through its core, from outside, and
/// from the core. Counts those that do not meet it where they are aimed.
std::size_t rays_through(const Tracer& tracer, const ClosedMesh& closed, std::uint64_t rays,
                         std::uint64_t key) {
    const auto& [mesh, middle, core_m] = closed;
    Parts parts(tracer);
    const Pose pose{kHere, from_yaw_pitch_roll(0.3, 0.2, -0.4)};
    parts.add_standing(parts.shape(mesh), pose);
    const TileSetPtr nothing = tracer.bind({});
    std::size_t through = 0;
    constexpr std::uint64_t kBatch = 4096;
    std::vector<Ray> batch;
    std::vector<double> expected_m;
    for (std::uint64_t begin = 0; begin < rays; begin += kBatch) {
        batch.clear();
        expected_m.clear();
        for (std::uint64_t i = begin; i < std::min(rays, begin + kBatch); ++i) {
            const auto& t = mesh.triangles[rng::bits(key, 4 * i) % mesh.triangles.size()];
            const Vec3d a = vec_cast<double>(mesh.vertices[t[i % 3]]),
                        b = vec_cast<double>(mesh.vertices[t[(i + 1) % 3]]);
            const Vec3d aim = a + (b - a) * (i % 4 == 0 ? 0 : rng::uniform(key, 4 * i + 1, 0, 1));
            const Vec3d core = middle + random_unit(key + 1, i) * core_m;
            const double away_m = rng::uniform(key, 4 * i + 2, 0.5, 80);
            const Vec3d from = i % 2 == 0 ? core : aim + normalized(aim - core) * away_m;
            batch.push_back(ray_at(pose.apply(from), pose.apply(aim)));
            expected_m.push_back(length(aim - from));
        }
        std::vector<Hit> hits(batch.size());
        tracer.closest({*nothing, parts}, batch, hits);
        for (std::size_t i = 0; i < hits.size(); ++i)
            through += !hits[i].exists() || std::fabs(hits[i].range_m - expected_m[i]) > 1e-3;
    }
    return through;
}

}  // namespace

TEST_CASE("no ray goes through the edges and corners of a closed mesh") {
    const auto tracer = make_group_tracer();
    for (const ClosedMesh& closed : closed_meshes()) CHECK(rays_through(*tracer, closed, 60000, 5) == 0);
    CHECK(rays_through(*make_embree_tracer(), closed_meshes()[0], 20000, 6) == 0);
}

TEST_CASE("none of ten million rays goes through the edges and corners of closed meshes", "[slow]") {
    const auto tracer = make_group_tracer();
    for (const ClosedMesh& closed : closed_meshes()) CHECK(rays_through(*tracer, closed, 3'400'000, 7) == 0);
}

TEST_CASE("hits of different parts are never one surface") {
    const auto tracer = either_tracer();
    Parts parts(*tracer);
    const auto sheet = parts.shape(box_mesh({2, 2, 0.01}));
    parts.add_standing(sheet, {{0, 0, 5}, {}});
    parts.add_standing(sheet, {{0, 0, 5.02}, {}});
    parts.all()[1].facts.instance = parts.all()[0].facts.instance;
    const Ray ray = ray_at({0.1, 0.2, 0}, {0.1, 0.2, 1});
    HitList list;
    tracer->nearest({*tracer->bind({}), parts}, {&ray, 1}, 5, 0.3f, {&list, 1});
    REQUIRE(list.count == 4);
    CHECK(surface_depth(list, 5, 0.3f) == 2);
    CHECK(list.hits[0].range_m == Approx(5));
    CHECK(list.hits[2].range_m == Approx(5.02));
}

TEST_CASE("a part is there in its interval only and tells class and instance and a turned normal") {
    const auto tracer = either_tracer();
    Parts parts(*tracer);
    Part& part = parts.add_standing(parts.shape(box_mesh({2, 2, 2}, 10, 0.5f)),
                                    {kHere, from_yaw_pitch_roll(exact::kPi / 6, 0, 0)});
    part.from_s = 0.25f;
    part.to_s = 0.5f;
    part.facts = {kFirstPart + 7, 42, 3};
    std::vector<Ray> rays;
    for (const float time_s : {0.2499f, 0.25f, 0.4999f, 0.5f})
        rays.push_back(ray_at(kHere + Vec3d{-10, 0.2, 1}, kHere + Vec3d{0, 0.2, 1}, time_s));
    std::vector<Hit> hits(rays.size());
    tracer->closest({*tracer->bind({}), parts}, rays, hits);
    CHECK_FALSE(hits[0].exists());
    CHECK_FALSE(hits[3].exists());
    for (const std::size_t i : {1, 2}) {
        REQUIRE(hits[i].exists());
        CHECK(hits[i].label == 42);
        CHECK(hits[i].instance == 3);
        CHECK(hits[i].splat_id >> 32 == kFirstPart + 7);
        CHECK(hits[i].intensity == 32768);
        CHECK(hits[i].acquired_range_m == 10);
        CHECK(hits[i].acquired_incidence == 0);
        const Vec3f n = unpack_normal(hits[i].normal);
        CHECK(std::fabs(n.x) == Approx(std::cos(exact::kPi / 6)).margin(1e-4));
        CHECK(std::fabs(n.y) == Approx(std::sin(exact::kPi / 6)).margin(1e-4));
    }
}
