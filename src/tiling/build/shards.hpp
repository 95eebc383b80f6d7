#pragma once

#include "tiling/build/shard_record.hpp"
#include "tiling/store/object_store.hpp"

#include <optional>
#include <set>
#include <span>
#include <vector>

/// How several processes build one generation: the first shard stages the plan in shards/, each makes its
/// part of the tiles and leaves a share there, and `publish` turns plan and shares into a generation. The
/// catalog does not see the tiles before that. Plans and shares are objects; the files in shards/ only name
/// them.
namespace citysplat::tiling {

struct StagedPlan {
    Hash128 name;
    PlanRecord plan;
};

/// Writes the plan, durably, and forgets the shares of an earlier one. Requires the staging lock.
StagedPlan stage_plan(ObjectStore& store, PlanRecord plan);

/// Nothing when no plan is staged, or an earlier version of the program staged it.
std::optional<StagedPlan> read_staged(const ObjectStore& store);

/// True when `draft` describes the same work as the staged plan.
bool same_work(const StagedPlan& staged, const GenerationRecord& draft);

/// The planned tiles of one shard. Large and small ones are dealt out in turn.
std::vector<PlannedTile> part_of(const PlanRecord& plan, const Shard& shard);

/// Leaves what a shard made, durably.
void leave_share(ObjectStore& store, const StagedPlan& staged, const Shard& shard,
                 std::span<const ProductRow> tiles);

/// What the staged plan and its shares need while they can still be published: objects, and the identities of
/// sources.
struct StagedNeeds {
    std::set<Hash128> objects, sources;
};
StagedNeeds needs_of_staged(Catalog& catalog, const ObjectStore& store);

struct PublishReport {
    std::int64_t generation = 0;
    std::uint64_t shards = 0, tiles = 0, splats = 0;
    Hash128 digest;
};

/// Publishes what the shards of the staged plan have made, after holding each share against the plan. Throws
/// BusyError naming the shards that are missing, ConfigError when nothing is staged or the city has moved on
/// since, CorruptionError when a share is not what its file says, HeldBackError when the gate objects (then
/// everything stays as it is, to be published without it), UsageError when the shards were built without one.
PublishReport publish_shards(const std::filesystem::path& city, const Gate& gate = {});

}  // namespace citysplat::tiling
