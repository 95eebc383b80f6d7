#include "tiling/build/shard_record.hpp"

#include "core/error.hpp"

namespace citysplat::tiling {

namespace {

/// Of shares, since records of generations have version 3; a plan has their version.
constexpr std::uint32_t kShareVersion = 2;

RecordReader open(const ObjectStore& store, const Hash128& object, ObjectKind kind, std::uint32_t version) {
    const char* what = kind == ObjectKind::plan ? "the plan of a sharded build" : "the share of a shard";
    if (store.size_of(object) && store.kind_of(object) != kind)
        throw CorruptionError("object " + object.hex() + " is not " + what + "; build the shards again");
    return RecordReader(store, object, what, version);
}

}  // namespace

Hash128 write_plan(ObjectStore& store, const PlanRecord& plan) {
    RecordWriter out(ObjectKind::plan, kRecordVersion);
    put_draft(out, plan.draft);
    out.put(static_cast<std::uint64_t>(plan.planned.size()));
    for (const PlannedTile& tile : plan.planned) out.put(tile.key).put(tile.points_at_most);
    return out.write(store);
}

PlanRecord read_plan(const ObjectStore& store, const Hash128& object) {
    RecordReader in = open(store, object, ObjectKind::plan, kRecordVersion);
    PlanRecord plan{get_draft(in), {}};
    plan.planned.resize(in.count(sizeof(TileKey)));
    for (PlannedTile& tile : plan.planned) in.get(tile.key).get(tile.points_at_most);
    return plan;
}

Hash128 write_share(ObjectStore& store, const ShareRecord& share) {
    RecordWriter out(ObjectKind::share, kShareVersion);
    out.put(share.plan).put(share.shard);
    out.put(static_cast<std::uint64_t>(share.done.size()));
    for (const TileKey& tile : share.done) out.put(tile);
    put_products(out, share.made, kRecordVersion);
    return out.write(store);
}

ShareRecord read_share(const ObjectStore& store, const Hash128& object) {
    RecordReader in = open(store, object, ObjectKind::share, kShareVersion);
    ShareRecord share;
    in.get(share.plan).get(share.shard);
    share.done.resize(in.count(sizeof(TileKey)));
    for (TileKey& tile : share.done) in.get(tile);
    share.made = get_products(in, in.version() == kShareVersion ? kRecordVersion : 1);
    return share;
}

}  // namespace citysplat::tiling
