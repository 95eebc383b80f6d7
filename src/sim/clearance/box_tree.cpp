#include "sim/clearance/box_tree.hpp"

#include <algorithm>
#include <numeric>

namespace citysplat::sim {

namespace {

constexpr std::uint32_t kLeafItems = 4;

void grow(BoxF& a, const BoxF& b) {
    a.min = {std::min(a.min.x, b.min.x), std::min(a.min.y, b.min.y), std::min(a.min.z, b.min.z)};
    a.max = {std::max(a.max.x, b.max.x), std::max(a.max.y, b.max.y), std::max(a.max.z, b.max.z)};
}

}  // namespace

float BoxTree::square_distance(const BoxF& a, const BoxF& b) {
    const auto gap = [](float a_min, float a_max, float b_min, float b_max) {
        return std::max({0.0f, b_min - a_max, a_min - b_max});
    };
    const float x = gap(a.min.x, a.max.x, b.min.x, b.max.x), y = gap(a.min.y, a.max.y, b.min.y, b.max.y),
                z = gap(a.min.z, a.max.z, b.min.z, b.max.z);
    return x * x + y * y + z * z;
}

BoxTree::BoxTree(std::span<const BoxF> boxes) {
    if (boxes.empty()) return;
    order_.resize(boxes.size());
    std::iota(order_.begin(), order_.end(), 0u);
    nodes_.reserve(2 * boxes.size() / kLeafItems + 2);
    nodes_.emplace_back();
    split(0, 0, static_cast<std::uint32_t>(boxes.size()), boxes);
}

/// Halves along the longest side: 64 levels are enough for any number of boxes.
void BoxTree::split(std::uint32_t node, std::uint32_t begin, std::uint32_t end, std::span<const BoxF> boxes) {
    BoxF all = boxes[order_[begin]];
    for (std::uint32_t i = begin; i < end; ++i) grow(all, boxes[order_[i]]);
    if (end - begin <= kLeafItems) {
        nodes_[node] = {all, begin, end - begin};
        return;
    }
    const Vec3f size = all.max - all.min;
    const auto axis = size.x >= size.y && size.x >= size.z ? &Vec3f::x
                      : size.y >= size.z                   ? &Vec3f::y
                                                           : &Vec3f::z;
    const std::uint32_t middle = begin + (end - begin) / 2;
    std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                     [&](std::uint32_t a, std::uint32_t b) {
                         const float ca = boxes[a].min.*axis + boxes[a].max.*axis,
                                     cb = boxes[b].min.*axis + boxes[b].max.*axis;
                         return ca != cb ? ca < cb : a < b;
                     });
    const auto first = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
    nodes_.emplace_back();
    nodes_[node] = {all, first, 0};
    split(first, begin, middle, boxes);
    split(first + 1, middle, end, boxes);
}

}  // namespace citysplat::sim
