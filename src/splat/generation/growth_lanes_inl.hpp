// Compiled once per instruction set by growth_lanes.cpp, hence without include guard.
#include "splat/generation/growth_lanes.hpp"
#include "splat/search/search_lanes_inl.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

/// Fetches what growth asks about the neighbours.
inline void fetch(const GrowthSite& site, const Neighbours& n, GrowthColumns& c) {
    for (auto* column : {&c.first_word, &c.second_word, &c.member2, &c.stop2}) column->reserve(n.size(), 0);
    std::int32_t *first = c.first_word.data(), *second = c.second_word.data();
    for (std::size_t i = 0; i < n.size(); ++i) {
        const SurfaceBrief brief = site.brief[n.point[i]];
        first[i] = static_cast<std::int32_t>(brief.first_word());
        second[i] = static_cast<std::int32_t>(brief.second_word());
    }
}

/// Six parameters: vectors of the machine cannot be members.
template <class V>
HWY_INLINE V dot3(V ax, V ay, V az, V bx, V by, V bz) {
    return hn::Add(hn::Add(hn::Mul(ax, bx), hn::Mul(ay, by)), hn::Mul(az, bz));
}

/// Squared distances from `i` on; as far as can be behind the last.
template <class DI>
HWY_INLINE auto distances_from(DI di, const Neighbours& n, std::size_t i) {
    const hn::Rebind<std::uint32_t, DI> du;
    const auto d2 = hn::BitCast(di, hn::LoadU(du, n.distance2 + i));
    return hn::IfThenElse(hn::FirstN(di, n.size() - i), d2, hn::Set(di, Stop::kNever));
}

/// Of several neighbours at the distance of the stop, the first by rank is the one; those before it stay.
inline void settle_stop(const GrowthSite& site, const Neighbours& n, const Stop& stop, GrowthColumns& c) {
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    for (std::size_t i = 0; i < n.size(); ++i)
        if (c.stop2.data()[i] == stop.distance2) first = std::min(first, site.rank[n.point[i]]);
    for (std::size_t i = 0; i < n.size(); ++i)
        if (c.member2.data()[i] == stop.distance2 && site.rank[n.point[i]] >= first)
            c.member2.data()[i] = Stop::kNever;
}

inline Stop find_stop(const GrowthSite& site, SurfaceBrief seed, const Neighbours& n, const StopRule& rule,
                      GrowthColumns& c) {
    const auto bit = [](std::uint32_t b) { return static_cast<std::int32_t>(b); };
    constexpr std::int32_t kKind = ~0xffff;
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    fetch(site, n, c);
    const auto nx = hn::Set(df, rule.normal.x), ny = hn::Set(df, rule.normal.y),
               nz = hn::Set(df, rule.normal.z);
    const auto error = hn::Set(df, rule.error),
               least_cosine = hn::Set(df, rule.least_cosine * SurfaceBrief::kNormalScale);
    const auto kind = hn::Set(di, static_cast<std::int32_t>(seed.second_word()) & kKind),
               kind_bits = hn::Set(di, kKind);
    const auto oriented_bit = hn::Set(di, bit(SurfaceBrief::kOriented)),
               outlier_bit = hn::Set(di, bit(SurfaceBrief::kOutlier));
    const auto seed_oriented =
        hn::And(oriented_bit, hn::Set(di, static_cast<std::int32_t>(seed.first_word())));
    const auto never = hn::Set(di, Stop::kNever), none = hn::Zero(di);
    auto nearest2 = never;
    for (std::size_t i = 0; i < n.size(); i += hn::Lanes(di)) {
        const auto first = hn::Load(di, c.first_word.data() + i),
                   second = hn::Load(di, c.second_word.data() + i);
        const auto cosine = dot3(nx, ny, nz, hn::ConvertTo(df, hn::ShiftRight<17>(hn::ShiftLeft<17>(first))),
                                 hn::ConvertTo(df, hn::ShiftRight<17>(hn::ShiftLeft<2>(first))),
                                 hn::ConvertTo(df, hn::ShiftRight<17>(hn::ShiftLeft<17>(second))));
        const auto height =
            dot3(nx, ny, nz, hn::LoadU(df, n.x + i), hn::LoadU(df, n.y + i), hn::LoadU(df, n.z + i));
        const auto d2 = distances_from(di, n, i);
        const auto oriented = hn::RebindMask(df, hn::Eq(hn::And(first, seed_oriented), oriented_bit));
        const auto smooth = hn::Gt(hn::IfThenElse(oriented, cosine, hn::Abs(cosine)), least_cosine);
        const auto close = hn::Le(hn::Abs(height), error);
        const auto alike = hn::Eq(hn::And(second, kind_bits), kind);
        const auto itself = hn::Eq(d2, none);
        const auto outlier = hn::AndNot(itself, hn::Eq(hn::And(first, outlier_bit), outlier_bit));
        const auto goes_on = hn::Or(hn::And(hn::RebindMask(di, hn::And(smooth, close)), alike), itself);
        const auto member2 = hn::IfThenElse(outlier, never, d2);
        const auto stop2 = hn::IfThenElse(goes_on, never, member2);
        hn::Store(member2, di, c.member2.data() + i);
        hn::Store(stop2, di, c.stop2.data() + i);
        nearest2 = hn::Min(nearest2, stop2);
    }
    const Stop stop{hn::GetLane(hn::MinOfLanes(di, nearest2))};
    if (stop.exists()) settle_stop(site, n, stop, c);
    return stop;
}

inline MemberSums find_members(const GrowthSite& site, const Neighbours& n, const Stop& stop,
                               const GrowthColumns& c, PointList& members) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    const auto beyond = hn::Set(di, stop.exists() ? stop.distance2 + 1 : Stop::kNever);
    auto farthest2 = hn::Set(di, -1);
    std::uint32_t* const out = members.room(n.size());
    std::size_t count = 0;
    WholeSums sums;
    for (std::size_t i = 0; i < n.size(); i += hn::Lanes(di)) {
        const auto d2 = hn::Load(di, c.member2.data() + i);
        const auto in = hn::Lt(d2, beyond);
        const auto in_df = hn::RebindMask(df, in);
        sums.add(hn::IfThenElseZero(in_df, hn::LoadU(df, n.x + i)),
                 hn::IfThenElseZero(in_df, hn::LoadU(df, n.y + i)),
                 hn::IfThenElseZero(in_df, hn::LoadU(df, n.z + i)));
        farthest2 = hn::IfThenElse(in, hn::Max(farthest2, d2), farthest2);
        const Packer<Lanes32> pack(di, in);
        pack.store(du, hn::LoadU(du, n.point.data() + i), out + count);
        count += pack.count;
    }
    members.resize(members.size() + count);
    MemberSums result{};
    sums.add_to(result.moments);
    result.moments.count = static_cast<std::int32_t>(count);
    // The last of several equally far is the last by rank.
    const std::int32_t last2 = hn::GetLane(hn::MaxOfLanes(di, farthest2));
    std::uint32_t last_rank = 0;
    for (std::size_t i = 0; i < n.size(); ++i) {
        if (c.member2.data()[i] != last2 || site.rank[n.point[i]] < last_rank) continue;
        last_rank = site.rank[n.point[i]];
        result.last = n.offset(i);
    }
    return result;
}

inline void suppress(const Neighbours& n, const Stop& stop, const SuppressedPart& part,
                     PointList& suppressed) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    const auto end2 = hn::Set(di, std::min(stop.distance2, part.reach2 + 1));
    const auto cx = hn::Set(df, part.centre.x), cy = hn::Set(df, part.centre.y),
               cz = hn::Set(df, part.centre.z);
    const auto nx = hn::Set(df, part.normal.x), ny = hn::Set(df, part.normal.y),
               nz = hn::Set(df, part.normal.z);
    const auto inside2 = hn::Set(df, part.inside2);
    std::uint32_t* const out = suppressed.room(n.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < n.size(); i += hn::Lanes(di)) {
        const auto near = hn::Lt(distances_from(di, n, i), end2);
        const auto x = hn::Sub(hn::LoadU(df, n.x + i), cx), y = hn::Sub(hn::LoadU(df, n.y + i), cy),
                   z = hn::Sub(hn::LoadU(df, n.z + i), cz);
        const auto height = dot3(nx, ny, nz, x, y, z);
        const auto off2 = hn::Sub(dot3(x, y, z, x, y, z), hn::Mul(height, height));
        const Packer<Lanes32> pack(di, hn::And(near, hn::RebindMask(di, hn::Le(off2, inside2))));
        pack.store(du, hn::LoadU(du, n.point.data() + i), out + count);
        count += pack.count;
    }
    suppressed.resize(suppressed.size() + count);
}

/// Two bits at a time from the highest: counting is faster than sorting, for there is nothing to guess. What
/// follows the `count` values up to a whole vector must be the largest there is.
inline std::uint16_t lower_median(const std::uint16_t* values, std::size_t count) {
    const hn::CappedTag<std::uint16_t, 2 * kGroup> du;
    const std::size_t before = (count - 1) / 2;
    std::uint32_t median = 0;
    for (int shift = 14; shift >= 0; shift -= 2) {
        const auto limit = [&](std::uint32_t quarter) HWY_ATTR {
            return hn::Set(du, static_cast<std::uint16_t>(median + (quarter << shift)));
        };
        const auto limit1 = limit(1), limit2 = limit(2), limit3 = limit(3);
        std::size_t below1 = 0, below2 = 0, below3 = 0;
        for (std::size_t i = 0; i < count; i += hn::Lanes(du)) {
            const auto v = hn::Load(du, values + i);
            below1 += hn::CountTrue(du, hn::Lt(v, limit1));
            below2 += hn::CountTrue(du, hn::Lt(v, limit2));
            below3 += hn::CountTrue(du, hn::Lt(v, limit3));
        }
        const std::uint32_t quarters = (below1 <= before) + (below2 <= before) + (below3 <= before);
        median += quarters << shift;
    }
    return static_cast<std::uint16_t>(median);
}

inline Observations observe(std::span<const PointAttributes> attributes,
                            std::span<const std::uint32_t> members, Vec3f normal, GrowthColumns& c) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const std::size_t count = members.size();
    for (auto* column : {&c.to_sensor_x, &c.to_sensor_y, &c.to_sensor_z, &c.range}) column->reserve(count, 0);
    c.intensity.reserve(count, 0);
    float *x = c.to_sensor_x.data(), *y = c.to_sensor_y.data(), *z = c.to_sensor_z.data(),
          *range = c.range.data();
    std::uint16_t* intensity = c.intensity.data();
    for (std::size_t i = 0; i < count; ++i) {
        const PointAttributes& a = attributes[members[i]];
        intensity[i] = a.intensity;
        x[i] = a.sensor_dx, y[i] = a.sensor_dy, z[i] = a.sensor_dz;
        range[i] = a.has_sensor() ? a.range : 0.0f;
    }
    std::fill_n(intensity + count, 2 * kGroup, std::uint16_t{0xffff});
    std::fill_n(range + count, kGroup, 0.0f);
    const auto nx = hn::Set(df, normal.x), ny = hn::Set(df, normal.y), nz = hn::Set(df, normal.z);
    const auto half = hn::Set(df, 0.5f), whole = hn::Set(df, 65536.0f), one = hn::Set(df, 1.0f);
    auto seen = hn::Zero(di), ranges = seen, cosines = seen;
    for (std::size_t i = 0; i < count; i += hn::Lanes(di)) {
        const auto r = hn::Load(df, range + i);
        const auto has_sensor = hn::Gt(r, hn::Zero(df));
        const auto side =
            hn::Abs(dot3(nx, ny, nz, hn::Load(df, x + i), hn::Load(df, y + i), hn::Load(df, z + i)));
        const auto cosine = hn::Div(side, hn::IfThenElse(has_sensor, r, one));
        const auto parts = hn::ConvertTo(di, hn::Add(hn::Mul(cosine, whole), half));
        seen = hn::Sub(seen, hn::VecFromMask(di, hn::RebindMask(di, has_sensor)));
        ranges = hn::Add(ranges, hn::ConvertTo(di, r));
        cosines = hn::Add(cosines, hn::IfThenElseZero(hn::RebindMask(di, has_sensor), parts));
    }
    const auto total = [&](auto v) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(di, v)); };
    return {lower_median(intensity, count), total(seen), total(ranges), total(cosines)};
}

}  // namespace HWY_NAMESPACE
}  // namespace citysplat::splat
HWY_AFTER_NAMESPACE();
