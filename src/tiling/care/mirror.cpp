#include "tiling/care/mirror.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "tiling/care/catalog_copy.hpp"
#include "tiling/care/pinned_city.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_objects.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/object_store.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kCopyBytes = std::size_t{4} << 20;
/// Objects that become durable together. Each holds its file open until then.
constexpr std::size_t kMostBatch = 64;

/// Says that a directory is a copy, and may be given another catalog.
fs::path marker_of(const CityPaths& paths) { return paths.root() / "mirror"; }

constexpr std::string_view kMark = "A copy that citysplat mirror ";

/// Takes a new or empty directory, or a copy, and marks it, durably.
void take_directory(const CityPaths& copy) {
    const fs::path marker = marker_of(copy);
    if (is_mirror(copy)) return;
    const CityState state = state_of(copy);
    if (state != CityState::nothing && state != CityState::layout)
        throw ConfigError(
            copy.root().string() +
            (state == CityState::city ? " is a city of its own, no mirror" : " is not empty and no mirror") +
            "; mirror into a new directory");
    create_directories_durably(copy.root());
    File file(marker, File::Mode::create_new);
    const std::string text = std::string(kMark) + "keeps up to date. Build elsewhere.\n";
    file.append(std::as_bytes(std::span(text.data(), text.size())));
    file.sync();
    file.close();
    sync_directory(copy.root());
}

/// Throws ConfigError when the copy holds a generation that is not of this city.
void check_lineage(const std::vector<GenerationRow>& city, const CityPaths& copy) {
    if (!copy.is_city()) return;
    for (const GenerationRow& row : Catalog::open_to_read(copy.catalog()).history()) {
        const auto same =
            std::find_if(city.begin(), city.end(), [&](const GenerationRow& g) { return g.id == row.id; });
        const bool is_other =
            same != city.end() && (same->digest != row.digest || same->created_s != row.created_s);
        if (is_other || row.id > city.back().id)
            throw ConfigError(
                copy.root().string() + " has a generation " + std::to_string(row.id) +
                " that the city never had: it is the copy of another one, or somebody built there; "
                "mirror into a new directory");
    }
}

void copy_object(const ObjectStore& from, ObjectStore& to, const Hash128& object, const std::string& what) {
    const File file = from.open(object, what);
    auto writer = to.create();
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kCopyBytes, file.size()));
    for (std::uint64_t at = 0; at < file.size();) {
        const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file.size() - at));
        file.read_at(at, part);
        writer.append(part);
        at += part.size();
    }
    if (writer.finish() != object)
        throw CorruptionError(what + " is damaged (object " + object.hex() +
                              "); citysplat verify --deep lists all damage. The copy is as it was");
}

/// `deep` holds the rows of the copy's catalog against the records, too.
bool same_generations(const std::vector<GenerationRow>& city, const ObjectStore& copy, bool deep) {
    if (!copy.paths().is_city()) return false;
    Catalog catalog = Catalog::open_to_read(copy.paths().catalog());
    const auto there = catalog.history();
    if (!std::equal(city.begin(), city.end(), there.begin(), there.end(),
                    [](const GenerationRow& a, const GenerationRow& b) { return a.record == b.record; }))
        return false;
    try {
        for (const GenerationRow& row : there)
            if (deep) check_rows(catalog, copy, row);
    } catch (const CorruptionError&) {
        return false;
    }
    return true;
}

/// Makes the names of objects durable that were there: a mirror that was killed may have given them and not
/// got further.
void sync_names(const ObjectStore& copy, const std::map<Hash128, NeededObject>& objects) {
    std::set<fs::path> directories;
    for (const auto& [object, what] : objects) directories.insert(copy.paths().object_directory(object));
    for (const fs::path& directory : directories) sync_directory(directory);
}

/// Whether one of them is below the other, or they are the same.
bool overlap(const fs::path& a, const fs::path& b) {
    const fs::path one = fs::weakly_canonical(fs::absolute(a)) / "",
                   other = fs::weakly_canonical(fs::absolute(b)) / "";
    const auto below = [](const std::string& x, const std::string& y) { return x.starts_with(y); };
    return below(one.string(), other.string()) || below(other.string(), one.string());
}

}  // namespace

bool is_mirror(const CityPaths& paths) {
    const fs::path marker = marker_of(paths);
    if (!fs::is_regular_file(marker)) return false;
    std::string text(kMark.size(), '\0');
    const File file(marker, File::Mode::read);
    text.resize(file.read_some_at(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
    return text == kMark || text.empty();  // empty: the disk was full when it was made
}

MirrorReport mirror_city(const fs::path& city, const fs::path& copy, const CancelToken& cancel,
                         Progress& progress, bool deep) {
    const ObjectStore from{CityPaths(city)};
    require_city(from.paths());
    if (overlap(city, copy))
        throw UsageError(copy.string() +
                         " is the city itself, in it or around it; mirror into another directory");
    Catalog catalog = Catalog::open_to_read(from.paths().catalog());
    PinnedCity pinned = pin_all(catalog, from.paths());
    if (pinned.generations.empty()) throw ConfigError(city.string() + ": nothing has been built yet");
    for (const GenerationRow& row : pinned.generations) check_rows(catalog, from, row);

    ObjectStore to{CityPaths(copy)};
    take_directory(to.paths());
    const CityLock lock = CityLock::builder(to.paths(), "mirror");
    to.create_layout();
    to.clear_temporary();
    check_lineage(pinned.generations, to.paths());

    const fs::path next = to.paths().new_temporary();
    {
        // One moment of the city, briefly: a builder cannot commit meanwhile.
        const Transaction reading = catalog.reading();
        for (GenerationRow& row : pinned.generations) row = catalog.generation(row.id).value_or(row);
        copy_generations(catalog, pinned.generations, next);
    }
    Catalog whole = Catalog::open_to_read(next);
    std::map<Hash128, NeededObject> needed;
    for (const GenerationRow& row : pinned.generations) needed.merge(objects_of(whole, row));
    MirrorReport report{.generation = pinned.generations.back().id,
                        .generations = pinned.generations.size(),
                        .objects = needed.size()};
    {
        const std::size_t batch = std::clamp<std::size_t>(descriptor_budget() / 4, 1, kMostBatch);
        Progress::Stage stage(progress, "mirror", needed.size(), "objects");
        for (const auto& [object, what] : needed) {
            cancel.check();
            const auto bytes = from.size_of(object), there = to.size_of(object);
            if (!bytes || there != bytes || (deep && !to.intact(object))) {
                copy_object(from, to, object, what.what);
                ++report.objects_copied;
                if (there) ++report.objects_healed;
                report.bytes_copied += bytes.value_or(0);
                if (to.pending() >= batch) to.flush();
            }
            stage.advance(1);
        }
        to.flush();
    }
    if (report.objects_copied == 0 && same_generations(pinned.generations, to, deep)) {
        fs::remove(next);
        return report;
    }
    for (const GenerationRow& row : pinned.generations) {
        check_rows(whole, to, row);
        require_objects(whole, to, row);
    }
    sync_names(to, needed);
    install_catalog(next, to.paths());
    report.changed = true;
    return report;
}

}  // namespace citysplat::tiling
