// Compiled once per instruction set by kernels.cpp, after lanes_inl.hpp, hence without include guard.
// A group through the hierarchy of a tile.

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// A node or leaf that is still to be visited.
struct Waiting {
    float distance_m;
    std::uint32_t level, index;
};

/// Farthest first: the nearest is taken from the end.
HWY_INLINE void sort_farthest_first(Waiting* items, unsigned count) {
    for (unsigned i = 1; i < count; ++i) {
        const Waiting item = items[i];
        unsigned at = i;
        for (; at > 0 && items[at - 1].distance_m < item.distance_m; --at) items[at] = items[at - 1];
        items[at] = item;
    }
}

HWY_INLINE float farthest(const RayGroup& group) {
    float far = largest_of(group.far_of);
    for (unsigned i = kWide; i < kGroupPackets; i += kWide) far = std::max(far, largest_of(group.far_of + i));
    return far;
}

HWY_INLINE void limit_group(RayGroup& group) {
    group.far_m = farthest(group);
    group.whole.limit[0] = group.far_m * group.along_max;
}

/// Puts the children of a node that the group may meet into `items`, farthest first.
HWY_INLINE unsigned list_children(const RayGroup& group, const BoxNode& node, Waiting parent,
                                  Waiting* items) {
    alignas(64) float distance_m[kWide];
    unsigned count = 0;
    for (unsigned met = children_met(group, node, distance_m); met != 0; met &= met - 1) {
        const auto child = static_cast<unsigned>(__builtin_ctz(met));
        items[count++] = {distance_m[child], parent.level - 1, parent.index * kWide + child};
    }
    sort_farthest_first(items, count);
    return count;
}

/// So many leaves are on their way from memory while one is looked at.
constexpr unsigned kLeavesAhead = 2;

HWY_INLINE void prefetch_node(const WideTile& tile, const Waiting& next) {
    const auto* lines = reinterpret_cast<const char*>(tile.level[next.level - 1] + next.index);
    for (unsigned i = 0; i < sizeof(BoxNode) / 64; ++i) __builtin_prefetch(lines + 64 * i);
}

/// Visits what the group may meet, nearest first. Levels are counted from the leaves, which have level 0;
/// tile.level[i] are the nodes of level i + 1.
template <class Leaves>
void walk(const WideTile& tile, RayGroup& group, Leaves leaves) {
    Waiting stack[WideTile::kMostLevels * kWide];
    unsigned waiting = 0;
    stack[waiting++] = {0, tile.levels, 0};
    while (waiting > 0) {
        const Waiting item = stack[--waiting];
        if (item.distance_m > group.far_m) continue;
        if (item.level < tile.levels &&
            packets_at(group, tile.level[item.level][item.index / kWide], item.index % kWide) == 0)
            continue;
        const BoxNode& node = tile.level[item.level - 1][item.index];
        if (item.level > 1) {
            waiting += list_children(group, node, item, stack + waiting);
            continue;
        }
        if (waiting > 0) prefetch_node(tile, stack[waiting - 1]);
        Waiting list[kWide];
        unsigned count = list_children(group, node, item, list);
        for (unsigned i = 0; i < std::min(count, kLeavesAhead); ++i)
            leaves.prefetch(list[count - 1 - i].index);
        for (; count > 0; --count) {
            const Waiting& leaf = list[count - 1];
            if (leaf.distance_m > group.far_m) break;
            if (count > kLeavesAhead) leaves.prefetch(list[count - 1 - kLeavesAhead].index);
            const std::uint32_t packets = packets_at(group, node, leaf.index % kWide);
            if (packets != 0 && leaves.meet(leaf.index, packets, node)) limit_group(group);
        }
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
