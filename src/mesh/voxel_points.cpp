#include "mesh/voxel_points.hpp"

#include "core/error.hpp"
#include "splat/search/curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::mesh {

namespace {

/// Bits for the number of a voxel along each axis: 100 km of voxels of 5 cm.
constexpr int kBits = 21;
constexpr std::int32_t kFurthest = 1 << (kBits - 1);

std::uint16_t range_of(const TilePoint& p) {
    if (!p.has_sensor()) return VoxelPoint::kNoSensor;
    const std::int64_t dx = p.sensor_dx, dy = p.sensor_dy, dz = p.sensor_dz;
    return static_cast<std::uint16_t>(
        std::sqrt(static_cast<double>(dx * dx + dy * dy + dz * dz)) / TilePoint::kSensorStepsPerMetre + 0.5);
}

VoxelPoint voxel_point(const TilePoint& p) {
    const SightLine u = sight_line(p);
    return {.x = p.x,
            .y = p.y,
            .z = p.z,
            .ux = static_cast<std::int16_t>(u.x),
            .uy = static_cast<std::int16_t>(u.y),
            .uz = static_cast<std::int16_t>(u.z),
            .label = p.label,
            .intensity = p.intensity,
            .range = range_of(p)};
}

}  // namespace

VoxelGrid::VoxelGrid(const TileFrame& frame, std::int64_t voxel_steps) : steps_(voxel_steps) {
    const LatticePoint o = frame.origin();
    const std::int64_t origin[3] = {o.x, o.y, o.z};
    for (int a = 0; a < 3; ++a) {
        origin_[a] = origin[a];
        offset_[a] = origin[a] - floor_div(origin[a], steps_) * steps_;
    }
}

std::int64_t VoxelGrid::first_corner(int axis, std::int64_t world_steps) const {
    const std::int64_t from_base = world_steps - (origin_[axis] - offset_[axis]);
    return -floor_div(-from_base, steps_);
}

VoxelPoints::VoxelPoints(const VoxelGrid& grid, std::vector<TilePoint> points) : grid_(grid) {
    if (points.size() >= std::numeric_limits<std::uint32_t>::max())
        throw InputError("a tile has more points than numbers of 32 bits can name; make tiles smaller");
    std::vector<splat::KeyedIndex> order(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        const TilePoint& p = points[i];
        const Voxel v{grid.voxel(0, p.x), grid.voxel(1, p.y), grid.voxel(2, p.z)};
        for (const std::int32_t c : {v.x, v.y, v.z})
            if (c < -kFurthest || c >= kFurthest)
                throw InputError("points of one tile lie too far apart for voxels of " +
                                 std::to_string(to_metres(grid.steps())) +
                                 " m; remove outliers of the input");
        const auto bits = [](std::int32_t c) { return static_cast<std::uint64_t>(c + kFurthest); };
        order[i] = {bits(v.x) << 2 * kBits | bits(v.y) << kBits | bits(v.z), static_cast<std::uint32_t>(i)};
    }
    splat::sort_by_key(order, 3 * kBits);
    points_.resize(points.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        points_[i] = voxel_point(points[order[i].index]);
        if (i > 0 && order[i].key == order[i - 1].key) continue;
        constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
        const auto number = [&](int shift) {
            return static_cast<std::int32_t>(order[i].key >> shift & kMask) - kFurthest;
        };
        const Voxel v{number(2 * kBits), number(kBits), number(0)};
        if (voxels_.empty() || voxels_.back().x != v.x || voxels_.back().y != v.y)
            columns_.push_back({v.x, v.y, static_cast<std::uint32_t>(voxels_.size())});
        voxels_.push_back(v);
        first_.push_back(static_cast<std::uint32_t>(i));
    }
    first_.push_back(static_cast<std::uint32_t>(order.size()));
}

std::size_t VoxelPoints::first_column(std::int32_t x, std::int32_t y) const {
    const auto found =
        std::lower_bound(columns_.begin(), columns_.end(), Column{x, y, 0},
                         [](const Column& a, const Column& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
    return static_cast<std::size_t>(found - columns_.begin());
}

std::size_t VoxelPoints::first_voxel(std::size_t column, std::int32_t z) const {
    const auto begin = voxels_.begin() + columns_[column].first;
    const auto end = voxels_.begin() + static_cast<std::ptrdiff_t>(end_of_column(column));
    return static_cast<std::size_t>(
        std::lower_bound(begin, end, z, [](const Voxel& v, std::int32_t low) { return v.z < low; }) -
        voxels_.begin());
}

}  // namespace citysplat::mesh
