#include "model/splat_tile.hpp"

#include "core/math/math_hd.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace citysplat;

namespace {

std::vector<Splat> some_splats(std::size_t n) {
    std::vector<Splat> splats;
    for (std::uint64_t i = 0; i < n; ++i) {
        const auto r = [i](std::uint64_t c) { return rng::bits(i, c); };
        const auto coordinate = [&](std::uint64_t c) {
            return static_cast<std::int32_t>(r(c) % (1u << 24)) - (1 << 23) + 1;
        };
        splats.push_back({.x = std::min(coordinate(0), kMaxSplatSteps),
                          .y = std::min(coordinate(1), kMaxSplatSteps),
                          .z = std::min(coordinate(2), kMaxSplatSteps),
                          .normal = pack_normal(normalized(
                              Vec3d{rng::gaussian(i, 3), rng::gaussian(i, 4), rng::gaussian(i, 5)})),
                          .radius = static_cast<std::uint16_t>(1 + r(12) % 65535),
                          .label = static_cast<std::uint16_t>(r(13)),
                          .intensity = static_cast<std::uint16_t>(r(14)),
                          .point_count = static_cast<std::uint8_t>(r(15)),
                          .group = static_cast<SplatGroup>(r(16) % 4),
                          .range = static_cast<std::uint8_t>(r(17)),
                          .incidence = static_cast<std::uint8_t>(r(18)),
                          .instance = static_cast<std::uint8_t>(r(19))});
    }
    return splats;
}

}  // namespace

TEST_CASE("packed normals come back within 0.005 degrees, also at the seams of the octahedron") {
    double worst_rad = 0;
    const auto check = [&](Vec3d n) {
        n = normalized(n);
        const Vec3d back = vec_cast<double>(unpack_normal(pack_normal(n)));
        CHECK(length(back) == Approx(1).margin(1e-6));
        worst_rad = std::max(worst_rad, length(cross(n, back)));
        REQUIRE(dot(n, back) > 0.99);
    };
    for (std::uint64_t i = 0; i < 20'000; ++i)
        check({rng::gaussian(1, i), rng::gaussian(2, i), rng::gaussian(3, i)});
    for (const double s : {-1.0, 1.0}) {
        check({s, 0, 0});
        check({0, s, 0});
        check({0, 0, s});
        check({s, s, -1e-12});
        check({1e-9, s, -s});
    }
    CHECK(worst_rad * 180 / exact::kPi < 0.005);
}

TEST_CASE("splats survive packing into columns, at 24 bytes each") {
    const auto splats = some_splats(1001);
    const SplatTile tile({1, -2, 3}, splats);
    REQUIRE(tile.size() == splats.size());
    CHECK(SplatTile::body_bytes(1'000'000) <= 24'001'000);
    for (std::size_t i = 0; i < splats.size(); ++i) {
        const Splat s = tile.splat(i), &t = splats[i];
        REQUIRE(std::tie(s.x, s.y, s.z, s.normal, s.radius, s.label, s.intensity) ==
                std::tie(t.x, t.y, t.z, t.normal, t.radius, t.label, t.intensity));
        REQUIRE(std::tie(s.point_count, s.group, s.range, s.incidence, s.instance) ==
                std::tie(t.point_count, t.group, t.range, t.incidence, t.instance));
        REQUIRE(static_cast<double>(tile.disc(i).centre.x) * 8192 == t.x);
    }
}

TEST_CASE("the digest does not depend on order, tiling or frame, but on every splat") {
    auto splats = some_splats(500);
    for (auto& s : splats) s.x /= 4, s.y /= 4, s.z /= 4;
    const Hash128 whole = SplatTile({10, 20, 30}, splats).digest();
    std::reverse(splats.begin(), splats.end());
    for (auto& s : splats) s.x += 2 * 8192;  // the same places seen from a frame 2 m further west
    Hash128 parts = SplatTile({8, 20, 30}, std::span(splats).first(200)).digest();
    parts += SplatTile({8, 20, 30}, std::span(splats).subspan(200)).digest();
    CHECK(parts == whole);
    splats[77].radius = static_cast<std::uint16_t>(splats[77].radius ^ 1);
    CHECK(SplatTile({8, 20, 30}, splats).digest() != whole);
}
