#pragma once

#include "mesh/voxel_points.hpp"
#include "mesh/voxel_sums.hpp"

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
/// and takes eight additions for a box of any size. Used by one thread.
class BoxSums {
  public:
    explicit BoxSums(int most_level);

    /// Takes the voxels that the corners of this block can see. False when there is none.
    bool load(const VoxelPoints& points, const Voxel& block);

    /// How many points H^k(corner) has. Corners count from that of the block.
    std::int64_t count(const Voxel& corner, int level) const;
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
        for (std::int32_t z = from.z; z < to.z; ++z)
            for (std::int32_t y = from.y; y < to.y; ++y)
                for (std::int32_t x = from.x; x < to.x; ++x)
                    if (const std::int32_t i = voxel_at_[at(x + 1, y + 1, z + 1)]; i >= 0)
                        visit(static_cast<std::size_t>(i));
    }

    const Voxel& block() const { return block_; }
    int most_level() const { return most_level_; }
    std::size_t bytes() const;

  private:
    static Voxel low(const Voxel& c, int k) { return {c.x - k, c.y - k, c.z - k}; }
    static Voxel high(const Voxel& c, int k) { return {c.x + k, c.y + k, c.z + k}; }
    /// Place of the sum over all voxels below (x, y, z), which count from that of the block.
    std::size_t at(std::int32_t x, std::int32_t y, std::int32_t z) const {
        return (static_cast<std::size_t>(z + most_level_) * side_ +
                static_cast<std::size_t>(y + most_level_)) *
                   side_ +
               static_cast<std::size_t>(x + most_level_);
    }
    template <class T>
    void sum_up(std::vector<T>& field) const;
    template <class T>
    T box_sum(const std::vector<T>& field, const Voxel& corner, int level) const;

    int most_level_;
    std::size_t side_;
    Voxel block_{};
    std::int64_t voxel_steps_ = 0;
    std::vector<std::int64_t> counts_;
    std::vector<VoxelSums> sums_;
    std::vector<std::int32_t> voxel_at_;
};

}  // namespace citysplat::mesh
