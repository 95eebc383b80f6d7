#include "sim/scan/return_lanes.hpp"

#include "core/math/rng_hd.hpp"

#include <catch2/catch.hpp>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <bit>
#include <cstring>
#include <vector>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

/// Calls f() with each instruction set that this machine has.
template <class F>
void for_each_target(F f) {
    const auto choose = [](std::int64_t target) {
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    };
    for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
        const std::int64_t target = left & -left;
        choose(target);
        INFO(hwy::TargetName(target));
        f();
    }
    choose(0);
}

ReturnModel noisy_model() {
    ReturnModel model;
    model.error = {{0.01, 1e-4, -2e-7}, {0.02, 3e-4, 1e-6}};
    return model;
}

Vec3f direction_of_ray(std::uint64_t i) {
    const auto u = [&](std::uint64_t n) { return rng::uniform(rng::key(5, i), n, -1, 1); };
    return vec_cast<float>(normalized(Vec3d{u(0), u(1), u(2) + 1e-9}));
}

/// The key of a scan in which a ray draws these 64 bits for its range.
std::uint64_t key_for(std::uint64_t bits, std::uint64_t ray) {
    const auto undo_shift = [](std::uint64_t v, int shift) {
        std::uint64_t result = v;
        for (int i = shift; i < 64; i += shift) result = v ^ result >> shift;
        return result;
    };
    const auto inverse = [](std::uint64_t odd) {  // Newton: each step doubles the correct bits
        std::uint64_t x = odd;
        for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
        return x;
    };
    std::uint64_t v = undo_shift(bits, 31) * inverse(0x94d049bb133111ebull);
    v = undo_shift(v, 27) * inverse(0xbf58476d1ce4e5b9ull);
    v = undo_shift(v, 30);
    return v - (ray * 8 + static_cast<std::uint64_t>(Purpose::range) + 1) * 0x9e3779b97f4a7c15ull;
}

/// Measures echoes in columns and one by one, and requires the same bytes.
void require_same(const ReturnModel& model, std::uint64_t scan, std::uint64_t first, std::size_t count) {
    EchoColumns columns;
    std::vector<trace::Hit> hits(count);
    std::vector<trace::Ray> rays(count);
    std::vector<Firing> firings(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t n = first + i;
        hits[i].normal = static_cast<std::uint32_t>(rng::bits(11, n));
        hits[i].range_m = rng::uniform(12, n, 0.5, 120);
        rays[i].direction = direction_of_ray(n);
        firings[i].ray = static_cast<std::uint32_t>(n);
        columns.direction_x[i] = rays[i].direction.x;
        columns.direction_y[i] = rays[i].direction.y;
        columns.direction_z[i] = rays[i].direction.z;
        columns.packed_normal[i] = hits[i].normal;
        columns.ray[i] = n;
        columns.range_m[i] = hits[i].range_m;
    }
    return_lanes().measure(model, scan, count, columns);
    for (std::size_t i = 0; i < count; ++i) {
        const Echo echo{&hits[i], hits[i].range_m, 1};
        const Measurement one = measurement_of({model, scan, firings[i], rays[i]}, echo);
        const Measurement many = columns.measurement(i);
        INFO("ray " << first + i);
        REQUIRE(std::bit_cast<std::uint64_t>(one.range_m) == std::bit_cast<std::uint64_t>(many.range_m));
        REQUIRE(std::memcmp(&one.normal, &many.normal, sizeof one.normal) == 0);
        REQUIRE(std::bit_cast<std::uint32_t>(one.cosine) == std::bit_cast<std::uint32_t>(many.cosine));
    }
}

}  // namespace

TEST_CASE("returns are measured with the same bits one by one and many at a time") {
    for_each_target([] {
        for (const std::size_t count : {1u, 7u, 15u, 16u, 63u, 64u})
            for (std::uint64_t first = 0; first < 3000; first += count)
                require_same(noisy_model(), 0x1234567890abcdefull, first, count);
        ReturnModel silent = noisy_model();
        silent.noise = 0;
        require_same(silent, 1, 0, 64);
    });
}

TEST_CASE("the far tails of the noise have the same bits one by one and many at a time") {
    // Uniform values where the quantile takes its rarest branches: next to 0, next to 1, around the borders.
    std::vector<std::uint64_t> bits{0, 1ull << 11, 5ull << 11, ~0ull, ~0ull - (3ull << 11)};
    for (const double p : {1e-14, 1.3e-11, 1.4e-11, 1e-6, 0.0749999, 0.075, 0.0750001, 0.5, 0.925, 0.9250001})
        bits.push_back(static_cast<std::uint64_t>(p * 0x1p53) << 11);
    for_each_target([&] {
        for (const std::uint64_t b : bits)
            for (const std::uint64_t ray : {0u, 6u, 77u, 143999u}) {
                const std::uint64_t scan = key_for(b, ray);
                REQUIRE(uniform_of(scan, ray, Purpose::range) == static_cast<double>(b >> 11) * 0x1p-53);
                require_same(noisy_model(), scan, ray - ray % 7, 16);
            }
    });
}

TEST_CASE("angles of incidence have the same bits one by one and many at a time") {
    std::vector<float> cosines{0, 1, 0x1p-149f, 0x1p-30f, 0x1.fffffep-1f, 0x1.6a09e6p-1f, 0x1.6a09e8p-1f};
    for (std::uint64_t i = 0; i < 5000; ++i) cosines.push_back(static_cast<float>(rng::uniform(3, i)));
    for_each_target([&] {
        for (const std::size_t count : {cosines.size(), std::size_t{1}, std::size_t{13}}) {
            std::vector<float> degrees(cosines.begin(), cosines.begin() + static_cast<std::ptrdiff_t>(count));
            return_lanes().incidences(degrees);
            for (std::size_t i = 0; i < count; ++i)
                REQUIRE(std::bit_cast<std::uint32_t>(degrees[i]) ==
                        std::bit_cast<std::uint32_t>(incidence_deg(cosines[i])));
        }
    });
}
