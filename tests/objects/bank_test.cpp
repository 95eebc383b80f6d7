#include "objects/bank.hpp"

#include "core/error.hpp"
#include "objects/scanned_van.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <functional>
#include <set>

using namespace citysplat;
using namespace citysplat::objects;
namespace fs = std::filesystem;

namespace {

BankObject some_object(const std::string& name, double length_m = 4.5) {
    BankObject o;
    o.name = name;
    o.class_name = "Car";
    o.size = {length_m, 1.8, 1.5};
    o.source = "drive";
    o.track = "7";
    o.points = 1000;
    o.frames = 12;
    o.thickness_m = 0.0123;
    o.coverage.fill(60);
    return o;
}

SplatTile some_splats(std::int32_t x) {
    Splat s{};
    s.x = x, s.radius = 500, s.normal = pack_normal({0, 0, 1}), s.label = 13;
    return SplatTile({}, std::vector{s, s});
}

void fill(const fs::path& folder) {
    BankWriter writer(folder);
    writer.add(some_object("b", 4.0), some_splats(200));
    writer.add(some_object("a", 5.0), some_splats(100));
    writer.commit();
}

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a bank gives back what was put into it") {
    test::TempDir dir;
    fill(dir / "bank");
    const Bank bank = Bank::open(dir / "bank");
    REQUIRE(bank.objects().size() == 2);
    const BankObject& a = bank.objects()[0];
    CHECK(a.name == "a");
    CHECK(a.size.length_m == 5.0);
    CHECK(a.thickness_m == 0.0123);
    CHECK(a.coverage == some_object("x").coverage);
    CHECK(bank.load(a).digest() == some_splats(100).digest());
    CHECK(bank.find("b").splats.splats == 2);
    CHECK_THROWS_WITH(bank.find("c"), Catch::Contains("no object is called c") && Catch::Contains("a, b"));
}

TEST_CASE("values that cannot be are refused in an index, however well its checksum fits") {
    const auto refused = [](const std::function<void(BankObject&)>& change) {
        BankObject o = some_object("a");
        o.splats.box = {0, 0, 0, 1, 1, 1};
        change(o);
        try {
            (void)parse_index(index_text(std::vector{o}), "bank.json");
        } catch (const CorruptionError& e) {
            return std::string(e.what());
        }
        return std::string("accepted");
    };
    CHECK(refused([](BankObject&) {}) == "accepted");
    CHECK_THAT(refused([](BankObject& o) { o.size.width_m = 0; }),
               Catch::Contains("bank.json: ") && Catch::Contains("no size"));
    CHECK_THAT(refused([](BankObject& o) { o.end_s = o.begin_s - 1; }), Catch::Contains("before"));
    CHECK_THAT(refused([](BankObject& o) { o.splats.box[3] = -1; }), Catch::Contains("turned over"));
    CHECK_THAT(refused([](BankObject& o) { o.coverage[7] = 101; }), Catch::Contains("coverage"));
}

TEST_CASE("objects are added to a bank and replaced by name") {
    test::TempDir dir;
    fill(dir / "bank");
    {
        BankWriter writer(dir / "bank");
        writer.add(some_object("b", 6.0), some_splats(300));
        writer.add(some_object("c"), some_splats(400));
        writer.commit();
    }
    const Bank bank = Bank::open(dir / "bank");
    REQUIRE(bank.objects().size() == 3);
    CHECK(bank.find("b").size.length_m == 6.0);
    CHECK(bank.load(bank.find("a")).digest() == some_splats(100).digest());
}

TEST_CASE("the order in which objects are added does not change a byte of the index") {
    test::TempDir dir;
    fill(dir / "one");
    {
        BankWriter writer(dir / "two");
        writer.add(some_object("a", 5.0), some_splats(100));
        writer.add(some_object("b", 4.0), some_splats(200));
        writer.commit();
    }
    CHECK(text_of(dir / "one/bank.json") == text_of(dir / "two/bank.json"));
}

TEST_CASE("a writer that does not commit leaves a bank as it was") {
    test::TempDir dir;
    fill(dir / "bank");
    const std::string before = text_of(dir / "bank/bank.json");
    { BankWriter(dir / "bank").add(some_object("z"), some_splats(900)); }
    CHECK(text_of(dir / "bank/bank.json") == before);
    CHECK_FALSE(fs::exists(OutputFile::partial_of(dir / "bank/bank.json")));
}

TEST_CASE("one bank has one writer at a time") {
    test::TempDir dir;
    BankWriter first(dir / "bank");
    CHECK_THROWS_AS(BankWriter(dir / "bank"), BusyError);
}

TEST_CASE("a folder of others does not become a bank") {
    test::TempDir dir;
    std::ofstream(dir / "thesis.txt") << "years of work";
    CHECK_THROWS_AS(BankWriter(dir.path()), ConfigError);
    CHECK(text_of(dir / "thesis.txt") == "years of work");
    CHECK_THROWS_AS(Bank::open(dir.path()), ConfigError);
    CHECK_THROWS_AS(BankWriter(dir / "thesis.txt"), ConfigError);
}

TEST_CASE("any changed byte of a bank is noticed") {
    test::TempDir dir;
    fill(dir / "bank");
    const Bank bank = Bank::open(dir / "bank");
    const fs::path payload = SplatFolder(dir / "bank/splats").path_of(bank.objects()[0].splats.name);
    const std::string splats = text_of(payload), index = text_of(dir / "bank/bank.json");
    for (std::size_t at = 0; at < splats.size(); at += 7) {
        std::string changed = splats;
        changed[at] = static_cast<char>(changed[at] ^ 4);
        std::ofstream(payload, std::ios::binary) << changed;
        CAPTURE(at);
        // A changed version is a matter of configuration, all else is damage.
        REQUIRE_THROWS_AS(bank.load(bank.objects()[0]), Error);
    }
    std::ofstream(payload, std::ios::binary) << splats.substr(0, splats.size() / 2);
    CHECK_THROWS_AS(bank.load(bank.objects()[0]), CorruptionError);
    fs::remove(payload);
    CHECK_THROWS_WITH(bank.load(bank.objects()[0]),
                      Catch::Contains("object a") && Catch::Contains("missing"));
    std::size_t unnoticed = 0;
    for (std::size_t at = 0; at < index.size(); ++at) {
        std::string changed = index;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        try {
            const auto objects = parse_index(changed, "index");
            // White space between words may change, objects may not.
            unnoticed += index_text(objects) != index;
        } catch (const Error&) {
        }
    }
    CHECK(unnoticed == 0);
    CHECK_THROWS_AS(parse_index(index.substr(0, index.size() / 2), "index"), CorruptionError);
    CHECK_THROWS_AS(parse_index("[]", "index"), ConfigError);
    const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
    CHECK_THROWS_AS(parse_index(R"({"format": "citysplat object bank", "version": 1, "checksum": "",)"
                                R"( "objects": )" +
                                    deep + "}",
                                "index"),
                    CorruptionError);
}

TEST_CASE("the best objects are of the wanted size and seen from the wanted side") {
    std::vector<BankObject> objects;
    for (int i = 0; i < 12; ++i) {
        BankObject o = some_object("car" + std::to_string(i), 3.5 + 0.25 * i);
        o.coverage.fill(0);
        for (std::size_t a = 0; a < kAzimuths; ++a)
            o.coverage[coverage_index(a, 0)] = static_cast<std::uint8_t>((i % 2 == 0) == (a < 18) ? 80 : 5);
        objects.push_back(o);
    }
    BankWish wish;
    wish.class_name = "car";
    wish.size = {4.5, 1.8, 1.5};
    wish.azimuths_rad = {0.5, 1.0, 1.5};
    std::set<std::string> chosen;
    for (int track = 0; track < 200; ++track) {
        wish.track = std::to_string(track);
        const BankObject* best = choose(objects, wish);
        REQUIRE(best);
        CHECK(best == choose(objects, wish));
        chosen.insert(best->name);
    }
    // The even ones are seen from there; the five of them that are nearest to 4.5 m.
    CHECK(chosen == std::set<std::string>{"car0", "car2", "car4", "car6", "car8"});
    wish.azimuths_rad = {-0.5, 4.0, 2 * exact::kPi - 0.5};
    CHECK(score(objects[1], wish) < score(objects[0], wish));
    wish.class_name = "tram";
    CHECK(choose(objects, wish) == nullptr);
}
