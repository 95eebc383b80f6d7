// Compiled once per instruction set by kernels.cpp, after facts_inl.hpp, hence without include guard.
// Discs and boxes of a tile from its columns.

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace citysplat::trace {
namespace HWY_NAMESPACE {

/// Larger than any coordinate, and small enough to be multiplied by a slope.
constexpr float kNowhere_m = 1e30f;

using Integers = hn::RebindToSigned<Floats>;

/// unpack_position() in metres: the operations of unpack_disc().
HWY_INLINE V unpack_metres(const std::uint32_t* from) {
    const auto steps =
        hn::ShiftRight<8>(hn::BitCast(Integers(), hn::ShiftLeft<8>(hn::LoadU(Numbers(), from))));
    return hn::Mul(hn::ConvertTo(Floats(), steps), set(1.0f / 8192.0f));
}
HWY_INLINE V unpack_small(const std::uint16_t* from) {
    return hn::ConvertTo(Floats(), hn::PromoteTo(Integers(), hn::LoadU(Halves(), from)));
}

/// unpack_normal(): its operations in its order.
HWY_INLINE void unpack_normals(const std::uint32_t* from, V (&normal)[3]) {
    const V one = set(1.0f), zero = hn::Zero(Floats());
    const auto packed = hn::LoadU(Numbers(), from);
    const auto low = hn::ShiftRight<16>(hn::BitCast(Integers(), hn::ShiftLeft<16>(packed)));
    const auto high = hn::ShiftRight<16>(hn::BitCast(Integers(), packed));
    const V u = hn::Mul(hn::ConvertTo(Floats(), low), set(1.0f / 32767.0f));
    const V v = hn::Mul(hn::ConvertTo(Floats(), high), set(1.0f / 32767.0f));
    const V abs_u = hn::Abs(u), abs_v = hn::Abs(v);
    const V z = hn::Sub(hn::Sub(one, abs_u), abs_v);
    // Times a sign, as there: a product with −1 is exact.
    const auto signed_like = [&](V size, V sign)
                                 HWY_ATTR { return hn::IfThenElse(hn::Lt(sign, zero), hn::Neg(size), size); };
    const M folded = hn::Lt(z, zero);
    const V x = hn::IfThenElse(folded, signed_like(hn::Sub(one, abs_v), u), u);
    const V y = hn::IfThenElse(folded, signed_like(hn::Sub(one, abs_u), v), v);
    const V length = hn::Sqrt(hn::Add(hn::Add(hn::Mul(x, x), hn::Mul(y, y)), hn::Mul(z, z)));
    const V inverse = hn::Div(one, length);
    normal[0] = hn::Mul(x, inverse);
    normal[1] = hn::Mul(y, inverse);
    normal[2] = hn::Mul(z, inverse);
}

HWY_INLINE void store_box(BoxNode& node, std::size_t child, const float (&low)[3][kWide],
                          const float (&high)[3][kWide]) {
    for (int x = 0; x < 3; ++x) {
        node.low[x][child] = least_of(low[x]);
        node.high[x][child] = largest_of(high[x]);
    }
}

HWY_INLINE void close_boxes(BoxNode& node) {
    std::fill_n(node.low[0], 3 * kWide, kNowhere_m);
    std::fill_n(node.high[0], 3 * kWide, -kNowhere_m);
}

/// Fills a block and puts its box into `node`.
HWY_INLINE void build_block(const BlockColumns& columns, float slack_m, DiscBlock& block, BoxNode& node,
                            std::size_t child) {
    BoxNode discs;
    for (unsigned i = 0; i < kWide; i += kStep) {
        const V centre[3] = {unpack_metres(columns.x + i), unpack_metres(columns.y + i),
                             unpack_metres(columns.z + i)};
        const V radius = hn::Mul(unpack_small(columns.radius + i), set(1.0f / 8192.0f));
        V normal[3], reach[3];
        unpack_normals(columns.normal + i, normal);
        reach_of(normal, radius, reach);
        const M exists = hn::Gt(radius, hn::Zero(Floats()));
        for (int x = 0; x < 3; ++x) {
            const V half = hn::Add(reach[x], set(slack_m));
            hn::Store(centre[x], Floats(), block.centre[x] + i);
            hn::Store(normal[x], Floats(), block.normal[x] + i);
            hn::Store(hn::IfThenElse(exists, hn::Sub(centre[x], half), set(kNowhere_m)), Floats(),
                      discs.low[x] + i);
            hn::Store(hn::IfThenElse(exists, hn::Add(centre[x], half), set(-kNowhere_m)), Floats(),
                      discs.high[x] + i);
        }
        hn::Store(hn::Mul(radius, radius), Floats(), block.radius_squared + i);
        hn::Store(hn::PromoteTo(Numbers(), hn::LoadU(Halves(), columns.label + i)), Numbers(),
                  block.label + i);
    }
    store_box(node, child, discs.low, discs.high);
}

void build(const SplatColumns& columns, std::size_t splats, float slack_m, WideTileArrays& tile) {
    std::size_t level = tile.blocks.size();
    if (level == 0) return;
    BoxNode* nodes = tile.nodes.data();
    const std::uint64_t corner = id_of_corner(columns.origin);
    for (std::size_t b = 0; b < level; ++b) {
        BoxNode& node = nodes[b / kWide];
        if (b % kWide == 0) close_boxes(node);
        const std::size_t first = b * kWide;
        if (splats - first >= kWide) {
            const BlockColumns block{columns.x + first,         columns.y + first,
                                     columns.z + first,         columns.normal + first,
                                     columns.radius + first,    columns.label + first,
                                     columns.intensity + first, columns.incidence + first};
            build_block(block, slack_m, tile.blocks[b], node, b % kWide);
            build_facts(block, corner, &tile.facts[first]);
        } else {
            const LastBlock last(columns, first, splats - first);
            build_block(last.view(), slack_m, tile.blocks[b], node, b % kWide);
            SplatFacts facts[kWide];
            build_facts(last.view(), corner, facts);
            std::copy_n(facts, splats - first, &tile.facts[first]);
        }
    }
    for (level = (level + kWide - 1) / kWide; level > 1; level = (level + kWide - 1) / kWide) {
        BoxNode* above = nodes + level;
        for (std::size_t i = 0; i < level; ++i) {
            if (i % kWide == 0) close_boxes(above[i / kWide]);
            store_box(above[i / kWide], i % kWide, nodes[i].low, nodes[i].high);
        }
        nodes = above;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::trace
HWY_AFTER_NAMESPACE();
