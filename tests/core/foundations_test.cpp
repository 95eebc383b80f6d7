#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/math/lattice.hpp"
#include "core/math/math_hd.hpp"
#include "io/write/picture.hpp"
#include "model/class_map.hpp"
#include "model/point.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <unistd.h>
#include <vector>

using namespace citysplat;

TEST_CASE("lattice rounding is to the nearest step and half-open cells cover both sides of zero") {
    CHECK(to_lattice(0.0) == 0);
    CHECK(to_lattice(1.0) == 8192);
    CHECK(to_lattice(-1.0) == -8192);
    CHECK(to_lattice(6'860'000.00006) == 6'860'000ll * 8192);
    CHECK(to_metres(to_lattice(650'123.4567)) == Approx(650'123.4567).margin(kLatticeStep_m / 2));
    CHECK(floor_div(-1, 8192) == -1);
    CHECK(floor_div(-8192, 8192) == -1);
    CHECK(floor_div(-8193, 8192) == -2);
    CHECK(floor_div(8191, 8192) == 0);
}

TEST_CASE("a slot is a tenth of a second of any clock, later ones are larger, and none is zero") {
    CHECK(time_slot(0) == 1);
    CHECK(time_slot(0.099) == 1);
    CHECK(time_slot(0.1) == 2);
    CHECK(time_slot(-0.01) == UINT32_MAX);  // where the numbers begin again
    CHECK(time_slot(1.4e9 + 0.25) - time_slot(1.4e9) == 2);
    std::uint32_t before = time_slot(4.0e8);
    for (double t = 4.0e8; t < 4.0e8 + 100; t += 0.05) {
        REQUIRE((time_slot(t) == before || time_slot(t) == before + 1));
        before = time_slot(t);
    }
    CHECK(time_slot(std::numeric_limits<double>::quiet_NaN()) == TilePoint::kNoSlot);
    CHECK(time_slot(-std::numeric_limits<double>::infinity()) == TilePoint::kNoSlot);
    CHECK(time_slot(1e300) == TilePoint::kNoSlot);
}

TEST_CASE("elementary functions agree with the C library to 1e-14") {
    for (int i = -20000; i <= 20000; ++i) {
        const double a = i * 0.00173;
        const auto sc = exact::sin_cos(a);
        REQUIRE(std::abs(sc.sin - std::sin(a)) < 1e-14);
        REQUIRE(std::abs(sc.cos - std::cos(a)) < 1e-14);
        const double x = std::abs(a) + 1e-9;
        REQUIRE(std::abs(exact::log(x) - std::log(x)) < 1e-14 * std::max(1.0, std::abs(std::log(x))));
        REQUIRE(std::abs(exact::atan2(std::sin(a) * x, std::cos(a) * x) -
                         std::atan2(std::sin(a) * x, std::cos(a) * x)) < 1e-14);
        REQUIRE(std::abs(exact::acos(std::cos(a)) - std::acos(std::cos(a))) < 1e-7);
    }
}

TEST_CASE("gaussian deviates have mean 0, variance 1 and normal tails") {
    const int n = 200'000;
    double sum = 0, squares = 0;
    int beyond_2 = 0;
    for (int i = 0; i < n; ++i) {
        const double g = rng::gaussian(rng::key(7, 3), static_cast<std::uint64_t>(i));
        sum += g;
        squares += g * g;
        beyond_2 += std::abs(g) > 2;
    }
    CHECK(sum / n == Approx(0).margin(0.01));
    CHECK(squares / n == Approx(1).margin(0.02));
    CHECK(static_cast<double>(beyond_2) / n == Approx(0.0455).margin(0.003));
}

TEST_CASE("sizes are parsed with units and refused with a reason") {
    CHECK(parse_bytes("4G", "--memory") == 4ull << 30);
    CHECK(parse_bytes("1.5KiB", "--memory") == 1536);
    CHECK(parse_bytes("100", "--memory") == 100);
    for (const char* bad : {"", "G", "4X", "-1", "4GG", "nan", "1e30T"})
        CHECK_THROWS_AS(parse_bytes(bad, "--memory"), UsageError);
    CHECK(format_count(1234567) == "1 234 567");
    CHECK(format_bytes(1536) == "1.50 KiB");
}

TEST_CASE("hashes print, parse and add up regardless of order") {
    Hasher h;
    h.text("ab").text("c");
    Hasher g;
    g.text("a").text("bc");
    CHECK(h.finish() != g.finish());
    CHECK(Hash128::from_hex(h.finish().hex()) == h.finish());
    CHECK_FALSE(Hash128::from_hex("xyz"));
    Hash128 ab = h.finish(), ba = g.finish();
    ab += g.finish();
    ba += h.finish();
    CHECK(ab == ba);
}

TEST_CASE("an atomic write replaces the file and leaves no temporary behind") {
    test::TempDir dir;
    const auto bytes = [](std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); };
    write_file_atomically(dir / "f", bytes("one"));
    write_file_atomically(dir / "f", bytes("two"));
    CHECK(read_text_file(dir / "f") == "two");
    CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
    CHECK_THROWS_AS(write_file_atomically(dir / "missing/f", bytes("x")), IoError);
    CHECK_THROWS_WITH(read_file(dir / "nothing"),
                      Catch::Contains("nothing") && Catch::Contains("No such file"));
}

TEST_CASE("an atomic write does not stumble over what a killed process of the same number has left") {
    test::TempDir dir;
    for (int i = 0; i < 1000; ++i)
        std::ofstream(dir / ("f.tmp-" + std::to_string(::getpid()) + "-" + std::to_string(i))) << "half";
    const std::string_view text = "whole";
    CHECK_NOTHROW(write_file_atomically(dir / "f", std::as_bytes(std::span(text.data(), text.size()))));
    CHECK(read_text_file(dir / "f") == "whole");
}

TEST_CASE("class maps load by name, round-trip through TOML and name their errors") {
    const ClassMap map = ClassMap::load("synthetic");
    CHECK(map.at(7).name == "road");
    CHECK(map.at(7).group == SplatGroup::ground);
    CHECK(map.at(20).dynamic);
    CHECK(map.at(999).name == "unlabelled");
    const ClassMap again = ClassMap::parse(map.to_toml(), "copy");
    Hasher a, b;
    map.add_to(a);
    again.add_to(b);
    CHECK(a.finish() == b.finish());
    CHECK_THROWS_WITH(ClassMap::load("no-such-map"), Catch::Contains("synthetic"));
    CHECK_THROWS_WITH(ClassMap::parse("[[class]]\nlabel = 3\nname='x'\ngroup='wall'", "m.toml"),
                      Catch::Contains("m.toml") && Catch::Contains("class 3") && Catch::Contains("wall"));
    CHECK_THROWS_WITH(ClassMap::parse("a = [", "m.toml"), Catch::Contains("line 1"));
    CHECK_THROWS_WITH(ClassMap::parse("[[class]]\nlabel = 98e28\nname='x'", "m.toml"),
                      Catch::Contains("a label from 0 to 65535"));
    CHECK_THROWS_WITH(ClassMap::parse("[[class]]\nlabel = 3\nname='x'\ndynamic='yes'", "m.toml"),
                      Catch::Contains("class 3: dynamic must be true or false"));
    CHECK_THROWS_WITH(ClassMap::parse("version = 1e30\n[unlisted]\nname='x'", "m.toml"),
                      Catch::Contains("version must be a whole number"));
    CHECK_THROWS_WITH(ClassMap::parse("[unlisted]\nname='x'\n[[clas]]\nlabel=3", "m.toml"),
                      Catch::Contains("unknown key \"clas\""));
}

TEST_CASE("a class map with quotes, backslashes and line ends in its names survives its own text") {
    std::map<std::uint16_t, ClassInfo> classes;
    for (const char* name :
         {"the \"old\" town", "C:\\roads", "two\nlines", "'single'", "\"'\"'", "tab\there", "é"})
        classes[static_cast<std::uint16_t>(classes.size())] = {name, SplatGroup::surface, false, 0x123456};
    const ClassMap map("it's \"mine\"", 3, classes, {"\\", SplatGroup::ground, true, 1});
    const ClassMap again = ClassMap::parse(map.to_toml(), "copy");
    CHECK(again.name() == map.name());
    CHECK(again.to_toml() == map.to_toml());
    for (const auto& [label, info] : classes) CHECK(again.at(label).name == info.name);
    CHECK(again.at(999).name == "\\");
}

TEST_CASE("a picture is written as a PNG of its size, and an impossible path is named") {
    test::TempDir dir;
    Picture picture(3, 2, rgb_from(0x102030));
    picture.at(2, 1) = {255, 0, 0};
    picture.write_png(dir / "p.png");
    const std::vector<std::byte> bytes = read_file(dir / "p.png");
    REQUIRE(bytes.size() > 24);
    CHECK(bytes[1] == std::byte{'P'});
    CHECK(bytes[19] == std::byte{3});  // width and height, big-endian, in the IHDR chunk
    CHECK(bytes[23] == std::byte{2});
    CHECK_THROWS_WITH(picture.write_png(dir / "missing/p.png"), Catch::Contains("missing"));
}

TEST_CASE("when no more files may be open, the message tells how many may be") {
    errno = EMFILE;
    CHECK_THROWS_WITH(throw_errno("cannot open", "cloud.las"), Catch::Contains("ulimit -n"));
    CHECK(descriptor_budget() >= 8);
    CHECK(descriptor_budget() <= 384);
}
