#include "tiling/care/mirror.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "run_program.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/store/city_objects.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

namespace {

/// A city of two generations, and a copy that was made when there was one.
struct Mirrored {
    TempDir dir{memory_directory()};
    fs::path city = dir / "city", copy = dir / "copy", a = dir / "a.cloud", b = dir / "b.cloud";
    Hash128 digest_1, digest_2;

    Mirrored() {
        write_cloud(a, street(1, 1000, 2000, 30, 3));
        write_cloud(b, street(2, 1015, 2000, 30, 3));
        digest_1 = build_toy(city, toy_options({a})).digest;
        mirror(copy);
        digest_2 = build_toy(city, toy_options({b})).digest;
    }
    MirrorReport mirror(const fs::path& to, bool deep = false) const {
        CancelToken cancel;
        Progress progress;
        return mirror_city(city, to, cancel, progress, deep);
    }
    static Hash128 digest_of(const fs::path& where) {
        const CityReader reader(where);
        Hash128 digest;
        for (std::size_t i = 0; i < reader.tiles().size(); ++i) digest += reader.load(i).digest();
        return digest;
    }
    static std::vector<Damage> damage_of(const fs::path& where) {
        CancelToken cancel;
        Progress progress;
        return verify_city(where, true, cancel, progress).corrupt;
    }
    Outcome run(const fs::path& to, const std::string& kind, long at) const {
        return run_program({"env", std::string("LD_PRELOAD=") + CITYSPLAT_FAULT_SHIM,
                            "ASAN_OPTIONS=verify_asan_link_order=0", "FAULT_DIR=" + to.string(),
                            "FAULT_KIND=" + kind, "FAULT_AT=" + std::to_string(at), "FAULT_OPS=all",
                            "FAULT_LOG=" + (dir / "count").string(), CITYSPLAT_TOY_BUILD, "--mirror",
                            city.string(), to.string()});
    }
};

}  // namespace

TEST_CASE("a mirror has every generation of the city, and is a city") {
    Mirrored m;
    set_tag(m.city, "first", "1", false);
    const MirrorReport report = m.mirror(m.copy);
    CHECK(report.changed);
    CHECK(report.generation == 2);
    CHECK(report.generations == 2);
    CHECK(report.objects_copied > 0);
    CHECK(report.objects_copied < report.objects);
    CHECK(Mirrored::digest_of(m.copy) == m.digest_2);
    CHECK(CityReader(m.copy, 1).generation().digest == m.digest_1);
    CHECK(generation_number(m.copy, "first") == 1);
    CHECK(Mirrored::damage_of(m.copy).empty());
    const MirrorReport again = m.mirror(m.copy);
    CHECK_FALSE(again.changed);
    CHECK(again.objects_copied == 0);

    // What the city forgets, the copy forgets; its objects go with gc there.
    remove_tag(m.city, "first");
    collect_garbage(m.city, Retention::newest(1), false);
    CHECK(m.mirror(m.copy).generations == 1);
    CHECK_THROWS_AS(CityReader(m.copy, 1), ConfigError);
    CHECK(collect_garbage(m.copy, Retention::newest(1), false).objects > 0);
    CHECK(Mirrored::damage_of(m.copy).empty());
    CHECK_FALSE(m.mirror(m.copy).changed);
}

TEST_CASE("a reader of the copy keeps its generation while the copy goes on") {
    const Mirrored m;
    const CityReader reader(m.copy);
    m.mirror(m.copy);
    Hash128 digest;
    for (std::size_t i = 0; i < reader.tiles().size(); ++i) digest += reader.load(i).digest();
    CHECK(digest == m.digest_1);
    CHECK(CityReader(m.copy).generation().digest == m.digest_2);
}

TEST_CASE("gc in the copy waits for a reader whose generation the mirror has taken out of the catalog") {
    const Mirrored m;
    collect_garbage(m.city, Retention::newest(1), false);
    {
        const CityReader reader(m.copy);
        m.mirror(m.copy);
        CHECK_THROWS_AS(collect_garbage(m.copy, Retention::newest(1), false), BusyError);
        Hash128 digest;
        for (std::size_t i = 0; i < reader.tiles().size(); ++i) digest += reader.load(i).digest();
        CHECK(digest == m.digest_1);
        // Those that the catalog has are in nobody's way.
        CHECK_NOTHROW(collect_garbage(m.city, Retention::newest(1), false));
    }
    CHECK(collect_garbage(m.copy, Retention::newest(1), false).objects > 0);
    CHECK(Mirrored::digest_of(m.copy) == m.digest_2);
}

TEST_CASE("a deep mirror gives the copy a whole catalog again") {
    const Mirrored m;
    m.mirror(m.copy);
    Database(CityPaths(m.copy).catalog(), Database::Access::read_write)
        .execute("UPDATE product SET points=points+1");
    CHECK_FALSE(m.mirror(m.copy).changed);
    CHECK_FALSE(Mirrored::damage_of(m.copy).empty());
    CHECK(m.mirror(m.copy, true).changed);
    CHECK(Mirrored::damage_of(m.copy).empty());
}

TEST_CASE("nothing but a copy of this city is written over") {
    const Mirrored m;
    CHECK_THROWS_AS(m.mirror(m.city), UsageError);
    CHECK_THROWS_AS(m.mirror(m.city / "."), UsageError);
    for (const fs::path& inside :
         {m.city / "copy", m.city / "objects" / "ab", m.city / ".." / "city" / "x"}) {
        CHECK_THROWS_WITH(m.mirror(inside), Catch::Contains("in it"));
        CHECK_FALSE(CityPaths(inside).is_city());
    }
    const fs::path thesis = m.dir / "thesis";
    fs::create_directory(thesis);
    std::ofstream(thesis / "chapter") << "precious";
    CHECK_THROWS_WITH(m.mirror(thesis), Catch::Contains("not empty"));
    CHECK(read_text_file(thesis / "chapter") == "precious");
    CHECK_FALSE(fs::exists(thesis / "mirror"));
    // Nor a directory of somebody who calls something of theirs as we call our mark.
    std::ofstream(thesis / "mirror") << "precious";
    CHECK_THROWS_WITH(m.mirror(thesis), Catch::Contains("not empty"));
    fs::remove(thesis / "mirror");
    fs::create_directory(thesis / "mirror");
    CHECK_THROWS_WITH(m.mirror(thesis), Catch::Contains("not empty"));
    CHECK_FALSE(fs::exists(thesis / "objects"));
    const fs::path other = m.dir / "other";
    build_toy(other, toy_options({m.b}));
    CHECK_THROWS_WITH(m.mirror(other), Catch::Contains("a city of its own"));
    // Somebody built in the copy.
    build_toy(m.copy, toy_options({m.b}));
    build_toy(m.copy, [&] {
        BuildOptions options = toy_options();
        options.remove = {m.a};
        return options;
    }());
    CHECK_THROWS_WITH(m.mirror(m.copy), Catch::Contains("never had"));
    CHECK(CityReader(m.copy).generation().id == 3);
}

TEST_CASE("generations that the city forgot are no broken publish of the copy") {
    const Mirrored m;
    collect_garbage(m.city, Retention::newest(1), false);
    m.mirror(m.copy);
    CancelToken cancel;
    Progress progress;
    const auto notes = [&] { return verify_city(m.copy, true, cancel, progress).notes; };
    REQUIRE(notes().size() == 1);
    CHECK_THAT(notes()[0], Catch::Contains("1 generations") && Catch::Contains("gc"));
    collect_garbage(m.copy, Retention::newest(1'000'000), false);
    CHECK(notes().empty());
    CHECK(Mirrored::digest_of(m.copy) == m.digest_2);
}

TEST_CASE("a damaged object of the city does not reach the copy") {
    const Mirrored m;
    Catalog catalog = Catalog::open_to_read(CityPaths(m.city).catalog());
    const ObjectStore copy{CityPaths(m.copy)};
    for (const auto& [object, needed] : objects_of(catalog, *catalog.latest()))
        if (!copy.size_of(object) && needed.kind == ObjectKind::payload) {
            const auto path = CityPaths(m.city).object(object);
            fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
            std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(300).put('x').put('y');
            break;
        }
    CHECK_THROWS_AS(m.mirror(m.copy), CorruptionError);
    CHECK(Mirrored::digest_of(m.copy) == m.digest_1);
    CHECK(Mirrored::damage_of(m.copy).empty());
}

TEST_CASE("a deep mirror heals what is damaged in the copy") {
    const Mirrored m;
    m.mirror(m.copy);
    Catalog catalog = Catalog::open_to_read(CityPaths(m.copy).catalog());
    std::uint64_t damaged = 0;
    for (const auto& [object, needed] : objects_of(catalog, *catalog.latest())) {
        if (damaged == 3) break;
        const auto path = CityPaths(m.copy).object(object);
        fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
        if (++damaged == 1) {
            fs::resize_file(path, needed.bytes.value_or(100) / 2);
            continue;
        }
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        const int byte = file.seekg(60).get();
        file.seekp(60).put(static_cast<char>(byte ^ 4));
    }
    REQUIRE(damaged == 3);
    CHECK(m.mirror(m.copy).objects_healed == 1);  // the one that is short
    CHECK(Mirrored::damage_of(m.copy).size() == 2);
    const MirrorReport healed = m.mirror(m.copy, true);
    CHECK(healed.objects_healed == 2);
    CHECK(healed.objects_copied == 2);
    CHECK(Mirrored::damage_of(m.copy).empty());
    CHECK(Mirrored::digest_of(m.copy) == m.digest_2);
    CHECK_FALSE(m.mirror(m.copy, true).changed);
}

TEST_CASE("a mirror killed at fifty moments always opens and verifies, and the next one completes it") {
    const Mirrored m;
    const auto copy_to = [&](const std::string& name) {
        const fs::path trial = m.dir / name;
        fs::copy(m.copy, trial, fs::copy_options::recursive);
        return trial;
    };
    REQUIRE(m.run(copy_to("counted"), "count", 0).exit_code == 0);
    const long operations = std::stol(read_text_file(m.dir / "count"));
    REQUIRE(operations >= 50);
    long old_ones = 0, new_ones = 0;
    for (long i = 0; i < 50; ++i) {
        const long at = 1 + operations * i / 50;
        const std::string kind = i % 2 ? "power" : "kill";
        INFO(kind << " at operation " << at << " of " << operations);
        const fs::path trial = copy_to("trial" + std::to_string(i));
        REQUIRE(m.run(trial, kind, at).exit_code == 128 + SIGKILL);
        const Hash128 digest = Mirrored::digest_of(trial);
        ++(digest == m.digest_1 ? old_ones : new_ones);
        REQUIRE((digest == m.digest_1 || digest == m.digest_2));
        REQUIRE(Mirrored::damage_of(trial).empty());
        m.mirror(trial);
        REQUIRE(Mirrored::digest_of(trial) == m.digest_2);
        REQUIRE(Mirrored::damage_of(trial).empty());
        fs::remove_all(trial);
    }
    CHECK(old_ones > 40);  // the catalog comes last
}

TEST_CASE("a first mirror that was killed is no city yet, and is completed by the next one") {
    const Mirrored m;
    REQUIRE(m.run(m.dir / "counted", "count", 0).exit_code == 0);
    const long operations = std::stol(read_text_file(m.dir / "count"));
    for (const long at : {3L, operations / 3, operations / 2}) {
        const fs::path trial = m.dir / ("first" + std::to_string(at));
        REQUIRE(m.run(trial, "kill", at).exit_code == 128 + SIGKILL);
        CHECK_THROWS_AS(CityReader(trial), ConfigError);
        m.mirror(trial);
        CHECK(Mirrored::digest_of(trial) == m.digest_2);
    }
}
