#include "tiling/shards.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "tiling/city_lock.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

fs::path staged_path(const CityPaths& paths) { return paths.shards() / "staged"; }

fs::path share_path(const CityPaths& paths, const Shard& shard) {
    return paths.shards() / (std::to_string(shard.index) + "-of-" + std::to_string(shard.count));
}

void write_names(const fs::path& path, const Hash128& a, const Hash128& b) {
    const std::string text = a.hex() + " " + b.hex() + "\n";
    write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

std::pair<Hash128, Hash128> read_names(const fs::path& path) {
    const std::string text = read_text_file(path);
    const auto a = Hash128::from_hex(text.substr(0, 32));
    const auto b = text.size() >= 65 ? Hash128::from_hex(text.substr(33, 32)) : std::nullopt;
    if (!a || !b) throw CorruptionError(path.string() + " is damaged; remove it and run the shard again");
    return {*a, *b};
}

GenerationRecord load(const ObjectStore& store, const Hash128& name) {
    auto record = read_record(store, name);
    if (!record) throw CorruptionError("object " + name.hex() + " is not the record of a shard");
    return std::move(*record);
}

struct Shares {
    std::uint32_t count = 0;  ///< N of the K-of-N that is complete, 0 when none is
    std::vector<ProductRow> tiles;
    std::string missing;  ///< what the most complete set lacks
};

Shares read_shares(const ObjectStore& store, const StagedPlan& staged) {
    std::map<std::uint32_t, std::map<std::uint32_t, Hash128>> sets;
    for (const auto& entry : fs::directory_iterator(store.paths().shards())) {
        unsigned k = 0, n = 0;
        if (std::sscanf(entry.path().filename().c_str(), "%u-of-%u", &k, &n) != 2) continue;
        const auto [plan, share] = read_names(entry.path());
        if (plan == staged.name && k >= 1 && k <= n) sets[n][k] = share;
    }
    Shares result;
    for (const auto& [n, set] : sets) {
        if (set.size() < n) {
            for (std::uint32_t k = 1; k <= n; ++k)
                if (!set.contains(k)) result.missing += " " + std::to_string(k) + "/" + std::to_string(n);
            continue;
        }
        result.count = n;
        for (const auto& [k, share] : set) {
            auto record = load(store, share);
            std::move(record.tiles.begin(), record.tiles.end(), std::back_inserter(result.tiles));
        }
        return result;
    }
    if (sets.empty()) result.missing = " all";
    return result;
}

}  // namespace

StagedPlan stage_plan(ObjectStore& store, const GenerationRecord& record,
                      std::span<const PlannedTile> planned) {
    GenerationRecord work;
    for (const PlannedTile& tile : planned) {
        ProductRow row;
        row.tile = tile.key;
        row.points = tile.points_at_most;
        work.tiles.push_back(row);
    }
    const Hash128 name = write_record(store, record), work_name = write_record(store, work);
    store.flush();
    for (const auto& entry : fs::directory_iterator(store.paths().shards())) fs::remove(entry.path());
    write_names(staged_path(store.paths()), name, work_name);
    return {name, record, {planned.begin(), planned.end()}};
}

std::optional<StagedPlan> read_staged(const ObjectStore& store) {
    const fs::path path = staged_path(store.paths());
    if (!fs::exists(path)) return std::nullopt;
    const auto [name, work] = read_names(path);
    if (!store.size_of(name) || !store.size_of(work)) return std::nullopt;  // collected as garbage
    StagedPlan staged{name, load(store, name), {}};
    for (const ProductRow& row : load(store, work).tiles)
        staged.planned.push_back({row.tile, row.points, {}, Reason::new_tile});
    return staged;
}

bool same_work(const StagedPlan& staged, const GenerationRecord& draft) {
    const GenerationRow &a = staged.record.generation, &b = draft.generation;
    return a.id == b.id && a.parameters_key == b.parameters_key && a.tile_size_m == b.tile_size_m &&
           a.parameters == b.parameters && a.classes == b.classes &&
           std::equal(staged.record.inputs.begin(), staged.record.inputs.end(), draft.inputs.begin(),
                      draft.inputs.end(), [](const auto& x, const auto& y) {
                          return x.identity == y.identity && x.row.path == y.row.path;
                      });
}

std::vector<PlannedTile> part_of(const StagedPlan& staged, const Shard& shard) {
    std::vector<PlannedTile> all = staged.planned;
    std::sort(all.begin(), all.end(), [](const PlannedTile& a, const PlannedTile& b) {
        return a.points_at_most != b.points_at_most ? a.points_at_most > b.points_at_most : a.key < b.key;
    });
    std::vector<PlannedTile> part;
    for (std::size_t i = shard.index - 1; i < all.size(); i += shard.count) part.push_back(all[i]);
    return part;
}

void write_share(ObjectStore& store, const StagedPlan& staged, const Shard& shard,
                 std::span<const ProductRow> tiles) {
    GenerationRecord share;
    share.tiles.assign(tiles.begin(), tiles.end());
    const Hash128 name = write_record(store, share);
    store.flush();
    write_names(share_path(store.paths(), shard), staged.name, name);
}

PublishReport publish_shards(const fs::path& city) {
    ObjectStore store{CityPaths(city)};
    const CityPaths& paths = store.paths();
    if (!paths.is_city()) throw ConfigError(city.string() + " is not a city (no catalog.sqlite)");
    const CityLock lock = CityLock::builder(paths, "publish");
    const auto staged = read_staged(store);
    if (!staged)
        throw ConfigError(city.string() + ": no shard has been built; run citysplat build --shard K/N first");
    Catalog catalog = Catalog::open_to_write(paths.catalog());
    GenerationRow next = staged->record.generation;
    const auto latest = catalog.latest();
    if (next.id != (latest ? latest->id : 0) + 1)
        throw ConfigError(city.string() +
                          " has a newer generation than the shards were built for; build them again");
    Shares shares = read_shares(store, *staged);
    if (shares.count == 0)
        throw BusyError(city.string() + ": these shards are missing:" + shares.missing +
                        "; publish again when they have been built");

    std::vector<InputRow> inputs;
    for (const auto& [row, identity] : staged->record.inputs) {
        const auto source = catalog.find_source(identity);
        if (!source) throw CorruptionError(row.path + ": its points are gone; build the shards again");
        inputs.push_back(row);
        inputs.back().source = source->id;
    }
    std::vector<ProductRow> tiles = staged->record.tiles;
    std::move(shares.tiles.begin(), shares.tiles.end(), std::back_inserter(tiles));
    for (const ProductRow& tile : tiles) {
        if (tile.object && store.size_of(*tile.object) != tile.object_bytes)
            throw CorruptionError("tile " + tile.tile.text() +
                                  " of a shard is missing; build that shard again");
        next.splats += tile.splats;
        next.digest += tile.digest;
    }
    next.tiles = tiles.size();
    next.created_s = static_cast<std::int64_t>(std::time(nullptr));
    if (!tiles.empty()) catalog.add_products(tiles);
    const std::int64_t id = publish_generation(catalog, store, next, inputs, tiles);
    for (const auto& entry : fs::directory_iterator(paths.shards())) fs::remove(entry.path());
    return {id, shares.count, next.tiles, next.splats, next.digest};
}

}  // namespace citysplat::tiling
