#include "core/error.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/build/publisher.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/pack.hpp"
#include "tiling/catalog_mutations.hpp"
#include "tiling/city_checks.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

/// What an hour of attacks on a city found, one case each.
namespace {

struct City : Drive {
    BuildReport first, second;
    City() {
        put("a.cloud", street(1, 1000, 2000, 40, 3));
        first = build();
        put("b.cloud", street(2, 1020, 2010, 40, 3));
        second = build();
    }
    CityPaths paths() const { return CityPaths(city); }

    WorkReport build_shard(std::uint32_t k, std::uint32_t n, std::int64_t tile_m) const {
        BuildOptions shared = options();
        shared.tile_size_m = tile_m;
        return maker.work_as({k, n}, city, shared);
    }
    VerifyReport verify(bool deep) const {
        CancelToken cancel;
        Progress progress;
        return verify_city(city, deep, cancel, progress);
    }
    std::vector<fs::path> objects() const {
        std::vector<fs::path> all;
        ObjectStore(paths()).for_each(
            [&](const Hash128& object, std::uint64_t) { all.push_back(paths().object(object)); });
        return all;
    }
};

Hash128 digest_of_tiles(const CityReader& city) {
    Hash128 digest;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) digest += city.load(i).digest();
    return digest;
}

void flip_bit(const fs::path& path, std::uint64_t byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(byte));
    const char changed = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(byte));
    file.put(changed);
}

}  // namespace

TEST_CASE("repair takes plans and receipts for what they are, never for generations") {
    for (const bool published : {false, true})
        for (std::uint32_t n = 1; n <= 6; ++n) {  // other objects, another order of the directory
            INFO((published ? "published, " : "not published, ") << n << " shards");
            const City c;
            for (std::uint32_t k = 1; k <= n; ++k) static_cast<void>(c.build_shard(k, n, 8));
            if (published) CHECK(publish_plan(c.city).digest == c.second.digest);
            if (n % 2) fs::remove(c.paths().catalog());
            const RepairReport repaired = repair_city(c.city, CancelToken());
            CHECK(repaired.generations == (published ? 3 : 2));
            CHECK(repaired.latest == (published ? 3 : 2));
            CHECK(digest_of_tiles(CityReader(c.city)) == c.second.digest);
            CHECK(CityReader(c.city).generation().created_s > 0);
            CHECK(c.verify(true).corrupt.empty());
            CHECK_FALSE(c.maker.build(c.city, toy_options()).tiles_built > 0);
        }
}

TEST_CASE("a city that lost its catalog is not begun anew: every verb says that repair is the way") {
    const City c;
    fs::remove(c.paths().catalog());
    CancelToken cancel;
    Progress progress;
    const auto says_repair = Catch::Contains("repair");
    CHECK_THROWS_WITH(c.build(), says_repair);
    CHECK_THROWS_WITH(c.build_shard(1, 2, 8), says_repair);
    CHECK_THROWS_WITH(publish_plan(c.city), says_repair);
    CHECK_THROWS_WITH(CityReader(c.city), says_repair);
    CHECK_THROWS_WITH(c.verify(true), says_repair);
    CHECK_THROWS_WITH(collect_garbage(c.city, Retention::newest(1), false), says_repair);
    CHECK_THROWS_WITH(roll_back(c.city, {}), says_repair);
    CHECK_THROWS_WITH(pack_city(c.city, c.dir / "p.pack", cancel, progress), says_repair);
    CHECK_FALSE(c.paths().is_city());
    CHECK(repair_city(c.city, cancel).generations == 2);
    CHECK(digest_of_tiles(CityReader(c.city)) == c.second.digest);
    CHECK(digest_of_tiles(CityReader(c.city, 1)) == c.first.digest);
    CHECK_FALSE(c.build().published);
}

TEST_CASE("verify leaves an intact archive where it is, whatever the catalog says of its size") {
    const City c;
    for (const auto& [name, points] : c.files) fs::remove(c.path(name));  // the archives are all there is
    const auto before = c.objects();
    REQUIRE(mutate(c.paths().catalog(), {"", "UPDATE source SET object_bytes=object_bytes+1"}));
    for (const bool deep : {false, true}) {
        CHECK_FALSE(c.verify(deep).corrupt.empty());
        for (const fs::path& object : before) CHECK(fs::exists(object));
    }
    CHECK(repair_city(c.city, CancelToken()).lost_inputs.empty());
    CHECK_FALSE(c.maker.build(c.city, toy_options()).published);
    CHECK(c.verify(true).corrupt.empty());
}

TEST_CASE("an archive whose input is gone is not taken away, however damaged") {
    const City c;
    const SourceRow source = Catalog::open_to_read(c.paths().catalog()).sources().front();
    for (const auto& [name, points] : c.files) fs::remove(c.path(name));
    flip_bit(c.paths().object(source.object), source.object_bytes / 2);
    const VerifyReport report = c.verify(true);
    REQUIRE(report.corrupt.size() == 1);
    CHECK_THAT(report.corrupt[0].what, Catch::Contains("a.cloud"));
    CHECK(fs::exists(c.paths().object(source.object)));
}

TEST_CASE("verify names a generation record that is missing or damaged") {
    const City c;
    Catalog catalog = Catalog::open_to_read(c.paths().catalog());
    for (const GenerationRow& generation : catalog.history()) {
        const fs::path record = c.paths().object(generation.record);
        const auto bytes = read_file(record);
        const auto check = [&](bool deep) {
            const VerifyReport report = c.verify(deep);
            REQUIRE(report.corrupt.size() >= 1);
            CHECK(std::any_of(report.corrupt.begin(), report.corrupt.end(),
                              [&](const Damage& d) { return d.object == generation.record; }));
            FileWriter out(record);
            out.write(bytes);
            out.finish();
            REQUIRE(c.verify(true).corrupt.empty());
        };
        fs::remove(record);
        check(false);
        for (const std::uint64_t byte :
             {std::uint64_t{0}, std::uint64_t{9}, bytes.size() / 2, bytes.size() - 1}) {
            flip_bit(record, byte);
            check(true);
        }
    }
}

TEST_CASE("a receipt in the place of another is not published, and its tiles are made again") {
    const City c;
    static_cast<void>(c.build_shard(1, 2, 8));
    const auto plan = name_of_open_plan(c.paths());
    REQUIRE(plan);
    std::vector<fs::path> receipts;
    for (const auto& entry : fs::directory_iterator(c.paths().plans() / plan->hex() / "done"))
        receipts.push_back(entry.path());
    REQUIRE(!receipts.empty());
    SECTION("of another plan") {
        std::ofstream(receipts[0]) << Hash128{}.hex() << "\n" << Hash128{}.hex() << "\n";
    }
    SECTION("of nothing") { std::ofstream(receipts[0]) << "thesis\n"; }
    SECTION("of an object of another kind") {
        std::ofstream(receipts[0]) << plan->hex() << "\n" << plan->hex() << "\n";
    }
    CHECK_THROWS_AS(publish_plan(c.city), BusyError);
    CHECK(CityReader(c.city).generation().id == 2);
    static_cast<void>(c.build_shard(2, 2, 8));
    CHECK(publish_plan(c.city).digest == c.second.digest);
    CHECK(c.verify(true).corrupt.empty());
}

TEST_CASE("a change that keeps size, time and inode of a file is seen") {
    City c;
    const fs::path file = c.path("a.cloud");
    struct stat before {};
    REQUIRE(::stat(file.c_str(), &before) == 0);
    auto points = c.files["a.cloud"];
    for (CloudPoint& p : points) p.z += 0.1;
    {
        std::fstream in_place(file, std::ios::in | std::ios::out | std::ios::binary);
        in_place.write(reinterpret_cast<const char*>(points.data()),
                       static_cast<std::streamsize>(points.size() * sizeof(CloudPoint)));
    }
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
    struct stat after {};
    REQUIRE(::stat(file.c_str(), &after) == 0);
    REQUIRE(after.st_ino == before.st_ino);
    REQUIRE(after.st_size == before.st_size);
    REQUIRE(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    c.files["a.cloud"] = points;
    const BuildReport built = c.maker.build(c.city, toy_options());
    CHECK(built.published);
    CHECK(built.digest == c.clean_build(c.first.calibration).digest);
}

TEST_CASE("object directories that a copy has lost are made again") {
    const City c;
    fs::create_directories(c.paths().objects() / "ff");
    for (const auto& entry : fs::directory_iterator(c.paths().objects()))
        if (entry.path().filename() != "ff" && fs::is_empty(entry.path())) fs::remove(entry.path());
    BuildOptions options = toy_options();
    options.tile_size_m = 8;
    SECTION("by a build") {}
    SECTION("by repair") { repair_city(c.city, CancelToken()); }
    SECTION("by shards") {
        for (std::uint32_t k = 1; k <= 2; ++k) static_cast<void>(c.build_shard(k, 2, 8));
        CHECK(publish_plan(c.city).digest == c.second.digest);
    }
    SECTION("by rollback") {
        roll_back(c.city, {});
        roll_back(c.city, {});
    }
    CHECK(c.maker.build(c.city, options).digest == c.second.digest);
    CHECK(c.verify(true).corrupt.empty());
}

TEST_CASE("while somebody builds, nobody else changes the city") {
    const City c;
    const auto before = c.objects();
    {
        const CityLock builder = CityLock::builder(c.paths(), "build");
        CHECK_THROWS_AS(collect_garbage(c.city, Retention::newest(1), false), BusyError);
        CHECK_THROWS_AS(roll_back(c.city, {}), BusyError);
        CHECK_THROWS_AS(repair_city(c.city, CancelToken()), BusyError);
        CHECK_THROWS_AS(publish_plan(c.city), BusyError);
        CHECK_THROWS_AS(c.build_shard(1, 2, 8), BusyError);
        CHECK_THROWS_AS(c.build(), BusyError);
        CHECK(c.verify(true).corrupt.empty());
    }
    CHECK(c.objects() == before);
    CHECK(CityReader(c.city, 1).generation().digest == c.first.digest);
}

TEST_CASE("a touched input leaves every generation readable, not only the latest") {
    const City c;
    fs::last_write_time(c.path("a.cloud"), fs::file_time_type::clock::now() + std::chrono::hours(1));
    CHECK_FALSE(c.build().published);
    for (const VerifyReport& report = c.verify(true); const Damage& damage : report.corrupt)
        FAIL_CHECK(damage.what << ": " << damage.problem);
    CHECK(digest_of_tiles(CityReader(c.city, 1)) == c.first.digest);
    CHECK(roll_back(c.city, 1) == 3);
    CHECK(digest_of_tiles(CityReader(c.city)) == c.first.digest);
}

TEST_CASE("a trajectory that is replaced while inputs are read is noticed for each of them") {
    TempDir dir(memory_directory());
    const auto city = dir / "city", path = dir / "drive.tum";
    const auto write_path = [&](double height_m) {
        std::ofstream out(path);
        for (int i = 0; i <= 200; ++i) out << i << ' ' << 1000 + i << " 2000 " << height_m << " 0 0 0 1\n";
    };
    write_path(1);
    BuildOptions options = toy_options();
    for (const char* name : {"a.cloud", "b.cloud"}) {
        write_cloud(dir / name, street(name[0], 1000, 2000, 30, 3));
        options.inputs.push_back({dir / name, path});
    }
    BuildOptions replacing = options;
    replacing.open = [&](const fs::path& cloud, const std::string& reading) {
        if (cloud.filename() == "a.cloud") write_path(2.5);
        return options.open(cloud, reading);
    };
    build_toy(city, replacing);
    CHECK(build_toy(city, options).inputs_read == 2);
    CHECK(build_toy(city, options).inputs_read == 0);
}
