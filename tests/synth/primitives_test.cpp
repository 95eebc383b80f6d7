#include "datasets/synth/primitives.hpp"

#include "datasets/synth/city_plan.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

using namespace citysplat;
using namespace citysplat::synth;

namespace {

/// First contact by marching: every step is as long as the distance to the surface allows. Knows nothing of
/// the formulas in intersect().
template <class Primitive>
double march(const Primitive& primitive, const Ray& ray, double t_max) {
    double t = kNearest_m;
    for (int i = 0; i < 20000 && t < t_max; ++i) {
        const double d = primitive.distance(ray.origin + t * ray.direction);
        if (d < 1e-8) return t;
        t += d;
    }
    return INFINITY;
}

Vec3d direction_of(Dice& dice) {
    const double z = dice.between(-1, 1), r = std::sqrt(1 - z * z);
    const auto turn = exact::sin_cos(dice.between(0, 2 * exact::kPi));
    return {r * turn.cos, r * turn.sin, z};
}

/// Rays at a primitive from all sides (or from where `allowed` permits): intersect() agrees with marching.
template <class Primitive>
void check_rays(const Primitive& primitive, const std::function<bool(const Ray&)>& allowed = {}) {
    const Box3d box = primitive.bounds();
    const Vec3d centre = 0.5 * (box.min + box.max), extent = box.max - box.min;
    Dice dice(42);
    const Box3d wide = box.widened(1e-6);
    int hits = 0, disagreements = 0;
    for (int i = 0; i < 3000; ++i) {
        const Vec3d target =
            centre + Vec3d{dice.between(-0.6, 0.6) * extent.x, dice.between(-0.6, 0.6) * extent.y,
                           dice.between(-0.6, 0.6) * extent.z};
        const Vec3d from = centre + (1.0 + length(extent)) * direction_of(dice);
        const Ray ray{from, normalized(target - from)};
        if (allowed && !allowed(ray)) continue;
        const auto hit = primitive.intersect(ray, 100.0);
        const double expected = march(primitive, ray, 100.0);
        if (hit) {
            ++hits;
            const Vec3d p = from + hit->t * ray.direction;
            CHECK(primitive.distance(p) < 1e-7);
            CHECK(std::fabs(length(hit->normal) - 1) < 1e-12);
            CHECK(dot(hit->normal, ray.direction) <= 1e-9);
            CHECK((p.x >= wide.min.x && p.x <= wide.max.x && p.y >= wide.min.y && p.y <= wide.max.y &&
                   p.z >= wide.min.z && p.z <= wide.max.z));
            CHECK_FALSE(primitive.intersect(ray, hit->t - 1e-9));
        }
        const bool agree = hit ? std::fabs(hit->t - expected) < 1e-4 : !std::isfinite(expected);
        if (!agree) ++disagreements;
    }
    CHECK(hits > 100);
    // The march stops within its tolerance of an edge that the ray just misses, and it sees a façade's
    // reveals from inside the house when the ray passes round the end of the wall.
    CHECK(disagreements <= 8);
}

/// The distance of random points against the nearest of many samples of the surface.
template <class Primitive>
void check_distance(const Primitive& primitive, const std::vector<Vec3d>& samples, double spacing_m) {
    const Box3d box = primitive.bounds().widened(1.0);
    Dice dice(7);
    for (int i = 0; i < 300; ++i) {
        const Vec3d p{dice.between(box.min.x, box.max.x), dice.between(box.min.y, box.max.y),
                      dice.between(box.min.z, box.max.z)};
        double nearest = INFINITY;
        for (const Vec3d& q : samples) nearest = std::min(nearest, length(p - q));
        const double d = primitive.distance(p);
        CHECK(d <= nearest + 1e-9);
        CHECK(d >= nearest - spacing_m);
    }
}

/// Points of the parallelogram corner + s·u + t·v, borders included.
void sample_flat(std::vector<Vec3d>& out, Vec3d corner, Vec3d u, Vec3d v, int n) {
    for (int i = 0; i <= n; ++i)
        for (int j = 0; j <= n; ++j)
            out.push_back(corner + (static_cast<double>(i) / n) * u + (static_cast<double>(j) / n) * v);
}

constexpr Surface kAny{1, 50, Pattern::plain};

Facade test_facade() {
    Facade f{};
    f.corner = {1, 2, 0.5};
    f.along = {0.6, 0.8, 0};
    f.normal = {0.8, -0.6, 0};
    f.width = 9;
    f.height = 7;
    f.first_u = 0.3;
    f.first_v = 0.4;
    f.pitch_u = 2.8;
    f.pitch_v = 3.0;
    f.low_u = 0.7;
    f.high_u = 2.0;
    f.low_v = 0.8;
    f.high_v = 2.4;
    f.depth = 0.25;
    f.count_u = 3;
    f.count_v = 2;
    f.surface = {1, 50, Pattern::plain};
    f.pane = {1, 8, Pattern::plain};
    return f;
}

}  // namespace

TEST_CASE("a ray meets each kind of surface where marching along it finds the surface") {
    SECTION("patch") { check_rays(Patch{-4, 5, -3, 3, {1, 0.03, -0.02, 0.004, -0.003, -0.004}, kAny}); }
    SECTION("parallelogram") { check_rays(Flat::make({1, 2, 3}, {2, 0.5, 0.1}, {0.3, 1.5, 1}, false, kAny)); }
    SECTION("triangle") { check_rays(Flat::make({1, 2, 3}, {2, 0.5, 0.1}, {0.3, 1.5, 1}, true, kAny)); }
    SECTION("box") { check_rays(Box{{1, -1, 2}, {1, 0.5, 0.25}, 0.8, 0.6, kAny}); }
    SECTION("frustum") { check_rays(Frustum::between({0, 1, 0}, {1, 1.5, 3}, 0.5, 0.2, kAny)); }
    SECTION("cylinder") { check_rays(Frustum::between({0, 1, 0}, {1, 1.5, 3}, 0.3, 0.3, kAny)); }
    SECTION("disc") { check_rays(synth::Disc{{1, 2, 3}, {0.3f, -0.5f, 0.8f}, 0.5f, kAny}); }
    SECTION("sphere") { check_rays(Sphere{{1, 2, 3}, 0.7, kAny}); }
    SECTION("facade, from the street") {
        const Facade f = test_facade();
        check_rays(f, [&](const Ray& ray) {
            return dot(ray.origin - f.corner, f.normal) > 0.1 && dot(ray.direction, f.normal) < -0.05;
        });
    }
}

TEST_CASE("the distance to a surface is the distance to its nearest sample") {
    std::vector<Vec3d> samples;
    SECTION("patch") {
        const Patch p{-4, 5, -3, 3, {1, 0.03, -0.02, 0.004, -0.003, -0.004}, kAny};
        for (int i = 0; i <= 300; ++i)
            for (int j = 0; j <= 200; ++j) {
                const double x = -4 + 9.0 * i / 300, y = -3 + 6.0 * j / 200;
                samples.push_back({x, y, p.height(x, y)});
            }
        check_distance(p, samples, 0.03);
    }
    SECTION("parallelogram") {
        const Flat f = Flat::make({1, 2, 3}, {2, 0.5, 0.1}, {0.3, 1.5, 1}, false, kAny);
        sample_flat(samples, f.corner, f.edge_u, f.edge_v, 200);
        check_distance(f, samples, 0.02);
    }
    SECTION("triangle") {
        const Flat f = Flat::make({1, 2, 3}, {2, 0.5, 0.1}, {0.3, 1.5, 1}, true, kAny);
        for (int i = 0; i <= 250; ++i)
            for (int j = 0; i + j <= 250; ++j)
                samples.push_back(f.corner + (i / 250.0) * f.edge_u + (j / 250.0) * f.edge_v);
        check_distance(f, samples, 0.02);
    }
    SECTION("box") {
        const Box b{{1, -1, 2}, {1, 0.5, 0.25}, 0.8, 0.6, kAny};
        const auto at = [&](double x, double y, double z) {
            return b.centre + Vec3d{b.cos_yaw * x - b.sin_yaw * y, b.sin_yaw * x + b.cos_yaw * y, z};
        };
        for (int i = 0; i <= 120; ++i)
            for (int j = 0; j <= 120; ++j) {
                const double s = 2 * i / 120.0 - 1, t = 2 * j / 120.0 - 1;
                for (const double e : {-1.0, 1.0}) {
                    samples.push_back(at(e, 0.5 * s, 0.25 * t));
                    samples.push_back(at(s, 0.5 * e, 0.25 * t));
                    samples.push_back(at(s, 0.5 * t, 0.25 * e));
                }
            }
        check_distance(b, samples, 0.02);
    }
    SECTION("frustum") {
        const Frustum f = Frustum::between({0, 0, 1}, {0, 0, 3}, 0.5, 0.2, kAny);
        for (int a = 0; a < 200; ++a) {
            const auto turn = exact::sin_cos(2 * exact::kPi * a / 200);
            for (int k = 0; k <= 100; ++k) {
                const double s = k / 100.0, r = 0.5 - 0.3 * s;
                samples.push_back({r * turn.cos, r * turn.sin, 1 + 2 * s});
                samples.push_back({0.5 * s * turn.cos, 0.5 * s * turn.sin, 1});
                samples.push_back({0.2 * s * turn.cos, 0.2 * s * turn.sin, 3});
            }
        }
        check_distance(f, samples, 0.03);
    }
    SECTION("disc") {
        const synth::Disc d{{0, 0, 1}, {0, 0, 2}, 0.5f, kAny};
        for (int a = 0; a < 200; ++a)
            for (int k = 0; k <= 60; ++k) {
                const auto turn = exact::sin_cos(2 * exact::kPi * a / 200);
                samples.push_back({0.5 * k / 60 * turn.cos, 0.5 * k / 60 * turn.sin, 1});
            }
        check_distance(d, samples, 0.02);
    }
    SECTION("facade") {
        const Facade f = test_facade();
        const Vec3d up{0, 0, 1};
        const auto hole = [&](int i, int j) {
            const double u = f.first_u + i * f.pitch_u, v = f.first_v + j * f.pitch_v;
            return std::array{u + f.low_u, u + f.high_u, v + f.low_v, v + f.high_v};
        };
        for (int i = 0; i <= 450; ++i)
            for (int j = 0; j <= 350; ++j) {
                const double u = 9.0 * i / 450, v = 7.0 * j / 350;
                bool open = false;
                for (int a = 0; a < 3; ++a)
                    for (int b = 0; b < 2; ++b) {
                        const auto h = hole(a, b);
                        open |= u > h[0] && u < h[1] && v > h[2] && v < h[3];
                    }
                if (!open) samples.push_back(f.corner + u * f.along + v * up);
            }
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 2; ++b) {
                const auto h = hole(a, b);
                const Vec3d corner = f.corner + h[0] * f.along + h[2] * up, in = -f.depth * f.normal;
                const Vec3d wide = (h[1] - h[0]) * f.along, tall = (h[3] - h[2]) * up;
                sample_flat(samples, corner + in, wide, tall, 60);
                sample_flat(samples, corner, wide, in, 60);
                sample_flat(samples, corner + tall, wide, in, 60);
                sample_flat(samples, corner, tall, in, 60);
                sample_flat(samples, corner + wide, tall, in, 60);
            }
        check_distance(f, samples, 0.03);
    }
}
