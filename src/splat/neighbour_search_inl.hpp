// Compiled once per instruction set by neighbour_search.cpp, hence without include guard.
#include "splat/neighbour_search.hpp"
#include "splat/search_buffers.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Buffers = SearchScratch::Buffers;
using Node = NeighbourIndex::Node;

constexpr std::size_t kGroup = 16;
/// A group whose candidates outnumber this is cut in two: scanning a long list for each query costs more than
/// gathering two shorter ones.
constexpr std::size_t kManyCandidates = 640;
/// Boxes wider than this (512 m) are cut too: places relative to the box must stay exact in float.
constexpr std::int32_t kWideBox = 1 << 22;
/// Float distances are within a factor of 1 ± 2⁻²² of the exact ones: of all points with an exact squared
/// distance up to threshold · kTrusted, none is missed by a float comparison with the threshold.
constexpr float kTrusted = 1.0f - 0x1.0p-20f;

/// Moves the lanes of a mask to the front of vectors. Instruction sets without a native compress look the
/// permutation up once for all columns. (Highway 1.0's own Compress copies its table to the stack on each
/// call when GCC compiles it for AVX2.)
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
constexpr std::size_t kPackLanes = HWY_TARGET == HWY_AVX2 ? 8 : 4;
struct PackTable {
    alignas(64) std::int32_t lane[1u << kPackLanes][kPackLanes];
};
constexpr PackTable make_pack_table() {
    PackTable t{};
    for (std::size_t mask = 0; mask < (1u << kPackLanes); ++mask) {
        std::size_t n = 0;
        for (std::size_t i = 0; i < kPackLanes; ++i)
            if (mask >> i & 1u) t.lane[mask][n++] = static_cast<std::int32_t>(i);
    }
    return t;
}
static constexpr PackTable kPackTable = make_pack_table();

template <class D>
struct Packer {
    HWY_INLINE Packer(D d, hn::Mask<D> mask) {
        std::uint8_t bits[8];
        hn::StoreMaskBits(d, mask, bits);
        const std::size_t row = bits[0] & ((1u << kPackLanes) - 1);
        count = static_cast<std::size_t>(__builtin_popcount(static_cast<unsigned>(row)));
        lanes = hn::SetTableIndices(d, kPackTable.lane[row]);
    }
    template <class DV, class V>
    HWY_INLINE void store(DV dv, V v, hn::TFromD<DV>* to) const {
        const D d;
        hn::StoreU(hn::BitCast(dv, hn::TableLookupLanes(hn::BitCast(d, v), lanes)), dv, to);
    }
    std::size_t count;
    decltype(hn::SetTableIndices(D(), kPackTable.lane[0])) lanes;
};
#else
template <class D>
struct Packer {
    HWY_INLINE Packer(D d, hn::Mask<D> m) : count(hn::CountTrue(d, m)), mask(m) {}
    template <class DV, class V>
    HWY_INLINE void store(DV dv, V v, hn::TFromD<DV>* to) const {
        hn::StoreU(hn::Compress(v, hn::RebindMask(dv, mask)), dv, to);
    }
    std::size_t count;
    hn::Mask<D> mask;
};
#endif

struct QueryBox {
    std::int32_t min_x, min_y, min_z, max_x, max_y, max_z;
};

/// Squared distances of sixteen boxes (or points) from the query box, lane by lane.
template <class DI>
HWY_INLINE auto distance2_to_box(DI di, const std::int32_t* min_x, const std::int32_t* min_y,
                                 const std::int32_t* min_z, const std::int32_t* max_x,
                                 const std::int32_t* max_y, const std::int32_t* max_z, const QueryBox& b) {
    const hn::Rebind<float, DI> df;
    const auto zero = hn::Zero(di);
    const auto gap = [&](const std::int32_t* low, const std::int32_t* high, std::int32_t box_low,
                         std::int32_t box_high) HWY_ATTR {
        const auto before = hn::Sub(hn::Set(di, box_low), hn::LoadU(di, high));
        const auto after = hn::Sub(hn::LoadU(di, low), hn::Set(di, box_high));
        return hn::ConvertTo(df, hn::Max(zero, hn::Max(before, after)));
    };
    const auto dx = gap(min_x, max_x, b.min_x, b.max_x);
    const auto dy = gap(min_y, max_y, b.min_y, b.max_y);
    const auto dz = gap(min_z, max_z, b.min_z, b.max_z);
    return hn::Add(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), hn::Mul(dz, dz));
}

/// Bit mask of the children of a node closer than sqrt(radius2) to the box.
HWY_INLINE unsigned children_within(const Node& node, const QueryBox& box, float radius2) {
    const hn::CappedTag<std::int32_t, kGroup> di;
    const hn::Rebind<float, decltype(di)> df;
    unsigned mask = 0;
    for (std::size_t c = 0; c < kGroup; c += hn::Lanes(di)) {
        const auto d2 = distance2_to_box(di, node.min_x + c, node.min_y + c, node.min_z + c, node.max_x + c,
                                         node.max_y + c, node.max_z + c, box);
        std::uint8_t bits[8] = {};
        hn::StoreMaskBits(df, hn::Lt(d2, hn::Set(df, radius2)), bits);
        mask |= static_cast<unsigned>(bits[0] | bits[1] << 8) << c;
    }
    return mask;
}

/// Appends the points of a leaf that are within the radius of the box to the candidates.
HWY_INLINE void gather_leaf(const NeighbourIndex& index, std::size_t leaf, const QueryBox& box, float radius2,
                            Buffers& b) {
    const hn::CappedTag<std::int32_t, kGroup> di;
    const hn::Rebind<float, decltype(di)> df;
    const hn::Rebind<std::uint32_t, decltype(di)> du;
    const std::size_t first = leaf * kGroup;
    const std::int32_t *x = index.x().data() + first, *y = index.y().data() + first,
                       *z = index.z().data() + first;
    b.reserve_candidates(b.candidates + kGroup);
    if (first + kGroup <= index.size()) {
        for (std::size_t c = 0; c < kGroup; c += hn::Lanes(di)) {
            const auto d2 = distance2_to_box(di, x + c, y + c, z + c, x + c, y + c, z + c, box);
            const auto near = hn::Lt(d2, hn::Set(df, radius2));
            const auto place = [&](const std::int32_t* from, std::int32_t origin) HWY_ATTR {
                return hn::ConvertTo(df, hn::Sub(hn::LoadU(di, from + c), hn::Set(di, origin)));
            };
            const Packer<decltype(df)> pack(df, near);
            pack.store(df, place(x, box.min_x), b.cx.data() + b.candidates);
            pack.store(df, place(y, box.min_y), b.cy.data() + b.candidates);
            pack.store(df, place(z, box.min_z), b.cz.data() + b.candidates);
            pack.store(du, hn::Iota(du, static_cast<std::uint32_t>(first + c)), b.ci.data() + b.candidates);
            b.candidates += pack.count;
        }
        return;
    }
    for (std::size_t i = 0; first + i < index.size(); ++i) {
        b.cx.data()[b.candidates] = static_cast<float>(x[i] - box.min_x);
        b.cy.data()[b.candidates] = static_cast<float>(y[i] - box.min_y);
        b.cz.data()[b.candidates] = static_cast<float>(z[i] - box.min_z);
        b.ci.data()[b.candidates] = static_cast<std::uint32_t>(first + i);
        ++b.candidates;
    }
}

/// Collects every point whose float distance to the box is below sqrt(radius2), and perhaps a few more. Gives
/// up once there are more than `limit`.
inline void gather(const NeighbourIndex& index, const QueryBox& box, float radius2, std::size_t limit,
                   Buffers& b) {
    struct Pending {
        std::uint32_t node, level;
    };
    std::array<Pending, 160> pending;
    std::size_t depth = 0;
    pending[depth++] = {0, static_cast<std::uint32_t>(index.levels().size() - 1)};
    b.candidates = 0;
    while (depth > 0 && b.candidates <= limit) {
        const Pending p = pending[--depth];
        unsigned mask = children_within(index.levels()[p.level][p.node], box, radius2);
        for (; mask != 0; mask &= mask - 1) {
            const auto child =
                p.node * static_cast<std::uint32_t>(kGroup) + static_cast<std::uint32_t>(__builtin_ctz(mask));
            if (p.level > 0)
                pending[depth++] = {child, p.level - 1};
            else
                gather_leaf(index, child, box, radius2, b);
        }
    }
    // Scans read whole vectors: what follows the last candidate is far from everything.
    b.reserve_candidates(b.candidates + kGroup);
    for (std::size_t i = 0; i < kGroup; ++i) {
        b.cx.data()[b.candidates + i] = b.cy.data()[b.candidates + i] = b.cz.data()[b.candidates + i] = 1e15f;
        b.ci.data()[b.candidates + i] = 0;
    }
}

/// A query relative to the candidates' box.
struct QueryPlace {
    float x, y, z;
};

/// Keeps the candidates whose float distance is below sqrt(threshold), with their differences.
template <bool kWithPoints>
HWY_INLINE void filter(const QueryPlace& q, float threshold, Buffers& b) {
    const hn::CappedTag<float, kGroup> df;
    const hn::Rebind<std::uint32_t, decltype(df)> du;
    const std::size_t lanes = hn::Lanes(df);
    const auto qx = hn::Set(df, q.x), qy = hn::Set(df, q.y), qz = hn::Set(df, q.z);
    const auto limit = hn::Set(df, threshold);
    const float *cx = b.cx.data(), *cy = b.cy.data(), *cz = b.cz.data();
    float *sx = b.sx.data(), *sy = b.sy.data(), *sz = b.sz.data();
    const std::uint32_t* ci = b.ci.data();
    std::uint32_t* si = b.si.data();
    const std::size_t candidates = b.candidates;
    std::size_t n = 0;
    for (std::size_t i = 0; i < candidates; i += lanes) {
        const auto dx = hn::Sub(hn::Load(df, cx + i), qx);
        const auto dy = hn::Sub(hn::Load(df, cy + i), qy);
        const auto dz = hn::Sub(hn::Load(df, cz + i), qz);
        const auto d2 = hn::Add(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), hn::Mul(dz, dz));
        const auto near = hn::Lt(d2, limit);
        const Packer<decltype(df)> pack(df, near);
        pack.store(df, dx, sx + n);
        pack.store(df, dy, sy + n);
        pack.store(df, dz, sz + n);
        if (kWithPoints) pack.store(du, hn::Load(du, ci + i), si + n);
        n += pack.count;
    }
    b.survivors = n;
}

/// Exact squared distances of the survivors. Behind the last one they are as large as can be.
HWY_INLINE void measure(Buffers& b) {
    const hn::CappedTag<float, kGroup> df;
    const hn::Rebind<std::int32_t, decltype(df)> di;
    const std::size_t lanes = hn::Lanes(df);
    for (std::size_t i = 0; i < b.survivors; i += lanes) {
        const auto dx = hn::ConvertTo(di, hn::Load(df, b.sx.data() + i));
        const auto dy = hn::ConvertTo(di, hn::Load(df, b.sy.data() + i));
        const auto dz = hn::ConvertTo(di, hn::Load(df, b.sz.data() + i));
        hn::Store(hn::Add(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), hn::Mul(dz, dz)), di, b.s2.data() + i);
    }
    for (std::size_t i = 0; i < kGroup; ++i)
        b.s2.data()[b.survivors + i] = std::numeric_limits<std::int32_t>::max();
}

HWY_INLINE std::int32_t count_within(const Buffers& b, std::int32_t limit2) {
    const hn::CappedTag<std::int32_t, kGroup> di;
    const std::size_t lanes = hn::Lanes(di);
    const auto beyond = hn::Set(di, limit2 + 1);
    std::size_t n = 0;
    for (std::size_t i = 0; i < b.survivors; i += lanes)
        n += hn::CountTrue(di, hn::Lt(hn::Load(di, b.s2.data() + i), beyond));
    return static_cast<std::int32_t>(n);
}

/// Which survivors are the neighbours: all within `within2`, and `ties` of those at exactly `tie2`.
struct Cut {
    std::int32_t within2, tie2, ties;
};

/// The k nearest of the survivors. Requires more than k of them within `high2`.
inline Cut cut_at(const Buffers& b, std::int32_t k, std::int32_t high2, std::int32_t high_count) {
    std::int32_t low2 = -1, low_count = 0;
    for (int pass = 0; high2 - low2 > 1; ++pass) {
        // Points on a surface: their number grows with the square of the distance.
        const float share =
            (static_cast<float>(k - low_count) + 0.5f) / static_cast<float>(high_count - low_count);
        std::int32_t middle2 = low2 + (high2 - low2) / 2;
        if (pass < 10) middle2 = low2 + static_cast<std::int32_t>(static_cast<float>(high2 - low2) * share);
        middle2 = std::clamp(middle2, low2 + 1, high2 - 1);
        const std::int32_t n = count_within(b, middle2);
        if (n == k) return {middle2, 0, 0};
        if (n < k)
            low2 = middle2, low_count = n;
        else
            high2 = middle2, high_count = n;
    }
    return {low2, high2, k - low_count};
}

/// What a query found; false when the candidates do not reach far enough to tell.
template <bool kWithPoints>
HWY_INLINE bool select(const QueryPlace& q, const Reach& reach, float gathered2, float& last_distance2,
                       Buffers& b, Cut& cut) {
    const std::int32_t ball2 = reach.radius * reach.radius;
    const float whole_ball = static_cast<float>(ball2) * (1.0f + 0x1.0p-19f) + 1.0f;
    const float most = std::min(gathered2, whole_ball);
    float threshold = std::min(most, last_distance2 > 0 ? last_distance2 * 1.35f + 1.0f : most);
    for (;;) {
        filter<kWithPoints>(q, threshold, b);
        const bool all = threshold >= whole_ball;
        const std::int32_t trusted2 = all ? ball2 : static_cast<std::int32_t>(threshold * kTrusted);
        if (static_cast<std::int32_t>(b.survivors) >= reach.k || all) {
            measure(b);
            const std::int32_t high2 = std::min(ball2, trusted2);
            const std::int32_t n = count_within(b, high2);
            if (n == reach.k || (n < reach.k && high2 == ball2)) {
                cut = {high2, 0, 0};
                break;
            }
            if (n > reach.k) {
                cut = cut_at(b, reach.k, high2, n);
                break;
            }
        }
        if (threshold >= most) return false;
        const auto found = static_cast<float>(std::max<std::size_t>(b.survivors, 1));
        const float growth = std::clamp(1.3f * static_cast<float>(reach.k) / found, 1.3f, 4.0f);
        threshold = std::min(most, threshold * growth);
    }
    last_distance2 = static_cast<float>(std::max(cut.tie2, cut.within2));
    return true;
}

/// Of the candidates at exactly `cut.tie2`, the first `cut.ties` by rank.
inline std::vector<std::uint32_t> settle_ties(const NeighbourIndex& index, const QueryPlace& q,
                                              const Cut& cut, const Buffers& b) {
    std::vector<std::uint32_t> tied;
    for (std::size_t i = 0; i < b.candidates; ++i) {
        const double dx = double{b.cx.data()[i]} - q.x, dy = double{b.cy.data()[i]} - q.y,
                     dz = double{b.cz.data()[i]} - q.z;
        if (dx * dx + dy * dy + dz * dz == cut.tie2) tied.push_back(b.ci.data()[i]);
    }
    const auto by_rank = [&](std::uint32_t a, std::uint32_t c) { return index.rank()[a] < index.rank()[c]; };
    std::nth_element(tied.begin(), tied.begin() + (cut.ties - 1), tied.end(), by_rank);
    tied.resize(static_cast<std::size_t>(cut.ties));
    return tied;
}

#if HWY_TARGET == HWY_SCALAR
template <class DF>
using DoublesOf = hn::Rebind<double, DF>;
template <class DD, class V>
HWY_INLINE auto lower_doubles(DD dd, V v) {
    return hn::PromoteTo(dd, v);
}
template <class DD, class V>
HWY_INLINE auto upper_doubles(DD dd, V) {
    return hn::Zero(dd);
}
#else
template <class DF>
using DoublesOf = hn::Rebind<double, hn::Half<DF>>;
template <class DD, class V>
HWY_INLINE auto lower_doubles(DD dd, V v) {
    return hn::PromoteTo(dd, hn::LowerHalf(hn::Rebind<float, DD>(), v));
}
template <class DD, class V>
HWY_INLINE auto upper_doubles(DD dd, V v) {
    return hn::PromoteTo(dd, hn::UpperHalf(hn::Rebind<float, DD>(), v));
}
#endif

/// Adds up differences as doubles: whole numbers below 2⁵³, so any order gives the same sums.
inline Moments sum_up(const NeighbourIndex& index, std::uint32_t point, const QueryPlace& q,
                      const Reach& reach, const Cut& cut, const Buffers& b) {
    const hn::CappedTag<float, kGroup> df;
    const hn::Rebind<std::int32_t, decltype(df)> di;
    const DoublesOf<decltype(df)> dd;
    const auto beyond = hn::Set(di, cut.within2 + 1);
    auto x = hn::Zero(dd), y = x, z = x, xx = x, yy = x, zz = x, xy = x, xz = x, yz = x;
    auto last = hn::Zero(di);
    std::size_t count = 0;
    // As many vectors as can be added in float without rounding: each term is at most within2.
    const std::size_t lanes = hn::Lanes(df);
    const std::int32_t exact = (1 << 24) / std::max(cut.within2, 1);
    const std::size_t block = lanes * static_cast<std::size_t>(std::max(exact, 1));
    const bool in_float = exact >= 2;
    for (std::size_t first = 0; first < b.survivors; first += block) {
        const std::size_t end = std::min(b.survivors, first + block);
        auto fx = hn::Zero(df), fy = fx, fz = fx, fxx = fx, fyy = fx, fzz = fx, fxy = fx, fxz = fx, fyz = fx;
        for (std::size_t i = first; i < end; i += lanes) {
            const auto d2 = hn::Load(di, b.s2.data() + i);
            const auto in = hn::Lt(d2, beyond);
            const auto in_df = hn::RebindMask(df, in);
            count += hn::CountTrue(di, in);
            last = hn::Max(last, hn::IfThenElseZero(in, d2));
            const auto dx = hn::IfThenElseZero(in_df, hn::Load(df, b.sx.data() + i));
            const auto dy = hn::IfThenElseZero(in_df, hn::Load(df, b.sy.data() + i));
            const auto dz = hn::IfThenElseZero(in_df, hn::Load(df, b.sz.data() + i));
            fx = hn::Add(fx, dx), fy = hn::Add(fy, dy), fz = hn::Add(fz, dz);
            if (!in_float) continue;
            fxx = hn::Add(fxx, hn::Mul(dx, dx)), fyy = hn::Add(fyy, hn::Mul(dy, dy));
            fzz = hn::Add(fzz, hn::Mul(dz, dz)), fxy = hn::Add(fxy, hn::Mul(dx, dy));
            fxz = hn::Add(fxz, hn::Mul(dx, dz)), fyz = hn::Add(fyz, hn::Mul(dy, dz));
        }
        const auto add = [&](auto& sum, auto v) HWY_ATTR {
            sum = hn::Add(sum, lower_doubles(dd, v));
            if (lanes > 1) sum = hn::Add(sum, upper_doubles(dd, v));
        };
        const auto add_product = [&](auto& sum, auto v, auto w) HWY_ATTR {
            sum = hn::Add(sum, hn::Mul(lower_doubles(dd, v), lower_doubles(dd, w)));
            if (lanes > 1) sum = hn::Add(sum, hn::Mul(upper_doubles(dd, v), upper_doubles(dd, w)));
        };
        add(x, fx), add(y, fy), add(z, fz);
        if (in_float) {
            add(xx, fxx), add(yy, fyy), add(zz, fzz), add(xy, fxy), add(xz, fxz), add(yz, fyz);
        } else {  // one vector a block: fx, fy, fz are the differences themselves
            add_product(xx, fx, fx), add_product(yy, fy, fy), add_product(zz, fz, fz);
            add_product(xy, fx, fy), add_product(xz, fx, fz), add_product(yz, fy, fz);
        }
    }
    const auto total = [&](auto v) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(dd, v)); };
    Moments m{total(x),
              total(y),
              total(z),
              total(xx),
              total(yy),
              total(zz),
              total(xy),
              total(xz),
              total(yz),
              static_cast<std::int32_t>(count),
              static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(di, last)))};
    if (cut.ties > 0) {
        for (const std::uint32_t t : settle_ties(index, q, cut, b)) {
            const double dx = index.x()[t] - index.x()[point], dy = index.y()[t] - index.y()[point],
                         dz = index.z()[t] - index.z()[point];
            m.sum_x += dx, m.sum_y += dy, m.sum_z += dz;
            m.sum_xx += dx * dx, m.sum_yy += dy * dy, m.sum_zz += dz * dz;
            m.sum_xy += dx * dy, m.sum_xz += dx * dz, m.sum_yz += dy * dz;
        }
        m.count += cut.ties;
        m.reach2 = static_cast<std::uint32_t>(cut.tie2);
    }
    if (m.count < reach.k) m.reach2 = static_cast<std::uint32_t>(reach.radius * reach.radius);
    return m;
}

/// Appends the neighbours of query `slot`. `used` is how much of the columns is taken.
inline void list_up(const NeighbourIndex& index, const QueryPlace& q, std::size_t slot, const Reach& reach,
                    const Cut& cut, const Buffers& b, NeighbourLists& out, std::size_t& used) {
    const hn::CappedTag<std::int32_t, kGroup> di;
    const hn::Rebind<std::uint32_t, decltype(di)> du;
    const hn::Rebind<float, decltype(di)> df;
    const std::size_t begin = used, room = used + b.survivors + 2 * kGroup;
    if (out.point.size() < room) out.point.resize(2 * room), out.distance2.resize(2 * room);
    const auto beyond = hn::Set(di, cut.within2 + 1);
    auto last = hn::Zero(di);
    for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(di)) {
        const auto d2 = hn::Load(di, b.s2.data() + i);
        const auto in = hn::Lt(d2, beyond);
        const Packer<decltype(df)> pack(df, hn::RebindMask(df, in));
        pack.store(du, hn::Load(du, b.si.data() + i), out.point.data() + used);
        pack.store(du, hn::BitCast(du, d2), out.distance2.data() + used);
        last = hn::Max(last, hn::IfThenElseZero(in, d2));
        used += pack.count;
    }
    auto last2 = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(di, last)));
    if (cut.ties > 0) {
        last2 = static_cast<std::uint32_t>(cut.tie2);
        const std::vector<std::uint32_t> tied = settle_ties(index, q, cut, b);
        out.point.resize(std::max(out.point.size(), used + tied.size()));
        out.distance2.resize(out.point.size());
        for (const std::uint32_t t : tied) out.point[used] = t, out.distance2[used++] = last2;
    }
    const std::size_t count = used - begin;
    out.begin[slot] = static_cast<std::uint32_t>(begin);
    out.count[slot] = static_cast<std::uint32_t>(count);
    const bool full = count >= static_cast<std::size_t>(reach.k);
    out.reach2[slot] = full ? last2 : static_cast<std::uint32_t>(reach.radius * reach.radius);
}

/// Runs `found(slot, point, place, reach, cut)` for each query of the batch, with the survivors in `b`.
template <bool kWithPoints, class Found>
void run(const NeighbourIndex& index, const QueryBatch& batch, Buffers& b, const Found& found) {
    struct Work {
        std::size_t first;  // queries [first, first + 16) of the batch
        unsigned todo;      // which of them
        float radius2;      // gather this far
        float too_much2;    // known to deliver too many candidates
    };
    std::vector<Work> work;
    const auto reach_of = [&](std::uint32_t point) -> const Reach& {
        return batch.reaches[batch.reach_class[point]];
    };
    for (std::size_t first = 0; first < batch.points.size(); first += kGroup) {
        const std::size_t n = std::min(kGroup, batch.points.size() - first);
        float radius2 = 0;
        unsigned classes = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint8_t c = batch.reach_class[batch.points[first + i]];
            classes |= 1u << c;
            const auto r = static_cast<float>(batch.reaches[c].radius);
            const float ball2 = r * r * (1.0f + 0x1.0p-18f) + 2.0f;
            radius2 = std::max(radius2, std::min(ball2, b.group_distance2[c] * 1.25f + 2.0f));
        }
        for (std::size_t c = 0; c < Buffers::kMaxClasses; ++c)
            if (classes >> c & 1u) b.group_distance2[c] = 0;
        work.push_back({first, (1u << n) - 1, radius2, 1e30f});
        while (!work.empty()) {
            const Work w = work.back();
            work.pop_back();
            QueryBox box{NeighbourIndex::kNowhere,  NeighbourIndex::kNowhere,  NeighbourIndex::kNowhere,
                         -NeighbourIndex::kNowhere, -NeighbourIndex::kNowhere, -NeighbourIndex::kNowhere};
            for (unsigned t = w.todo; t != 0; t &= t - 1) {
                const std::uint32_t p = batch.points[w.first + static_cast<std::size_t>(__builtin_ctz(t))];
                const std::int32_t x = index.x()[p], y = index.y()[p], z = index.z()[p];
                box.min_x = std::min(box.min_x, x), box.max_x = std::max(box.max_x, x);
                box.min_y = std::min(box.min_y, y), box.max_y = std::max(box.max_y, y);
                box.min_z = std::min(box.min_z, z), box.max_z = std::max(box.max_z, z);
            }
            const int queries = __builtin_popcount(w.todo);
            const bool wide = box.max_x - box.min_x > kWideBox || box.max_y - box.min_y > kWideBox ||
                              box.max_z - box.min_z > kWideBox;
            if (!wide || queries == 1) {
                const bool narrowing = w.too_much2 - w.radius2 > 1.0f && w.radius2 > 4.0f;
                const std::size_t limit = queries > 1 ? kManyCandidates
                                          : narrowing ? 8 * kManyCandidates
                                                      : std::numeric_limits<std::size_t>::max();
                gather(index, box, w.radius2, limit, b);
                if (b.candidates > limit && queries == 1) {
                    work.push_back({w.first, w.todo, w.radius2 * 0.3f, w.radius2});
                    continue;
                }
            }
            if (queries > 1 && (wide || b.candidates > kManyCandidates)) {
                unsigned half = 0, rest = w.todo;
                for (int i = 0; i < queries / 2; ++i) half |= rest & (~rest + 1), rest &= rest - 1;
                work.push_back({w.first, rest, w.radius2, w.too_much2});
                work.push_back({w.first, half, w.radius2, w.too_much2});
                continue;
            }
            unsigned failed = 0;
            for (unsigned t = w.todo; t != 0; t &= t - 1) {
                const std::size_t slot = w.first + static_cast<std::size_t>(__builtin_ctz(t));
                const std::uint32_t p = batch.points[slot];
                const QueryPlace place{static_cast<float>(index.x()[p] - box.min_x),
                                       static_cast<float>(index.y()[p] - box.min_y),
                                       static_cast<float>(index.z()[p] - box.min_z)};
                const Reach& reach = reach_of(p);
                float& last = b.last_distance2[batch.reach_class[p]];
                Cut cut;
                if (select<kWithPoints>(place, reach, w.radius2, last, b, cut)) {
                    float& group2 = b.group_distance2[batch.reach_class[p]];
                    group2 = std::max(group2, last);
                    found(slot, p, place, reach, cut);
                } else {
                    failed |= t & (~t + 1);
                }
            }
            if (failed != 0) {
                float wider2 = w.radius2 * 2.0f + 4.0f;
                if (wider2 >= w.too_much2) wider2 = 0.5f * (w.radius2 + w.too_much2);
                work.push_back({w.first, failed, wider2, w.too_much2});
            }
        }
    }
}

inline void search_moments(const NeighbourIndex& index, const QueryBatch& batch, std::span<Moments> out,
                           Buffers& b) {
    run<false>(index, batch, b,
               [&](std::size_t slot, std::uint32_t point, const QueryPlace& place, const Reach& reach,
                   const Cut& cut) { out[slot] = sum_up(index, point, place, reach, cut, b); });
}

inline void search_lists(const NeighbourIndex& index, const QueryBatch& batch, NeighbourLists& out,
                         Buffers& b) {
    const std::size_t n = batch.points.size();
    out.begin.assign(n, 0), out.count.assign(n, 0), out.reach2.assign(n, 0);
    std::size_t used = 0;
    run<true>(index, batch, b,
              [&](std::size_t slot, std::uint32_t, const QueryPlace& place, const Reach& reach,
                  const Cut& cut) { list_up(index, place, slot, reach, cut, b, out, used); });
    out.point.resize(used), out.distance2.resize(used);
}

inline const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::splat
HWY_AFTER_NAMESPACE();
