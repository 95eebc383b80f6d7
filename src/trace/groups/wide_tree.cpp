#include "trace/groups/wide_tree.hpp"

namespace citysplat::trace {

namespace {

std::size_t sixteenth(std::size_t n) { return (n + kWide - 1) / kWide; }

std::size_t count_nodes(std::size_t blocks) {
    std::size_t nodes = 0, level = blocks;
    if (level == 0) return 0;
    do {
        level = sixteenth(level);
        nodes += level;
    } while (level > 1);
    return nodes;
}

}  // namespace

WideTileArrays::WideTileArrays(std::size_t splats)
    : blocks(sixteenth(splats)), facts(splats), nodes(count_nodes(blocks.size())) {}

std::size_t WideTileArrays::bytes(std::size_t splats) {
    const std::size_t blocks = sixteenth(splats);
    return blocks * sizeof(DiscBlock) + splats * sizeof(SplatFacts) + count_nodes(blocks) * sizeof(BoxNode);
}

WideTile WideTileArrays::view(Vec3d origin, float slack_m) const {
    WideTile tile{blocks.data(), facts.data(), {}, 0, origin, slack_m};
    const BoxNode* node = nodes.data();
    std::size_t level = blocks.size();
    if (level == 0) return tile;
    do {
        level = sixteenth(level);
        tile.level[tile.levels++] = node;
        node += level;
    } while (level > 1);
    return tile;
}

}  // namespace citysplat::trace
