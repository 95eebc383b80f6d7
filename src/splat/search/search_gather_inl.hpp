// Compiled once per instruction set by neighbour_search.cpp, hence without include guard.
// From the index to candidates: the leaves around a run of queries, and of these the points around a group.
#include "splat/search/neighbour_search.hpp"
#include "splat/search/search_buffers.hpp"
#include "splat/search/search_lanes_inl.hpp"

#include <algorithm>
#include <array>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

using Buffers = SearchScratch::Buffers;
using Node = NeighbourIndex::Node;

struct QueryBox {
    std::int32_t min_x = NeighbourIndex::kNowhere, min_y = min_x, min_z = min_x;
    std::int32_t max_x = -NeighbourIndex::kNowhere, max_y = max_x, max_z = max_x;

    void add(const NeighbourIndex& index, std::uint32_t p) {
        const std::int32_t x = index.x()[p], y = index.y()[p], z = index.z()[p];
        min_x = std::min(min_x, x), min_y = std::min(min_y, y), min_z = std::min(min_z, z);
        max_x = std::max(max_x, x), max_y = std::max(max_y, y), max_z = std::max(max_z, z);
    }
    /// The float distance of a point is below sqrt(radius2); the same arithmetic as that of vectors.
    bool within(std::int32_t x, std::int32_t y, std::int32_t z, float radius2) const {
        const auto dx = static_cast<float>(x - std::clamp(x, min_x, max_x)),
                   dy = static_cast<float>(y - std::clamp(y, min_y, max_y)),
                   dz = static_cast<float>(z - std::clamp(z, min_z, max_z));
        return dx * dx + dy * dy + dz * dz < radius2;
    }
    std::int32_t extent() const { return std::max({max_x - min_x, max_y - min_y, max_z - min_z}); }
};

/// Squared distances of boxes from the query box, lane by lane.
struct BoxColumns {
    const std::int32_t *min_x, *min_y, *min_z, *max_x, *max_y, *max_z;
};
template <class DI>
HWY_INLINE auto distance2_to_boxes(DI di, const BoxColumns& c, std::size_t at, const QueryBox& b) {
    const hn::Rebind<float, DI> df;
    const auto gap = [&](const std::int32_t* low, const std::int32_t* high, std::int32_t box_low,
                         std::int32_t box_high) HWY_ATTR {
        const auto before = hn::Sub(hn::Set(di, box_low), hn::LoadU(di, high + at));
        const auto after = hn::Sub(hn::LoadU(di, low + at), hn::Set(di, box_high));
        return hn::ConvertTo(df, hn::Max(hn::Zero(di), hn::Max(before, after)));
    };
    const auto dx = gap(c.min_x, c.max_x, b.min_x, b.max_x);
    const auto dy = gap(c.min_y, c.max_y, b.min_y, b.max_y);
    const auto dz = gap(c.min_z, c.max_z, b.min_z, b.max_z);
    return hn::Add(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), hn::Mul(dz, dz));
}

inline BoxColumns columns_of(const Node& n) { return {n.min_x, n.min_y, n.min_z, n.max_x, n.max_y, n.max_z}; }

/// Visits every node of the lowest level that has leaves within sqrt(radius2) of the box: visit(node number)
/// returns false to stop.
template <class Visit>
HWY_INLINE void visit_lowest_nodes(const NeighbourIndex& index, const QueryBox& box, float radius2,
                                   const Visit& visit) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    struct Pending {
        std::uint32_t node, level;
    };
    std::array<Pending, 160> pending;
    std::size_t depth = 0;
    pending[depth++] = {0, static_cast<std::uint32_t>(index.levels().size() - 1)};
    while (depth > 0) {
        const Pending p = pending[--depth];
        if (p.level == 0) {
            if (!visit(p.node)) return;
            continue;
        }
        const BoxColumns boxes = columns_of(index.levels()[p.level][p.node]);
        for (std::size_t c = 0; c < kGroup; c += hn::Lanes(di)) {
            const auto near = hn::Lt(distance2_to_boxes(di, boxes, c, box), hn::Set(df, radius2));
            for (unsigned mask = mask_bits(df, near); mask != 0; mask &= mask - 1) {
                const auto child = c + static_cast<std::size_t>(__builtin_ctz(mask));
                pending[depth++] = {static_cast<std::uint32_t>(p.node * kGroup + child), p.level - 1};
            }
        }
    }
}

/// Lists the leaves within sqrt(radius2) of the box; false when there are more than kMaxLeaves.
inline bool list_leaves(const NeighbourIndex& index, const QueryBox& box, float radius2, Buffers& b) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    b.leaves = 0;
    visit_lowest_nodes(index, box, radius2, [&](std::uint32_t node) HWY_ATTR {
        const BoxColumns boxes = columns_of(index.levels()[0][node]);
        for (std::size_t c = 0; c < kGroup; c += hn::Lanes(di)) {
            const auto near = hn::Lt(distance2_to_boxes(di, boxes, c, box), hn::Set(df, radius2));
            const Packer<decltype(df)> pack(df, near);
            const std::size_t n = b.leaves;
            pack.store(di, hn::LoadU(di, boxes.min_x + c), b.leaf_min_x + n);
            pack.store(di, hn::LoadU(di, boxes.min_y + c), b.leaf_min_y + n);
            pack.store(di, hn::LoadU(di, boxes.min_z + c), b.leaf_min_z + n);
            pack.store(di, hn::LoadU(di, boxes.max_x + c), b.leaf_max_x + n);
            pack.store(di, hn::LoadU(di, boxes.max_y + c), b.leaf_max_y + n);
            pack.store(di, hn::LoadU(di, boxes.max_z + c), b.leaf_max_z + n);
            pack.store(du, hn::BitCast(du, numbered_from(node * kGroup + c)), b.leaf + n);
            b.leaves = n + pack.count;
        }
        return b.leaves <= Buffers::kMaxLeaves;
    });
    for (std::size_t i = 0; i < kGroup; ++i) {
        const std::size_t n = b.leaves + i;
        b.leaf_min_x[n] = b.leaf_min_y[n] = b.leaf_min_z[n] = NeighbourIndex::kNowhere;
        b.leaf_max_x[n] = b.leaf_max_y[n] = b.leaf_max_z[n] = NeighbourIndex::kNowhere;
    }
    return b.leaves <= Buffers::kMaxLeaves;
}

/// Appends the points of a leaf that are within the radius of the box to the candidates.
template <class Places>
HWY_INLINE void gather_leaf(const NeighbourIndex& index, std::size_t leaf, const QueryBox& box, float radius2,
                            Buffers& b) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    const std::size_t first = leaf * kGroup;
    const std::int32_t *x = index.x().data() + first, *y = index.y().data() + first,
                       *z = index.z().data() + first;
    b.reserve_candidates(b.candidates + kGroup);
    if (first + kGroup > index.size()) {
        for (std::size_t i = 0; first + i < index.size(); ++i) {
            if (!box.within(x[i], y[i], z[i], radius2)) continue;
            Places::put(x[i] - box.min_x, y[i] - box.min_y, z[i] - box.min_z, b);
            b.candidate_point.data()[b.candidates++] = static_cast<std::uint32_t>(first + i);
        }
        return;
    }
    const auto origin_x = hn::Set(di, box.min_x), origin_y = hn::Set(di, box.min_y),
               origin_z = hn::Set(di, box.min_z);
    const auto size_x = hn::Set(di, box.max_x - box.min_x), size_y = hn::Set(di, box.max_y - box.min_y),
               size_z = hn::Set(di, box.max_z - box.min_z);
    const auto gap = [&](auto v, auto size) HWY_ATTR {
        return hn::ConvertTo(df, hn::Sub(v, hn::Min(hn::Max(v, hn::Zero(di)), size)));
    };
    std::size_t n = b.candidates;
    for (std::size_t c = 0; c < kGroup; c += hn::Lanes(di)) {
        const auto px = hn::Sub(hn::LoadU(di, x + c), origin_x), py = hn::Sub(hn::LoadU(di, y + c), origin_y),
                   pz = hn::Sub(hn::LoadU(di, z + c), origin_z);
        const auto dx = gap(px, size_x), dy = gap(py, size_y), dz = gap(pz, size_z);
        const auto d2 = hn::Add(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), hn::Mul(dz, dz));
        const Packer<decltype(df)> pack(df, hn::Lt(d2, hn::Set(df, radius2)));
        Places::put(pack, px, py, pz, n, b);
        pack.store(du, hn::BitCast(du, numbered_from(first + c)), b.candidate_point.data() + n);
        n += pack.count;
    }
    b.candidates = n;
}

/// Collects every point whose float distance to the box is below sqrt(radius2), and perhaps a few more, from
/// the listed leaves (`listed`) or from the whole index. Gives up once there are more than `limit`.
struct GatherTask {
    const QueryBox& box;
    float radius2;
    bool listed;
    std::size_t limit;
};
template <class Places>
void gather(const NeighbourIndex& index, const GatherTask& task, Buffers& b) {
    // Named one by one: clang 14 does not let lambdas use structured bindings.
    const QueryBox& box = task.box;
    const float radius2 = task.radius2;
    const std::size_t limit = task.limit;
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    b.candidates = 0;
    const auto from_boxes = [&](const BoxColumns& boxes, std::size_t at, const auto& leaf_of) HWY_ATTR {
        const auto near = hn::Lt(distance2_to_boxes(di, boxes, at, box), hn::Set(df, radius2));
        for (unsigned mask = mask_bits(df, near); mask != 0; mask &= mask - 1)
            gather_leaf<Places>(index, leaf_of(at + static_cast<std::size_t>(__builtin_ctz(mask))), box,
                                radius2, b);
    };
    if (task.listed) {
        const BoxColumns boxes{b.leaf_min_x, b.leaf_min_y, b.leaf_min_z,
                               b.leaf_max_x, b.leaf_max_y, b.leaf_max_z};
        for (std::size_t i = 0; i < b.leaves && b.candidates <= limit; i += hn::Lanes(di))
            from_boxes(boxes, i, [&](std::size_t n) { return std::size_t{b.leaf[n]}; });
    } else {
        visit_lowest_nodes(index, box, radius2, [&](std::uint32_t node) HWY_ATTR {
            const BoxColumns boxes = columns_of(index.levels()[0][node]);
            for (std::size_t c = 0; c < kGroup && b.candidates <= limit; c += hn::Lanes(di))
                from_boxes(boxes, c, [&](std::size_t n) { return node * kGroup + n; });
            return b.candidates <= limit;
        });
    }
    Places::end_candidates(b);
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::splat
HWY_AFTER_NAMESPACE();
