#pragma once

#include "core/math/lattice.hpp"
#include "core/math/rng_hd.hpp"
#include "model/splat_hd.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

/// The octree of an Entwine point tile set (EPT), and which point is in which node.
///
/// The tree is anchored in the world: at the depth `leaf_depth` its cubes have 64 m, and their columns are
/// the sectors of a city (tiling/sector.hpp). Which node a point goes to depends on the points of its sector
/// alone: from the root down, each cell of a node takes the point whose hash is least, and what is left goes
/// on. Cells of a node are 1/128 of its side. Where that is more than 64 m, only every so many sectors have
/// one. So a sector that changed changes its own nodes and those above them, and no other.
namespace citysplat::gis {

inline constexpr std::int64_t kEptLeafSide_m = 64;
inline constexpr int kEptCellsPerSide_bits = 7;
/// A node at `leaf_depth` or below with no more points takes them all.
inline constexpr std::size_t kEptFewPoints = 32'768;
/// So many halvings below 64 m a node takes what is left: its side is 25 cm.
inline constexpr int kEptDeepest = 8;
/// Points are written as 32-bit numbers of lattice steps from the middle of the cube: 524 km is its largest
/// side.
inline constexpr int kEptMostLeafDepth = 32 - kLatticeBits - 6;
static_assert(kEptLeafSide_m == 1 << 6);

struct EptCube {
    std::int64_t min_x_m = 0, min_y_m = 0, min_z_m = 0;
    int leaf_depth = 0;

    std::int64_t side_m() const { return kEptLeafSide_m << leaf_depth; }
    bool holds(const std::array<double, 6>& box) const;
    friend bool operator==(const EptCube&, const EptCube&) = default;
};

/// The least cube of the tree's kind around a box (min x, y, z, max x, y, z in metres). It begins at a
/// multiple of half its side, so that a city may grow within it. Throws UsageError when it would be larger
/// than an EPT can be.
EptCube ept_cube_around(const std::array<double, 6>& box);

struct EptKey {
    int depth = 0;
    std::int64_t x = 0, y = 0, z = 0;

    std::string text() const;  ///< "3-1-0-7"
    friend auto operator<=>(const EptKey&, const EptKey&) = default;
};

/// What is written of a splat: 33 bytes.
struct EptPoint {
    LatticePoint place;
    Vec3f normal;
    float radius_m = 0;
    std::uint16_t intensity = 0, label = 0;

    std::uint64_t hash() const {
        return rng::mix(static_cast<std::uint64_t>(place.x) * 0x9e3779b97f4a7c15u +
                        static_cast<std::uint64_t>(place.y) * 0xc2b2ae3d27d4eb4fu +
                        static_cast<std::uint64_t>(place.z) * 0xd6e8feb86659fd93u);
    }
    friend bool operator<(const EptPoint& a, const EptPoint& b);
};

using EptNodes = std::map<EptKey, std::vector<EptPoint>>;

/// All nodes of the points of one sector. The order of the points does not matter.
EptNodes ept_nodes(const EptCube& cube, std::vector<EptPoint> points);

}  // namespace citysplat::gis
