#include "tiling/store/city_reader.hpp"

#include "core/error.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/product_kinds.hpp"

#include <stdexcept>

namespace citysplat::tiling {

CityReader::CityReader(const std::filesystem::path& city, std::optional<std::int64_t> generation,
                       ProductKind kind)
    : store_(CityPaths(city)), kind_(kind) {
    const CityPaths& paths = store_.paths();
    Catalog catalog = Catalog::open_to_read(paths.catalog());
    // Between reading the number and pinning it, gc may forget the generation: then there is a newer one.
    for (;;) {
        const auto row = generation ? catalog.generation(*generation) : catalog.latest();
        if (!row)
            throw ConfigError(city.string() +
                              (generation ? ": there is no generation " + std::to_string(*generation) +
                                                "; citysplat status --history lists them"
                                          : ": nothing has been built yet"));
        pin_ = CityLock::pin(paths, row->id);
        if (pin_ && catalog.generation(row->id)) {
            generation_ = *row;
            break;
        }
    }
    check_rows(catalog, store_, generation_);
    if (!has_kind(generation_, kind)) {
        const std::string wanted = kProductKinds.of(kind), there = words_of(kinds_of(generation_));
        throw ConfigError(city.string() + ": generation " + std::to_string(generation_.id) + " has no " +
                          wanted + ", only " + there + "; citysplat build --product " + there + "," + wanted +
                          " makes it beside");
    }
    classes_ = generation_.classes.empty() ? ClassMap() : ClassMap::parse(generation_.classes, city.string());
    for (ProductRow& product : catalog.tiles(generation_.id)) {
        if (!product.object || product.tile.kind != kind) continue;
        const auto& b = product.box;
        entries_.push_back({.key = product.tile,
                            .splats = product.splats,
                            .payload_bytes = product.object_bytes,
                            .min = {b[0], b[1], b[2]},
                            .max = {b[3], b[4], b[5]}});
        products_.push_back(std::move(product));
    }
}

SplatTile CityReader::load(std::size_t tile) const { return std::move(read(tile, false).splats); }

MeshTile CityReader::load_mesh(std::size_t tile) const { return std::move(read(tile, true).mesh); }

Payload CityReader::read(std::size_t tile, bool triangles) const {
    if (triangles != has_triangles(kind_))
        throw std::logic_error("a city was opened for products of another kind");
    const ProductRow& product = products_.at(tile);
    const std::string what = "tile " + product.tile.text();
    Payload payload = read_payload(store_, *product.object, what);
    if (payload.info.tile != product.tile || payload.info.key != product.key ||
        (triangles ? payload.mesh.triangle_count() : payload.splats.size()) != product.splats)
        throw CorruptionError(what + ": the catalog names the payload of tile " + payload.info.tile.text() +
                              "; citysplat repair rebuilds the catalog from the objects");
    return payload;
}

}  // namespace citysplat::tiling
