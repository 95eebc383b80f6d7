#include "model/splat_tile.hpp"

#include <array>
#include <cassert>
#include <cstring>
#include <new>

namespace citysplat {

namespace {

constexpr std::size_t kAlign = 64;
constexpr std::array<std::size_t, 9> kWidths{4, 4, 4, 4, 2, 2, 2, 1, 1};

constexpr std::size_t padded(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

void SplatTile::Free::operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kAlign}); }

std::size_t SplatTile::column_offset(std::size_t column, std::size_t count) {
    std::size_t offset = 0;
    for (std::size_t c = 0; c < column; ++c) offset += padded(kWidths[c] * count);
    return offset;
}

std::size_t SplatTile::body_bytes(std::size_t count) { return column_offset(kColumns, count); }

SplatTile::SplatTile(TileFrame frame, std::size_t count) : frame_(frame), count_(count) {
    const std::size_t bytes = body_bytes(count);
    buffer_.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kAlign})));
    std::memset(buffer_.get(), 0, bytes);
}

SplatTile::SplatTile(TileFrame frame, std::span<const Splat> splats) : SplatTile(frame, splats.size()) {
    const auto put = [this](std::size_t column, std::size_t i, auto value) {
        std::memcpy(buffer_.get() + column_offset(column, count_) + i * sizeof value, &value, sizeof value);
    };
    for (std::size_t i = 0; i < splats.size(); ++i) {
        const Splat& s = splats[i];
        assert(s.radius >= 1 && std::abs(s.x) <= kMaxSplatSteps && std::abs(s.y) <= kMaxSplatSteps &&
               std::abs(s.z) <= kMaxSplatSteps);
        put(0, i, pack_position(s.x, s.point_count));
        put(1, i, pack_position(s.y, static_cast<std::uint8_t>(s.group)));
        put(2, i, pack_position(s.z, s.range));
        put(3, i, s.normal);
        put(4, i, s.radius);
        put(5, i, s.label);
        put(6, i, s.intensity);
        put(7, i, s.incidence);
        put(8, i, s.instance);
    }
}

Splat SplatTile::splat(std::size_t i) const {
    return {.x = unpack_position(x()[i]),
            .y = unpack_position(y()[i]),
            .z = unpack_position(z()[i]),
            .normal = normal()[i],
            .radius = radius()[i],
            .label = label()[i],
            .intensity = intensity()[i],
            .point_count = unpack_attribute(x()[i]),
            .group = static_cast<SplatGroup>(unpack_attribute(y()[i])),
            .range = unpack_attribute(z()[i]),
            .incidence = incidence()[i],
            .instance = instance()[i]};
}

Hash128 SplatTile::digest() const {
    Hash128 sum;
    const LatticePoint origin = frame_.origin();
    struct WorldSplat {
        std::int64_t x, y, z;
        std::uint32_t normal;
        std::uint16_t radius, label, intensity;
        std::uint8_t point_count, group, range, incidence, instance, zero;
    };
    static_assert(sizeof(WorldSplat) == 40);
    for (std::size_t i = 0; i < count_; ++i) {
        const Splat s = splat(i);
        const WorldSplat world{origin.x + s.x,
                               origin.y + s.y,
                               origin.z + s.z,
                               s.normal,
                               s.radius,
                               s.label,
                               s.intensity,
                               s.point_count,
                               static_cast<std::uint8_t>(s.group),
                               s.range,
                               s.incidence,
                               s.instance,
                               0};
        sum += hash_bytes(std::as_bytes(std::span<const WorldSplat, 1>(&world, 1)));
    }
    return sum;
}

}  // namespace citysplat
