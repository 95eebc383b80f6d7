#pragma once

#include "trace/groups/large_array.hpp"
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

/// The boxes of sixteen children. Children that do not exist have boxes that nothing meets.
struct alignas(64) BoxNode {
    float low[3][kWide], high[3][kWide];
};

/// A tile as the group tracer reads it.
struct WideTile {
    static constexpr unsigned kMostLevels = 8;

    const DiscBlock* blocks;
    const SplatFacts* facts;
    const BoxNode* level[kMostLevels];  ///< the boxes in level[0] are those of blocks
    unsigned levels;                    ///< the last is one node, the root
    Vec3d origin;                       ///< of the tile's frame in the world: whole metres
    float slack_m;                      ///< by which boxes are larger than discs

    TraceDisc disc(std::uint32_t splat) const { return blocks[splat / kWide].disc(splat % kWide); }
};

/// The memory behind a WideTile.
struct WideTileArrays {
    WideTileArrays() = default;
    explicit WideTileArrays(std::size_t splats);

    LargeArray<DiscBlock> blocks;
    LargeArray<SplatFacts> facts;
    LargeArray<BoxNode> nodes;  ///< level by level, the root last

    std::size_t bytes() const { return blocks.bytes() + facts.bytes() + nodes.bytes(); }
    static std::size_t bytes(std::size_t splats);
    WideTile view(Vec3d origin, float slack_m) const;
};

}  // namespace citysplat::trace
