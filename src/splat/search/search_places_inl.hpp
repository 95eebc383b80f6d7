// Compiled once per instruction set by neighbour_search.cpp, hence without include guard.
// How candidates and survivors are held: as 16-bit numbers when the group and its reach are small (nearly
// always), as floats otherwise. Both give the same neighbours and sums.
//
//   put            adds a candidate (or the lanes of a mask) relative to the corner of the group's box
//   end_candidates closes the list: scans read whole vectors, so what follows is far from everything
//   filter         keeps the candidates within sqrt(limit2) of a query, perhaps a few more; returns how many
//                  are within, exactly
//   measure        exact squared distances of the survivors in s2; behind the last as large as can be
//   sum            sums of the differences of the survivors within `within2`, exact
//   list           the survivors within `within2`: which points, how far and where; returns how many
#include "splat/search/search_gather_inl.hpp"

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

/// A query relative to the corner of its group's box.
struct QueryPlace {
    std::int32_t x, y, z;
};

inline void end_distances(Buffers& b) {
    for (std::size_t i = 0; i < kGroup; ++i)
        b.near_distance2.data()[b.survivors + i] = std::numeric_limits<std::int32_t>::max();
}

/// How many survivors are within sqrt(limit2).
HWY_INLINE std::int32_t count_within(const Buffers& b, std::int32_t limit2) {
    const Lanes32 di;
    const auto beyond = hn::Set(di, limit2 + 1);
    std::size_t n = 0;
    for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(di))
        n += hn::CountTrue(di, hn::Lt(hn::Load(di, b.near_distance2.data() + i), beyond));
    return static_cast<std::int32_t>(n);
}

/// The same for three limits at once: what takes time is waiting for the count.
struct ThreeLimits {
    std::int32_t limit2[3];
    std::int32_t count[3];
};
HWY_INLINE void count_within(const Buffers& b, ThreeLimits& t) {
    const Lanes32 di;
    const auto beyond0 = hn::Set(di, t.limit2[0] + 1), beyond1 = hn::Set(di, t.limit2[1] + 1),
               beyond2 = hn::Set(di, t.limit2[2] + 1);
    std::size_t n0 = 0, n1 = 0, n2 = 0;
    for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(di)) {
        const auto d2 = hn::Load(di, b.near_distance2.data() + i);
        n0 += hn::CountTrue(di, hn::Lt(d2, beyond0));
        n1 += hn::CountTrue(di, hn::Lt(d2, beyond1));
        n2 += hn::CountTrue(di, hn::Lt(d2, beyond2));
    }
    t.count[0] = static_cast<std::int32_t>(n0);
    t.count[1] = static_cast<std::int32_t>(n1);
    t.count[2] = static_cast<std::int32_t>(n2);
}

/// The largest squared distance of a survivor within sqrt(limit2).
HWY_INLINE std::uint32_t last_within(const Buffers& b, std::int32_t limit2) {
    const Lanes32 di;
    const auto beyond = hn::Set(di, limit2 + 1);
    auto last = hn::Zero(di);
    for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(di)) {
        const auto d2 = hn::Load(di, b.near_distance2.data() + i);
        last = hn::Max(last, hn::IfThenElseZero(hn::Lt(d2, beyond), d2));
    }
    return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(di, last)));
}

/// Where a list of neighbours is written.
struct ListColumns {
    std::uint32_t *point, *distance2;
    float *x, *y, *z;
};

/// Writes the survivors within sqrt(within2), and up to a vector more: get(i, number, x, y, z) has their
/// numbers and differences.
template <class Get>
HWY_INLINE std::size_t list_within(const Buffers& b, std::int32_t within2, const Get& get,
                                   const ListColumns& to) {
    const Lanes32 di;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    const hn::Rebind<float, Lanes32> df;
    const auto beyond = hn::Set(di, within2 + 1);
    std::size_t n = 0;
    for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(di)) {
        const auto d2 = hn::Load(di, b.near_distance2.data() + i);
        const Packer<Lanes32> pack(di, hn::Lt(d2, beyond));
        auto number = hn::Zero(du);
        auto x = hn::Zero(df), y = x, z = x;
        get(i, number, x, y, z);
        pack.store(du, number, to.point + n);
        pack.store(du, hn::BitCast(du, d2), to.distance2 + n);
        pack.store(df, x, to.x + n);
        pack.store(df, y, to.y + n);
        pack.store(df, z, to.z + n);
        n += pack.count;
    }
    return n;
}

/// Candidates are two lanes: (x, y) and (z, place in the list). Differences and their products fit what one
/// instruction multiplies and adds: distances and sums are exact integers at once.
struct NearPlaces {
    /// Extent of the box and radius together. Squares of differences stay below 2³¹, and so do sums of as
    /// many of them as a vector has lanes.
    static constexpr std::int32_t kMost = 11500;
    static constexpr std::size_t kMostCandidates = 1u << 16;

    static void put(std::int32_t x, std::int32_t y, std::int32_t z, Buffers& b) {
        b.candidate_xy.data()[b.candidates] = pair_of(x, y);
        b.candidate_z_place.data()[b.candidates] = pair_of(z, static_cast<std::int32_t>(b.candidates));
    }
    /// Six parameters: vectors of the machine cannot be members.
    template <class Pack, class V>
    static HWY_INLINE void put(const Pack& pack, V x, V y, V z, std::size_t n, Buffers& b) {
        const Lanes32 di;
        const auto low = hn::Set(di, kLowHalf);
        pack.store(di, hn::Or(hn::And(x, low), hn::ShiftLeft<16>(y)), b.candidate_xy.data() + n);
        const auto place = hn::ShiftLeft<16>(numbered_from(n));
        hn::StoreU(hn::Or(pack.front(di, hn::And(z, low)), place), di, b.candidate_z_place.data() + n);
    }
    static void end_candidates(Buffers& b) {
        b.reserve_candidates(b.candidates + kGroup);
        for (std::size_t i = 0; i < kGroup; ++i) {
            b.candidate_xy.data()[b.candidates + i] = pair_of(2 * kMost, 2 * kMost);
            b.candidate_z_place.data()[b.candidates + i] = 0;
        }
    }

    template <bool kWithPoints>
    static HWY_INLINE std::int32_t filter(const QueryPlace& q, std::int32_t limit2, Buffers& b) {
        const Lanes32 di;
        const auto qxy = hn::Set(di, pair_of(q.x, q.y)), qz = hn::Set(di, q.z);
        const auto low = hn::Set(di, kLowHalf), beyond = hn::Set(di, limit2 + 1);
        const std::int32_t *cxy = b.candidate_xy.data(), *czi = b.candidate_z_place.data();
        std::int32_t *sxy = b.near_xy.data(), *szi = b.near_z_place.data();
        std::size_t n = 0;
        for (std::size_t i = 0, end = b.candidates; i < end; i += hn::Lanes(di)) {
            const auto xy = subtract_pairs(di, hn::Load(di, cxy + i), qxy);
            const auto zi = subtract_pairs(di, hn::Load(di, czi + i), qz);
            const auto z = hn::And(zi, low);
            const auto d2 = add_products(di, z, z, add_products(di, xy, xy, hn::Zero(di)));
            const Packer<Lanes32> pack(di, hn::Lt(d2, beyond));
            pack.store(di, xy, sxy + n);
            pack.store(di, zi, szi + n);
            n += pack.count;
        }
        b.survivors = n;
        for (std::size_t i = 0; i < kGroup; i += hn::Lanes(di)) {
            hn::StoreU(hn::Zero(di), di, sxy + n + i);
            hn::StoreU(hn::Zero(di), di, szi + n + i);
        }
        return static_cast<std::int32_t>(n);
    }

    static HWY_INLINE void measure(Buffers& b) {
        const Lanes32 di;
        const auto low = hn::Set(di, kLowHalf);
        for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(di)) {
            const auto xy = hn::Load(di, b.near_xy.data() + i);
            const auto z = hn::And(hn::Load(di, b.near_z_place.data() + i), low);
            hn::Store(add_products(di, z, z, add_products(di, xy, xy, hn::Zero(di))), di,
                      b.near_distance2.data() + i);
        }
        end_distances(b);
    }

    static HWY_INLINE void sum(const Buffers& b, std::int32_t within2, Moments& m) {
        const Lanes32 di;
        const hn::Rebind<std::uint32_t, Lanes32> du;
        const std::size_t lanes = hn::Lanes(di);
        const auto low = hn::Set(di, kLowHalf), one = hn::Set(di, 1), beyond = hn::Set(di, within2 + 1);
        const std::int32_t *sxy = b.near_xy.data(), *szi = b.near_z_place.data(),
                           *s2 = b.near_distance2.data();
        // As many vectors as can be added without overflow, all lanes together.
        const auto whole = static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()) /
                           (static_cast<std::uint32_t>(lanes) * static_cast<std::uint32_t>(within2 + 1));
        const std::size_t block = lanes * std::max<std::size_t>(whole, 1);
        double sums[12] = {};
        for (std::size_t first = 0; first < b.survivors; first += block) {
            auto x = hn::Zero(di), y = x, z = x, xx = x, yy = x, zz = x, xy = x, xz = x, yz = x;
            for (std::size_t i = first, end = std::min(b.survivors, first + block); i < end; i += lanes) {
                const auto in = hn::VecFromMask(di, hn::Lt(hn::Load(di, s2 + i), beyond));
                const auto dxy = hn::And(hn::Load(di, sxy + i), in);
                // Each in the lower half of its lane, nothing in the upper.
                const auto dx = hn::And(dxy, low);
                const auto dy = hn::BitCast(di, hn::ShiftRight<16>(hn::BitCast(du, dxy)));
                const auto dz = hn::And(hn::And(hn::Load(di, szi + i), in), low);
                x = add_products(di, dx, one, x), xx = add_products(di, dx, dx, xx);
                y = add_products(di, dy, one, y), yy = add_products(di, dy, dy, yy);
                z = add_products(di, dz, one, z), zz = add_products(di, dz, dz, zz);
                xy = add_products(di, dx, dy, xy), xz = add_products(di, dx, dz, xz);
                yz = add_products(di, dy, dz, yz);
            }
            add_sums(di, x, y, z, xx, sums);
            add_sums(di, yy, zz, xy, xz, sums + 4);
            add_sums(di, yz, yz, yz, yz, sums + 8);
        }
        m.sum_x = sums[0], m.sum_y = sums[1], m.sum_z = sums[2];
        m.sum_xx = sums[3], m.sum_yy = sums[4], m.sum_zz = sums[5];
        m.sum_xy = sums[6], m.sum_xz = sums[7], m.sum_yz = sums[8];
    }

    static HWY_INLINE std::size_t list(const Buffers& b, std::int32_t within2, const ListColumns& to) {
        const Lanes32 di;
        const hn::Rebind<std::uint32_t, Lanes32> du;
        const hn::Rebind<float, Lanes32> df;
        const auto low = [&](auto v)
                             HWY_ATTR { return hn::ConvertTo(df, hn::ShiftRight<16>(hn::ShiftLeft<16>(v))); };
        const std::size_t n = list_within(
            b, within2,
            [&](std::size_t i, auto& number, auto& x, auto& y, auto& z) HWY_ATTR {
                const auto xy = hn::Load(di, b.near_xy.data() + i),
                           zi = hn::Load(di, b.near_z_place.data() + i);
                x = low(xy), y = hn::ConvertTo(df, hn::ShiftRight<16>(xy)), z = low(zi);
                number = hn::ShiftRight<16>(hn::BitCast(du, zi));
            },
            to);
        const std::uint32_t* ci = b.candidate_point.data();
        for (std::size_t i = 0; i < n; ++i) to.point[i] = ci[to.point[i]];
        return n;
    }
    static std::int64_t distance2(const Buffers& b, std::size_t candidate, const QueryPlace& q) {
        const std::int32_t xy = b.candidate_xy.data()[candidate], zi = b.candidate_z_place.data()[candidate];
        const std::int64_t dx = static_cast<std::int16_t>(xy & kLowHalf) - q.x, dy = (xy >> 16) - q.y,
                           dz = static_cast<std::int16_t>(zi & kLowHalf) - q.z;
        return dx * dx + dy * dy + dz * dz;
    }
};

/// Candidates are floats, exact up to 2²⁴ steps. Float distances are within a factor of 1 ± 2⁻²² of the exact
/// ones; sums are formed in double.
struct WidePlaces {
    static void put(std::int32_t x, std::int32_t y, std::int32_t z, Buffers& b) {
        b.candidate_x.data()[b.candidates] = static_cast<float>(x);
        b.candidate_y.data()[b.candidates] = static_cast<float>(y);
        b.candidate_z.data()[b.candidates] = static_cast<float>(z);
    }
    /// Six parameters: vectors of the machine cannot be members.
    template <class Pack, class V>
    static HWY_INLINE void put(const Pack& pack, V x, V y, V z, std::size_t n, Buffers& b) {
        const hn::CappedTag<float, kGroup> df;
        pack.store(df, hn::ConvertTo(df, x), b.candidate_x.data() + n);
        pack.store(df, hn::ConvertTo(df, y), b.candidate_y.data() + n);
        pack.store(df, hn::ConvertTo(df, z), b.candidate_z.data() + n);
    }
    static void end_candidates(Buffers& b) {
        b.reserve_candidates(b.candidates + kGroup);
        for (std::size_t i = 0; i < kGroup; ++i) {
            const std::size_t n = b.candidates + i;
            b.candidate_x.data()[n] = b.candidate_y.data()[n] = b.candidate_z.data()[n] = 1e15f;
            b.candidate_point.data()[n] = 0;
        }
    }

    template <bool kWithPoints>
    static HWY_INLINE std::int32_t filter(const QueryPlace& q, std::int32_t limit2, Buffers& b) {
        const hn::CappedTag<float, kGroup> df;
        const hn::Rebind<std::uint32_t, decltype(df)> du;
        const auto qx = hn::Set(df, static_cast<float>(q.x)), qy = hn::Set(df, static_cast<float>(q.y)),
                   qz = hn::Set(df, static_cast<float>(q.z));
        const auto limit = hn::Set(df, static_cast<float>(limit2) * (1.0f + 0x1.0p-19f) + 1.0f);
        const float *cx = b.candidate_x.data(), *cy = b.candidate_y.data(), *cz = b.candidate_z.data();
        float *sx = b.near_x.data(), *sy = b.near_y.data(), *sz = b.near_z.data();
        const std::uint32_t* ci = b.candidate_point.data();
        std::uint32_t* si = b.near_point.data();
        std::size_t n = 0;
        for (std::size_t i = 0, end = b.candidates; i < end; i += hn::Lanes(df)) {
            const auto dx = hn::Sub(hn::Load(df, cx + i), qx);
            const auto dy = hn::Sub(hn::Load(df, cy + i), qy);
            const auto dz = hn::Sub(hn::Load(df, cz + i), qz);
            const auto d2 = hn::Add(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), hn::Mul(dz, dz));
            const Packer<decltype(df)> pack(df, hn::Lt(d2, limit));
            pack.store(df, dx, sx + n);
            pack.store(df, dy, sy + n);
            pack.store(df, dz, sz + n);
            if (kWithPoints) pack.store(du, hn::Load(du, ci + i), si + n);
            n += pack.count;
        }
        b.survivors = n;
        measure_all(b);
        return count_within(b, limit2);
    }

    static HWY_INLINE void measure(Buffers&) {}  // filter did

    static HWY_INLINE void sum(const Buffers& b, std::int32_t within2, Moments& m);

    static HWY_INLINE std::size_t list(const Buffers& b, std::int32_t within2, const ListColumns& to) {
        const hn::Rebind<std::uint32_t, Lanes32> du;
        const hn::Rebind<float, Lanes32> df;
        return list_within(
            b, within2,
            [&](std::size_t i, auto& number, auto& x, auto& y, auto& z) HWY_ATTR {
                x = hn::Load(df, b.near_x.data() + i), y = hn::Load(df, b.near_y.data() + i);
                z = hn::Load(df, b.near_z.data() + i), number = hn::Load(du, b.near_point.data() + i);
            },
            to);
    }
    static std::int64_t distance2(const Buffers& b, std::size_t candidate, const QueryPlace& q) {
        const auto dx = static_cast<std::int64_t>(b.candidate_x.data()[candidate]) - q.x,
                   dy = static_cast<std::int64_t>(b.candidate_y.data()[candidate]) - q.y,
                   dz = static_cast<std::int64_t>(b.candidate_z.data()[candidate]) - q.z;
        return dx * dx + dy * dy + dz * dz;
    }

  private:
    static HWY_INLINE void measure_all(Buffers& b) {
        const hn::CappedTag<float, kGroup> df;
        const Lanes32 di;
        for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(df)) {
            const auto dx = hn::ConvertTo(di, hn::Load(df, b.near_x.data() + i));
            const auto dy = hn::ConvertTo(di, hn::Load(df, b.near_y.data() + i));
            const auto dz = hn::ConvertTo(di, hn::Load(df, b.near_z.data() + i));
            const auto d2 = hn::Add(hn::Add(hn::Mul(dx, dx), hn::Mul(dy, dy)), hn::Mul(dz, dz));
            hn::Store(d2, di, b.near_distance2.data() + i);
        }
        end_distances(b);
    }
};

HWY_INLINE void WidePlaces::sum(const Buffers& b, std::int32_t within2, Moments& m) {
    const hn::CappedTag<float, kGroup> df;
    const Lanes32 di;
    const auto beyond = hn::Set(di, within2 + 1);
    WholeSums sums;
    for (std::size_t i = 0; i < b.survivors; i += hn::Lanes(df)) {
        const auto in = hn::RebindMask(df, hn::Lt(hn::Load(di, b.near_distance2.data() + i), beyond));
        sums.add(hn::IfThenElseZero(in, hn::Load(df, b.near_x.data() + i)),
                 hn::IfThenElseZero(in, hn::Load(df, b.near_y.data() + i)),
                 hn::IfThenElseZero(in, hn::Load(df, b.near_z.data() + i)));
    }
    sums.add_to(m);
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::splat
HWY_AFTER_NAMESPACE();
