#include "model/mesh_tile.hpp"

#include "core/error.hpp"
#include "model/splat_hd.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

namespace citysplat {

namespace {

constexpr std::size_t kAlign = 64;
/// Of the columns of vertices; that of the triangles comes after them.
constexpr std::array<std::size_t, 6> kWidths{4, 4, 4, 4, 2, 2};

constexpr std::size_t padded(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::uint8_t mean_of_known(std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    unsigned sum = 0, known = 0;
    for (const unsigned v : {a, b, c})
        if (v != kUnknownByte) sum += v, ++known;
    return known > 0 ? static_cast<std::uint8_t>(sum / known) : kUnknownByte;
}

}  // namespace

TriangleFacts facts_of(const std::array<MeshVertex, 3>& corners) {
    const auto& [a, b, c] = corners;
    const auto edge = [&a = a](const MeshVertex& v) {
        return Vec3d{static_cast<double>(v.x - a.x), static_cast<double>(v.y - a.y),
                     static_cast<double>(v.z - a.z)};
    };
    const Vec3d normal = cross(edge(b), edge(c));
    const std::uint16_t label = a.label == b.label || a.label == c.label
                                    ? a.label
                                    : (b.label == c.label ? b.label : std::min({a.label, b.label, c.label}));
    return {.normal = dot(normal, normal) > 0 ? pack_normal(normal) : a.normal,
            .label = label,
            .intensity = static_cast<std::uint16_t>((unsigned{a.intensity} + b.intensity + c.intensity) / 3),
            .range = mean_of_known(a.range, b.range, c.range),
            .incidence = mean_of_known(a.incidence, b.incidence, c.incidence)};
}

void MeshTile::Free::operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kAlign}); }

std::size_t MeshTile::column_offset(std::size_t column, std::size_t vertices) {
    std::size_t offset = 0;
    for (std::size_t c = 0; c < column; ++c) offset += padded(kWidths[c] * vertices);
    return offset;
}

std::size_t MeshTile::body_bytes(std::size_t vertices, std::size_t triangles) {
    return column_offset(kWidths.size(), vertices) + padded(sizeof(MeshTriangle) * triangles);
}

MeshTile::MeshTile(TileFrame frame, std::size_t vertices, std::size_t triangles)
    : frame_(frame), vertices_(vertices), triangles_(triangles) {
    if (vertices >= std::numeric_limits<std::uint32_t>::max())
        throw std::length_error("a mesh tile has more vertices than numbers of 32 bits can name");
    const std::size_t size = body_bytes(vertices, triangles);
    buffer_.reset(static_cast<std::byte*>(::operator new[](size, std::align_val_t{kAlign})));
    std::memset(buffer_.get(), 0, size);
}

MeshTile::MeshTile(TileFrame frame, std::span<const MeshVertex> vertices,
                   std::span<const MeshTriangle> triangles)
    : MeshTile(frame, vertices.size(), triangles.size()) {
    const auto put = [this](std::size_t column, std::size_t i, auto value) {
        std::memcpy(buffer_.get() + column_offset(column, vertices_) + i * sizeof value, &value,
                    sizeof value);
    };
    for (std::size_t i = 0; i < vertices.size(); ++i) {
        const MeshVertex& v = vertices[i];
        assert(std::abs(v.x) <= kMaxSteps && std::abs(v.y) <= kMaxSteps && std::abs(v.z) <= kMaxSteps);
        put(0, i, pack_position(v.x, v.range));
        put(1, i, pack_position(v.y, v.incidence));
        put(2, i, pack_position(v.z, 0));
        put(3, i, v.normal);
        put(4, i, v.label);
        put(5, i, v.intensity);
    }
    for (std::size_t i = 0; i < triangles.size(); ++i) {
        assert(std::ranges::all_of(triangles[i], [&](std::uint32_t v) { return v < vertices_; }));
        put(6, i, triangles[i]);
    }
}

MeshVertex MeshTile::vertex(std::size_t i) const {
    return {.x = unpack_position(x()[i]),
            .y = unpack_position(y()[i]),
            .z = unpack_position(z()[i]),
            .normal = normal()[i],
            .label = label()[i],
            .intensity = intensity()[i],
            .range = unpack_attribute(x()[i]),
            .incidence = unpack_attribute(y()[i])};
}

MeshTriangle MeshTile::triangle(std::size_t i) const {
    return {indices()[3 * i], indices()[3 * i + 1], indices()[3 * i + 2]};
}

std::array<MeshVertex, 3> MeshTile::corners(std::size_t triangle_number) const {
    const auto [a, b, c] = triangle(triangle_number);
    return {vertex(a), vertex(b), vertex(c)};
}

LatticePoint MeshTile::world(const MeshVertex& v) const {
    const LatticePoint origin = frame_.origin();
    return {origin.x + v.x, origin.y + v.y, origin.z + v.z};
}

Vec3d MeshTile::world_m(const MeshVertex& v) const {
    const LatticePoint at = world(v);
    return {to_metres(at.x), to_metres(at.y), to_metres(at.z)};
}

void MeshTile::check(std::string_view origin) const {
    for (std::size_t i = 0; i < indices().size(); ++i)
        if (indices()[i] >= vertices_)
            throw CorruptionError(std::string(origin) + ": triangle " + std::to_string(i / 3) +
                                  " has the vertex " + std::to_string(indices()[i]) + ", but there are " +
                                  std::to_string(vertices_));
}

Hash128 MeshTile::digest() const {
    struct WorldVertex {
        std::int64_t x, y, z;
        std::uint32_t normal;
        std::uint16_t label, intensity;
        std::uint8_t range, incidence;
        std::array<std::uint8_t, 6> zero;
        auto operator<=>(const WorldVertex&) const = default;
    };
    static_assert(sizeof(WorldVertex) == 40);
    const auto in_world = [this](const MeshVertex& v) {
        const LatticePoint at = world(v);
        return WorldVertex{at.x, at.y, at.z, v.normal, v.label, v.intensity, v.range, v.incidence, {}};
    };
    Hash128 sum;
    for (std::size_t i = 0; i < triangles_; ++i) {
        const auto [a, b, c] = corners(i);
        std::array<WorldVertex, 3> triangle{in_world(a), in_world(b), in_world(c)};
        std::rotate(triangle.begin(), std::min_element(triangle.begin(), triangle.end()), triangle.end());
        sum += hash_bytes(std::as_bytes(std::span(triangle)));
    }
    return sum;
}

}  // namespace citysplat
