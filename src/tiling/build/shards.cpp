#include "tiling/build/shards.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/splat_payload.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

fs::path staged_path(const CityPaths& paths) { return paths.shards() / "staged"; }

std::string text_of(const Shard& shard) {
    return std::to_string(shard.index) + "/" + std::to_string(shard.count);
}

fs::path share_path(const CityPaths& paths, const Shard& shard) {
    return paths.shards() / (std::to_string(shard.index) + "-of-" + std::to_string(shard.count));
}

/// Nothing unless the name is exactly what share_path() makes.
std::optional<Shard> shard_from(const fs::path& path) {
    const std::string name = path.filename().string();
    const std::size_t middle = name.find("-of-");
    if (middle == std::string::npos) return std::nullopt;
    const auto number = [](std::string_view text) {
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size() ? value : 0;
    };
    const Shard shard{number(std::string_view(name).substr(0, middle)),
                      number(std::string_view(name).substr(middle + 4))};
    if (shard.index < 1 || shard.index > shard.count) return std::nullopt;
    return shard;
}

void write_names(const fs::path& path, std::initializer_list<Hash128> names) {
    std::string text;
    for (const Hash128& name : names) text += name.hex() + "\n";
    write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

/// The hashes in a file of shards/, one a line (earlier versions: separated by blanks). Nothing when it holds
/// anything else.
std::optional<std::vector<Hash128>> read_names(const fs::path& path) {
    const std::string text = read_text_file(path);
    std::vector<Hash128> names;
    for (std::size_t at = 0; at < text.size(); at += 33) {
        const auto name = Hash128::from_hex(std::string_view(text).substr(at, 32));
        if (!name || at + 32 >= text.size() || (text[at + 32] != '\n' && text[at + 32] != ' '))
            return std::nullopt;
        names.push_back(*name);
    }
    return names;
}

/// The shares in shards/ that say they belong to the plan.
std::map<std::uint32_t, std::map<std::uint32_t, Hash128>> shares_of(const CityPaths& paths,
                                                                    const Hash128& plan) {
    std::map<std::uint32_t, std::map<std::uint32_t, Hash128>> sets;
    for (const auto& entry : fs::directory_iterator(paths.shards())) {
        const auto shard = shard_from(entry.path());
        if (!shard) continue;
        const auto names = read_names(entry.path());
        if (names && names->size() == 2 && (*names)[0] == plan)
            sets[shard->count][shard->index] = (*names)[1];
    }
    return sets;
}

/// Removes the files that name plans and shares, and nothing else that may lie there.
void forget_staged(const CityPaths& paths) {
    for (const auto& entry : fs::directory_iterator(paths.shards())) {
        const bool ours = entry.path() == staged_path(paths) || shard_from(entry.path());
        if (ours && entry.is_regular_file() && read_names(entry.path())) fs::remove(entry.path());
    }
    sync_directory(paths.shards());
}

std::vector<TileKey> keys_of(const std::vector<PlannedTile>& tiles) {
    std::vector<TileKey> keys;
    for (const PlannedTile& tile : tiles) keys.push_back(tile.key);
    std::sort(keys.begin(), keys.end());
    return keys;
}

/// Throws CorruptionError unless the share is that of this shard of this plan, and all it made is there.
void check_share(const ObjectStore& store, const StagedPlan& staged, const Shard& shard,
                 const ShareRecord& share) {
    const std::string again = "; build shard " + text_of(shard) + " again";
    const std::string what = share_path(store.paths(), shard).string();
    if (share.plan != staged.name || share.shard.index != shard.index || share.shard.count != shard.count)
        throw CorruptionError(what + " names the share of shard " + text_of(share.shard) + again);
    const std::vector<TileKey> part = keys_of(part_of(staged.plan, shard));
    if (share.done != part) throw CorruptionError(what + " does not hold the tiles of its part" + again);
    const TileKey* before = nullptr;
    for (const ProductRow& tile : share.made) {
        if (!std::binary_search(part.begin(), part.end(), tile.tile) || (before && !(*before < tile.tile)))
            throw CorruptionError(what + " holds tile " + tile.tile.text() + " that is not of its part" +
                                  again);
        before = &tile.tile;
        if (!payload_fits(store, tile))
            throw CorruptionError("tile " + tile.tile.text() + " of shard " + text_of(shard) +
                                  " is missing or damaged" + again);
    }
}

struct Shares {
    std::uint32_t count = 0;  ///< N of the K-of-N that is complete, 0 when none is
    std::vector<ProductRow> tiles;
    std::string missing;  ///< what the sets lack
};

Shares read_shares(const ObjectStore& store, const StagedPlan& staged) {
    const auto sets = shares_of(store.paths(), staged.name);
    Shares result;
    for (const auto& [n, set] : sets) {
        if (set.size() < n) {
            for (std::uint32_t k = 1; k <= n; ++k)
                if (!set.contains(k)) result.missing += " " + text_of({k, n});
            continue;
        }
        result.count = n;
        for (const auto& [k, name] : set) {
            ShareRecord share = read_share(store, name);
            check_share(store, staged, {k, n}, share);
            std::move(share.made.begin(), share.made.end(), std::back_inserter(result.tiles));
        }
        return result;
    }
    if (sets.empty()) result.missing = " all";
    return result;
}

}  // namespace

StagedPlan stage_plan(ObjectStore& store, PlanRecord plan) {
    const Hash128 name = write_plan(store, plan);
    store.flush();
    forget_staged(store.paths());
    write_names(staged_path(store.paths()), {name});
    return {name, std::move(plan)};
}

std::optional<StagedPlan> read_staged(const ObjectStore& store) {
    const fs::path path = staged_path(store.paths());
    if (!fs::exists(path)) return std::nullopt;
    const auto names = read_names(path);
    if (!names || names->empty() || names->size() > 2)
        throw CorruptionError(path.string() + " is damaged; remove it and build the shards again");
    if (names->size() != 1 || store.kind_of((*names)[0]) != ObjectKind::plan) return std::nullopt;
    return StagedPlan{(*names)[0], read_plan(store, (*names)[0])};
}

bool same_work(const StagedPlan& staged, const GenerationRecord& draft) {
    const GenerationRecord& before = staged.plan.draft;
    const GenerationRow &a = before.generation, &b = draft.generation;
    const bool measured_for_gate = b.findings_of == b.id;
    return (!measured_for_gate || (a.findings_of == b.findings_of && a.findings == b.findings)) &&
           a.id == b.id && a.parameters_key == b.parameters_key && a.tile_size_m == b.tile_size_m &&
           a.parameters == b.parameters && a.classes == b.classes &&
           std::equal(before.inputs.begin(), before.inputs.end(), draft.inputs.begin(), draft.inputs.end(),
                      [](const auto& x, const auto& y) {
                          return x.identity == y.identity && x.row.path == y.row.path;
                      });
}

std::vector<PlannedTile> part_of(const PlanRecord& plan, const Shard& shard) {
    std::vector<PlannedTile> all = plan.planned;
    std::sort(all.begin(), all.end(), [](const PlannedTile& a, const PlannedTile& b) {
        return a.points_at_most != b.points_at_most ? a.points_at_most > b.points_at_most : a.key < b.key;
    });
    std::vector<PlannedTile> part;
    for (std::size_t i = shard.index - 1; i < all.size(); i += shard.count) part.push_back(all[i]);
    return part;
}

void leave_share(ObjectStore& store, const StagedPlan& staged, const Shard& shard,
                 std::span<const ProductRow> tiles) {
    ShareRecord share{staged.name, shard, keys_of(part_of(staged.plan, shard)), {tiles.begin(), tiles.end()}};
    std::sort(share.made.begin(), share.made.end(),
              [](const ProductRow& a, const ProductRow& b) { return a.tile < b.tile; });
    const Hash128 name = write_share(store, share);
    store.flush();
    write_names(share_path(store.paths(), shard), {staged.name, name});
}

StagedNeeds needs_of_staged(Catalog& catalog, const ObjectStore& store) {
    StagedNeeds needs;
    const auto latest = catalog.latest();
    const auto staged = fs::exists(store.paths().shards()) ? read_staged(store) : std::nullopt;
    if (!staged || staged->plan.draft.generation.id != (latest ? latest->id : 0) + 1) return needs;
    needs.objects.insert(staged->name);
    const auto add_payloads = [&needs](const std::vector<ProductRow>& tiles) {
        for (const ProductRow& tile : tiles)
            if (tile.object) needs.objects.insert(*tile.object);
    };
    add_payloads(staged->plan.draft.tiles);
    for (const auto& input : staged->plan.draft.inputs) {
        needs.sources.insert(input.identity);
        if (const auto source = catalog.find_source(input.identity)) needs.objects.insert(source->object);
    }
    for (const auto& [n, set] : shares_of(store.paths(), staged->name))
        for (const auto& [k, name] : set) {
            needs.objects.insert(name);
            if (store.kind_of(name) == ObjectKind::share) add_payloads(read_share(store, name).made);
        }
    return needs;
}

PublishReport publish_shards(const fs::path& city, const Gate& gate) {
    ObjectStore store{CityPaths(city)};
    const CityPaths& paths = store.paths();
    require_city(paths);
    const CityLock lock = CityLock::builder(paths, "publish");
    store.create_layout();
    const auto staged = read_staged(store);
    if (!staged)
        throw ConfigError(city.string() + ": no shard has been built; run citysplat build --shard K/N first");
    Catalog catalog = Catalog::open_to_write(paths.catalog());
    const GenerationRecord& draft = staged->plan.draft;
    GenerationRow next = draft.generation;
    const auto latest = catalog.latest();
    if (next.id != (latest ? latest->id : 0) + 1)
        throw ConfigError(city.string() +
                          " has a newer generation than the shards were built for; build them again");
    Shares shares = read_shares(store, *staged);
    if (shares.count == 0)
        throw BusyError(city.string() + ": these shards are missing:" + shares.missing +
                        "; publish again when they have been built");
    if (gate) {
        if (next.findings_of != next.id)
            throw UsageError(city.string() +
                             ": nobody measured what the gate asks about; give it to build --shard, too");
        if (const auto objection = gate(next.findings))
            throw HeldBackError(*objection +
                                "; the shards are kept, and publish without the gate accepts them");
    }

    std::vector<InputRow> inputs;
    for (const auto& [row, identity] : draft.inputs) {
        const auto source = catalog.find_source(identity);
        if (!source) throw CorruptionError(row.path + ": its points are gone; build the shards again");
        inputs.push_back(row);
        inputs.back().source = source->id;
    }
    std::vector<ProductRow> tiles = draft.tiles;
    for (const ProductRow& tile : tiles)
        if (!payload_fits(store, tile))
            throw CorruptionError("tile " + tile.tile.text() +
                                  " of the city is missing or damaged; build the shards again");
    std::move(shares.tiles.begin(), shares.tiles.end(), std::back_inserter(tiles));
    for (const ProductRow& tile : tiles) {
        next.splats += tile.splats;
        next.digest += tile.digest;
    }
    next.tiles = tiles.size();
    next.created_s = static_cast<std::int64_t>(std::time(nullptr));
    if (!tiles.empty()) catalog.add_products(tiles);
    const std::int64_t id = publish_generation(catalog, store, next, inputs, tiles);
    forget_staged(paths);
    return {id, shares.count, next.tiles, next.splats, next.digest};
}

}  // namespace citysplat::tiling
