#pragma once

#include "core/math/lattice.hpp"
#include "mesh/voxel_sums.hpp"
#include "model/point.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::mesh {

/// The grid of voxels, anchored in absolute coordinates: no tile can move it. Voxels and their corners are
/// numbered from a base that lies at or below the frame's origin; corner c is the low corner of voxel c.
class VoxelGrid {
  public:
    VoxelGrid(const TileFrame& frame, std::int64_t voxel_steps);

    std::int64_t steps() const { return steps_; }
    /// Voxel of a coordinate in steps from the frame.
    std::int32_t voxel(int axis, std::int32_t steps) const {
        return static_cast<std::int32_t>(floor_div(steps + offset_[axis], steps_));
    }
    /// Of a corner, in steps from the frame.
    std::int64_t corner(int axis, std::int64_t number) const { return number * steps_ - offset_[axis]; }
    /// The first corner at or above a coordinate of the world.
    std::int64_t first_corner(int axis, std::int64_t world_steps) const;

  private:
    std::int64_t steps_;
    std::int64_t origin_[3];  ///< of the frame
    std::int64_t offset_[3];  ///< of the frame's origin from the base, in steps: 0 … steps − 1
};

struct Voxel {
    std::int32_t x, y, z;
    friend auto operator<=>(const Voxel&, const Voxel&) = default;
};

/// What meshes want to know of a point, in the order in which they ask: made once, asked many times.
struct VoxelPoint {
    std::int32_t x, y, z;     ///< lattice steps from the frame
    std::int16_t ux, uy, uz;  ///< sight_line()
    std::uint16_t label, intensity;
    std::uint16_t range;  ///< whole metres from the sensor

    static constexpr std::uint16_t kNoSensor = 0xffff;
    bool has_sensor() const { return range != kNoSensor; }
    SightLine sight() const { return {ux, uy, uz}; }
};

/// Points of a region by voxel.
class VoxelPoints {
  public:
    /// Points may come in any order. Throws InputError when they lie too far from the frame to be numbered.
    VoxelPoints(const VoxelGrid& grid, std::vector<TilePoint> points);

    const VoxelGrid& grid() const { return grid_; }
    std::size_t size() const { return voxels_.size(); }
    const Voxel& voxel(std::size_t i) const { return voxels_[i]; }
    std::span<const VoxelPoint> points(std::size_t i) const {
        return {points_.data() + first_[i], first_[i + 1] - first_[i]};
    }

    /// Calls visit(i) for all voxels of [low, high), the latter not included, in their order.
    template <class Visit>
    void visit(const Voxel& low, const Voxel& high, const Visit& visit) const {
        for (std::int32_t x = low.x; x < high.x; ++x)
            for (std::size_t c = first_column(x, low.y);
                 c < columns_.size() && columns_[c].x == x && columns_[c].y < high.y; ++c)
                for (std::size_t i = first_voxel(c, low.z); i < end_of_column(c) && voxels_[i].z < high.z;
                     ++i)
                    visit(i);
    }

  private:
    struct Column {
        std::int32_t x, y;
        std::uint32_t first;  ///< voxel
    };
    std::size_t first_column(std::int32_t x, std::int32_t y) const;
    std::size_t end_of_column(std::size_t column) const {
        return column + 1 < columns_.size() ? columns_[column + 1].first : voxels_.size();
    }
    std::size_t first_voxel(std::size_t column, std::int32_t z) const;

    VoxelGrid grid_;
    std::vector<VoxelPoint> points_;    ///< by voxel
    std::vector<Voxel> voxels_;         ///< occupied, sorted by x, y, z
    std::vector<std::uint32_t> first_;  ///< point of each voxel; one more at the end
    std::vector<Column> columns_;
};

}  // namespace citysplat::mesh
