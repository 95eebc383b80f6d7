#pragma once

#include "core/cancel.hpp"
#include "mesh/box_sums.hpp"
#include "mesh/voxel_points.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

/// The seam between what a surface is (a field of signed distances on the corners of voxels: TSDF, IMLS) and
/// how triangles are made of it (marching_cubes.hpp).
namespace citysplat::mesh {

/// Distances are whole numbers of 2⁻⁸ lattice steps.
inline constexpr double kDistanceUnits = 256;

/// What a field says about a corner: nothing, one distance, or two where both sides of something thin were
/// seen.
struct Corner {
    struct Side {
        std::int32_t distance;  ///< negative: behind the surface, as the sensors see it
        std::uint32_t normal;   ///< pack_normal() of the surface, towards the sensors
    };
    std::uint8_t sides = 0;
    std::array<Side, 2> side{};
};

/// The corners of a block, x running fastest.
struct CornerBlock {
    std::vector<Corner> corners{static_cast<std::size_t>(kBlockCorners * kBlockCorners * kBlockCorners)};

    static std::size_t at(int x, int y, int z) {
        return static_cast<std::size_t>((z * kBlockCorners + y) * kBlockCorners + x);
    }
};

/// A field over the points of one region. What it says about a corner is a function of the points within
/// reach_voxels() of it, and of nothing else.
class CornerField {
  public:
    virtual ~CornerField() = default;
    /// Memory for one block at a time, for one thread.
    class Worker {
      public:
        virtual ~Worker() = default;
        /// Fills the corners of a block, whose sums are loaded already. All of them were Corner{}. Throws
        /// Interrupted.
        virtual void fill(const BoxSums& sums, CornerBlock& out) = 0;
    };
    /// Requires that the points and `cancel` outlive the worker.
    virtual std::unique_ptr<Worker> make_worker(const VoxelPoints& points,
                                                const CancelToken& cancel) const = 0;
    /// Along each axis, in voxels: k_max of H^k.
    virtual int reach_voxels() const = 0;
};

}  // namespace citysplat::mesh
