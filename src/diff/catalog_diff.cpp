#include "diff/catalog_diff.hpp"

#include "tiling/build/publisher.hpp"
#include "tiling/store/product_kinds.hpp"

#include <map>

namespace citysplat::diff {

namespace {

using tiling::GenerationRow;
using tiling::InputRow;
using tiling::ProductRow;

std::vector<InputChange> compare_inputs(tiling::Catalog& catalog, const GenerationRow& from,
                                        const GenerationRow& to) {
    std::map<std::string, InputRow> before, after;
    for (InputRow& row : catalog.inputs(from.id)) before.emplace(row.path, std::move(row));
    for (InputRow& row : catalog.inputs(to.id)) after.emplace(row.path, std::move(row));
    const auto points = [&catalog](const InputRow& row) { return catalog.source(row.source).counts.kept; };
    std::map<std::string, InputChange> changes;
    for (const auto& [path, row] : before) {
        const auto found = after.find(path);
        if (found == after.end())
            changes.emplace(path, InputChange{Change::removed, path, points(row), 0});
        else if (found->second.source != row.source)
            changes.emplace(path, InputChange{Change::changed, path, points(row), points(found->second)});
    }
    for (const auto& [path, row] : after)
        if (!before.contains(path)) changes.emplace(path, InputChange{Change::added, path, 0, points(row)});
    std::vector<InputChange> sorted;
    for (auto& [path, change] : changes) sorted.push_back(std::move(change));
    return sorted;
}

tiling::Reason reason_of(const GenerationRow& from, const GenerationRow& to, const ProductRow* before,
                         const ProductRow& after) {
    if (from.tile_size_m != to.tile_size_m) return tiling::Reason::split;
    const ProductKind kind = after.tile.kind;
    if (!tiling::has_kind(from, kind)) return tiling::Reason::new_product;
    const auto key_of = [kind](const GenerationRow& row) {
        for (const tiling::KindKey& k : tiling::kinds_of(row))
            if (k.kind == kind) return k.parameters_key;
        return Hash128{};
    };
    const auto same = [](const Hash128& x, const Hash128& y) {
        return x == y || x == tiling::key_with_old_tiles(y) || y == tiling::key_with_old_tiles(x);
    };
    if (!same(key_of(from), key_of(to)))
        return from.parameters == to.parameters && from.classes == to.classes &&
                       from.calibration == to.calibration
                   ? tiling::Reason::algorithm
                   : tiling::Reason::parameters;
    if (!before) return tiling::Reason::new_tile;
    return before->core != after.core ? tiling::Reason::changed_core : tiling::Reason::changed_halo;
}

}  // namespace

CatalogDiff compare_catalog(tiling::Catalog& catalog, const GenerationRow& from, const GenerationRow& to) {
    const tiling::Transaction reading = catalog.reading();
    CatalogDiff diff;
    diff.inputs = compare_inputs(catalog, from, to);
    const auto before = catalog.tiles(from.id), after = catalog.tiles(to.id);
    diff.counts = tiling::changes_between(before, after);
    std::map<TileKey, const ProductRow*> known;
    for (const ProductRow& tile : before) known.emplace(tile.tile, &tile);
    for (const ProductRow& tile : after) {
        const auto found = known.find(tile.tile);
        const ProductRow* old = found == known.end() ? nullptr : found->second;
        if (old) known.erase(found);
        if (old && old->digest == tile.digest) continue;
        diff.tiles.push_back({old ? Change::changed : Change::added, tile.tile,
                              reason_of(from, to, old, tile), old ? old->splats : 0, tile.splats});
    }
    for (const auto& [tile, row] : known)
        diff.tiles.push_back({Change::removed, tile, tiling::Reason::new_tile, row->splats, 0});
    std::sort(diff.tiles.begin(), diff.tiles.end(),
              [](const TileChange& a, const TileChange& b) { return a.tile < b.tile; });
    return diff;
}

}  // namespace citysplat::diff
