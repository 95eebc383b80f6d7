#include "diff/splat_diff.hpp"

#include "core/parallel.hpp"
#include "tiling/store/splat_payload.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace citysplat::diff {

namespace {

using tiling::ProductRow;

/// A splat of one of the generations.
struct Known {
    Hash128 hash;
    std::uint32_t tile;  ///< its place in the list of tiles
    std::uint16_t label, zero = 0;
    friend auto operator<=>(const Known& a, const Known& b) {
        if (const auto order = a.hash <=> b.hash; order != 0) return order;
        return std::pair(a.tile, a.label) <=> std::pair(b.tile, b.label);
    }
};
static_assert(sizeof(Known) == 24);

/// Hash of a splat in world terms: what a tile of it alone would have as its digest.
Hash128 hash_of(const SplatTile& splats, std::size_t i) {
    const Splat splat = splats.splat(i);
    return SplatTile(splats.frame(), std::span(&splat, 1)).digest();
}

/// The tiles of one list whose content the other has not under the same key.
std::vector<ProductRow> differing(std::span<const ProductRow> rows, std::span<const ProductRow> others) {
    std::map<TileKey, Hash128> digests;
    for (const ProductRow& other : others) digests.emplace(other.tile, other.digest);
    std::vector<ProductRow> result;
    for (const ProductRow& row : rows) {
        const auto found = digests.find(row.tile);
        if (row.object && (found == digests.end() || found->second != row.digest)) result.push_back(row);
    }
    return result;
}

/// The splats of these tiles whose hashes fall into one of `parts` parts, sorted.
std::vector<Known> read_part(const tiling::ObjectStore& store, const std::vector<ProductRow>& tiles,
                             std::uint64_t part, std::uint64_t parts, const CancelToken& cancel) {
    std::vector<Known> all;
    std::mutex mutex;
    parallel_tasks(tiles.size(), [&](std::size_t t) {
        cancel.check();
        const SplatTile splats =
            tiling::read_payload(store, *tiles[t].object, "tile " + tiles[t].tile.text()).splats;
        std::vector<Known> here;
        for (std::size_t i = 0; i < splats.size(); ++i) {
            const Hash128 hash = hash_of(splats, i);
            if (hash.low % parts == part)
                here.push_back({hash, static_cast<std::uint32_t>(t), splats.label()[i]});
        }
        const std::lock_guard guard(mutex);
        all.insert(all.end(), here.begin(), here.end());
    });
    std::sort(all.begin(), all.end());
    return all;
}

std::uint64_t splats_of(const std::vector<ProductRow>& tiles) {
    std::uint64_t splats = 0;
    for (const ProductRow& tile : tiles) splats += tile.splats;
    return splats;
}

}  // namespace

SplatDiff compare_splats(const tiling::ObjectStore& store, std::span<const ProductRow> before,
                         std::span<const ProductRow> after, std::uint64_t budget_bytes,
                         const CancelToken& cancel) {
    const std::vector<ProductRow> old_tiles = differing(before, after), new_tiles = differing(after, before);
    SplatDiff diff;
    // Sorting and gathering takes as much again.
    const std::uint64_t bytes = 2 * sizeof(Known) * (splats_of(old_tiles) + splats_of(new_tiles));
    const std::uint64_t parts = 1 + bytes / std::max<std::uint64_t>(budget_bytes, 1);
    for (std::uint64_t part = 0; part < parts; ++part) {
        const auto old_splats = read_part(store, old_tiles, part, parts, cancel);
        const auto new_splats = read_part(store, new_tiles, part, parts, cancel);
        const auto count = [&diff](const Known& splat, const std::vector<ProductRow>& tiles,
                                   std::uint64_t SplatCounts::*what) {
            ++(diff.all.*what);
            ++(diff.classes[splat.label].*what);
            ++(diff.tiles[tiles[splat.tile].tile].*what);
        };
        for (const Known& splat : old_splats) count(splat, old_tiles, &SplatCounts::before);
        for (const Known& splat : new_splats) count(splat, new_tiles, &SplatCounts::after);
        // Of equal splats as many cancel as both have.
        auto a = old_splats.begin();
        auto b = new_splats.begin();
        while (a != old_splats.end() || b != new_splats.end()) {
            if (b == new_splats.end() || (a != old_splats.end() && a->hash < b->hash))
                count(*a++, old_tiles, &SplatCounts::gone);
            else if (a == old_splats.end() || b->hash < a->hash)
                count(*b++, new_tiles, &SplatCounts::added);
            else
                ++a, ++b;
        }
    }
    return diff;
}

}  // namespace citysplat::diff
