#pragma once

#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace citysplat::tiling {

/// One object that a generation needs.
struct NeededObject {
    ObjectKind kind;
    std::string what;                    ///< what a person calls it: "tile 0/12/7", "points of /data/a.las"
    std::optional<std::uint64_t> bytes;  ///< as the catalog says; records have no size there
    std::int64_t source = 0;             ///< of an archive: its number in the catalog
    std::string input;                   ///< of an archive: the path of its input
};

/// Every object that a generation needs, by name: its record, the archives of its inputs, the payloads of its
/// tiles. The one list that verify, gc, pack and rollback go by.
std::map<Hash128, NeededObject> objects_of(Catalog& catalog, const GenerationRow& generation);

/// Throws CorruptionError naming the first object of a generation that is missing or has another size.
void require_objects(Catalog& catalog, const ObjectStore& store, const GenerationRow& generation);

}  // namespace citysplat::tiling
