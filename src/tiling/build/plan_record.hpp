#pragma once

#include "tiling/build/build_options.hpp"
#include "tiling/build/build_plan.hpp"
#include "tiling/store/generation_record.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What the processes of a shared build leave for each other, as objects of their own kinds: nothing here is
/// ever taken for a generation.
namespace citysplat::tiling {

/// What tiles cost, as far as earlier ones tell: proportional to the points.
struct TileCosts {
    double core_seconds = 0;  ///< of processor time that `points` points took
    std::uint64_t points = 0, bytes = 0;

    double seconds_of(std::uint64_t tile_points) const {
        return core_seconds * static_cast<double>(tile_points) / static_cast<double>(points);
    }
    double bytes_of(std::uint64_t tile_points) const {
        return static_cast<double>(bytes) * static_cast<double>(tile_points) / static_cast<double>(points);
    }
};

/// The work of one build, frozen: with it and the objects a worker needs neither the catalog nor the inputs.
struct PlanRecord {
    Hash128 request;  ///< what was asked for, in words: another process that asks the same joins this plan
    std::int64_t created_s = 0;
    GenerationRecord draft;  ///< the generation to be, its inputs, and the tiles that need no work
    bool carve = false;
    std::vector<CitySource> sources;
    std::vector<PlannedTile> planned;       ///< in the order of work: chunk by chunk, neighbours together
    std::vector<std::uint32_t> chunk_ends;  ///< behind the last tile of each chunk
    std::vector<ProductRow> memo;           ///< what is there already and may fit a planned tile
    TileCosts costs;
};

/// What a worker finished since it said so last.
struct ReceiptRecord {
    Hash128 plan;
    std::vector<TileKey> done;     ///< sorted; those without a product hold no points
    std::vector<ProductRow> made;  ///< sorted by tile
    TileCosts costs;               ///< of the tiles that were built
};

Hash128 write_plan(ObjectStore& store, const PlanRecord& plan);
Hash128 write_receipt(ObjectStore& store, const ReceiptRecord& receipt);

/// Nothing when an earlier version of the program wrote it. Throw CorruptionError when the object is missing,
/// damaged or of another kind.
std::optional<PlanRecord> read_plan(const ObjectStore& store, const Hash128& object);
ReceiptRecord read_receipt(const ObjectStore& store, const Hash128& object);

}  // namespace citysplat::tiling
