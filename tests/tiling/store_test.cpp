#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "tiling/build/publisher.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/pack.hpp"
#include "tiling/points/point_archive.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/splat_payload.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <sys/resource.h>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace {

SplatTile some_splats(std::uint64_t seed, std::size_t n) {
    std::vector<Splat> splats(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t k = rng::key(seed, i);
        splats[i] = {.x = static_cast<std::int32_t>(rng::bits(k, 0) % 400'000),
                     .y = static_cast<std::int32_t>(rng::bits(k, 1) % 400'000),
                     .z = static_cast<std::int32_t>(rng::bits(k, 2) % 100'000) - 50'000,
                     .normal = pack_normal({0, 0.6, 0.8}),
                     .radius = static_cast<std::uint16_t>(1 + rng::bits(k, 3) % 5000),
                     .label = 3,
                     .intensity = 700,
                     .point_count = 12,
                     .group = SplatGroup::ground,
                     .range = 10,
                     .incidence = 20,
                     .instance = 0};
    }
    return SplatTile({651'234, 6'860'100, 0}, splats);
}

struct OnePayload {
    TempDir dir{memory_directory()};
    ObjectStore store{CityPaths(dir.path())};
    PayloadInfo info{
        .tile = {0, 3, -4}, .key = {1, 2}, .digest = {}, .points = 99, .halo_steps = 8192, .box = {}};
    std::uint64_t bytes = 0;
    Hash128 name;
    explicit OnePayload(std::size_t n = 40) {
        store.create_layout();
        name = write_payload(store, product_of(some_splats(1, n)), info, bytes);
        store.flush();
    }
    std::filesystem::path path() const { return store.paths().object(name); }
    bool loads() const {
        try {
            read_payload(store, name, "tile");
            return true;
        } catch (const Error&) {
            return false;
        }
    }
};

void write_all(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    FileWriter out(path);
    out.write(bytes);
    out.finish();
}

struct SmallCity {
    TempDir dir{memory_directory()};
    std::filesystem::path city = dir / "city", file = dir / "a.cloud";
    BuildReport report;
    SmallCity() {
        write_cloud(file, street(1, 1000, 2000, 60, 4));
        report = build_toy(city, toy_options({file}));
    }
    CityPaths paths() const { return CityPaths(city); }
};

/// Of the splats as they are loaded, not as the catalog has it.
Hash128 digest_of_tiles(const CityReader& city) {
    Hash128 digest;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) digest += city.load(i).digest();
    return digest;
}

}  // namespace

TEST_CASE("a payload comes back as it was, with at most 24.2 bytes a splat") {
    const OnePayload p(10'000);
    const Payload payload = read_payload(p.store, p.name, "tile");
    CHECK(payload.info.tile == p.info.tile);
    CHECK(payload.info.key == p.info.key);
    CHECK(payload.splats.digest() == some_splats(1, 10'000).digest());
    CHECK(static_cast<double>(p.bytes) / 10'000 < 24.2);
}

TEST_CASE("every flipped bit and every truncation of a payload is detected") {
    const OnePayload p;
    const std::vector<std::byte> good = read_file(p.path());
    std::vector<std::byte> bad = good;
    for (std::size_t i = 0; i < good.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            bad[i] = good[i] ^ static_cast<std::byte>(1 << bit);
            write_all(p.path(), bad);
            if (p.loads()) FAIL("bit " << bit << " of byte " << i << " flipped, and nobody noticed");
            bad[i] = good[i];
        }
    for (std::size_t size = 0; size < good.size(); ++size) {
        write_all(p.path(), std::span(good).first(size));
        if (p.loads()) FAIL("cut to " << size << " bytes, and nobody noticed");
    }
    bad.push_back(std::byte{0});
    write_all(p.path(), bad);
    CHECK_FALSE(p.loads());
    write_all(p.path(), good);
    CHECK(p.loads());
}

TEST_CASE("a payload whose frame is not on Earth is refused, even when its checksums fit") {
    OnePayload p;
    Splat splat{};
    splat.radius = 100;
    for (const std::int64_t metres : {std::int64_t{1} << 56, std::numeric_limits<std::int64_t>::min()}) {
        const SplatTile tile({metres, 0, 0}, std::vector{splat});
        const TileProduct product{ProductKind::splats, 1, 0, tile.frame(), {}, {}, tile.bytes()};
        p.name = write_payload(p.store, product, p.info, p.bytes);
        p.store.flush();
        CHECK_THROWS_AS(read_payload(p.store, p.name, "tile"), CorruptionError);
        CHECK_THROWS_WITH(read_payload(p.store, p.name, "tile"), Catch::Contains(std::to_string(metres)));
    }
}

TEST_CASE("objects that get no name leave no file behind") {
    OnePayload one;
    const auto files = [&] {
        const auto directory = one.store.paths().temporary();
        return std::distance(std::filesystem::directory_iterator(directory), {});
    };
    {
        ObjectStore other{one.store.paths()};
        write_payload(other, product_of(some_splats(2, 10)), one.info, one.bytes);
        CHECK(files() == 1);
    }
    CHECK(files() == 0);
    for (const std::uint64_t seed : {3u, 4u, 5u}) {
        const Hash128 name = write_payload(one.store, product_of(some_splats(seed, 10)), one.info, one.bytes);
        std::filesystem::remove_all(one.store.paths().object_directory(name));
    }
    CHECK_THROWS_AS(one.store.flush(), IoError);
    CHECK(files() == 0);
}

TEST_CASE("an object that the disk cannot read is damaged, and no reason to stop") {
    const OnePayload one;
    CHECK(one.store.intact(one.name));
    std::filesystem::remove(one.path());
    std::filesystem::create_symlink("/proc/self/mem", one.path());  // its first byte is an I/O error
    CHECK_FALSE(one.store.intact(one.name));
    CHECK_FALSE(one.store.kind_of(one.name));
}

TEST_CASE("swapped payloads are detected") {
    SmallCity c;
    const CityReader reader(c.city);
    REQUIRE(reader.tiles().size() >= 2);
    Catalog catalog = Catalog::open_to_read(c.paths().catalog());
    std::vector<ProductRow> tiles;
    for (const ProductRow& t : catalog.tiles(1))
        if (t.object) tiles.push_back(t);
    const auto a = c.paths().object(*tiles[0].object), b = c.paths().object(*tiles[1].object);
    std::filesystem::rename(a, c.dir / "x");
    std::filesystem::rename(b, a);
    std::filesystem::rename(c.dir / "x", b);
    CHECK_THROWS_AS(reader.load(0), CorruptionError);
    CHECK_THROWS_AS(reader.load(1), CorruptionError);
    CHECK_NOTHROW(reader.load(2));
}

TEST_CASE("verify names a damaged tile and touches nothing: set aside, the next build makes it again") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
    const ProductRow tile = Catalog::open_to_read(c.paths().catalog()).tiles(1).front();
    auto bytes = read_file(c.paths().object(*tile.object));
    bytes[bytes.size() / 2] ^= std::byte{1};
    write_all(c.paths().object(*tile.object), bytes);
    CHECK(verify_city(c.city, false, cancel, progress).corrupt.empty());
    const VerifyReport found = verify_city(c.city, true, cancel, progress);
    REQUIRE(found.corrupt.size() == 1);
    CHECK(found.corrupt[0].what == "tile " + tile.tile.text());
    CHECK(read_file(c.paths().object(*tile.object)) == bytes);
    CHECK(set_damaged_aside(c.city, found.corrupt, cancel) == 1);
    CHECK(read_file(c.paths().damaged() / tile.object->hex()) == bytes);
    const BuildReport again = build_toy(c.city, toy_options());
    CHECK(again.tiles_built == 1);
    REQUIRE(again.explanations.size() == 1);
    CHECK(again.explanations[0].reason == Reason::missing_object);
    CHECK(again.digest == c.report.digest);
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
}

TEST_CASE("a damaged archive is found and read again from the input") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    const SourceRow source = Catalog::open_to_read(c.paths().catalog()).sources().front();
    auto bytes = read_file(c.paths().object(source.object));
    bytes[bytes.size() / 3] ^= std::byte{4};
    write_all(c.paths().object(source.object), bytes);
    const VerifyReport found = verify_city(c.city, true, cancel, progress);
    REQUIRE(found.corrupt.size() == 1);
    CHECK(found.corrupt[0].what == "points of " + std::filesystem::canonical(c.file).string());
    CHECK(set_damaged_aside(c.city, found.corrupt, cancel) == 1);
    const BuildReport again = build_toy(c.city, toy_options());
    CHECK(again.inputs_read == 1);
    CHECK(again.tiles_built == 0);
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
}

TEST_CASE("an archive with numbers that no catalog could give back is damaged, whatever its checksums say") {
    SmallCity c;
    const SourceRow source = Catalog::open_to_read(c.paths().catalog()).sources().front();
    const auto path = c.paths().object(source.object);
    const auto good = read_file(path);
    CHECK_FALSE(read_directory(File(path, File::Mode::read), source.object).segments.empty());
    // Of the first entry of the directory: where its sector is, and the reach of its rays.
    for (const std::size_t field : {std::size_t{0}, std::size_t{4}, std::size_t{56}, std::size_t{68}}) {
        auto bytes = good;
        std::array<std::uint64_t, 4> trailer{};  // begin, segments, bytes and checksum of the directory
        const std::size_t trailer_at = bytes.size() - 64;
        std::memcpy(trailer.data(), bytes.data() + trailer_at, sizeof trailer);
        const std::int32_t beyond = std::numeric_limits<std::int32_t>::max();
        std::memcpy(bytes.data() + trailer[0] + field, &beyond, sizeof beyond);
        trailer[3] = checksum_bytes(std::span(bytes).subspan(trailer[0], trailer[2]));
        std::memcpy(bytes.data() + trailer_at, trailer.data(), sizeof trailer);
        write_all(path, bytes);
        CHECK_THROWS_WITH(read_directory(File(path, File::Mode::read), source.object),
                          Catch::Contains("has numbers that no archive has"));
    }
}

TEST_CASE("damaged points whose input is gone are never moved, and a build does not lose them in silence") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    const SourceRow source = Catalog::open_to_read(c.paths().catalog()).sources().front();
    const auto path = c.paths().object(source.object);
    auto bytes = read_file(path);
    bytes[bytes.size() / 3] ^= std::byte{4};
    write_all(path, bytes);
    std::filesystem::remove(c.file);
    const VerifyReport found = verify_city(c.city, true, cancel, progress);
    REQUIRE(found.corrupt.size() == 1);
    CHECK(set_damaged_aside(c.city, found.corrupt, cancel) == 0);
    CHECK(read_file(path) == bytes);

    // The same after a repair, which cannot trust the archive.
    const RepairReport repaired = repair_city(c.city, cancel);
    CHECK(repaired.lost_inputs ==
          std::vector<std::string>{std::filesystem::weakly_canonical(c.file).string()});
    CHECK(read_file(path) == bytes);
    CHECK(CityReader(c.city).generation().digest == c.report.digest);
    CHECK_THROWS_WITH(build_toy(c.city, toy_options()), Catch::Contains("put the file back"));
    write_cloud(c.file, street(1, 1000, 2000, 60, 4));
    CHECK(build_toy(c.city, toy_options()).digest == c.report.digest);
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
}

TEST_CASE("an archive is kept when only the catalog is wrong about its size") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    const SourceRow source = Catalog::open_to_read(c.paths().catalog()).sources().front();
    Database(c.paths().catalog(), Database::Access::read_write)
        .execute("UPDATE source SET object_bytes=object_bytes+1");
    std::filesystem::remove(c.file);
    const VerifyReport found = verify_city(c.city, false, cancel, progress);
    REQUIRE(found.corrupt.size() == 1);
    CHECK_THAT(found.corrupt[0].problem, Catch::Contains("is whole"));
    CHECK(set_damaged_aside(c.city, found.corrupt, cancel) == 0);
    CHECK(ObjectStore(c.paths()).intact(source.object));
    CHECK_THROWS_WITH(build_toy(c.city, toy_options()), Catch::Contains("repair"));
    repair_city(c.city, cancel);
    CHECK_FALSE(build_toy(c.city, toy_options()).published);
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
}

TEST_CASE("the record of a generation is verified, and a build writes a lost one again") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    const Hash128 record = CityReader(c.city).generation().record;
    const auto path = c.paths().object(record);
    const auto good = read_file(path);
    SECTION("lost") { std::filesystem::remove(path); }
    SECTION("damaged") {
        auto bad = good;
        bad[bad.size() / 2] ^= std::byte{1};
        write_all(path, bad);
    }
    const VerifyReport found = verify_city(c.city, true, cancel, progress);
    REQUIRE(found.corrupt.size() == 1);
    CHECK(found.corrupt[0].what == "record of generation 1");
    CHECK(found.corrupt[0].object == record);
    CHECK_NOTHROW(CityReader(c.city));
    CHECK_FALSE(build_toy(c.city, toy_options()).published);
    CHECK(read_file(path) == good);
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
    std::filesystem::remove(c.paths().catalog());
    repair_city(c.city, cancel);
    CHECK(CityReader(c.city).generation().digest == c.report.digest);
}

TEST_CASE("a reader refuses a catalog whose rows are not what was published") {
    SmallCity c;
    const auto change = [&](const char* sql) {
        Database(c.paths().catalog(), Database::Access::read_write).execute(sql);
        CHECK_THROWS_AS(CityReader(c.city), CorruptionError);
        CHECK_THROWS_AS(build_toy(c.city, toy_options()), CorruptionError);
    };
    SECTION("boxes moved") { change("UPDATE product SET min_x=min_x+1000, max_x=max_x+1000"); }
    SECTION("a tile closed") { change("UPDATE tile SET last=0 WHERE id=1"); }
    SECTION("a tile twice") {
        change("INSERT INTO tile(first, last, product) SELECT 1, NULL, product FROM tile");
    }
    SECTION("payload gone") { change("UPDATE product SET object=NULL WHERE id=1"); }
    SECTION("a text as a number") { change("UPDATE product SET splats='many' WHERE id=1"); }
    SECTION("a level beyond all levels") { change("UPDATE product SET level=2000000000 WHERE id=1"); }
    SECTION("another digest") { change("UPDATE product SET digest=zeroblob(16) WHERE id=1"); }
    SECTION("another path") { change("UPDATE input SET path=path||'x'"); }
    repair_city(c.city, CancelToken());
    CHECK(CityReader(c.city).generation().digest == c.report.digest);
    CHECK_FALSE(build_toy(c.city, toy_options()).published);
}

TEST_CASE("a city that lost its catalog is called so by everything, until it is repaired") {
    SmallCity c;
    std::filesystem::remove(c.paths().catalog());
    const auto refuse = [](const auto& call) {
        CHECK_THROWS_AS(call(), ConfigError);
        CHECK_THROWS_WITH(call(), Catch::Contains("lost its catalog") && Catch::Contains("repair"));
    };
    CancelToken cancel;
    Progress progress;
    refuse([&] { CityReader reader(c.city); });
    refuse([&] { build_toy(c.city, toy_options({c.file})); });
    refuse([&] { verify_city(c.city, true, cancel, progress); });
    refuse([&] { collect_garbage(c.city, Retention::newest(1), false); });
    refuse([&] { collect_garbage(c.city, Retention::newest(1), true); });
    refuse([&] { roll_back(c.city, {}); });
    refuse([&] { publish_plan(c.city); });
    refuse([&] { pack_city(c.city, c.dir / "p", cancel, progress); });
    CHECK(repair_city(c.city, cancel).generations == 1);
    CHECK(CityReader(c.city).generation().digest == c.report.digest);
}

TEST_CASE("a lost directory of objects is made again") {
    SmallCity c;
    for (const auto& entry : std::filesystem::directory_iterator(c.paths().objects()))
        if (std::filesystem::is_empty(entry.path()) && entry.path().filename() != "ff")
            std::filesystem::remove(entry.path());
    write_cloud(c.dir / "b.cloud", street(5, 1030, 2010, 30, 4));
    CHECK(build_toy(c.city, toy_options({c.dir / "b.cloud"})).published);
}

TEST_CASE("a change that keeps size, time and inode of an input is seen") {
    SmallCity c;
    const auto time = std::filesystem::last_write_time(c.file);
    auto bytes = read_file(c.file);
    {
        // Other bytes of the same points' attributes: the file stays valid.
        auto points = street(1, 1000, 2000, 60, 4);
        points[points.size() / 2].label ^= 1;
        const auto other = c.dir / "other.cloud";
        write_cloud(other, points);
        const auto changed = read_file(other);
        REQUIRE(changed.size() == bytes.size());
        File file(c.file, File::Mode::read_write);
        file.write_at(0, changed);
    }
    std::filesystem::last_write_time(c.file, time);
    const BuildReport again = build_toy(c.city, toy_options());
    CHECK(again.published);
    CHECK(again.digest != c.report.digest);
}

TEST_CASE("repair keeps every old catalog and deletes nothing") {
    SmallCity c;
    std::ofstream(c.paths().temporary() / "thesis.txt") << "precious";
    const auto foreign = c.paths().objects() / "ab" / "abcdef0123456789abcdef0123456789";
    std::ofstream(foreign) << "precious";
    for (int n = 1; n <= 2; ++n) {
        const RepairReport report = repair_city(c.city, CancelToken());
        CHECK(report.generations == 1);
        CHECK(std::filesystem::exists(c.paths().catalog().string() + ".before-repair-" + std::to_string(n)));
    }
    CHECK(read_text_file(c.paths().temporary() / "thesis.txt") == "precious");
    CHECK(read_text_file(foreign) == "precious");
    CHECK(collect_garbage(c.city, Retention::newest(1), false).foreign == 1);
    CHECK(read_text_file(foreign) == "precious");
    CHECK(CityReader(c.city).generation().digest == c.report.digest);
}

TEST_CASE("repair and unpack leave directories of others alone") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    const auto store = c.dir / "store";
    std::filesystem::create_directories(store / "objects/ab");
    std::filesystem::create_directories(store / "tmp");
    std::ofstream(store / "objects/ab/abcdef0123456789abcdef0123456789") << "precious";
    std::ofstream(store / "tmp/mine") << "precious";
    CHECK_THROWS_AS(repair_city(store, cancel), ConfigError);
    CHECK_THROWS_AS(build_toy(store, toy_options({c.file})), UsageError);
    pack_city(c.city, c.dir / "p", cancel, progress);
    CHECK_THROWS_AS(unpack_city(c.dir / "p", store, cancel, progress), UsageError);
    CHECK_FALSE(std::filesystem::exists(store / "lock"));
    CHECK(read_text_file(store / "tmp/mine") == "precious");
    CHECK(read_text_file(store / "objects/ab/abcdef0123456789abcdef0123456789") == "precious");
}

TEST_CASE("a pack does not replace a file unless told to, and then only a pack") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    std::ofstream(c.dir / "thesis.txt") << "precious";
    for (const bool overwrite : {false, true})
        CHECK_THROWS_AS(pack_city(c.city, c.dir / "thesis.txt", cancel, progress, {overwrite}), UsageError);
    CHECK(read_text_file(c.dir / "thesis.txt") == "precious");
    pack_city(c.city, c.dir / "p", cancel, progress);
    CHECK_THROWS_AS(pack_city(c.city, c.dir / "p", cancel, progress), UsageError);
    CHECK_NOTHROW(pack_city(c.city, c.dir / "p", cancel, progress, {.overwrite = true}));
    CHECK_THROWS_WITH(pack_city(c.city, c.dir / "nowhere/p", cancel, progress),
                      Catch::Contains("there is no directory"));
    CHECK_THROWS_WITH(pack_city(c.city, c.dir.path(), cancel, progress), Catch::Contains("not a file"));
}

TEST_CASE("what a killed pack left beside its file goes with the next one, and nothing of that remains") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    const auto directory = c.dir / "packs";
    std::filesystem::create_directory(directory);
    for (const char* left : {"p.citysplat-partial", "p.citysplat-partial-catalog"})
        std::ofstream(directory / left) << "half a pack";
    pack_city(c.city, directory / "p", cancel, progress);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        names.push_back(entry.path().filename().string());
    CHECK(names == std::vector<std::string>{"p"});
    unpack_city(directory / "p", c.dir / "again", cancel, progress);
    CHECK(CityReader(c.dir / "again").generation().digest == c.report.digest);
}

TEST_CASE("the catalog can be rebuilt from the objects") {
    SmallCity c;
    write_cloud(c.dir / "b.cloud", street(5, 1030, 2010, 30, 4));
    const BuildReport second = build_toy(c.city, toy_options({c.dir / "b.cloud"}));
    SECTION("lost") { std::filesystem::remove(c.paths().catalog()); }
    SECTION("overwritten") {
        std::ofstream(c.paths().catalog()) << "not a database";
        CHECK_THROWS_AS(CityReader(c.city), Error);
    }
    const RepairReport repaired = repair_city(c.city, CancelToken());
    CHECK(repaired.generations == 2);
    CHECK(repaired.latest == 2);
    CHECK(digest_of_tiles(CityReader(c.city)) == second.digest);
    CHECK(digest_of_tiles(CityReader(c.city, 1)) == c.report.digest);
    const BuildReport again = build_toy(c.city, toy_options());
    CHECK_FALSE(again.published);
    CHECK(again.tiles_built == 0);
    CHECK(again.inputs_read == 0);
}

TEST_CASE("a row that was read before an input was touched is no damage") {
    SmallCity c;
    const ObjectStore store{c.paths()};
    Catalog catalog = Catalog::open_to_read(c.paths().catalog());
    const GenerationRow before = catalog.latest().value();
    std::filesystem::last_write_time(c.file,
                                     std::filesystem::last_write_time(c.file) + std::chrono::seconds(5));
    CHECK_FALSE(build_toy(c.city, toy_options()).published);
    CHECK(catalog.latest()->record != before.record);
    CHECK_NOTHROW(check_rows(catalog, store, before));
}

TEST_CASE("repair leaves out objects that make no sense, although they match their names") {
    SmallCity c;
    ObjectStore store{c.paths()};
    for (const ObjectKind kind : {ObjectKind::archive, ObjectKind::generation}) {
        auto writer = store.create();
        const Magic magic = magic_of(kind);
        writer.append(std::as_bytes(std::span(magic)));
        const std::uint32_t version = 1;
        writer.append(std::as_bytes(std::span(&version, 1)));
        static_cast<void>(writer.finish());
    }
    store.flush();
    const RepairReport report = repair_city(c.city, CancelToken());
    CHECK(report.notes.size() == 2);
    CHECK(report.generations == 1);
    CHECK(digest_of_tiles(CityReader(c.city)) == c.report.digest);
}

TEST_CASE("a record with numbers that the catalog would not give back was never published") {
    GenerationRecord record;
    record.generation.id = record.generation.created_s = 1;
    record.generation.tile_size_m = 64;
    record.tiles.resize(1);
    record.generation.tiles = 1;
    CHECK_FALSE(why_not_published(record));
    SECTION("level") { record.tiles[0].tile.level = 1000; }
    SECTION("halo") { record.tiles[0].halo_steps = -1; }
    SECTION("box") { record.tiles[0].box[2] = std::numeric_limits<double>::quiet_NaN(); }
    SECTION("size of tiles") { record.generation.tile_size_m = 0; }
    SECTION("number") { record.generation.id = kMostGenerations + 1; }
    SECTION("means") { record.generation.measured.mean_density = std::numeric_limits<double>::infinity(); }
    CHECK(why_not_published(record));
}

TEST_CASE("a catalog whose sectors are not on Earth is refused") {
    SmallCity c;
    CHECK(!Catalog::open_to_read(c.paths().catalog()).segments(1).empty());
    Database(c.paths().catalog(), Database::Access::read_write)
        .execute("UPDATE segment SET reach_max_x=2147483647");
    CHECK_THROWS_AS(Catalog::open_to_read(c.paths().catalog()).segments(1), CorruptionError);
}

TEST_CASE("a catalog that is foreign, newer or damaged is refused") {
    SmallCity c;
    const auto path = c.paths().catalog();
    const auto refuse = [&](const std::string& words) {
        CHECK_THROWS_WITH(CityReader(c.city), Catch::Contains(words));
    };
    SECTION("newer version") {
        Database(path, Database::Access::read_write).execute("PRAGMA user_version=9");
        refuse("newer");
    }
    SECTION("another program's database") {
        Database(path, Database::Access::read_write).execute("PRAGMA application_id=1");
        refuse("not a citysplat catalog");
    }
    SECTION("a trigger added") {
        Database(path, Database::Access::read_write)
            .execute("CREATE TRIGGER t AFTER INSERT ON tile BEGIN DELETE FROM tile; END");
        refuse("foreign schema");
    }
    SECTION("a page overwritten") {
        auto bytes = read_file(path);
        std::fill(bytes.begin() + 4096, bytes.begin() + 8192, std::byte{0xff});
        write_all(path, bytes);
        CHECK_THROWS_AS(CityReader(c.city), CorruptionError);
    }
    SECTION("not a city at all") { CHECK_THROWS_AS(CityReader(c.dir / "nowhere"), ConfigError); }
}

TEST_CASE("a city survives the way through one file") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    pack_city(c.city, c.dir / "city.pack", cancel, progress);
    unpack_city(c.dir / "city.pack", c.dir / "copy", cancel, progress);
    CHECK(CityReader(c.dir / "copy").generation().digest == c.report.digest);
    CHECK(verify_city(c.dir / "copy", true, cancel, progress).corrupt.empty());
    CHECK_FALSE(build_toy(c.dir / "copy", toy_options()).published);

    const auto good = read_file(c.dir / "city.pack");
    for (std::size_t i = 0; i < 40; ++i) {
        auto bad = good;
        bad[good.size() * i / 40] ^= std::byte{16};
        write_all(c.dir / "bad.pack", bad);
        CHECK_THROWS_AS(
            unpack_city(c.dir / "bad.pack", c.dir / ("bad" + std::to_string(i)), cancel, progress), Error);
        CHECK_FALSE(std::filesystem::exists(c.dir / ("bad" + std::to_string(i))));
    }
}

TEST_CASE("a file that is called as the mark of unpack is not taken for it") {
    SmallCity c;
    CancelToken cancel;
    Progress progress;
    pack_city(c.city, c.dir / "city.pack", cancel, progress);
    const CityPaths theirs(c.dir / "downloads");
    std::filesystem::create_directory(theirs.root());
    std::ofstream(theirs.unpacking()) << "precious";
    CHECK_THROWS_AS(unpack_city(c.dir / "city.pack", theirs.root(), cancel, progress), UsageError);
    CHECK(read_text_file(theirs.unpacking()) == "precious");
    CHECK_FALSE(std::filesystem::exists(theirs.objects()));
    // Nor does a build take it away.
    std::ofstream(c.paths().unpacking()) << "precious";
    build_toy(c.city, toy_options());
    CHECK(read_text_file(c.paths().unpacking()) == "precious");
}

TEST_CASE("a disk that takes no byte does not keep a builder from the lock") {
    SmallCity c;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
    bool locked = false;
    try {
        const CityLock lock = CityLock::builder(c.paths(), "gc");
        locked = true;
    } catch (const Error&) {
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK(locked);
}

TEST_CASE("rollback brings an earlier generation back, gc forgets and readers pin") {
    SmallCity c;
    write_cloud(c.dir / "b.cloud", street(5, 1030, 2010, 30, 4));
    const BuildReport second = build_toy(c.city, toy_options({c.dir / "b.cloud"}));
    CHECK(second.digest != c.report.digest);
    CHECK(roll_back(c.city, {}) == 3);
    CHECK(CityReader(c.city).generation().digest == c.report.digest);
    CHECK(CityReader(c.city, 2).generation().digest == second.digest);

    CancelToken cancel;
    Progress progress;
    {
        const CityReader pinned(c.city, 2);
        CHECK(collect_garbage(c.city, Retention::newest(1), true).pinned == std::vector<std::int64_t>{2});
        const GarbageReport report = collect_garbage(c.city, Retention::newest(1), false);
        CHECK(report.forgotten == std::vector<std::int64_t>{1});
        for (std::size_t i = 0; i < pinned.tiles().size(); ++i) CHECK_NOTHROW(pinned.load(i));
    }
    const GarbageReport predicted = collect_garbage(c.city, Retention::newest(1), true);
    const GarbageReport report = collect_garbage(c.city, Retention::newest(1), false);
    CHECK(report.forgotten == std::vector<std::int64_t>{2});
    CHECK(report.freed_bytes > 0);
    CHECK(report.freed_bytes == predicted.freed_bytes);
    CHECK_THROWS_AS(CityReader(c.city, 2), ConfigError);
    CHECK(verify_city(c.city, true, cancel, progress).corrupt.empty());
    CHECK(build_toy(c.city, toy_options({c.dir / "b.cloud"})).digest == second.digest);
}

TEST_CASE("the payload of a mesh is read back, and one with a triangle too many is refused") {
    const TempDir dir{memory_directory()};
    ObjectStore store{CityPaths(dir.path())};
    store.create_layout();
    std::vector<MeshVertex> vertices;
    for (std::int32_t i = 0; i < 5000; ++i)
        vertices.push_back({i, -i, i % 7, static_cast<std::uint32_t>(i), 3, 4, 5, 6});
    std::vector<MeshTriangle> triangles;
    for (std::uint32_t i = 2; i < 5000; ++i) triangles.push_back({i - 2, i - 1, i});
    const PayloadInfo info{.tile = {0, 3, -4, ProductKind::mesh},
                           .key = {1, 2},
                           .digest = {},
                           .points = 99,
                           .halo_steps = 8192,
                           .box = {}};
    std::uint64_t bytes = 0;
    const MeshTile tile({10, -20, 30}, vertices, triangles);
    const Hash128 name = write_payload(store, product_of(tile), info, bytes);
    MeshTile wrong({10, -20, 30}, vertices, triangles);
    const std::uint32_t nowhere = 5000;
    std::memcpy(wrong.mutable_bytes().data() + MeshTile::body_bytes(5000, 0), &nowhere, sizeof nowhere);
    const TileProduct damaged{ProductKind::mesh, triangles.size(), 5000, wrong.frame(), {}, {},
                              wrong.bytes()};
    const Hash128 bad = write_payload(store, damaged, info, bytes);
    store.flush();

    CHECK(store.kind_of(name) == ObjectKind::mesh);
    const Payload payload = read_payload(store, name, "tile");
    CHECK(payload.info.tile == info.tile);
    CHECK(payload.splats.empty());
    CHECK(payload.mesh.digest() == tile.digest());
    CHECK(payload.mesh.triangle_count() == triangles.size());
    CHECK_THROWS_WITH(read_payload(store, bad, "tile"), Catch::Contains("has the vertex 5000"));

    // A count that does not fit the file becomes no allocation.
    auto content = read_file(store.paths().object(name));
    for (const std::size_t cut : {std::size_t{100}, content.size() / 2, content.size() - 1}) {
        const auto short_one = std::span(content).first(cut);
        auto writer = store.create();
        writer.append(short_one);
        const Hash128 other = writer.finish();
        store.flush();
        CHECK_THROWS_AS(read_payload(store, other, "tile"), CorruptionError);
    }
}
