#pragma once

#include "trace/groups/tile_memory.hpp"
#include "trace/mesh_primitives.hpp"
#include "trace/splat_columns_hd.hpp"
#include "trace/tile_view_hd.hpp"

#include <cstddef>
#include <cstdint>

/// The hierarchy of the group tracer: sixteen consecutive items under each box, on every level. Splats are
/// stored along a Hilbert curve, so consecutive ones are neighbours, and the tree is implied by their order:
/// it is made in one walk over them and has no pointers.
namespace citysplat::trace {

inline constexpr std::uint32_t kWide = 16;

/// Sixteen consecutive discs, column by column: what TraceDisc holds. Discs behind the last of a tile have
/// radius 0 and are met by no ray.
struct alignas(64) DiscBlock {
    float centre[3][kWide];
    float radius_squared[kWide];
    float normal[3][kWide];
    std::uint32_t label[kWide];

    TraceDisc disc(std::uint32_t i) const {
        return {{centre[0][i], centre[1][i], centre[2][i]},
                radius_squared[i],
                {normal[0][i], normal[1][i], normal[2][i]},
                label[i]};
    }
};
static_assert(sizeof(DiscBlock) == kWide * sizeof(TraceDisc));

/// Sixteen consecutive triangles, column by column: what TraceTriangle holds. What lies behind the last of a
/// shape must not be looked at.
struct alignas(64) TriangleBlock {
    float corner[3][3][kWide];  ///< a, b, c; x, y, z
    std::uint32_t label[kWide];

    TraceTriangle triangle(std::uint32_t i) const {
        const auto at = [&](int c) { return Vec3f{corner[c][0][i], corner[c][1][i], corner[c][2][i]}; };
        return {at(0), at(1), at(2), label[i]};
    }
};
static_assert(sizeof(TriangleBlock) == kWide * sizeof(TraceTriangle));

/// The boxes of sixteen children. Children that do not exist have boxes that nothing meets.
struct alignas(64) BoxNode {
    float low[3][kWide], high[3][kWide];
};

/// A node whose only child is this box.
BoxNode single_box(Vec3f low, Vec3f high);

/// A tile, or the shape of a part, as the group tracer reads it. Leaves are blocks of discs or of triangles.
struct WideTile {
    static constexpr unsigned kMostLevels = 8;

    const DiscBlock* blocks;
    const TriangleBlock* triangles;  ///< nullptr: it is made of discs
    std::uint32_t primitives;        ///< how many of them
    const SplatFacts* facts;
    const BoxNode* level[kMostLevels];  ///< the boxes in level[0] are those of blocks
    unsigned levels;                    ///< the last is one node, the root
    Vec3d origin;                       ///< of the tile's frame in the world: whole metres
    float slack_m;                      ///< by which boxes are larger than discs

    TraceDisc disc(std::uint32_t splat) const { return blocks[splat / kWide].disc(splat % kWide); }
    TraceTriangle triangle(std::uint32_t i) const { return triangles[i / kWide].triangle(i % kWide); }
};

/// The memory behind a WideTile.
struct WideTileArrays {
    explicit WideTileArrays(std::size_t splats);
    /// Complete. Boxes are wider than triangles by `slack_m`.
    WideTileArrays(const MeshPrimitives& mesh, float slack_m);

    TileMemory memory;  ///< of all that follows
    std::span<DiscBlock> blocks;
    std::span<TriangleBlock> triangles;
    std::span<SplatFacts> facts;
    std::span<BoxNode> nodes;  ///< level by level, the root last

    std::size_t bytes() const { return memory.bytes(); }
    static std::size_t bytes(std::size_t splats);
    static std::size_t mesh_bytes(std::size_t triangles);
    WideTile view(Vec3d origin, float slack_m) const;

  private:
    struct Counts {
        std::size_t blocks, triangles, facts;
    };
    explicit WideTileArrays(const Counts& counts);
    static std::size_t room(const Counts& counts);
};

}  // namespace citysplat::trace
