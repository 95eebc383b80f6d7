#pragma once

#include "core/math/lattice.hpp"
#include "model/splat_tile.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

/// Levels of detail of a city's splats, on a pyramid of cubes that is anchored in the world: which tiles the
/// splats lie in, and in which order they come, changes no byte of it.
///
///   level   voxel           cube
///   0       – (the splats)   64 m
///   1       0.25 m           64 m
///   2       0.5 m            64 m
///   3       1 m              64 m
///   4       2 m             128 m
///   5       4 m             256 m, and so on: both double
///
/// A cube of level 1, 2 or 3 is made from the same cube one level below, a larger one from its eight octants.
namespace citysplat::splat {

/// Part of every key under which levels are kept: raise it when a byte of them changes.
inline constexpr int kLevelsVersion = 1;

inline constexpr int kTopLevel = 20;
inline constexpr int kLastCellLevel = 3;  ///< up to here cubes are cells of 64 m

/// As powers of two of lattice steps.
constexpr int side_shift(int level) { return kLatticeBits + 6 + std::max(0, level - kLastCellLevel); }
constexpr int voxel_shift(int level) { return kLatticeBits - 3 + level; }  ///< from level 1 on
/// How far a level may be from what it stands for: its voxel; level 0 is the thing itself.
constexpr double error_m(int level) {
    return level == 0 ? 0 : to_metres(std::int64_t{1} << voxel_shift(level));
}
/// The unit of coordinates and radii of a cube: steps of the lattice up to level 6; above they would not fit
/// their 24 and 16 bits.
constexpr int unit_shift(int level) { return std::max(0, level - 6); }

struct CubeId {
    int level = 0;
    std::int32_t x = 0, y = 0, z = 0;

    /// Least corner, in steps.
    LatticePoint corner() const;
    /// The cube of the level above that it is part of.
    CubeId parent() const;
    /// One of its eight parts on the level below. Requires a level above kLastCellLevel.
    CubeId octant(int number) const {
        return {level - 1, 2 * x + (number & 1), 2 * y + (number >> 1 & 1), 2 * z + (number >> 2)};
    }
    /// The cubes of the level below that it is made from: eight octants, or the same cell. Requires a level
    /// above 0.
    std::vector<CubeId> children() const;
    /// In names of files: LEVEL_X_Y_Z.
    std::string name() const;
    friend auto operator<=>(const CubeId&, const CubeId&) = default;
};
CubeId cube_of(const LatticePoint& point, int level);

/// A splat, or what stands for several, in lattice steps of the world.
struct LevelDisc {
    LatticePoint centre;
    std::uint32_t normal = 0;  ///< pack_normal()
    std::uint32_t radius = 1;
    std::uint16_t label = 0, intensity = 0;
    std::uint8_t point_count = 0;
    SplatGroup group = SplatGroup::surface;
    std::uint8_t range = kUnknownByte, incidence = kUnknownByte, instance = 0;
};

/// A splat whose coordinates and radius are in units of 2^unit steps from `origin`.
LevelDisc level_disc(const Splat& splat, const LatticePoint& origin, int unit);

/// All of it, to compare and to sort.
inline auto content_of(const LevelDisc& d) {
    return std::tuple(d.centre.x, d.centre.y, d.centre.z, d.normal, d.radius, d.label, d.intensity,
                      d.point_count, d.group, d.range, d.incidence, d.instance);
}

/// The discs in one of the 4 × 4 × 4 parts of a cube: the unit of culling and of the choice of a level. In
/// cells of 64 m that is a cube of 16 m.
struct Piece {
    std::uint32_t first = 0, count = 0;
    std::uint32_t place = 0;  ///< Morton code of its x, y, z (each 0 … 3); place / 8 is its octant
    std::array<std::int32_t, 3> min{}, max{};  ///< around its discs, in units from the corner of the cube
};

struct LevelCube {
    CubeId id;
    SplatTile discs;            ///< in units of 2^unit_shift steps from the cube's corner; in Morton order
    std::vector<Piece> pieces;  ///< those with discs, by place
    std::uint8_t children = 0;  ///< octants with cubes one level below; bit 0 alone in cells above level 0
    bool incomplete = false;    ///< a tile that should be in it could not be read

    std::size_t bytes() const { return discs.bytes().size() + pieces.size() * sizeof(Piece) + sizeof(*this); }
    LevelDisc disc(std::size_t i) const;
};

/// The cube of level 0 with these splats, in whatever order they are given. Requires that their centres lie
/// in it.
LevelCube make_leaf(const CubeId& id, std::vector<LevelDisc> splats);

/// The cube with what remains of these discs of the level below, in whatever order they are given: one for
/// each voxel, class and side that they face.
LevelCube make_level(const CubeId& id, std::span<const LevelDisc> discs);

}  // namespace citysplat::splat
