#include "core/error.hpp"
#include "tiling/city_care.hpp"
#include "tiling/city_lock.hpp"
#include "tiling/generation_record.hpp"
#include "tiling/object_store.hpp"

#include <algorithm>
#include <ctime>
#include <set>

namespace citysplat::tiling {

namespace {

Catalog open_catalog(const CityPaths& paths) {
    if (!paths.is_city()) throw ConfigError(paths.root().string() + " is not a city (no catalog.sqlite)");
    return Catalog::open_to_write(paths.catalog());
}

/// The objects that the generations outside `forgotten` need.
std::set<Hash128> needed_objects(Catalog& catalog, const std::vector<std::int64_t>& forgotten) {
    std::set<Hash128> needed;
    for (const GenerationRow& generation : catalog.history()) {
        if (std::find(forgotten.begin(), forgotten.end(), generation.id) != forgotten.end()) continue;
        needed.insert(generation.record);
        for (const InputRow& input : catalog.inputs(generation.id))
            needed.insert(catalog.source(input.source).object);
        for (const ProductRow& tile : catalog.tiles(generation.id))
            if (tile.object) needed.insert(*tile.object);
    }
    return needed;
}

}  // namespace

GarbageReport collect_garbage(const std::filesystem::path& city, std::size_t keep, bool dry_run) {
    const ObjectStore store{CityPaths(city)};
    const CityPaths& paths = store.paths();
    if (!paths.is_city()) throw ConfigError(city.string() + " is not a city (no catalog.sqlite)");
    const CityLock lock = CityLock::builder(paths, "gc");
    Catalog catalog = open_catalog(paths);
    GarbageReport report;
    std::vector<CityLock> held;  // until the objects are gone: no reader can take up what is being forgotten
    const auto history = catalog.history();
    for (std::size_t i = 0; i + keep < history.size(); ++i) {
        const std::int64_t id = history[i].id;
        if (auto collect = CityLock::collect(paths, id)) {
            held.push_back(std::move(*collect));
            report.forgotten.push_back(id);
        } else {
            report.pinned.push_back(id);
        }
    }
    const std::set<Hash128> needed = needed_objects(catalog, report.forgotten);
    if (!dry_run) {
        catalog.forget(report.forgotten);
        store.clear_temporary();
    }
    store.for_each([&](const Hash128& object, std::uint64_t bytes) {
        if (needed.contains(object)) return;
        ++report.objects;
        report.freed_bytes += bytes;
        if (!dry_run) store.remove(object);
    });
    return report;
}

std::int64_t roll_back(const std::filesystem::path& city, std::optional<std::int64_t> generation) {
    ObjectStore store{CityPaths(city)};
    if (!store.paths().is_city()) throw ConfigError(city.string() + " is not a city (no catalog.sqlite)");
    const CityLock lock = CityLock::builder(store.paths(), "rollback");
    Catalog catalog = open_catalog(store.paths());
    const auto history = catalog.history();
    if (!generation) {
        if (history.size() < 2) throw UsageError(city.string() + " has no earlier generation to go back to");
        generation = history[history.size() - 2].id;
    }
    auto row = catalog.generation(*generation);
    if (!row)
        throw UsageError(city.string() + " has no generation " + std::to_string(*generation) +
                         "; citysplat status --history lists them");
    row->note = "rollback to " + std::to_string(*generation);
    row->created_s = static_cast<std::int64_t>(std::time(nullptr));
    return publish_generation(catalog, store, *row, catalog.inputs(*generation), catalog.tiles(*generation));
}

}  // namespace citysplat::tiling
