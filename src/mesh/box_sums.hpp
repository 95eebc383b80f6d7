#pragma once

#include "mesh/voxel_points.hpp"
#include "mesh/voxel_sums.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace citysplat::mesh {

/// A block of cells, whose corners are made together: cells [0, kBlockCells) along each axis from its low
/// corner, and corners one more.
inline constexpr int kBlockCells = 16;
inline constexpr int kBlockCorners = kBlockCells + 1;

/// Statistics of all neighbourhoods H^k(v), v a corner of the block: of the (2k)³ voxels around v. Sums over
/// boxes are differences of sums over boxes that begin at one corner; with whole numbers that loses nothing,
/// and takes eight additions for a box of any size.
///
/// Slabs of voxels without any point change no sum and have no place: a street is a few slabs of the block's
/// height, and what is kept of it is as many times smaller. Used by one thread.
class BoxSums {
  public:
    explicit BoxSums(int most_level);

    /// Takes the voxels that the corners of this block can see. False when there is none.
    bool load(const VoxelPoints& points, const Voxel& block);

    /// How many points H^k(corner) has. Corners count from that of the block.
    std::int64_t count(const Voxel& corner, int level) const {
        return box_sum(counts_.data(), corner, level);
    }
    /// Of these, seen from the corner.
    VoxelSums sums(const Voxel& corner, int level) const;
    /// Calls visit(i) for the voxels of H^k(corner) that hold points; i is a number of VoxelPoints.
    template <class Visit>
    void visit(const Voxel& corner, int level, const Visit& visit) const {
        box(low(corner, level), high(corner, level), visit);
    }
    /// The same for voxels [low, high) of the block; they may begin at −most_level.
    template <class Visit>
    void box(const Voxel& from, const Voxel& to, const Visit& visit) const {
        const std::size_t end_x = below(0, to.x), end_y = below(1, to.y), end_z = below(2, to.z);
        for (std::size_t z = below(2, from.z); z < end_z; z += stride_[2])
            for (std::size_t y = below(1, from.y); y < end_y; y += stride_[1])
                for (std::size_t x = below(0, from.x); x < end_x; ++x)
                    if (const std::int32_t i = voxel_at_[x + y + z + first_]; i >= 0)
                        visit(static_cast<std::size_t>(i));
    }

    const Voxel& block() const { return block_; }
    int most_level() const { return most_level_; }
    /// The most that it ever takes.
    std::size_t bytes() const;

  private:
    static Voxel low(const Voxel& c, int k) { return {c.x - k, c.y - k, c.z - k}; }
    static Voxel high(const Voxel& c, int k) { return {c.x + k, c.y + k, c.z + k}; }
    /// Slabs with points below a coordinate, times the stride of the axis.
    std::size_t below(int axis, std::int32_t coordinate) const {
        return below_[static_cast<std::size_t>(axis)][static_cast<std::size_t>(coordinate + most_level_)];
    }
    /// Place of the sum over all voxels below (x, y, z), which count from that of the block.
    std::size_t at(std::int32_t x, std::int32_t y, std::int32_t z) const {
        return below(0, x) + below(1, y) + below(2, z);
    }
    void find_slabs(const VoxelPoints& points);
    void add_points(const VoxelPoints& points);
    template <class T>
    void sum_up(T* field) const;
    template <class T>
    T box_sum(const T* field, const Voxel& corner, int level) const;

    int most_level_;
    std::size_t side_;  ///< coordinates along an axis
    Voxel block_{};
    std::int64_t voxel_steps_ = 0;
    std::vector<std::size_t> loaded_;  ///< numbers of the voxels
    std::array<std::vector<std::size_t>, 3> below_;
    std::array<std::size_t, 3> stride_{}, places_{};  ///< along an axis: slabs with points, and one
    std::size_t first_ = 0;                           ///< from the place of a sum to that of the next voxel
    std::vector<std::int64_t> counts_;
    std::vector<VoxelSums> sums_;
    std::vector<std::int32_t> voxel_at_;
};

template <class T>
T BoxSums::box_sum(const T* field, const Voxel& corner, int level) const {
    const Voxel a = low(corner, level), b = high(corner, level);
    const std::size_t ax = below(0, a.x), ay = below(1, a.y), az = below(2, a.z);
    const std::size_t bx = below(0, b.x), by = below(1, b.y), bz = below(2, b.z);
    return field[bx + by + bz] - field[ax + by + bz] - field[bx + ay + bz] - field[bx + by + az] +
           field[ax + ay + bz] + field[ax + by + az] + field[bx + ay + az] - field[ax + ay + az];
}

}  // namespace citysplat::mesh
