#pragma once

#include "tiling/build/build_options.hpp"
#include "tiling/build/build_plan.hpp"
#include "tiling/store/generation_record.hpp"

#include <vector>

/// What shards of a build leave for each other, as objects of their own kinds: nothing here is ever taken for
/// a generation.
namespace citysplat::tiling {

/// What is to be made.
struct PlanRecord {
    GenerationRecord draft;            ///< the generation to be, its inputs, and the tiles that need no work
    std::vector<PlannedTile> planned;  ///< key and number of points only
};

/// What one shard made of its part of a plan.
struct ShareRecord {
    Hash128 plan;
    Shard shard;
    std::vector<TileKey> done;     ///< all tiles of its part, sorted; without a product: they hold no points
    std::vector<ProductRow> made;  ///< sorted by tile
};

Hash128 write_plan(ObjectStore& store, const PlanRecord& plan);
Hash128 write_share(ObjectStore& store, const ShareRecord& share);

/// Throw CorruptionError when the object is missing, damaged or of another kind.
PlanRecord read_plan(const ObjectStore& store, const Hash128& object);
ShareRecord read_share(const ObjectStore& store, const Hash128& object);

}  // namespace citysplat::tiling
