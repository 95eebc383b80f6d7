// Compiled once per instruction set by growth_lanes.cpp, hence without include guard.
#include "splat/growth_lanes.hpp"
#include "splat/search_lanes_inl.hpp"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

constexpr std::int32_t kKindBits = 0xffff;
constexpr int kFlagShift = 16;

inline std::int32_t word_of(const SurfacePoint& p) {
    return static_cast<std::int32_t>(std::uint32_t{p.kind} | std::uint32_t{p.flags} << kFlagShift);
}

/// Copies the neighbours into the columns, and up to a vector of outliers behind them.
inline void fill_columns(std::span<const SurfacePoint> points, const SurfacePoint& seed,
                         const Neighbourhood& n, NeighbourColumns& c) {
    const std::size_t count = n.point.size();
    c.count = count;
    for (auto* column : {&c.x, &c.y, &c.z, &c.normal_x, &c.normal_y, &c.normal_z}) column->reserve(count, 0);
    for (auto* column : {&c.distance2, &c.member2, &c.stop2, &c.rank, &c.kind_and_flags})
        column->reserve(count, 0);
    c.point.reserve(count, 0);
    float *x = c.x.data(), *y = c.y.data(), *z = c.z.data();
    float *normal_x = c.normal_x.data(), *normal_y = c.normal_y.data(), *normal_z = c.normal_z.data();
    std::int32_t *rank = c.rank.data(), *word = c.kind_and_flags.data(), *distance2 = c.distance2.data();
    std::uint32_t* point = c.point.data();
    for (std::size_t i = 0; i < count; ++i) {
        const SurfacePoint& p = points[n.point[i]];
        x[i] = static_cast<float>(p.x - seed.x);
        y[i] = static_cast<float>(p.y - seed.y);
        z[i] = static_cast<float>(p.z - seed.z);
        normal_x[i] = p.normal.x, normal_y[i] = p.normal.y, normal_z[i] = p.normal.z;
        rank[i] = static_cast<std::int32_t>(p.rank);
        word[i] = word_of(p);
        distance2[i] = static_cast<std::int32_t>(n.distance2[i]);
        point[i] = n.point[i];
    }
    for (std::size_t i = count; i < count + kGroup; ++i) {
        x[i] = y[i] = z[i] = normal_x[i] = normal_y[i] = normal_z[i] = 0;
        rank[i] = 0, point[i] = 0;
        word[i] = SurfacePoint::kOutlier << kFlagShift;
        distance2[i] = Stop::kNever;
    }
}

template <class V>
HWY_INLINE V dot3(V ax, V ay, V az, V bx, V by, V bz) {
    return hn::Add(hn::Add(hn::Mul(ax, bx), hn::Mul(ay, by)), hn::Mul(az, bz));
}

/// Of the columns' entries whose `distance2` is `wanted`, the least (or largest) rank; there is one.
template <class Better>
std::size_t settle_tie(const NeighbourColumns& c, const std::int32_t* distance2, std::int32_t wanted,
                       const Better& better) {
    std::size_t best = c.count;
    for (std::size_t i = 0; i < c.count; ++i)
        if (distance2[i] == wanted && (best == c.count || better(c.rank.data()[i], c.rank.data()[best])))
            best = i;
    return best;
}

inline Stop find_stop(std::span<const SurfacePoint> points, std::uint32_t seed, const Neighbourhood& n,
                      const StopRule& rule, NeighbourColumns& c) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const SurfacePoint& s = points[seed];
    fill_columns(points, s, n, c);
    const auto nx = hn::Set(df, s.normal.x), ny = hn::Set(df, s.normal.y), nz = hn::Set(df, s.normal.z);
    const auto error = hn::Set(df, rule.error), least_cosine = hn::Set(df, rule.least_cosine);
    const auto word = hn::Set(di, word_of(s)), kind_bits = hn::Set(di, kKindBits);
    const auto oriented_bit = hn::Set(di, SurfacePoint::kOriented << kFlagShift);
    const auto outlier_bit = hn::Set(di, SurfacePoint::kOutlier << kFlagShift);
    const auto never = hn::Set(di, Stop::kNever), none = hn::Zero(di);
    auto nearest2 = never;
    for (std::size_t i = 0; i < c.count; i += hn::Lanes(di)) {
        const auto cosine = dot3(nx, ny, nz, hn::Load(df, c.normal_x.data() + i),
                                 hn::Load(df, c.normal_y.data() + i), hn::Load(df, c.normal_z.data() + i));
        const auto height = dot3(nx, ny, nz, hn::Load(df, c.x.data() + i), hn::Load(df, c.y.data() + i),
                                 hn::Load(df, c.z.data() + i));
        const auto its = hn::Load(di, c.kind_and_flags.data() + i), d2 = hn::Load(di, c.distance2.data() + i);
        const auto oriented =
            hn::RebindMask(df, hn::Eq(hn::And(hn::And(its, word), oriented_bit), oriented_bit));
        const auto smooth = hn::Gt(hn::IfThenElse(oriented, cosine, hn::Abs(cosine)), least_cosine);
        const auto close = hn::Le(hn::Abs(height), error);
        const auto alike = hn::Eq(hn::And(hn::Xor(its, word), kind_bits), none);
        const auto itself = hn::Eq(d2, none);
        const auto outlier = hn::AndNot(itself, hn::Eq(hn::And(its, outlier_bit), outlier_bit));
        const auto goes_on = hn::Or(hn::And(hn::RebindMask(di, hn::And(smooth, close)), alike), itself);
        const auto member2 = hn::IfThenElse(outlier, never, d2);
        const auto stop2 = hn::IfThenElse(goes_on, never, member2);
        hn::Store(member2, di, c.member2.data() + i);
        hn::Store(stop2, di, c.stop2.data() + i);
        nearest2 = hn::Min(nearest2, stop2);
    }
    Stop stop{hn::GetLane(hn::MinOfLanes(di, nearest2)), 0};
    if (stop.exists())
        stop.rank = c.rank.data()[settle_tie(c, c.stop2.data(), stop.distance2, std::less<>())];
    return stop;
}

inline MemberSums find_members(NeighbourColumns& c, const Stop& stop, std::vector<std::uint32_t>& members) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    const auto stop2 = hn::Set(di, stop.distance2), stop_rank = hn::Set(di, stop.rank);
    const auto nowhere = hn::Set(di, -1);
    members.resize(c.count + kGroup);
    std::size_t count = 0;
    auto farthest2 = nowhere;
    WholeSums sums;
    for (std::size_t i = 0; i < c.count; i += hn::Lanes(di)) {
        const auto d2 = hn::Load(di, c.member2.data() + i);
        const auto before = hn::Lt(hn::Load(di, c.rank.data() + i), stop_rank);
        const auto in = hn::Or(hn::Lt(d2, stop2), hn::And(hn::Eq(d2, stop2), before));
        const auto in_df = hn::RebindMask(df, in);
        sums.add(hn::IfThenElseZero(in_df, hn::Load(df, c.x.data() + i)),
                 hn::IfThenElseZero(in_df, hn::Load(df, c.y.data() + i)),
                 hn::IfThenElseZero(in_df, hn::Load(df, c.z.data() + i)));
        const auto member2 = hn::IfThenElse(in, d2, nowhere);
        hn::Store(member2, di, c.stop2.data() + i);  // whose turn is over
        farthest2 = hn::Max(farthest2, member2);
        const Packer<Lanes32> pack(di, in);
        pack.store(du, hn::Load(du, c.point.data() + i), members.data() + count);
        count += pack.count;
    }
    members.resize(count);
    MemberSums result{};
    sums.add_to(result.moments);
    result.moments.count = static_cast<std::int32_t>(count);
    const std::int32_t last2 = hn::GetLane(hn::MaxOfLanes(di, farthest2));
    if (const std::size_t last = settle_tie(c, c.stop2.data(), last2, std::greater<>()); last2 >= 0)
        result.last = {static_cast<double>(c.x.data()[last]), static_cast<double>(c.y.data()[last]),
                       static_cast<double>(c.z.data()[last])};
    return result;
}

inline void suppress(NeighbourColumns& c, const Stop& stop, const SuppressedPart& part,
                     std::vector<std::uint32_t>& suppressed) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    const std::size_t begin = suppressed.size();
    const auto end2 = hn::Set(di, std::min(stop.distance2, part.reach2 + 1));
    const auto cx = hn::Set(df, part.centre.x), cy = hn::Set(df, part.centre.y),
               cz = hn::Set(df, part.centre.z);
    const auto nx = hn::Set(df, part.normal.x), ny = hn::Set(df, part.normal.y),
               nz = hn::Set(df, part.normal.z);
    const auto inside2 = hn::Set(df, part.inside2);
    suppressed.resize(begin + c.count + kGroup);
    std::uint32_t* out = suppressed.data() + begin;
    for (std::size_t i = 0; i < c.count; i += hn::Lanes(di)) {
        const auto near = hn::Lt(hn::Load(di, c.distance2.data() + i), end2);
        const auto x = hn::Sub(hn::Load(df, c.x.data() + i), cx),
                   y = hn::Sub(hn::Load(df, c.y.data() + i), cy),
                   z = hn::Sub(hn::Load(df, c.z.data() + i), cz);
        const auto height = dot3(nx, ny, nz, x, y, z);
        const auto off2 = hn::Sub(dot3(x, y, z, x, y, z), hn::Mul(height, height));
        const Packer<Lanes32> pack(di, hn::And(near, hn::RebindMask(di, hn::Le(off2, inside2))));
        pack.store(du, hn::Load(du, c.point.data() + i), out);
        out += pack.count;
    }
    suppressed.resize(static_cast<std::size_t>(out - suppressed.data()));
}

/// Bit by bit from the highest: counting is faster than sorting, for there is nothing to guess. What follows
/// the `count` values up to a whole vector must be the largest there is.
inline std::uint16_t lower_median(const std::uint16_t* values, std::size_t count) {
    const hn::CappedTag<std::uint16_t, 2 * kGroup> du;
    const std::size_t before = (count - 1) / 2;
    std::uint32_t median = 0;
    for (std::uint32_t bit = 1u << 15; bit != 0; bit >>= 1) {
        const auto limit = hn::Set(du, static_cast<std::uint16_t>(median + bit));
        std::size_t below = 0;
        for (std::size_t i = 0; i < count; i += hn::Lanes(du))
            below += hn::CountTrue(du, hn::Lt(hn::Load(du, values + i), limit));
        if (below <= before) median += bit;
    }
    return static_cast<std::uint16_t>(median);
}

inline Observations observe(std::span<const PointAttributes> attributes,
                            std::span<const std::uint32_t> members, Vec3f normal, NeighbourColumns& c) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const std::size_t count = members.size();
    for (auto* column : {&c.x, &c.y, &c.z, &c.normal_x}) column->reserve(count, 0);
    c.intensity.reserve(count, 0);
    float *x = c.x.data(), *y = c.y.data(), *z = c.z.data(), *range = c.normal_x.data();
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
