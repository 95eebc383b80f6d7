#pragma once

#include "core/hash.hpp"
#include "core/math/lattice.hpp"
#include "core/math/vec_hd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace citysplat {

/// A vertex as the mesher makes it: lattice steps from the tile's frame, quantised attributes. Everything
/// here is a function of the points around it: the two tiles that share a vertex on their border have the
/// same one.
struct MeshVertex {
    std::int32_t x, y, z;     ///< |.| <= MeshTile::kMaxSteps
    std::uint32_t normal;     ///< pack_normal(); points to where the sensors were
    std::uint16_t label;      ///< class
    std::uint16_t intensity;  ///< mean of the points around it
    std::uint8_t range;       ///< mean acquisition range in metres, saturates at 254; 255 unknown
    std::uint8_t incidence;   ///< mean acquisition incidence, 254 = 90°; 255 unknown
    friend auto operator<=>(const MeshVertex&, const MeshVertex&) = default;
};

/// Numbers of its vertices, counter-clockwise for whoever looks at it from where the sensors were.
using MeshTriangle = std::array<std::uint32_t, 3>;

/// What a triangle says about itself, made of what its vertices say.
struct TriangleFacts {
    std::uint32_t normal;  ///< pack_normal() of the triangle's own plane
    std::uint16_t label;   ///< that of most vertices; of three different ones the smallest
    std::uint16_t intensity;
    std::uint8_t range, incidence;  ///< means of what is known; 255 unknown
};
TriangleFacts facts_of(const std::array<MeshVertex, 3>& corners);

/// The triangles of one tile as columns in one 64-byte-aligned buffer, which is also the body of the payload
/// on disk. 20 bytes a vertex, 12 a triangle:
///
///   column      type   holds
///   x           u32    x steps (24 bits) | mean range
///   y           u32    y steps (24 bits) | mean incidence
///   z           u32    z steps (24 bits) | 0
///   normal      u32    octahedral 2 × 16 bits
///   label       u16
///   intensity   u16
///   triangles   u32    three numbers of vertices each
///
/// Each column starts on a multiple of 64 bytes. A triangle belongs to one tile; vertices on the border are
/// in every tile that has triangles at them, with the same coordinates, so that tiles are welded by
/// comparing integers.
class MeshTile {
  public:
    static constexpr std::int32_t kMaxSteps = (1 << 23) - 1;

    MeshTile() = default;
    /// All zero. Throws std::length_error when there are more vertices than a number of 32 bits can name.
    MeshTile(TileFrame frame, std::size_t vertices, std::size_t triangles);
    /// Requires coordinates within kMaxSteps, and triangles of three different vertices that exist.
    MeshTile(TileFrame frame, std::span<const MeshVertex> vertices, std::span<const MeshTriangle> triangles);

    TileFrame frame() const { return frame_; }
    std::size_t vertex_count() const { return vertices_; }
    std::size_t triangle_count() const { return triangles_; }
    bool empty() const { return triangles_ == 0; }

    MeshVertex vertex(std::size_t i) const;
    MeshTriangle triangle(std::size_t i) const;
    std::array<MeshVertex, 3> corners(std::size_t triangle) const;

    /// In the world; exact.
    LatticePoint world(const MeshVertex& v) const;
    Vec3d world_m(const MeshVertex& v) const;

    std::span<const std::uint32_t> x() const { return column<std::uint32_t>(0, vertices_); }
    std::span<const std::uint32_t> y() const { return column<std::uint32_t>(1, vertices_); }
    std::span<const std::uint32_t> z() const { return column<std::uint32_t>(2, vertices_); }
    std::span<const std::uint32_t> normal() const { return column<std::uint32_t>(3, vertices_); }
    std::span<const std::uint16_t> label() const { return column<std::uint16_t>(4, vertices_); }
    std::span<const std::uint16_t> intensity() const { return column<std::uint16_t>(5, vertices_); }
    /// Three numbers for each triangle.
    std::span<const std::uint32_t> indices() const { return column<std::uint32_t>(6, 3 * triangles_); }

    /// The whole buffer, for reading and writing the payload. Padding bytes are zero.
    std::span<const std::byte> bytes() const { return {buffer_.get(), body_bytes(vertices_, triangles_)}; }
    std::span<std::byte> mutable_bytes() { return {buffer_.get(), body_bytes(vertices_, triangles_)}; }
    static std::size_t body_bytes(std::size_t vertices, std::size_t triangles);

    /// Throws CorruptionError that begins with `origin` when a triangle names a vertex that is not there.
    void check(std::string_view origin) const;

    /// Sum of the hashes of all triangles in world terms: does not depend on order, tiling, frame, numbers of
    /// vertices, or on which corner of a triangle is its first.
    Hash128 digest() const;

  private:
    static std::size_t column_offset(std::size_t column, std::size_t vertices);
    template <class T>
    std::span<const T> column(std::size_t index, std::size_t count) const {
        return {reinterpret_cast<const T*>(buffer_.get() + column_offset(index, vertices_)), count};
    }
    struct Free {
        void operator()(std::byte* p) const;
    };

    TileFrame frame_;
    std::size_t vertices_ = 0, triangles_ = 0;
    std::unique_ptr<std::byte[], Free> buffer_;
};

}  // namespace citysplat
