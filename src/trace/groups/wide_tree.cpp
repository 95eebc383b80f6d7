#include "trace/groups/wide_tree.hpp"

#include <algorithm>

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

std::size_t WideTileArrays::room(const Counts& counts) {
    return TileMemory::room<DiscBlock>(counts.blocks) + TileMemory::room<TriangleBlock>(counts.triangles) +
           TileMemory::room<SplatFacts>(counts.facts) +
           TileMemory::room<BoxNode>(count_nodes(counts.blocks + counts.triangles));
}

WideTileArrays::WideTileArrays(const Counts& counts)
    : memory(room(counts)),
      blocks(memory.cut<DiscBlock>(counts.blocks)),
      triangles(memory.cut<TriangleBlock>(counts.triangles)),
      facts(memory.cut<SplatFacts>(counts.facts)),
      nodes(memory.cut<BoxNode>(count_nodes(counts.blocks + counts.triangles))) {}

WideTileArrays::WideTileArrays(std::size_t splats) : WideTileArrays(Counts{sixteenth(splats), 0, splats}) {}

namespace {

/// Larger than any coordinate, and small enough to be multiplied by a slope.
constexpr float kNowhere_m = 1e30f;

void close_boxes(BoxNode& node) {
    std::fill_n(node.low[0], 3 * kWide, kNowhere_m);
    std::fill_n(node.high[0], 3 * kWide, -kNowhere_m);
}

void grow(BoxNode& node, std::size_t child, int axis, float low, float high) {
    node.low[axis][child] = std::min(node.low[axis][child], low);
    node.high[axis][child] = std::max(node.high[axis][child], high);
}

}  // namespace

BoxNode single_box(Vec3f low, Vec3f high) {
    BoxNode node;
    close_boxes(node);
    grow(node, 0, 0, low.x, high.x);
    grow(node, 0, 1, low.y, high.y);
    grow(node, 0, 2, low.z, high.z);
    return node;
}

WideTileArrays::WideTileArrays(const MeshPrimitives& mesh, float slack_m)
    : WideTileArrays(Counts{0, sixteenth(mesh.triangles.size()), mesh.facts.size()}) {
    std::copy(mesh.facts.begin(), mesh.facts.end(), facts.data());
    BoxNode* level = nodes.data();
    for (std::size_t b = 0; b < triangles.size(); ++b) {
        if (b % kWide == 0) close_boxes(level[b / kWide]);
        for (std::size_t i = 0; i < kWide; ++i) {
            // The last one again where there are no more: its place is never looked at.
            const TraceTriangle& t = mesh.triangles[std::min(b * kWide + i, mesh.triangles.size() - 1)];
            const Vec3f corners[3] = {t.a, t.b, t.c};
            triangles[b].label[i] = t.label;
            for (int c = 0; c < 3; ++c)
                for (int axis = 0; axis < 3; ++axis) {
                    const float v = component(corners[c], static_cast<std::uint32_t>(axis));
                    triangles[b].corner[c][axis][i] = v;
                    grow(level[b / kWide], b % kWide, axis, v - slack_m, v + slack_m);
                }
        }
    }
    for (std::size_t count = sixteenth(triangles.size()); count > 1; count = sixteenth(count)) {
        BoxNode* above = level + count;
        for (std::size_t i = 0; i < count; ++i) {
            if (i % kWide == 0) close_boxes(above[i / kWide]);
            for (int axis = 0; axis < 3; ++axis)
                grow(above[i / kWide], i % kWide, axis,
                     *std::min_element(level[i].low[axis], level[i].low[axis] + kWide),
                     *std::max_element(level[i].high[axis], level[i].high[axis] + kWide));
        }
        level = above;
    }
}

std::size_t WideTileArrays::bytes(std::size_t splats) {
    return TileMemory::taken(room({sixteenth(splats), 0, splats}));
}

std::size_t WideTileArrays::mesh_bytes(std::size_t triangles) {
    return TileMemory::taken(room({0, sixteenth(triangles), triangles}));
}

WideTile WideTileArrays::view(Vec3d origin, float slack_m) const {
    WideTile tile{
        blocks.data(), triangles.data(), static_cast<std::uint32_t>(facts.size()), facts.data(), {}, 0,
        origin,        slack_m};
    const BoxNode* node = nodes.data();
    std::size_t level = std::max(blocks.size(), triangles.size());
    if (level == 0) return tile;
    do {
        level = sixteenth(level);
        tile.level[tile.levels++] = node;
        node += level;
    } while (level > 1);
    return tile;
}

}  // namespace citysplat::trace
