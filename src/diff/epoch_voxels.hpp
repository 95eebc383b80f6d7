#pragma once

#include "core/cancel.hpp"
#include "core/math/lattice.hpp"
#include "core/math/vec_hd.hpp"
#include "diff/surface_index.hpp"
#include "tiling/carve/free_space.hpp"
#include "tiling/points/city_points.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace citysplat::diff {

inline constexpr double kVoxel_m = static_cast<double>(tiling::kVoxelSteps) * kLatticeStep_m;

/// A voxel of the world.
struct VoxelKey {
    std::int64_t x = 0, y = 0, z = 0;
    friend auto operator<=>(const VoxelKey&, const VoxelKey&) = default;
    VoxelKey moved(std::int64_t dx, std::int64_t dy, std::int64_t dz) const {
        return {x + dx, y + dy, z + dz};
    }
};
struct VoxelKeyHash {
    std::size_t operator()(const VoxelKey& k) const {
        return rng::mix(static_cast<std::uint64_t>(k.x) * 0x9e3779b97f4a7c15u +
                        static_cast<std::uint64_t>(k.y) * 0xc2b2ae3d27d4eb4fu +
                        static_cast<std::uint64_t>(k.z) * 0xd6e8feb86659fd93u);
    }
};

/// What one epoch has in one voxel.
struct EpochVoxel {
    VoxelKey key;
    std::uint32_t first = 0, count = 0;  ///< its points
    Vec3d mean{0, 0, 0};
    std::uint16_t label = 0;          ///< of most of its points
    std::uint32_t others_passed = 0;  ///< looks of the other epoch that passed through it
    bool solid = false;               ///< its own epoch hit it at least as often as it saw through it
};

/// The points of one epoch in a box, carved, by voxel.
class EpochVoxels {
  public:
    /// Reads `margin_steps` beyond the box. `others` are whose rays are asked besides its own.
    EpochVoxels(const tiling::CityPoints& own, const tiling::CityPoints& others, const LatticeBox& box,
                std::int64_t margin_steps, const CancelToken& cancel);

    const std::vector<EpochVoxel>& voxels() const { return voxels_; }  ///< sorted by key
    const EpochVoxel* find(const VoxelKey& key) const {
        const auto found = places_.find(key);
        return found == places_.end() ? nullptr : &voxels_[found->second];
    }
    std::span<const Vec3d> points(const EpochVoxel& voxel) const {
        return std::span(points_).subspan(voxel.first, voxel.count);
    }

  private:
    std::vector<Vec3d> points_;  ///< voxel by voxel
    std::vector<EpochVoxel> voxels_;
    std::unordered_map<VoxelKey, std::uint32_t, VoxelKeyHash> places_;
};

}  // namespace citysplat::diff
