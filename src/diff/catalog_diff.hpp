#pragma once

#include "tiling/build/build_options.hpp"
#include "tiling/build/gate.hpp"
#include "tiling/store/catalog.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::diff {

/// What became of something between two generations.
enum class Change { added, changed, removed };
inline constexpr Words<Change, 3> kChanges{{"added", "changed", "removed"}};

struct InputChange {
    Change change;
    std::string path;
    std::uint64_t points_before = 0, points = 0;
};

struct TileChange {
    Change change;
    TileKey tile;
    tiling::Reason reason;  ///< of those that were added or changed, as far as the rows tell
    std::uint64_t splats_before = 0, splats = 0;
};

/// All that the catalog alone says about two generations: no object is read.
struct CatalogDiff {
    std::vector<InputChange> inputs;  ///< sorted by path; a renamed input is removed and added
    std::vector<TileChange> tiles;    ///< sorted by tile
    tiling::TileChanges counts;
};

CatalogDiff compare_catalog(tiling::Catalog& catalog, const tiling::GenerationRow& from,
                            const tiling::GenerationRow& to);

}  // namespace citysplat::diff
