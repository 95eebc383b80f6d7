#pragma once

#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"
#include "tiling/store/record_codec.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citysplat::tiling {

/// Everything the catalog says about one generation, as an object of its own: about 170 bytes per tile. It is
/// what `repair` finds its way back with when the catalog is lost, and what the catalog is held against.
/// Inputs are sorted by path, tiles by key, so that the same generation always has the same bytes.
struct GenerationRecord {
    struct Input {
        InputRow row;      ///< without its source's number
        Hash128 identity;  ///< of its source
    };
    GenerationRow generation;
    std::vector<Input> inputs;
    std::vector<ProductRow> tiles;
};

/// What the catalog says about a generation.
GenerationRecord record_of(Catalog& catalog, const GenerationRow& generation);
/// A generation that is about to be published.
GenerationRecord make_record(Catalog& catalog, const GenerationRow& generation,
                             std::span<const InputRow> inputs, std::span<const ProductRow> tiles);

/// Generations and inputs are part of plans, too (plan_record.hpp). Version 2 added the
/// angular step of the sensor, version 3 the points of a tile that were seen through, version 4 findings,
/// version 5 tags, version 6 kinds of products.
inline constexpr std::uint32_t kRecordVersion = 6;
void put_draft(RecordWriter& out, const GenerationRecord& record);
GenerationRecord get_draft(RecordReader& in, std::uint32_t version);

Hash128 write_record(ObjectStore& store, const GenerationRecord& record);
/// Nothing when the object is not a record of a generation. Throws CorruptionError when it is a damaged one.
std::optional<GenerationRecord> read_record(const ObjectStore& store, const Hash128& object);

/// Nothing when both say the same, else the first thing in which they differ, in words. The first is the
/// catalog's, the second what was published.
std::optional<std::string> difference(const GenerationRecord& catalog, const GenerationRecord& published);

/// Sets what a generation says about its tiles together.
void add_up(GenerationRow& generation, std::span<const ProductRow> tiles);

/// Why this cannot be a generation that was published: its tiles do not add up. Earlier versions wrote the
/// plans and shares of sharded builds in the same form.
std::optional<std::string> why_not_published(const GenerationRecord& record);

/// Holds the rows of a generation against its record. Throws CorruptionError naming what differs. A record
/// that is missing is no damage of the rows: its name alone tells whether they are what was published. Looks
/// at what the catalog says now, whatever `generation` said before.
void check_rows(Catalog& catalog, const ObjectStore& store, const GenerationRow& generation);

/// Publishes a generation: its record first, durably, then the transaction that flips the city. Everything
/// the tiles name must be durable. Returns the number of the generation.
std::int64_t publish_generation(Catalog& catalog, ObjectStore& store, GenerationRow generation,
                                std::span<const InputRow> inputs, std::span<const ProductRow> tiles);

/// Gives a generation other names (GenerationRow::tags), in row and record alike.
void set_tags(Catalog& catalog, ObjectStore& store, GenerationRow generation, const std::string& tags);

/// New stamps for the inputs of the latest generation (a touched file), in rows and record alike. Also writes
/// a record again that is missing or damaged. Does nothing when nothing changed.
void refresh_generation(Catalog& catalog, ObjectStore& store, const GenerationRow& generation,
                        std::span<const InputRow> inputs);

}  // namespace citysplat::tiling
