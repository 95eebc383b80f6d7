#include "core/error.hpp"
#include "tiling/build/chunks.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/points/point_archive.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/object_store.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unistd.h>

namespace citysplat::tiling {

namespace {

struct Found {
    std::map<Hash128, CitySource> sources;  ///< by identity
    std::vector<GenerationRecord> records;
    std::set<Hash128> intact, damaged;
};

/// What an object whose bytes match its name has to say. Throws CorruptionError when that makes no sense.
void take_in(const ObjectStore& store, const Hash128& object, Found& found, RepairReport& report) {
    switch (store.kind_of(object).value_or(ObjectKind::payload)) {
        case ObjectKind::archive: {
            CitySource source = read_directory(store.open(object, "an archive"), object);
            found.sources.insert_or_assign(source.row.identity, std::move(source));
            break;
        }
        case ObjectKind::generation: {
            auto record = read_record(store, object);
            if (!record) throw CorruptionError("record " + object.hex() + " cannot be read");
            if (const auto why = why_not_published(*record))
                report.notes.push_back("record " + object.hex() + " of generation " +
                                       std::to_string(record->generation.id) + " is left out: " + *why);
            else
                found.records.push_back(std::move(*record));
            break;
        }
        case ObjectKind::payload:
        case ObjectKind::mesh:
        case ObjectKind::plan:
        case ObjectKind::share:
            break;
    }
}

/// Reads every object; what does not match its name is not trusted for anything.
Found find_objects(const ObjectStore& store, RepairReport& report, const CancelToken& cancel) {
    Found found;
    store.for_each([&](const Hash128& object, std::uint64_t) {
        cancel.check();
        if (!store.intact(object)) {
            found.damaged.insert(object);
            return;
        }
        found.intact.insert(object);
        try {
            take_in(store, object, found, report);
        } catch (const CorruptionError& error) {
            report.notes.push_back("object " + object.hex() + " is left out: " + error.what());
        }
    });
    return found;
}

/// The records that the catalog names, if it can still be asked.
std::set<Hash128> records_in_catalog(const CityPaths& paths) {
    std::set<Hash128> names;
    if (!paths.is_city()) return names;
    try {
        // To write: a journal that a killed builder left is rolled back before the catalog is replaced.
        for (const GenerationRow& row : Catalog::open_to_write(paths.catalog()).history())
            names.insert(row.record);
    } catch (const Error&) {
        names.clear();
    }
    return names;
}

std::string number(const GenerationRecord& record) { return std::to_string(record.generation.id); }

/// One record for each number. A number may have two: a publish that was interrupted, or new stamps of
/// inputs, or tags. The one that the catalog names counts, then the later one.
std::vector<GenerationRecord> choose_records(Found& found, const std::set<Hash128>& in_catalog,
                                             RepairReport& report) {
    std::sort(found.records.begin(), found.records.end(), [&](const auto& a, const auto& b) {
        const auto key = [&](const GenerationRecord& r) {
            return std::tuple(r.generation.id, in_catalog.contains(r.generation.record),
                              r.generation.revision, r.generation.created_s, r.generation.record);
        };
        return key(a) < key(b);
    });
    const auto is_whole = [&found](const GenerationRecord& record) {
        return std::all_of(
                   record.tiles.begin(), record.tiles.end(),
                   [&](const ProductRow& t) { return !t.object || found.intact.contains(*t.object); }) &&
               std::all_of(record.inputs.begin(), record.inputs.end(),
                           [&](const auto& i) { return found.sources.contains(i.identity); });
    };
    std::vector<GenerationRecord> chosen;
    for (GenerationRecord& record : found.records) {
        if (!chosen.empty() && chosen.back().generation.id == record.generation.id) chosen.pop_back();
        chosen.push_back(std::move(record));
    }
    // Only the latest can be completed by a build; of the others, `gc` may have taken a part.
    for (std::size_t i = 0; i + 1 < chosen.size();) {
        if (is_whole(chosen[i])) {
            ++i;
            continue;
        }
        report.notes.push_back("generation " + number(chosen[i]) + " is left out: objects of it are missing");
        chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return chosen;
}

/// Stands for a source whose archive is lost. Its object is nowhere: the next build reads the input again, or
/// says that it is gone; the points do not just vanish from the city.
CitySource lost_source(const Hash128& identity) {
    CitySource source;
    source.row.identity = source.row.object = identity;
    return source;
}

void publish_record(Catalog& catalog, const GenerationRecord& record,
                    const std::map<Hash128, std::int64_t>& source_ids) {
    std::vector<InputRow> inputs;
    for (const auto& [row, identity] : record.inputs) {
        inputs.push_back(row);
        inputs.back().source = source_ids.at(identity);
    }
    std::vector<ProductRow> tiles = record.tiles;
    if (!tiles.empty()) catalog.add_products(tiles);
    catalog.publish(record.generation, inputs, tiles);
}

void fill_catalog(const std::filesystem::path& path, const Found& found,
                  const std::vector<GenerationRecord>& records, RepairReport& report) {
    std::map<Hash128, CitySource> sources = found.sources;
    report.sources = sources.size();
    if (!records.empty())
        for (const auto& input : records.back().inputs)
            if (sources.emplace(input.identity, lost_source(input.identity)).second)
                report.lost_inputs.push_back(input.row.path);
    std::vector<CitySource> rows;
    for (auto& [identity, source] : sources) rows.push_back(std::move(source));

    Catalog::create(path);
    Catalog catalog = Catalog::open_to_write(path);
    const std::vector<std::int64_t> ids = catalog.add_sources(rows);
    std::map<Hash128, std::int64_t> source_ids;
    for (std::size_t i = 0; i < ids.size(); ++i) source_ids[rows[i].row.identity] = ids[i];
    for (const GenerationRecord& record : records) publish_record(catalog, record, source_ids);
    report.latest = records.empty() ? 0 : records.back().generation.id;
    report.generations = records.size();
}

/// Keeps the old catalog under a name of its own. Returns the name; empty when there was none.
std::string keep_old_catalog(const CityPaths& paths) {
    if (!paths.is_city()) return {};
    for (int n = 1;; ++n) {
        auto kept = paths.catalog();
        kept += ".before-repair-" + std::to_string(n);
        if (::link(paths.catalog().c_str(), kept.c_str()) == 0) return kept.string();
        if (errno == EEXIST) continue;
        // A file system without hard links.
        std::filesystem::copy_file(paths.catalog(), kept);
        return kept.string();
    }
}

/// A journal belongs to the old catalog; beside the new one SQLite would roll it back into it.
void move_journal_away(const CityPaths& paths) {
    auto journal = paths.catalog();
    journal += "-journal";
    for (int n = 1; std::filesystem::exists(journal); ++n) {
        auto kept = journal;
        kept += ".before-repair-" + std::to_string(n);
        if (std::filesystem::exists(kept)) continue;
        if (::rename(journal.c_str(), kept.c_str()) != 0) throw_errno("cannot rename", journal);
    }
}

}  // namespace

RepairReport repair_city(const std::filesystem::path& city, const CancelToken& cancel) {
    const ObjectStore store{CityPaths(city)};
    const CityPaths& paths = store.paths();
    if (!store.holds_objects())
        throw ConfigError(city.string() + " is not a city: there are no objects of citysplat in it");
    const CityLock lock = CityLock::builder(paths, "repair");
    store.create_layout();
    store.clear_temporary(name_of_open_plan(paths) ? kLivingWorker : std::chrono::seconds{});
    RepairReport report;
    Found found = find_objects(store, report, cancel);
    const auto records = choose_records(found, records_in_catalog(paths), report);
    const auto temporary = paths.new_temporary();
    fill_catalog(temporary, found, records, report);

    // A killed process may have given objects their names and not made them durable.
    std::set<std::filesystem::path> directories;
    for (const Hash128& object : found.intact) directories.insert(paths.object_directory(object));
    for (const std::filesystem::path& directory : directories) sync_directory(directory);
    report.old_catalog = keep_old_catalog(paths);
    move_journal_away(paths);
    sync_directory(paths.root());
    install_catalog(temporary, paths);

    report.damaged_objects = found.damaged.size();
    if (!records.empty() && report.lost_inputs.empty())
        for (const ProductRow& tile : records.back().tiles)
            if (tile.object && found.damaged.contains(*tile.object)) {
                store.set_aside(*tile.object);
                ++report.set_aside;
            }
    return report;
}

}  // namespace citysplat::tiling
