#pragma once

#include "tiling/catalog.hpp"
#include "tiling/object_store.hpp"

#include <optional>
#include <span>
#include <vector>

namespace citysplat::tiling {

/// Everything the catalog says about one generation, as an object of its own: about 170 bytes per tile. It is
/// what `repair` finds its way back with when the catalog is lost.
struct GenerationRecord {
    struct Input {
        InputRow row;      ///< without its source's number
        Hash128 identity;  ///< of its source
    };
    GenerationRow generation;
    std::vector<Input> inputs;
    std::vector<ProductRow> tiles;
};

Hash128 write_record(ObjectStore& store, const GenerationRecord& record);

/// Nothing when the object is not a record. Throws CorruptionError when it is a damaged one.
std::optional<GenerationRecord> read_record(const ObjectStore& store, const Hash128& object);

/// Publishes a generation: its record first, durably, then the transaction that flips the city. Everything
/// the tiles name must be durable. Returns the number of the generation.
std::int64_t publish_generation(Catalog& catalog, ObjectStore& store, GenerationRow generation,
                                std::span<const InputRow> inputs, std::span<const ProductRow> tiles);

}  // namespace citysplat::tiling
