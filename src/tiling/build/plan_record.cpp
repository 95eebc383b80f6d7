#include "tiling/build/plan_record.hpp"

#include "core/error.hpp"

namespace citysplat::tiling {

namespace {

/// Plans up to version 4 and shares up to version 2 are of earlier programs, whose shards divided the tiles
/// among them before the work; those up to 5 and 3 know one kind of product.
constexpr std::uint32_t kPlanVersion = 6, kReceiptVersion = 4;

/// A key of a tile in these records.
constexpr std::size_t kTileBytes = 13;

RecordReader open(const ObjectStore& store, const Hash128& object, ObjectKind kind, std::uint32_t version) {
    const char* what = kind == ObjectKind::plan ? "plan" : "receipt";
    if (store.size_of(object) && store.kind_of(object) != kind)
        throw CorruptionError("object " + object.hex() + " is not a " + what + "; run citysplat plan again");
    return RecordReader(store, object, what, version);
}

void put_sources(RecordWriter& out, const std::vector<CitySource>& sources) {
    out.put(static_cast<std::uint64_t>(sources.size()));
    for (const auto& [row, segments] : sources) {
        out.put(row.identity).put(row.content).put(row.content_bytes).put(row.object).put(row.object_bytes);
        out.put(row.format).put(row.crs).put(row.counts).put(row.bounds);
        out.put(static_cast<std::uint64_t>(segments.size()));
        for (const SegmentRow& segment : segments) out.put(segment);
    }
}

std::vector<CitySource> get_sources(RecordReader& in) {
    std::vector<CitySource> sources(in.count(sizeof(Hash128)));
    for (auto& [row, segments] : sources) {
        in.get(row.identity).get(row.content).get(row.content_bytes).get(row.object).get(row.object_bytes);
        in.get(row.format).get(row.crs).get(row.counts).get(row.bounds);
        segments.resize(in.count(sizeof(SegmentRow)));
        for (SegmentRow& segment : segments) in.get(segment);
    }
    return sources;
}

}  // namespace

Hash128 write_plan(ObjectStore& store, const PlanRecord& plan) {
    RecordWriter out(ObjectKind::plan, kPlanVersion);
    out.put(kRecordVersion).put(plan.request).put(plan.created_s);
    put_draft(out, plan.draft);
    out.put(static_cast<std::uint8_t>(plan.carve));
    put_sources(out, plan.sources);
    out.put(static_cast<std::uint64_t>(plan.planned.size()));
    for (const PlannedTile& tile : plan.planned) {
        put_tile(out, tile.key);
        out.put(tile.points_at_most).put(std::string(text_of(tile.reason)));
        put_products(out, std::span(tile.previous ? &*tile.previous : nullptr, tile.previous ? 1 : 0),
                     kRecordVersion);
    }
    out.put(static_cast<std::uint64_t>(plan.chunk_ends.size()));
    for (const std::uint32_t end : plan.chunk_ends) out.put(end);
    put_products(out, plan.memo, kRecordVersion);
    out.put(plan.costs);
    return out.write(store);
}

std::optional<PlanRecord> read_plan(const ObjectStore& store, const Hash128& object) {
    RecordReader in = open(store, object, ObjectKind::plan, kPlanVersion);
    if (in.version() < kPlanVersion) return std::nullopt;
    PlanRecord plan;
    std::uint32_t version;
    in.get(version).get(plan.request).get(plan.created_s);
    if (version < 1 || version > kRecordVersion) in.damaged();
    plan.draft = get_draft(in, version);
    std::uint8_t carve;
    in.get(carve);
    plan.carve = carve != 0;
    plan.sources = get_sources(in);
    plan.planned.resize(in.count(kTileBytes));
    for (PlannedTile& tile : plan.planned) {
        std::string reason;
        tile.key = get_tile(in);
        in.get(tile.points_at_most).get(reason);
        const auto known = kReasons.value(reason);
        if (!known) in.damaged();
        tile.reason = *known;
        std::vector<ProductRow> previous = get_products(in, version);
        if (previous.size() > 1) in.damaged();
        if (!previous.empty()) tile.previous = std::move(previous[0]);
    }
    plan.chunk_ends.resize(in.count(sizeof(std::uint32_t)));
    std::uint32_t begin = 0;
    for (std::uint32_t& end : plan.chunk_ends) {
        in.get(end);
        if (end <= begin || end > plan.planned.size()) in.damaged();
        begin = end;
    }
    if (begin != plan.planned.size()) in.damaged();
    plan.memo = get_products(in, version);
    in.get(plan.costs);
    return plan;
}

Hash128 write_receipt(ObjectStore& store, const ReceiptRecord& receipt) {
    RecordWriter out(ObjectKind::share, kReceiptVersion);
    out.put(kRecordVersion).put(receipt.plan);
    out.put(static_cast<std::uint64_t>(receipt.done.size()));
    for (const TileKey& tile : receipt.done) put_tile(out, tile);
    put_products(out, receipt.made, kRecordVersion);
    out.put(receipt.costs);
    return out.write(store);
}

ReceiptRecord read_receipt(const ObjectStore& store, const Hash128& object) {
    RecordReader in = open(store, object, ObjectKind::share, kReceiptVersion);
    if (in.version() < kReceiptVersion) in.damaged();
    ReceiptRecord receipt;
    std::uint32_t version;
    in.get(version).get(receipt.plan);
    if (version < 1 || version > kRecordVersion) in.damaged();
    receipt.done.resize(in.count(kTileBytes));
    for (TileKey& tile : receipt.done) tile = get_tile(in);
    receipt.made = get_products(in, version);
    in.get(receipt.costs);
    return receipt;
}

}  // namespace citysplat::tiling
