#pragma once

#include "model/tile_grid.hpp"
#include "tiling/build/build_options.hpp"
#include "tiling/points/city_points.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/tile_processor.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace citysplat::tiling {

/// A tile that may have to be made.
struct PlannedTile {
    TileKey key;
    std::uint64_t points_at_most = 0;    ///< core and usual halo
    std::optional<ProductRow> previous;  ///< of the same tile in the latest generation
    Reason reason = Reason::new_tile;    ///< as far as the plan can tell; the points decide
};

struct BuildPlan {
    std::vector<ProductRow> reused;    ///< nothing near them changed
    std::vector<PlannedTile> planned;  ///< sorted by key

    /// Adds the plan of another kind.
    void add(BuildPlan other);
};

/// What the plan is made from. `before` is what the latest generation was made from.
struct PlanInput {
    ProductKind kind;
    const TileGrid& grid;
    const CityPoints& points;
    const TileProcessor& processor;  ///< of this kind
    const ObjectStore& store;
    std::uint64_t worker_bytes = 0;                 ///< a tile that needs more is split
    std::optional<std::uint64_t> most_tile_points;  ///< as is one with more points
    std::set<Sector> changed;                       ///< sectors whose points differ from `before`
    std::vector<ProductRow> before;                 ///< of this kind
    std::optional<Reason> all_because;              ///< set: every tile is planned
    std::int64_t margin_steps = 0;                  ///< a tile depends on points so much beyond its halo
};

/// Decides from counts and hashes alone, without reading points, which tiles may be dirty, and where tiles
/// are split. A base tile that no change can reach keeps its tiles as they are.
BuildPlan make_plan(const PlanInput& input);

}  // namespace citysplat::tiling
