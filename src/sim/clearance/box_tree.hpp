#pragma once

#include "core/math/vec_hd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::sim {

/// Box in single precision, in the frame of a tile or shape.
struct BoxF {
    Vec3f min, max;
};

/// Finds which of many boxes come near to a place. Immutable.
class BoxTree {
  public:
    BoxTree() = default;
    explicit BoxTree(std::span<const BoxF> boxes);

    /// Calls visit(number) for every box whose distance from `around` is at most *reach, which visit() may
    /// shrink.
    template <class Visit>
    void near(const BoxF& around, const float& reach, Visit&& visit) const {
        if (nodes_.empty()) return;
        std::uint32_t open[64];
        int count = 0;
        open[count++] = 0;
        while (count > 0) {
            const Node& node = nodes_[open[--count]];
            if (square_distance(node.box, around) > reach * reach) continue;
            if (node.items > 0) {
                for (std::uint32_t i = 0; i < node.items; ++i) visit(order_[node.first + i]);
            } else {
                // The nearer one first, so that the reach shrinks early.
                const std::uint32_t left = node.first, right = node.first + 1;
                const bool left_first =
                    square_distance(nodes_[left].box, around) <= square_distance(nodes_[right].box, around);
                open[count++] = left_first ? right : left;
                open[count++] = left_first ? left : right;
            }
        }
    }
    std::size_t bytes() const { return nodes_.size() * sizeof(Node) + order_.size() * 4; }
    static float square_distance(const BoxF& a, const BoxF& b);

  private:
    struct Node {
        BoxF box;
        std::uint32_t first, items;  ///< items 0: nodes first and first + 1
    };
    void split(std::uint32_t node, std::uint32_t begin, std::uint32_t end, std::span<const BoxF> boxes);

    std::vector<Node> nodes_;
    std::vector<std::uint32_t> order_;
};

}  // namespace citysplat::sim
