// Compiled once per instruction set by growth_lanes.cpp, hence without include guard.
#include "splat/growth_lanes.hpp"
#include "splat/search_lanes_inl.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace citysplat::splat {
namespace HWY_NAMESPACE {

constexpr std::int32_t kKindBits = 0xffff;
constexpr int kFlagShift = 16;

/// Kind and flags as they lie in memory, side by side.
inline std::int32_t kind_and_flags(const SurfacePoint& p) {
    static_assert(offsetof(SurfacePoint, flags) == offsetof(SurfacePoint, kind) + 2);
    std::int32_t word;
    std::memcpy(&word, &p.kind, sizeof word);
    return word;
}

/// Copies the neighbours into the columns, and a vector of outliers behind them.
inline void fill_columns(std::span<const SurfacePoint> points, const Neighbourhood& n, NeighbourColumns& c) {
    const std::size_t count = n.point.size();
    c.count = count;
    for (auto* column : {&c.normal_x, &c.normal_y, &c.normal_z, &c.x, &c.y, &c.z}) column->reserve(count, 0);
    for (auto* column :
         {&c.place_x, &c.place_y, &c.place_z, &c.kind_and_flags, &c.distance2, &c.member2, &c.stop2})
        column->reserve(count, 0);
    c.point.reserve(count, 0);
    std::int32_t *x = c.place_x.data(), *y = c.place_y.data(), *z = c.place_z.data();
    float *normal_x = c.normal_x.data(), *normal_y = c.normal_y.data(), *normal_z = c.normal_z.data();
    std::int32_t* word = c.kind_and_flags.data();
    const std::uint32_t* point = n.point.data();
    for (std::size_t i = 0; i < count; ++i) {
        const SurfacePoint& p = points[point[i]];
        x[i] = p.x, y[i] = p.y, z[i] = p.z;
        normal_x[i] = p.normal.x, normal_y[i] = p.normal.y, normal_z[i] = p.normal.z;
        word[i] = kind_and_flags(p);
    }
    std::memcpy(c.point.data(), point, count * sizeof *point);
    std::memcpy(c.distance2.data(), n.distance2.data(), count * sizeof(std::uint32_t));
    for (std::int32_t* column : {x, y, z}) std::fill_n(column + count, kGroup, 0);
    for (float* column : {normal_x, normal_y, normal_z}) std::fill_n(column + count, kGroup, 0.0f);
    std::fill_n(word + count, kGroup, SurfacePoint::kOutlier << kFlagShift);
    std::fill_n(c.point.data() + count, kGroup, 0u);
    std::fill_n(c.distance2.data() + count, kGroup, Stop::kNever);
}

template <class V>
HWY_INLINE V dot3(V ax, V ay, V az, V bx, V by, V bz) {
    return hn::Add(hn::Add(hn::Mul(ax, bx), hn::Mul(ay, by)), hn::Mul(az, bz));
}

/// Of several neighbours at the distance of the stop, the first by rank is the one; those before it stay.
inline void settle_stop(std::span<const SurfacePoint> points, const Stop& stop, NeighbourColumns& c) {
    const std::uint32_t* point = c.point.data();
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    for (std::size_t i = 0; i < c.count; ++i)
        if (c.stop2.data()[i] == stop.distance2) first = std::min(first, points[point[i]].rank);
    for (std::size_t i = 0; i < c.count; ++i)
        if (c.member2.data()[i] == stop.distance2 && points[point[i]].rank >= first)
            c.member2.data()[i] = Stop::kNever;
}

inline Stop find_stop(std::span<const SurfacePoint> points, std::uint32_t seed, const Neighbourhood& n,
                      const StopRule& rule, NeighbourColumns& c) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const SurfacePoint& s = points[seed];
    fill_columns(points, n, c);
    const auto sx = hn::Set(di, s.x), sy = hn::Set(di, s.y), sz = hn::Set(di, s.z);
    const auto nx = hn::Set(df, s.normal.x), ny = hn::Set(df, s.normal.y), nz = hn::Set(df, s.normal.z);
    const auto error = hn::Set(df, rule.error), least_cosine = hn::Set(df, rule.least_cosine);
    const auto word = hn::Set(di, kind_and_flags(s)), kind_bits = hn::Set(di, kKindBits);
    const auto oriented_bit = hn::Set(di, SurfacePoint::kOriented << kFlagShift);
    const auto outlier_bit = hn::Set(di, SurfacePoint::kOutlier << kFlagShift);
    const auto never = hn::Set(di, Stop::kNever), none = hn::Zero(di);
    auto nearest2 = never;
    for (std::size_t i = 0; i < c.count; i += hn::Lanes(di)) {
        const auto cosine = dot3(nx, ny, nz, hn::Load(df, c.normal_x.data() + i),
                                 hn::Load(df, c.normal_y.data() + i), hn::Load(df, c.normal_z.data() + i));
        const auto x = hn::ConvertTo(df, hn::Sub(hn::Load(di, c.place_x.data() + i), sx)),
                   y = hn::ConvertTo(df, hn::Sub(hn::Load(di, c.place_y.data() + i), sy)),
                   z = hn::ConvertTo(df, hn::Sub(hn::Load(di, c.place_z.data() + i), sz));
        hn::Store(x, df, c.x.data() + i);
        hn::Store(y, df, c.y.data() + i);
        hn::Store(z, df, c.z.data() + i);
        const auto height = dot3(nx, ny, nz, x, y, z);
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
    const Stop stop{hn::GetLane(hn::MinOfLanes(di, nearest2))};
    if (stop.exists()) settle_stop(points, stop, c);
    return stop;
}

inline MemberSums find_members(std::span<const SurfacePoint> points, NeighbourColumns& c, const Stop& stop,
                               std::vector<std::uint32_t>& members) {
    const Lanes32 di;
    const hn::Rebind<float, Lanes32> df;
    const hn::Rebind<std::uint32_t, Lanes32> du;
    const auto beyond = hn::Set(di, stop.exists() ? stop.distance2 + 1 : Stop::kNever);
    auto farthest2 = hn::Set(di, -1);
    members.resize(c.count + kGroup);
    std::size_t count = 0;
    WholeSums sums;
    for (std::size_t i = 0; i < c.count; i += hn::Lanes(di)) {
        const auto d2 = hn::Load(di, c.member2.data() + i);
        const auto in = hn::Lt(d2, beyond);
        const auto in_df = hn::RebindMask(df, in);
        sums.add(hn::IfThenElseZero(in_df, hn::Load(df, c.x.data() + i)),
                 hn::IfThenElseZero(in_df, hn::Load(df, c.y.data() + i)),
                 hn::IfThenElseZero(in_df, hn::Load(df, c.z.data() + i)));
        farthest2 = hn::IfThenElse(in, hn::Max(farthest2, d2), farthest2);
        const Packer<Lanes32> pack(di, in);
        pack.store(du, hn::Load(du, c.point.data() + i), members.data() + count);
        count += pack.count;
    }
    members.resize(count);
    MemberSums result{};
    sums.add_to(result.moments);
    result.moments.count = static_cast<std::int32_t>(count);
    // The last of several equally far is the last by rank.
    const std::int32_t last2 = hn::GetLane(hn::MaxOfLanes(di, farthest2));
    std::uint32_t last_rank = 0;
    for (std::size_t i = 0; i < c.count; ++i) {
        if (c.member2.data()[i] != last2) continue;
        const std::uint32_t rank = points[c.point.data()[i]].rank;
        if (rank < last_rank) continue;
        last_rank = rank;
        result.last = {static_cast<double>(c.x.data()[i]), static_cast<double>(c.y.data()[i]),
                       static_cast<double>(c.z.data()[i])};
    }
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
