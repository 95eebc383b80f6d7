#pragma once

#include "model/tile_source.hpp"
#include "splat/levels/level_cube.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace citysplat::splat {

/// Which cubes of the pyramid a city has, judged by the boxes of its tiles: the same for splats and meshes.
class CityCubes {
  public:
    using Column = std::pair<std::int32_t, std::int32_t>;  ///< of 64 m, all heights

    /// Throws CorruptionError naming a tile whose box is larger than any tile.
    explicit CityCubes(const TileSource& city);

    /// The coarsest cubes, at most eight of them; some may be empty.
    const std::vector<CubeId>& roots() const { return roots_; }
    /// Whether there could be something in a cube; the others are empty.
    bool may_exist(const CubeId& id) const;

    bool has_column(const Column& column) const { return tiles_.contains(column); }
    std::size_t columns() const { return tiles_.size(); }
    /// Tiles that may have something in a column. Requires has_column().
    const std::vector<std::uint32_t>& tiles_at(const Column& column) const { return tiles_.at(column); }

  private:
    std::map<Column, std::vector<std::uint32_t>> tiles_;
    std::map<int, std::set<Column>> footprints_;  ///< of cubes above level 3, by level
    std::vector<CubeId> roots_;
    std::int64_t lowest_ = 0, highest_ = -1;  ///< cells of 64 m between which all of it lies
};

}  // namespace citysplat::splat
