#include "tiling/store/city_objects.hpp"

#include "core/error.hpp"
#include "tiling/store/splat_payload.hpp"

namespace citysplat::tiling {

std::map<Hash128, NeededObject> objects_of(Catalog& catalog, const GenerationRow& generation) {
    std::map<Hash128, NeededObject> objects;
    objects.emplace(
        generation.record,
        NeededObject{
            ObjectKind::generation, "record of generation " + std::to_string(generation.id), {}, 0, {}});
    const Transaction reading = catalog.reading();
    for (const InputRow& input : catalog.inputs(generation.id)) {
        const SourceRow source = catalog.source(input.source);
        objects.emplace(source.object, NeededObject{ObjectKind::archive, "points of " + input.path,
                                                    source.object_bytes, source.id, input.path});
    }
    for (const ProductRow& tile : catalog.tiles(generation.id))
        if (tile.object)
            objects.emplace(
                *tile.object,
                NeededObject{
                    payload_kind(tile.tile.kind), "tile " + tile.tile.text(), tile.object_bytes, 0, {}});
    return objects;
}

void require_objects(Catalog& catalog, const ObjectStore& store, const GenerationRow& generation) {
    for (const auto& [object, needed] : objects_of(catalog, generation)) {
        const auto size = store.size_of(object);
        if (!size || (needed.bytes && size != needed.bytes))
            throw CorruptionError("generation " + std::to_string(generation.id) + " is not whole: " +
                                  needed.what + (size ? " has another size" : " is missing") + " (object " +
                                  object.hex() + "); citysplat verify lists all of them");
    }
}

}  // namespace citysplat::tiling
