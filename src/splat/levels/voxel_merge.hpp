#pragma once

#include "splat/levels/level_cube.hpp"

#include <cstdint>

namespace citysplat::splat {

/// Which of the six sides a packed normal faces most: 0 … 5 for +x, −x, +y, −y, +z, −z. Discs of different
/// sides are not merged: the edge of a house stays an edge.
std::uint32_t facing_side(std::uint32_t normal);

/// The disc that stands for those of one class and side in one voxel. Weights are areas; all sums are of
/// integers, so that the order of the discs does not matter; what is rounded is rounded after them.
///
/// Its radius is that of a disc with the spread of the given ones in its plane: a disc of radius R has a
/// variance of R²/4 along each axis of its plane. No merged disc covers more than a little above the area of
/// those it is made of, or trees would swell level by level.
///
/// Exact for up to 2²² discs; those beyond are left out, which can only happen to points without extent.
class VoxelMerge {
  public:
    explicit VoxelMerge(int voxel_shift) : voxel_shift_(voxel_shift) {}
    void add(const LevelDisc& disc);
    /// Requires one disc at least; a single one is returned as it is.
    LevelDisc result() const;

  private:
    struct Sum {
        std::int64_t value = 0, weight = 0;
        std::uint8_t mean() const;  ///< kUnknownByte when there is nothing
        void add(std::uint8_t byte, std::int64_t by);
    };
    double in_plane_variance(Vec3d normal) const;
    double radius_units(double variance) const;

    int voxel_shift_;
    std::uint32_t count_ = 0;
    LevelDisc first_;
    LatticePoint origin_;  ///< of the voxel
    std::int64_t weight_ = 0, area_ = 0, radius_ = 0, intensity_ = 0;
    std::array<std::int64_t, 3> at_{}, normal_{};
    std::array<std::int64_t, 6> product_{};  ///< xx, yy, zz, xy, xz, yz
    std::uint32_t points_ = 0;
    Sum range_, incidence_;
    SplatGroup group_ = SplatGroup::non_surface;
    std::uint8_t instance_ = 255;
};

}  // namespace citysplat::splat
