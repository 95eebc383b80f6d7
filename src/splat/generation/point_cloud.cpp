#include "splat/generation/point_cloud.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/prefetch.hpp"
#include "splat/params/class_table.hpp"
#include "splat/search/curve.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

namespace citysplat::splat {
namespace {

/// Differences of two coordinates must fit an int32, and so must their distance to a sentinel beyond them.
constexpr std::int32_t kMaxSteps = 1 << 29;
constexpr std::size_t kChunk = 1 << 15;

PointAttributes attributes_of(const TilePoint& p) {
    PointAttributes a{p.label, p.intensity, 0, p.sensor_dx, p.sensor_dy, p.sensor_dz};
    if (p.has_sensor()) {
        const double dx = p.sensor_dx, dy = p.sensor_dy, dz = p.sensor_dz;
        const double range = std::sqrt(dx * dx + dy * dy + dz * dz) + 0.5;
        a.range = static_cast<std::uint16_t>(std::clamp(range, 1.0, 65535.0));
    }
    return a;
}

/// Indices of the points to keep, in canonical order.
std::vector<std::uint32_t> kept_points(std::span<const TilePoint> points, const ClassTable& table) {
    std::vector<std::uint32_t> kept;
    kept.reserve(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        const TilePoint& p = points[i];
        if (table.dynamic(p.label)) continue;
        if (!kept.empty()) {
            const TilePoint& q = points[kept.back()];
            if (p.x == q.x && p.y == q.y && p.z == q.z) continue;
        }
        kept.push_back(static_cast<std::uint32_t>(i));
    }
    return kept;
}

struct Bounds {
    std::array<std::int32_t, 3> min, max;
};

Bounds bounds_of(std::span<const TilePoint> points, std::span<const std::uint32_t> kept) {
    Bounds b{{kMaxSteps, kMaxSteps, kMaxSteps}, {-kMaxSteps, -kMaxSteps, -kMaxSteps}};
    for (const std::uint32_t i : kept) {
        const std::array<std::int32_t, 3> p{points[i].x, points[i].y, points[i].z};
        for (std::size_t a = 0; a < 3; ++a) {
            b.min[a] = std::min(b.min[a], p[a]);
            b.max[a] = std::max(b.max[a], p[a]);
        }
    }
    return b;
}

/// The kept points along the curve: places in `kept`.
std::vector<std::uint32_t> along_curve(std::span<const TilePoint> points, std::span<const std::uint32_t> kept,
                                       const CancelToken& cancel) {
    const Bounds b = bounds_of(points, kept);
    std::uint32_t extent = 1;
    for (std::size_t a = 0; a < 3; ++a) {
        if (b.min[a] <= -kMaxSteps || b.max[a] >= kMaxSteps)
            throw InputError("a point lies " + std::to_string(kMaxSteps / kLatticePerMetre) +
                             " m or more from its tile; remove outliers of the input");
        extent = std::max(extent, static_cast<std::uint32_t>(b.max[a] - b.min[a]));
    }
    // Key and place share a number. Cells of a few millimetres to a centimetre are fine enough.
    const auto place_bits = static_cast<int>(std::bit_width(kept.size()));
    const int curve_bits = std::min(13, (64 - place_bits) / 3);
    const int shift = std::max(0, static_cast<int>(std::bit_width(extent)) - curve_bits);
    const auto cell = [&](std::int32_t v, std::size_t axis) {
        return static_cast<std::uint32_t>(v - b.min[axis]) >> shift;
    };
    std::vector<std::uint64_t> keyed(kept.size());
    for_each_chunk(kept.size(), kChunk, cancel, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const TilePoint& p = points[kept[i]];
            const std::uint64_t key = hilbert_key(cell(p.x, 0), cell(p.y, 1), cell(p.z, 2), curve_bits);
            keyed[i] = key << place_bits | i;
        }
    });
    sort_by_bits(keyed, place_bits, place_bits + 3 * curve_bits);
    std::vector<std::uint32_t> places(kept.size());
    const std::uint64_t mask = (std::uint64_t{1} << place_bits) - 1;
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint32_t>(keyed[i] & mask);
    return places;
}

}  // namespace

PointCloud make_point_cloud(TileFrame frame, std::span<const TilePoint> points,
                            std::span<const SplatGroup> groups, const ClassMap& classes,
                            const CancelToken& cancel) {
    const ClassTable table(classes);
    const std::vector<std::uint32_t> kept = kept_points(points, table);
    const std::vector<std::uint32_t> curve = along_curve(points, kept, cancel);
    PointCloud cloud;
    cloud.frame = frame;
    const std::size_t n = kept.size();
    cloud.x.resize(n), cloud.y.resize(n), cloud.z.resize(n);
    cloud.rank.resize(n), cloud.attributes.resize(n), cloud.group.resize(n);
    for_each_chunk(n, kChunk, cancel, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            constexpr std::size_t kAhead = 16;  // the curve jumps about in canonical order
            if (i + kAhead < end) prefetch(&points[kept[curve[i + kAhead]]]);
            const std::uint32_t rank = curve[i];
            const std::uint32_t source = kept[rank];
            const TilePoint& p = points[source];
            cloud.x[i] = p.x, cloud.y[i] = p.y, cloud.z[i] = p.z;
            cloud.rank[i] = rank;
            cloud.attributes[i] = attributes_of(p);
            cloud.group[i] = groups.empty() ? table.group(p.label) : groups[source];
        }
    });
    return cloud;
}

}  // namespace citysplat::splat
