#include "power/city_scenarios.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "power/some_bank.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/care/mirror.hpp"
#include "tiling/care/pack.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace citysplat::power {

namespace fs = std::filesystem;
using namespace tiling;

namespace {

const CancelToken kNoCancel;

void pack(const fs::path& city, const fs::path& file) {
    Progress progress;
    pack_city(city, file, kNoCancel, progress, {.overwrite = true});
}

void unpack(const fs::path& file, const fs::path& city) {
    Progress progress;
    unpack_city(file, city, kNoCancel, progress);
}

/// What is in a pack, by unpacking it beside itself.
std::optional<Published> packed(const fs::path& file) {
    const fs::path city = file.string() + ".unpacked";
    unpack(file, city);
    auto result = published(city);
    verify(city);
    fs::remove_all(city);
    return result;
}

/// What a command leaves that is killed when its last transaction is all but committed.
DiskTree before_commit(const Scenario& scenario) {
    const Recording recording = record(scenario);
    std::size_t commit = recording.operations.size();
    while (recording.operations[--commit].kind != OperationKind::remove ||
           !recording.operations[commit].path.ends_with("-journal")) {
    }
    ModelDisk disk = recording.disk(NameModel::ordered);
    for (std::size_t i = 0; i < commit; ++i) disk.apply(recording.operations[i]);
    return disk.live();
}

/// The object of some tile of the second generation.
Hash128 a_tile_of(const fs::path& city) {
    Catalog catalog = Catalog::open_to_read(CityPaths(city).catalog());
    for (const ProductRow& tile : catalog.tiles(2))
        if (tile.object) return *tile.object;
    throw std::logic_error("no tile has splats");
}

}  // namespace

CityScenarios::CityScenarios() {
    test::write_cloud(file_a_, test::street(1, 1000, 2000, 20, 1));
    test::write_cloud(file_b_, test::street(2, 1010, 2000, 20, 1));
    test::write_cloud(touched_, test::street(1, 1000, 2000, 20, 1));
    make_bases();
    add_builds();
    add_repeated_builds();
    add_plans();
    add_care();
    add_repairs();
    add_packs();
    add_banks();
}

const Scenario& CityScenarios::named(const std::string& name) const {
    for (const Scenario& scenario : all_)
        if (scenario.name == name) return scenario;
    throw std::out_of_range("no scenario " + name);
}

/// a: one generation. ab: two. old: three, of which the last has other tiles. planned: a, and a plan for b.
/// worked: all tiles of it, too.
void CityScenarios::make_bases() {
    const auto options = [this](std::int64_t tile_size_m, bool both) {
        BuildOptions o = test::toy_options(both ? std::vector{file_a_, file_b_} : std::vector{file_a_});
        o.tile_size_m = tile_size_m;
        o.threads = 1;
        return o;
    };
    digest_a_ = test::build_toy(dir_ / "a", options(16, false)).digest;
    const auto copy = [this](const char* from, const char* to) {
        fs::copy(dir_ / from, dir_ / to, fs::copy_options::recursive);
    };
    copy("a", "ab");
    build(dir_ / "ab");
    digest_ab_ = test::build_toy(dir_ / "clean", options(16, true)).digest;
    test::build_toy(dir_ / "old", options(8, false));
    test::build_toy(dir_ / "old", options(8, true));
    test::build_toy(dir_ / "old", options(16, true));
    copy("a", "planned");
    plan(dir_ / "planned");
    copy("planned", "worked");
    test::work_toy(dir_ / "worked");
    pack(dir_ / "a", dir_ / "a.pack");
    pack(dir_ / "ab", dir_ / "ab.pack");
    expect(published(dir_ / "ab") == Published{2, digest_ab_}, "the cities to begin with are wrong");
}

std::function<void(const fs::path&)> CityScenarios::copy_of(const std::string& base) const {
    return [from = dir_ / base](const fs::path& root) {
        fs::copy(from, root / "city", fs::copy_options::recursive);
    };
}

BuildOptions CityScenarios::both() const {
    BuildOptions options = test::toy_options({file_a_, file_b_});
    options.threads = 1;
    return options;
}

void CityScenarios::build(const fs::path& city) const {
    const BuildReport report = test::build_toy(city, both());
    expect(digest_ab_ == Hash128{} || report.digest == digest_ab_,
           "the build has another digest than a clean one");
}

void CityScenarios::plan(const fs::path& city) const { test::plan_toy(city, both()); }

void CityScenarios::add(Scenario scenario) {
    scenario.foreign_files = {"notes.txt"};
    if (scenario.promise.before)
        for (const char* path :
             {"notes.txt", "objects/notes.txt", "objects/00/notes.txt", "plans/notes.txt", "tmp/notes.txt"})
            scenario.foreign_files.push_back(scenario.city + "/" + path);
    if (!scenario.promise.next)
        scenario.promise.next = [this, city = scenario.city](const fs::path& root, bool) {
            build(root / city);
        };
    all_.push_back(std::move(scenario));
}

void CityScenarios::add_builds() {
    const auto inputs = [this](const std::string& verb, const std::string& city) {
        return std::vector<std::string>{verb, "ROOT/" + city, file_a_, file_b_};
    };
    add({.name = "first build",
         .command = inputs("build", "city"),
         .promise = {.after = Published{1, digest_ab_}}});
    add({.name = "first build in new directories",
         .city = "north/1/city",
         .command = inputs("build", "north/1/city"),
         .promise = {.after = Published{1, digest_ab_}}});
    add({.name = "incremental build",
         .command = inputs("build", "city"),
         .prepare = copy_of("a"),
         .promise = {.before = Published{1, digest_a_}, .after = Published{2, digest_ab_}}});
    // All is built and nothing published; the next build accepts it.
    add({.name = "build held back by a gate",
         .command = inputs("gated-build", "city"),
         .prepare = copy_of("a"),
         .promise = {.before = Published{1, digest_a_}, .after = Published{1, digest_a_}}});
}

void CityScenarios::add_repeated_builds() {
    // An object that a tile needs is gone before the build.
    const Hash128 lost = a_tile_of(dir_ / "ab");
    add({.name = "build after lost objects",
         .is_repeatable = false,
         .command = {"build", "ROOT/city"},
         .prepare =
             [this, lost](const fs::path& root) {
                 copy_of("ab")(root);
                 expect(fs::remove(CityPaths(root / "city").object(lost)), "no object to lose");
             },
         .promise = {.before = Published{2, digest_ab_}, .after = Published{3, digest_ab_}, .lost = {lost}}});

    // The same bytes with another time: the build only notes the time.
    const auto build_touched = [this](const fs::path& city) {
        BuildOptions options = test::toy_options({touched_});
        options.threads = 1;
        return test::build_toy(city, options);
    };
    add({.name = "build after a touched input",
         .command = {"build", "ROOT/city"},
         .prepare =
             [this, build_touched](const fs::path& root) {
                 build_touched(root / "city");
                 fs::last_write_time(touched_, fs::last_write_time(touched_) + std::chrono::hours(1));
             },
         .promise = {.before = Published{1, digest_a_},
                     .after = Published{1, digest_a_},
                     .next = [this, build_touched](const fs::path& root, bool done) {
                         const BuildReport report = build_touched(root / "city");
                         expect(report.digest == digest_a_, "another digest than that of a clean build");
                         expect(!done || report.inputs_hashed == 0, "the noted time was undone");
                     }}});
}

void CityScenarios::add_plans() {
    const auto inputs = [this](const std::string& verb) {
        return std::vector<std::string>{verb, "ROOT/city", file_a_, file_b_};
    };
    const auto work_and_publish = [](const fs::path& city, const Hash128& digest) {
        test::work_toy(city, test::impatient());
        expect(publish_plan(city).digest == digest, "workers made another digest than a clean build");
    };
    const Published a{1, digest_a_}, ab{2, digest_ab_};
    const auto next = [this, work_and_publish](const fs::path& root, bool done) {
        if (!done) plan(root / "city");
        work_and_publish(root / "city", digest_ab_);
    };
    add({.name = "plan",
         .command = inputs("plan"),
         .prepare = copy_of("a"),
         .promise = {.before = a, .after = a, .next = next}});
    add({.name = "plan of a new city", .command = inputs("plan"), .promise = {.next = next}});
    add({.name = "plan in place of another",
         .command = inputs("plan"),
         .prepare = copy_of("worked"),
         .promise = {.before = a, .after = a, .next = next}});
    add({.name = "work",
         .command = {"work", "ROOT/city"},
         .prepare = copy_of("planned"),
         .promise = {.before = a, .after = a, .next = [this, work_and_publish](const fs::path& root, bool) {
                         work_and_publish(root / "city", digest_ab_);
                     }}});
    add({.name = "publish",
         .is_repeatable = false,
         .command = {"publish", "ROOT/city"},
         .prepare = copy_of("worked"),
         .promise = {.before = a, .after = ab, .next = [this](const fs::path& root, bool) {
                         expect(publish_plan(root / "city").digest == digest_ab_,
                                "workers made another digest than a clean build");
                         build(root / "city");
                     }}});
}

void CityScenarios::add_care() {
    const Published ab{2, digest_ab_};
    const auto generations = [](const fs::path& city) {
        return Catalog::open_to_read(CityPaths(city).catalog()).history().size();
    };
    add({.name = "gc",
         .command = {"gc", "ROOT/city"},
         .prepare = copy_of("old"),
         .promise = {.before = Published{3, digest_ab_},
                     .after = Published{3, digest_ab_},
                     .also = [generations](const fs::path& root, bool done) {
                         expect(!done || generations(root / "city") == 1, "forgotten generations are back");
                     }}});
    add({.name = "rollback",
         .is_repeatable = false,
         .command = {"rollback", "ROOT/city"},
         .prepare = copy_of("ab"),
         .promise = {.before = ab, .after = Published{3, digest_a_}}});
    add({.name = "a tag that is moved",
         .command = {"move-tag", "ROOT/city", "2"},
         .prepare =
             [this](const fs::path& root) {
                 copy_of("ab")(root);
                 set_tag(root / "city", "survey", "1", false);
             },
         .promise = {.before = ab, .after = ab, .also = [](const fs::path& root, bool done) {
                         const auto tagged = generation_number(root / "city", "survey");
                         expect(tagged == 2 || (!done && tagged == 1), "the tag is lost");
                     }}});
    add({.name = "mirror",
         .city = "copy",
         .command = {"mirror", "ROOT/city", "ROOT/copy"},
         .prepare =
             [this](const fs::path& root) {
                 copy_of("ab")(root);
                 fs::copy(dir_ / "a", root / "copy", fs::copy_options::recursive);
                 std::ofstream(root / "copy/mirror") << "A copy that citysplat mirror keeps up to date.\n";
             },
         .promise = {
             .before = Published{1, digest_a_}, .after = ab, .next = [ab](const fs::path& root, bool) {
                 Progress progress;
                 mirror_city(root / "city", root / "copy", kNoCancel, progress);
                 expect(published(root / "copy") == ab, "the copy is not up to date");
             }}});
}

void CityScenarios::add_repairs() {
    const Published ab{2, digest_ab_};
    const auto has_both = [](const fs::path& root, bool) {
        const fs::path catalog = CityPaths(root / "city").catalog();
        expect(Catalog::open_to_read(catalog).history().size() == 2, "a generation is gone");
    };
    add({.name = "repair",
         .command = {"repair", "ROOT/city"},
         .prepare = copy_of("ab"),
         .promise = {.before = ab, .after = ab, .also = has_both}});
    add({.name = "repair beside a hot journal",
         .command = {"repair", "ROOT/city"},
         .prepare =
             [this](const fs::path& root) { write_tree(before_commit(named("incremental build")), root); },
         .promise = {.before = Published{1, digest_a_}, .after = ab}});
    const Hash128 damaged = a_tile_of(dir_ / "ab");
    for (const char* verb : {"repair", "set-aside"})
        add({.name = std::string(verb) + " of a damaged object",
             .command = {verb, "ROOT/city"},
             .prepare =
                 [this, damaged](const fs::path& root) {
                     copy_of("ab")(root);
                     std::ofstream(CityPaths(root / "city").object(damaged)) << "damaged";
                 },
             .promise = {.before = ab, .after = ab, .lost = {damaged}}});
    add({.name = "repair without a catalog",
         .command = {"repair", "ROOT/city"},
         .prepare =
             [this](const fs::path& root) {
                 copy_of("ab")(root);
                 fs::remove(CityPaths(root / "city").catalog());
             },
         .promise = {
             .after = ab, .next = [this](const fs::path& root, bool) {
                 if (!published(root / "city")) repair_city(root / "city", kNoCancel);
                 expect(published(root / "city") == Published{2, digest_ab_}, "repair lost a generation");
                 build(root / "city");
             }}});
}

void CityScenarios::add_packs() {
    const Published a{1, digest_a_}, ab{2, digest_ab_};
    add({.name = "pack over an older pack",
         .command = {"pack", "ROOT/city", "ROOT/city.pack"},
         .prepare =
             [this](const fs::path& root) {
                 copy_of("ab")(root);
                 fs::copy(dir_ / "a.pack", root / "city.pack");
             },
         .promise = {.before = ab,
                     .after = ab,
                     .next =
                         [this, ab](const fs::path& root, bool) {
                             pack(root / "city", root / "city.pack");
                             expect(packed(root / "city.pack") == ab, "the next pack is another");
                         },
                     .also =
                         [a, ab](const fs::path& root, bool done) {
                             const auto found = packed(root / "city.pack");
                             expect(found == ab || (found == a && !done),
                                    "the pack is not the one it should be");
                         }}});
    add({.name = "unpack",
         .city = "new/city",
         .command = {"unpack", "ROOT/city.pack", "ROOT/new/city"},
         .prepare = [this](const fs::path& root) { fs::copy(dir_ / "ab.pack", root / "city.pack"); },
         .promise = {.after = ab, .next = [this](const fs::path& root, bool) {
                         if (!published(root / "new/city")) unpack(root / "city.pack", root / "new/city");
                         build(root / "new/city");
                     }}});
}

/// A bank beside a city, which is not touched.
void CityScenarios::add_banks() {
    const Published a{1, digest_a_};
    const auto holds = [](const fs::path& folder, const std::vector<std::string>& names) {
        const objects::Bank bank = objects::Bank::open(folder);
        bool all = bank.objects().size() == names.size();
        for (const std::string& name : names)
            all = all && bank.load(bank.find(name)).digest() == splats_of(name).digest();
        return all;
    };
    for (const bool is_first : {true, false}) {
        const std::vector<std::string> before =
            is_first ? std::vector<std::string>{} : std::vector<std::string>{"a", "b"};
        add({.name = is_first ? "first objects of a bank" : "more objects of a bank",
             .command = {"bank", "ROOT/new/bank", "b", "c"},
             .prepare =
                 [this, before](const fs::path& root) {
                     copy_of("a")(root);
                     if (!before.empty()) add_objects(root / "new/bank", before);
                 },
             .promise = {.before = a,
                         .after = a,
                         .next =
                             [is_first, holds](const fs::path& root, bool) {
                                 add_objects(root / "new/bank", {"b", "c"});
                                 expect(holds(root / "new/bank",
                                              is_first ? std::vector<std::string>{"b", "c"}
                                                       : std::vector<std::string>{"a", "b", "c"}),
                                        "the next command makes another bank");
                             },
                         .also =
                             [before, is_first, holds](const fs::path& root, bool done) {
                                 const fs::path bank = root / "new/bank";
                                 if (is_first && !done && !objects::Bank::is_bank(bank)) return;
                                 const std::size_t size = objects::Bank::open(bank).objects().size();
                                 const bool is_old = size == before.size();
                                 expect(!done || !is_old, "the bank was complete, and the cut undid it");
                                 expect(holds(bank, is_old     ? before
                                                    : is_first ? std::vector<std::string>{"b", "c"}
                                                               : std::vector<std::string>{"a", "b", "c"}),
                                        "the bank is neither the one before nor the one after");
                             }}});
    }
}

}  // namespace citysplat::power
