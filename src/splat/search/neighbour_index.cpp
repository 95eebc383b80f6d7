#include "splat/search/neighbour_index.hpp"

#include <algorithm>

namespace citysplat::splat {
namespace {

constexpr std::size_t kFanOut = NeighbourIndex::kFanOut;
using Node = NeighbourIndex::Node;

struct Box {
    std::int32_t min_x = NeighbourIndex::kNowhere, min_y = min_x, min_z = min_x;
    std::int32_t max_x = -NeighbourIndex::kNowhere, max_y = max_x, max_z = max_x;

    void add(const Box& b) {
        min_x = std::min(min_x, b.min_x), min_y = std::min(min_y, b.min_y), min_z = std::min(min_z, b.min_z);
        max_x = std::max(max_x, b.max_x), max_y = std::max(max_y, b.max_y), max_z = std::max(max_z, b.max_z);
    }
};

void set_child(Node& node, std::size_t child, const Box& b) {
    node.min_x[child] = b.min_x, node.min_y[child] = b.min_y, node.min_z[child] = b.min_z;
    node.max_x[child] = b.max_x, node.max_y[child] = b.max_y, node.max_z[child] = b.max_z;
}

/// Nodes over `count` boxes, `box_of(i)` each. Missing children lie nowhere.
template <class BoxOf>
std::vector<Node> make_level(std::size_t count, BoxOf box_of) {
    constexpr std::int32_t kNowhere = NeighbourIndex::kNowhere;
    std::vector<Node> level((count + kFanOut - 1) / kFanOut);
    for (std::size_t i = 0; i < level.size() * kFanOut; ++i) {
        const Box nowhere{kNowhere, kNowhere, kNowhere, kNowhere, kNowhere, kNowhere};
        set_child(level[i / kFanOut], i % kFanOut, i < count ? box_of(i) : nowhere);
    }
    return level;
}

}  // namespace

NeighbourIndex::NeighbourIndex(std::span<const std::int32_t> x, std::span<const std::int32_t> y,
                               std::span<const std::int32_t> z, std::span<const std::uint32_t> rank)
    : x_(x), y_(y), z_(z), rank_(rank) {
    if (x.empty()) return;
    const std::size_t leaves = (x.size() + kFanOut - 1) / kFanOut;
    levels_.push_back(make_level(leaves, [&](std::size_t leaf) {
        Box box;
        for (std::size_t i = leaf * kFanOut; i < std::min(x.size(), (leaf + 1) * kFanOut); ++i)
            box.add({x[i], y[i], z[i], x[i], y[i], z[i]});
        return box;
    }));
    std::size_t children = leaves;
    while (levels_.back().size() > 1) {
        const std::vector<Node>& below = levels_.back();
        const std::size_t grandchildren = children;
        children = below.size();
        std::vector<Node> level = make_level(children, [&](std::size_t n) {
            Box box;
            for (std::size_t c = 0; c < kFanOut && n * kFanOut + c < grandchildren; ++c)
                box.add({below[n].min_x[c], below[n].min_y[c], below[n].min_z[c], below[n].max_x[c],
                         below[n].max_y[c], below[n].max_z[c]});
            return box;
        });
        levels_.push_back(std::move(level));
    }
}

}  // namespace citysplat::splat
