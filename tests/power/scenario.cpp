#include "power/scenario.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "temp_dir.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/store/city_reader.hpp"

#include <fstream>
#include <stdexcept>

namespace citysplat::power {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kForeignText = "nothing of yours\n";

void check_city(const fs::path& city, const Promise& promise, bool done) {
    const auto found = published(city, promise.lost.empty());
    expect(found || !promise.before, "the last published generation is gone");
    expect(found || !done || !promise.after, "the command was done, and the city is not there");
    if (!found) return;
    expect(found == promise.before || found == promise.after,
           "neither the generation before nor the one after: " + std::to_string(found->generation));
    expect(!done || found == promise.after, "the command was done, and the cut undid it");
    const bool is_old = found == promise.before;
    verify(city, is_old ? promise.lost : std::set<Hash128>{});
    if (!is_old) published(city);
}

template <class Part>
void part_of_check(const char* name, const Part& run) {
    try {
        run();
    } catch (const std::exception& e) {
        throw std::runtime_error(std::string(name) + ": " + e.what());
    }
}

}  // namespace

void expect(bool holds, const std::string& otherwise) {
    if (!holds) throw std::runtime_error(otherwise);
}

std::optional<Published> published(const fs::path& city, bool readable) {
    std::optional<tiling::CityReader> reader;
    try {
        reader.emplace(city);
    } catch (const ConfigError&) {
        return std::nullopt;
    }
    Hash128 digest;
    if (readable)
        for (std::size_t i = 0; i < reader->tiles().size(); ++i) digest += reader->load(i).digest();
    expect(!readable || digest == reader->generation().digest, "the tiles are not those of the generation");
    return Published{reader->generation().id, reader->generation().digest};
}

void verify(const fs::path& city, const std::set<Hash128>& lost) {
    const CancelToken cancel;
    Progress progress;
    for (const tiling::Damage& damage : tiling::verify_city(city, true, cancel, progress).corrupt)
        expect(lost.contains(damage.object), "verify: " + damage.what + " " + damage.problem);
}

Recording record(const Scenario& scenario) {
    const test::TempDir dir(test::memory_directory());
    const fs::path root = dir / "root";
    fs::create_directory(root);
    if (scenario.prepare) scenario.prepare(root);
    for (const std::string& path : scenario.foreign_files) std::ofstream(root / path) << kForeignText;
    std::vector<std::string> words{CITYSPLAT_POWER_TOY};
    for (std::string word : scenario.command) {
        if (word.starts_with("ROOT/")) word.replace(0, 4, root.string());
        words.push_back(std::move(word));
    }
    return record(root, words);
}

Check check_of(const Scenario& scenario) {
    return [&scenario](const fs::path& root, bool done) {
        const fs::path city = root / scenario.city;
        const Promise& promise = scenario.promise;
        part_of_check("after the cut", [&] { check_city(city, promise, done); });
        if (promise.also) part_of_check("after the cut", [&] { promise.also(root, done); });
        part_of_check("the next command", [&] { promise.next(root, done); });
        part_of_check("after the next command", [&] {
            expect(published(city).has_value(), "there is no city");
            verify(city);
            for (const std::string& path : scenario.foreign_files)
                expect(fs::exists(root / path) && read_text_file(root / path) == kForeignText,
                       "a foreign file is gone: " + path);
        });
    };
}

Scenario again(const Scenario& scenario, const DiskTree& left, bool durable) {
    Scenario result = scenario;
    result.prepare = [left](const fs::path& root) { write_tree(left, root); };
    if (!durable) return result;
    const test::TempDir dir(test::memory_directory());
    write_tree(left, dir / "root");
    if (const auto found = published(dir / "root" / scenario.city, scenario.promise.lost.empty()))
        result.promise.before = found;
    return result;
}

}  // namespace citysplat::power
