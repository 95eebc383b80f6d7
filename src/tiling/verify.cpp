#include "core/error.hpp"
#include "core/parallel.hpp"
#include "tiling/city_care.hpp"
#include "tiling/city_lock.hpp"
#include "tiling/object_store.hpp"

#include <map>
#include <mutex>

namespace citysplat::tiling {

namespace {

/// Every object of every generation, with what a person calls it.
std::map<Hash128, std::pair<std::string, std::uint64_t>> named_objects(Catalog& catalog) {
    std::map<Hash128, std::pair<std::string, std::uint64_t>> objects;
    for (const GenerationRow& generation : catalog.history()) {
        for (const InputRow& input : catalog.inputs(generation.id)) {
            const SourceRow source = catalog.source(input.source);
            objects.try_emplace(source.object, "points of " + input.path, source.object_bytes);
        }
        for (const ProductRow& tile : catalog.tiles(generation.id))
            if (tile.object) objects.try_emplace(*tile.object, "tile " + tile.tile.text(), tile.object_bytes);
    }
    return objects;
}

std::string problem_of(const ObjectStore& store, const Hash128& object, std::uint64_t bytes, bool deep) {
    const auto size = store.size_of(object);
    if (!size) return "missing";
    if (*size != bytes) return "has " + std::to_string(*size) + " bytes instead of " + std::to_string(bytes);
    if (deep && !store.intact(object)) return "damaged";
    return {};
}

/// True when nobody builds and the directory can be written.
bool set_aside(const ObjectStore& store, const std::vector<Damage>& corrupt) {
    try {
        const CityLock lock = CityLock::builder(store.paths(), "verify");
        for (const Damage& damage : corrupt) store.remove(damage.object);
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

VerifyReport verify_city(const std::filesystem::path& city, bool deep, const CancelToken& cancel,
                         Progress& progress) {
    const ObjectStore store{CityPaths(city)};
    Catalog catalog = Catalog::open_to_read(store.paths().catalog());
    const auto latest = catalog.latest();
    const auto pin = latest ? CityLock::pin(store.paths(), latest->id) : std::nullopt;
    const auto by_hash = named_objects(catalog);
    const std::vector<std::pair<Hash128, std::pair<std::string, std::uint64_t>>> objects(by_hash.begin(),
                                                                                         by_hash.end());
    VerifyReport report;
    std::mutex mutex;
    Progress::Stage stage(progress, "verify", objects.size(), "objects");
    parallel_for(objects.size(), [&](std::size_t i) {
        cancel.check();
        const auto& [object, name] = objects[i];
        std::string problem = problem_of(store, object, name.second, deep);
        const std::lock_guard guard(mutex);
        report.checked_bytes += deep ? name.second : 0;
        if (!problem.empty()) report.corrupt.push_back({name.first, object, std::move(problem)});
        stage.advance(1);
    });
    report.checked = objects.size();
    std::sort(report.corrupt.begin(), report.corrupt.end(),
              [](const Damage& a, const Damage& b) { return a.what < b.what; });
    if (!report.corrupt.empty()) report.set_aside = set_aside(store, report.corrupt);
    return report;
}

}  // namespace citysplat::tiling
