#include "bench/disk_city.hpp"

#include "core/file.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/splat_payload.hpp"

#include <algorithm>
#include <fcntl.h>
#include <vector>

namespace citysplat::bench {

namespace {

using namespace tiling;

/// A made-up tile comes from no points: its key is made from its name and its splats.
ProductRow write_tile(ObjectStore& store, const TileKey& key, const SplatTile& splats) {
    ProductRow product;
    product.tile = key;
    product.splats = splats.size();
    product.digest = splats.digest();
    product.key = Hasher()
                      .text("made tile")
                      .number(key.level)
                      .number(key.ix)
                      .number(key.iy)
                      .hash(product.digest)
                      .finish();
    product.core = product.key;
    product.box = box_of(splats);
    product.object =
        write_payload(store, product_of(splats),
                      {.tile = key, .key = product.key, .digest = product.digest, .box = product.box},
                      product.object_bytes);
    return product;
}

}  // namespace

void write_city(const TileSource& city, const std::filesystem::path& directory) {
    constexpr std::size_t kBatch = 32;
    ObjectStore store{CityPaths(directory)};
    store.create_layout();
    std::vector<ProductRow> tiles;
    GenerationRow generation;
    generation.note = "made up";
    generation.tile_size_m = 32;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) {
        tiles.push_back(write_tile(store, city.tiles()[i].key, city.load(i)));
        generation.splats += tiles.back().splats;
        generation.digest += tiles.back().digest;
        if (store.pending() >= kBatch) store.flush();
    }
    store.flush();
    generation.tiles = tiles.size();
    std::sort(tiles.begin(), tiles.end(),
              [](const ProductRow& a, const ProductRow& b) { return a.tile < b.tile; });
    Catalog::create(store.paths().catalog());
    Catalog catalog = Catalog::open_to_write(store.paths().catalog());
    catalog.add_products(tiles);
    publish_generation(catalog, store, generation, {}, tiles);
}

void forget_pages(const std::filesystem::path& city) {
    const ObjectStore store{CityPaths(city)};
    store.for_each([&](const Hash128& object, std::uint64_t) {
        const File file(store.paths().object(object), File::Mode::read);
        ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    });
}

}  // namespace citysplat::bench
