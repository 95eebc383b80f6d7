#include "core/error.hpp"
#include "tiling/build/chunks.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_objects.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/object_store.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>

namespace citysplat::tiling {

namespace {

/// Every object that must stay: of the generations outside `forgotten` and of an open plan.
std::set<Hash128> needed_objects(Catalog& catalog, const std::vector<std::int64_t>& forgotten,
                                 const PlanNeeds& plan) {
    std::set<Hash128> needed = plan.objects;
    for (const GenerationRow& generation : catalog.history()) {
        if (std::find(forgotten.begin(), forgotten.end(), generation.id) != forgotten.end()) continue;
        for (const auto& [object, what] : objects_of(catalog, generation)) needed.insert(object);
    }
    return needed;
}

/// What nobody needs, records first: a record whose tiles are gone would mislead `repair`.
struct Garbage {
    std::vector<Hash128> records, others;
};
Garbage find_garbage(const ObjectStore& store, const std::set<Hash128>& needed, const PlanNeeds& plan,
                     GarbageReport& report) {
    Garbage garbage;
    store.for_each([&](const Hash128& object, std::uint64_t bytes) {
        if (needed.contains(object)) return;
        // A worker, which holds no lock, may have made it and not said so yet.
        std::error_code gone;
        if (plan.young_since &&
            std::filesystem::last_write_time(store.paths().object(object), gone) >= *plan.young_since)
            return;
        const auto kind = store.kind_of(object);
        if (!kind) {
            ++report.foreign;
            return;
        }
        ++report.objects;
        report.freed_bytes += bytes;
        (kind == ObjectKind::generation ? garbage.records : garbage.others).push_back(object);
    });
    return garbage;
}

void remove_all(const ObjectStore& store, const std::vector<Hash128>& objects) {
    std::set<std::filesystem::path> directories;
    for (const Hash128& object : objects) {
        store.remove(object);
        directories.insert(store.paths().object_directory(object));
    }
    for (const auto& directory : directories) sync_directory(directory);
}

/// Damaged objects that were set aside and are there again, or that nobody needs any more.
void collect_damaged(const ObjectStore& store, const std::set<Hash128>& needed, bool dry_run,
                     GarbageReport& report) {
    if (!std::filesystem::is_directory(store.paths().damaged())) return;
    for (const auto& entry : std::filesystem::directory_iterator(store.paths().damaged())) {
        const auto object = Hash128::from_hex(entry.path().filename().string());
        if (!object || !entry.is_regular_file() || (needed.contains(*object) && !store.size_of(*object)))
            continue;
        if (!kind_of(File(entry.path(), File::Mode::read))) {
            ++report.foreign;
            continue;
        }
        ++report.objects;
        report.freed_bytes += entry.file_size();
        if (!dry_run) std::filesystem::remove(entry.path());
    }
}

std::vector<Verdict> verdicts_on(Catalog& catalog, const Retention& retention) {
    const auto history = catalog.history();
    check_tags_exist(history, retention);
    return decide(history, retention);
}

/// Whether somebody reads a generation that the catalog does not have.
bool has_unknown_readers(const CityPaths& paths, const std::vector<Verdict>& verdicts) {
    std::int64_t next = 1;
    for (const Verdict& verdict : verdicts) {
        if (CityLock::is_any_pinned(paths, next, verdict.generation - 1)) return true;
        next = verdict.generation + 1;
    }
    return CityLock::is_any_pinned(paths, next, kMostGenerations);
}

/// Throws BusyError when a reader holds a generation that mirror or repair has taken out of the catalog:
/// nobody knows which objects it needs. A reader that was only late to pin what gc forgot lets go at once.
void refuse_unknown_readers(const CityPaths& paths, const std::vector<Verdict>& verdicts) {
    for (int attempt = 0; has_unknown_readers(paths, verdicts); ++attempt) {
        if (attempt == 20)
            throw BusyError(paths.root().string() +
                            ": somebody still reads a generation that the catalog does not have any more; "
                            "nothing was removed, try again when they have ended");
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

GarbageReport predict_garbage(const ObjectStore& store, const Retention& retention) {
    Catalog catalog = Catalog::open_to_read(store.paths().catalog());
    GarbageReport report;
    report.verdicts = verdicts_on(catalog, retention);
    refuse_unknown_readers(store.paths(), report.verdicts);
    for (const Verdict& verdict : report.verdicts)
        if (!verdict.is_kept())
            (CityLock::is_pinned(store.paths(), verdict.generation) ? report.pinned : report.forgotten)
                .push_back(verdict.generation);
    const PlanNeeds plan = needs_of_plan(store);
    const auto needed = needed_objects(catalog, report.forgotten, plan);
    find_garbage(store, needed, plan, report);
    collect_damaged(store, needed, true, report);
    return report;
}

}  // namespace

GarbageReport collect_garbage(const std::filesystem::path& city, const Retention& retention, bool dry_run) {
    const ObjectStore store{CityPaths(city)};
    const CityPaths& paths = store.paths();
    require_city(paths);
    if (dry_run) return predict_garbage(store, retention);
    const CityLock lock = CityLock::builder(paths, "gc");
    store.create_layout();
    Catalog catalog = Catalog::open_to_write(paths.catalog());
    GarbageReport report;
    // Until the objects are gone: no reader can take up what is being forgotten.
    const CityLock held = CityLock::several(paths, File::Mode::read_write);
    report.verdicts = verdicts_on(catalog, retention);
    refuse_unknown_readers(paths, report.verdicts);
    for (const Verdict& verdict : report.verdicts) {
        const std::int64_t id = verdict.generation;
        if (verdict.is_kept()) continue;
        (held.add_collect(id) ? report.forgotten : report.pinned).push_back(id);
    }
    const PlanNeeds plan = needs_of_plan(store);
    const std::set<Hash128> needed = needed_objects(catalog, report.forgotten, plan);
    catalog.forget(report.forgotten, plan.sources);
    store.clear_temporary(plan.young_since ? kLivingWorker : std::chrono::seconds{});
    const Garbage garbage = find_garbage(store, needed, plan, report);
    remove_all(store, garbage.records);
    remove_all(store, garbage.others);
    collect_damaged(store, needed, false, report);
    return report;
}

std::int64_t roll_back(const std::filesystem::path& city, std::optional<std::int64_t> generation) {
    ObjectStore store{CityPaths(city)};
    require_city(store.paths());
    const CityLock lock = CityLock::builder(store.paths(), "rollback");
    store.create_layout();
    Catalog catalog = Catalog::open_to_write(store.paths().catalog());
    const auto history = catalog.history();
    if (!generation) {
        if (history.size() < 2) throw UsageError(city.string() + " has no earlier generation to go back to");
        generation = history[history.size() - 2].id;
    }
    auto row = catalog.generation(*generation);
    if (!row)
        throw UsageError(city.string() + " has no generation " + std::to_string(*generation) +
                         "; citysplat status --history lists them");
    check_rows(catalog, store, *row);
    require_objects(catalog, store, *row);
    row->note = "rollback to " + std::to_string(*generation);
    row->created_s = static_cast<std::int64_t>(std::time(nullptr));
    return publish_generation(catalog, store, *row, catalog.inputs(*generation), catalog.tiles(*generation));
}

}  // namespace citysplat::tiling
