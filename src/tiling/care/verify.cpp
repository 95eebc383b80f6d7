#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/mirror.hpp"
#include "tiling/care/pinned_city.hpp"
#include "tiling/points/partition.hpp"
#include "tiling/points/point_archive.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_objects.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/object_store.hpp"
#include "tiling/store/splat_payload.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

namespace citysplat::tiling {

namespace {

using Objects = std::map<Hash128, NeededObject>;

std::string problem_of(const ObjectStore& store, const Hash128& object, const NeededObject& needed,
                       bool deep) {
    const auto size = store.size_of(object);
    if (!size) return "missing";
    const bool other_size = needed.bytes && *size != *needed.bytes;
    if (!other_size && !deep) return {};
    if (!store.intact(object))
        return other_size
                   ? "has " + std::to_string(*size) + " bytes instead of " + std::to_string(*needed.bytes)
                   : std::string("damaged");
    if (other_size)
        return "is whole with " + std::to_string(*size) + " bytes, but the catalog says " +
               std::to_string(*needed.bytes) + "; citysplat repair rebuilds the catalog";
    return {};
}

bool same_source(const CitySource& a, const CitySource& b) {
    const SourceRow &x = a.row, &y = b.row;
    return x.identity == y.identity && x.content == y.content && x.content_bytes == y.content_bytes &&
           x.object == y.object && x.object_bytes == y.object_bytes && x.format == y.format &&
           x.crs == y.crs && x.counts == y.counts && x.bounds == y.bounds && a.segments == b.segments;
}

/// Holds rows of the catalog against the objects they speak of. Objects that are damaged themselves are
/// reported elsewhere.
class RowCheck {
  public:
    RowCheck(Catalog& catalog, const ObjectStore& store, const std::set<Hash128>& bad_objects)
        : catalog_(catalog), store_(store), bad_objects_(bad_objects) {}

    /// Of one generation: what it says against its record, and the sources and products that it names.
    std::vector<Damage> run(const GenerationRow& generation, const CancelToken& cancel) {
        check(generation);
        std::set<std::int64_t> sources;
        for (const InputRow& input : catalog_.inputs(generation.id))
            if (sources.insert(input.source).second) {
                cancel.check();
                check(catalog_.source(input.source));
            }
        for (const ProductRow& product : catalog_.tiles(generation.id)) check(product);
        return std::move(found_);
    }

    std::vector<Damage> run(const CancelToken& cancel) {
        for (const GenerationRow& generation : catalog_.history()) {
            cancel.check();
            check(generation);
        }
        for (const SourceRow& source : catalog_.sources()) {
            cancel.check();
            check(source);
        }
        for (const ProductRow& product : catalog_.products()) {
            cancel.check();
            check(product);
        }
        for (const std::string& problem : catalog_.misplaced_rows()) add("catalog", problem);
        return std::move(found_);
    }

  private:
    static constexpr const char* kDiffers =
        "its row in the catalog is not what the object says; citysplat repair rebuilds the catalog";

    void add(const std::string& what, const std::string& problem) { found_.push_back({what, {}, problem}); }

    template <class Check>
    void guarded(const std::string& what, const Check& check) {
        try {
            check();
        } catch (const CorruptionError& error) {
            add(what, error.what());
        }
    }

    void check(const GenerationRow& generation) {
        guarded("catalog", [&] {
            if (!bad_objects_.contains(generation.record)) check_rows(catalog_, store_, generation);
        });
    }

    void check(const ProductRow& product) {
        if (product.object && (bad_objects_.contains(*product.object) || !store_.size_of(*product.object)))
            return;
        if (!payload_fits(store_, product)) add("product " + product.tile.text(), kDiffers);
    }

    void check(const SourceRow& source) {
        guarded("source " + std::to_string(source.id), [&] { compare(source); });
    }

    void compare(const SourceRow& source) {
        // An archive that no generation needs may be gone; its row is then only a memory.
        if (bad_objects_.contains(source.object) || !store_.size_of(source.object)) return;
        const File file = store_.open(source.object, "an archive");
        // In steps: gcc 12 destroys members of an aggregate twice when a later one throws while it is made.
        CitySource row;
        row.segments = catalog_.segments(source.id);
        row.row = source;
        if (kind_of(file) != ObjectKind::archive || !same_source(row, read_directory(file, source.object)))
            add("source " + std::to_string(source.id), kDiffers);
    }

    Catalog& catalog_;
    const ObjectStore& store_;
    const std::set<Hash128>& bad_objects_;
    std::vector<Damage> found_;
};

/// Records of generations that the catalog does not have.
std::vector<std::string> unpublished_records(Catalog& catalog, const ObjectStore& store) {
    std::set<std::int64_t> known;
    std::set<Hash128> records;
    for (const GenerationRow& generation : catalog.history()) {
        known.insert(generation.id);
        records.insert(generation.record);
    }
    std::vector<std::string> notes;
    std::uint64_t forgotten = 0;
    const bool copy = is_mirror(store.paths());
    store.for_each([&](const Hash128& object, std::uint64_t) {
        if (records.contains(object)) return;
        std::optional<GenerationRecord> record;
        try {
            record = read_record(store, object);
        } catch (const CorruptionError&) {
            return;  // nothing needs it
        }
        if (!record || why_not_published(*record) || known.contains(record->generation.id)) return;
        if (copy)
            ++forgotten;
        else
            notes.push_back("generation " + std::to_string(record->generation.id) + " has a record (object " +
                            object.hex() +
                            ") but is not in the catalog: its publishing was interrupted, or its row is "
                            "lost; citysplat repair takes it up");
    });
    if (forgotten > 0)
        notes.push_back(format_count(forgotten) +
                        " generations that the city has forgotten are still in this copy; citysplat gc " +
                        store.paths().root().string() + " --keep-last 1000000 removes them");
    std::sort(notes.begin(), notes.end());
    return notes;
}

/// Checks the objects in parallel: a report without rows and notes.
VerifyReport check_objects(const ObjectStore& store, const Objects& needed, bool deep,
                           const CancelToken& cancel, Progress& progress) {
    VerifyReport report;
    const std::vector<Objects::const_pointer> objects = [&] {
        std::vector<Objects::const_pointer> all;
        for (const auto& entry : needed) all.push_back(&entry);
        return all;
    }();
    std::mutex mutex;
    Progress::Stage stage(progress, "verify", objects.size(), "objects");
    parallel_for(objects.size(), [&](std::size_t i) {
        cancel.check();
        const auto& [object, need] = *objects[i];
        std::string problem = problem_of(store, object, need, deep);
        const std::uint64_t bytes = deep ? store.size_of(object).value_or(0) : 0;
        const std::lock_guard guard(mutex);
        report.checked_bytes += bytes;
        if (!problem.empty()) report.corrupt.push_back({need.what, object, std::move(problem)});
        stage.advance(1);
    });
    report.checked = objects.size();
    return report;
}

}  // namespace

VerifyReport verify_city(const std::filesystem::path& city, bool deep, const CancelToken& cancel,
                         Progress& progress, std::optional<std::int64_t> only) {
    const ObjectStore store{CityPaths(city)};
    Catalog catalog = Catalog::open_to_read(store.paths().catalog());
    const PinnedCity pinned = pin_all(catalog, store.paths());
    Objects needed;
    for (const GenerationRow& generation : pinned.generations)
        if (!only || generation.id == *only) needed.merge(objects_of(catalog, generation));
    VerifyReport report = check_objects(store, needed, deep, cancel, progress);
    if (deep) {
        std::set<Hash128> bad;
        for (const Damage& damage : report.corrupt) bad.insert(damage.object);
        RowCheck rows(catalog, store, bad);
        const auto alone = only ? catalog.generation(*only) : std::nullopt;
        for (Damage& damage : alone ? rows.run(*alone, cancel) : rows.run(cancel))
            report.corrupt.push_back(std::move(damage));
        if (!only) report.notes = unpublished_records(catalog, store);
    }
    std::sort(report.corrupt.begin(), report.corrupt.end(),
              [](const Damage& a, const Damage& b) { return a.what < b.what; });
    return report;
}

std::uint64_t set_damaged_aside(const std::filesystem::path& city, const std::vector<Damage>& corrupt,
                                const CancelToken& cancel) {
    const ObjectStore store{CityPaths(city)};
    require_city(store.paths());
    const CityLock lock = CityLock::builder(store.paths(), "verify");
    Catalog catalog = Catalog::open_to_read(store.paths().catalog());
    const auto latest = catalog.latest();
    if (!latest) return 0;
    const Objects needed = objects_of(catalog, *latest);
    std::vector<Hash128> damaged;
    bool points_are_whole = true;
    for (const Damage& damage : corrupt) {
        const auto found = needed.find(damage.object);
        // Again, under the lock: a build may have made it meanwhile.
        if (found == needed.end() || store.intact(damage.object)) continue;
        if (store.size_of(damage.object)) damaged.push_back(damage.object);
        points_are_whole = points_are_whole && found->second.kind != ObjectKind::archive;
    }
    const auto can_be_made_again = [&](const NeededObject& object) {
        if (object.kind == ObjectKind::generation) return true;
        if (holds_product(object.kind)) return points_are_whole;
        const SourceRow source = catalog.source(object.source);
        return std::filesystem::is_regular_file(object.input) &&
               std::filesystem::file_size(object.input) == source.content_bytes &&
               hash_file(object.input, cancel) == source.content;
    };
    std::uint64_t moved = 0;
    for (const Hash128& object : damaged)
        if (can_be_made_again(needed.at(object))) {
            store.set_aside(object);
            ++moved;
        }
    return moved;
}

}  // namespace citysplat::tiling
