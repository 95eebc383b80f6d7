#include "core/error.hpp"
#include "tiling/city_care.hpp"
#include "tiling/city_lock.hpp"
#include "tiling/generation_record.hpp"
#include "tiling/object_store.hpp"
#include "tiling/point_archive.hpp"

#include <algorithm>
#include <map>

namespace citysplat::tiling {

namespace {

struct Found {
    std::vector<CitySource> sources;
    std::map<std::int64_t, GenerationRecord> generations;
    std::uint64_t damaged = 0;
};

/// Reads every object; what does not match its name is not trusted for anything.
Found find_objects(const ObjectStore& store, const CancelToken& cancel) {
    Found found;
    store.for_each([&](const Hash128& object, std::uint64_t) {
        cancel.check();
        if (!store.intact(object)) {
            ++found.damaged;
            store.remove(object);
            return;
        }
        if (auto record = read_record(store, object)) {
            found.generations.insert_or_assign(record->generation.id, std::move(*record));
            return;
        }
        const File file = store.open(object, "an object");
        if (is_archive(file)) found.sources.push_back(read_directory(file, object));
    });
    return found;
}

/// Adds the rows of one generation. Returns the inputs whose points are lost.
std::vector<std::string> publish_record(Catalog& catalog, const GenerationRecord& record,
                                        const std::map<Hash128, std::int64_t>& source_ids) {
    std::vector<std::string> lost;
    std::vector<InputRow> inputs;
    for (const auto& [row, identity] : record.inputs) {
        const auto source = source_ids.find(identity);
        if (source == source_ids.end()) {
            lost.push_back(row.path);
            continue;
        }
        inputs.push_back(row);
        inputs.back().source = source->second;
    }
    std::vector<ProductRow> tiles = record.tiles;
    if (!tiles.empty()) catalog.add_products(tiles);
    catalog.publish(record.generation, inputs, tiles);
    return lost;
}

}  // namespace

RepairReport repair_city(const std::filesystem::path& city, const CancelToken& cancel) {
    ObjectStore store{CityPaths(city)};
    const CityPaths& paths = store.paths();
    if (!std::filesystem::exists(paths.objects()))
        throw ConfigError(city.string() + " is not a city: it has no objects");
    const CityLock lock = CityLock::builder(paths, "repair");
    store.create_layout();
    store.clear_temporary();
    const Found found = find_objects(store, cancel);
    if (found.generations.empty())
        throw CorruptionError(city.string() +
                              ": no generation can be recovered from the objects; build the city again");

    const auto temporary = paths.temporary() / "catalog.sqlite";
    Catalog::create(temporary);
    RepairReport report;
    {
        Catalog catalog = Catalog::open_to_write(temporary);
        const std::vector<std::int64_t> ids = catalog.add_sources(found.sources);
        std::map<Hash128, std::int64_t> source_ids;
        for (std::size_t i = 0; i < ids.size(); ++i) source_ids[found.sources[i].row.identity] = ids[i];
        report.sources = source_ids.size();
        for (const auto& [id, record] : found.generations) {
            report.lost_inputs = publish_record(catalog, record, source_ids);
            report.latest = id;
        }
    }
    if (paths.is_city()) {
        auto aside = paths.catalog();
        aside += ".before-repair";
        if (::rename(paths.catalog().c_str(), aside.c_str()) != 0)
            throw_errno("cannot rename", paths.catalog());
        auto journal = paths.catalog();
        journal += "-journal";
        std::filesystem::remove(journal);
    }
    if (::rename(temporary.c_str(), paths.catalog().c_str()) != 0)
        throw_errno("cannot rename to", paths.catalog());
    sync_directory(paths.root());
    report.generations = found.generations.size();
    report.damaged_objects = found.damaged;
    return report;
}

}  // namespace citysplat::tiling
