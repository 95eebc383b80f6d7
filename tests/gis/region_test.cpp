#include "model/region/region.hpp"

#include "cli/small_city.hpp"
#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "io/input/region_file.hpp"

#include <cmath>
#include <fstream>
#include <set>

using namespace citysplat;
namespace test = citysplat::test;
using nlohmann::json;

namespace {

/// A star whose corners lie at these angles and distances around (x, y).
Ring star(double x, double y, std::uint64_t seed, int corners) {
    Ring ring;
    for (int i = 0; i < corners; ++i) {
        const double angle = 6.283185307179586 * i / corners,
                     far = rng::uniform(seed, static_cast<std::uint64_t>(i), 20.0, 60.0);
        ring.push_back({x + far * std::cos(angle), y + far * std::sin(angle)});
    }
    return ring;
}

/// The sum of the angles under which the edges are seen is a full turn inside, and nothing outside.
bool goes_around(const Ring& ring, double x, double y) {
    double sum = 0;
    for (std::size_t i = 0; i < ring.size(); ++i) {
        const RingCorner &a = ring[i], &b = ring[(i + 1) % ring.size()];
        sum += std::remainder(std::atan2(b.y_m - y, b.x_m - x) - std::atan2(a.y_m - y, a.x_m - x),
                              6.283185307179586);
    }
    return std::abs(sum) > 3;
}

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

/// Lines of the ASCII header are skipped; what is left are records of these bytes.
std::multiset<std::string> records_of(const std::filesystem::path& ply) {
    std::ifstream in(ply, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    const std::size_t begin = all.find("end_header\n") + 11;
    const std::size_t count = std::stoull(all.substr(all.find("element vertex ") + 15));
    std::multiset<std::string> records;
    if (count == 0) return records;
    const std::size_t bytes = (all.size() - begin) / count;
    for (std::size_t i = 0; i < count; ++i) records.insert(all.substr(begin + i * bytes, bytes));
    return records;
}

double number_at(const std::string& record, std::size_t offset) {
    double value;
    std::memcpy(&value, record.data() + offset, sizeof value);
    return value;
}

}  // namespace

TEST_CASE("a polygon holds what its edges go around") {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const Ring ring = star(650'000, 6'860'000, seed, 5 + static_cast<int>(seed) * 7);
        REQUIRE_FALSE(why_no_ring(ring));
        Region region;
        region.keep_any({{ring}});
        std::size_t inside = 0;
        for (std::uint64_t i = 0; i < 4000; ++i) {
            const double x = rng::uniform(seed + 100, 2 * i, 649'930.0, 650'070.0),
                         y = rng::uniform(seed + 100, 2 * i + 1, 6'859'930.0, 6'860'070.0);
            const std::int64_t sx = to_lattice(x), sy = to_lattice(y);
            const bool expected = goes_around(ring, to_metres(sx), to_metres(sy));
            inside += expected;
            REQUIRE(region.contains(sx, sy) == expected);
            const LatticeBox box{sx, sy, sx + 8192, sy + 8192};
            const auto share = region.share_of(box);
            if (share == Region::Share::all) CHECK(expected);
            if (share == Region::Share::none) CHECK_FALSE(expected);
            CHECK(region.near(box).contains(sx, sy) == expected);
        }
        CHECK(inside > 300);
    }
}

TEST_CASE("of two regions that share an edge exactly one holds a position on it") {
    const RingCorner a{0.1, 0.2}, b{40.3, 30.7}, c{-20.5, 35.25}, d{35.75, -12.5};
    Region left, right;
    left.keep_any({{{a, b, c}}});
    right.keep_any({{{a, d, b}}});
    std::size_t on_the_edge = 0;
    for (int i = 1; i < 20'000; ++i) {
        const double t = i / 20'000.0;
        const std::int64_t x = to_lattice(a.x_m + t * (b.x_m - a.x_m)),
                           y = to_lattice(a.y_m + t * (b.y_m - a.y_m));
        on_the_edge += left.contains(x, y) != right.contains(x, y);
    }
    CHECK(on_the_edge == 19'999);
    Region both;
    both.keep_any({{{a, b, c}}, {{a, d, b}}});
    CHECK(both.contains(to_lattice(20), to_lattice(15)));
    Region holed;
    holed.keep_any({{{{0, 0}, {10, 0}, {10, 10}, {0, 10}}, {{4, 4}, {6, 4}, {6, 6}, {4, 6}}}});
    CHECK(holed.contains(to_lattice(2), to_lattice(5)));
    CHECK_FALSE(holed.contains(to_lattice(5), to_lattice(5)));
}

TEST_CASE("GeoJSON and WKT say the same polygons, and what is none is refused") {
    const test::TempDir dir;
    const auto rings_of = [&](const std::string& text) {
        write(dir / "region", text);
        const io::RegionFile file = io::read_region(dir / "region");
        std::string all = file.crs + "|";
        for (const Polygon& polygon : file.polygons) {
            all += "(";
            for (const Ring& ring : polygon) {
                all += "[";
                for (const RingCorner& corner : ring)
                    all += std::to_string(corner.x_m) + " " + std::to_string(corner.y_m) + ",";
                all += "]";
            }
            all += ")";
        }
        return all;
    };
    const std::string square = rings_of("POLYGON((0 0, 10 0, 10 10, 0 10, 0 0),(4 4,6 4,6 6,4 4))");
    CHECK(square.find("([0.000000 0.000000,10.0") == 1);
    CHECK(rings_of("polygon z ((0 0 7,10 0 7,10 10 7,0 10 7,0 0 7), (4 4 1,6 4 1,6 6 1,4 4 1))\n") == square);
    CHECK(rings_of("MULTIPOLYGON(((0 0,10 0,10 10,0 10,0 0),(4 4,6 4,6 6,4 4)))") == square);
    const std::string coordinates = "[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[6,4],[6,6],[4,4]]]";
    const std::string polygon = R"({"type":"Polygon","coordinates":)" + coordinates + "}";
    CHECK(rings_of(polygon) == square);
    CHECK(rings_of(
              R"({"type":"FeatureCollection","features":[{"type":"Feature","properties":null,"geometry":)" +
              polygon + "}]}") == square);
    CHECK(rings_of(R"({"type":"MultiPolygon","coordinates":[)" + coordinates + "]}") == square);
    CHECK(rings_of("SRID=2154;POLYGON((0 0,10 0,10 10,0 10,0 0),(4 4,6 4,6 6,4 4))") == "EPSG:2154" + square);
    CHECK(rings_of(
              R"({"type":"Polygon","crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::2154"}},)"
              R"("coordinates":)" +
              coordinates + "}") == "EPSG:2154" + square);
    for (const char* bad :
         {"", "{", "[]", "{}", "POINT(1 2)", "POLYGON", "POLYGON((0 0,1 1))", "POLYGON((0 0,1 1,2 2,0 0))",
          "POLYGON((0 0,10 10,10 0,0 10,0 0))", "POLYGON((0 0,nan 1,1 0))", "POLYGON((0 0,1e300 1,1 0))",
          "POLYGON((0 0,1 1,1 0)", "POLYGON((0 0,1 1,1 0)) POINT(1 1)",
          R"({"type":"Point","coordinates":[1,2]})",
          R"({"type":"Polygon","coordinates":[[[0,0],[1,"x"],[1,0]]]})", R"({"type":"Polygon"})",
          R"({"type":"FeatureCollection","features":[]})", R"({"type":"Polygon","coordinates":7})"}) {
        INFO(bad);
        write(dir / "region", bad);
        CHECK_THROWS_AS(io::read_region(dir / "region"), InputError);
    }
}

TEST_CASE("an export of a part of a city is the part of the export, splat for splat") {
    const test::SmallCity small;
    const std::string full = small.dir / "full.ply", out = small.dir / "part.ply";
    test::run_json({"export", small.city, "--out", full});
    const auto all = records_of(full);
    REQUIRE(all.size() > 5000);
    double low_x = 1e300, high_x = -1e300, low_y = 1e300, high_y = -1e300;
    for (const std::string& r : all) {
        low_x = std::min(low_x, number_at(r, 0)), high_x = std::max(high_x, number_at(r, 0));
        low_y = std::min(low_y, number_at(r, 8)), high_y = std::max(high_y, number_at(r, 8));
    }
    std::vector<double> xs, ys;
    for (const std::string& r : all) xs.push_back(number_at(r, 0)), ys.push_back(number_at(r, 8));
    std::sort(xs.begin(), xs.end()), std::sort(ys.begin(), ys.end());
    const double mid_x = xs[xs.size() / 2], mid_y = ys[ys.size() / 2];
    const auto text = [](std::vector<double> numbers) {
        std::string joined;
        for (const double n : numbers) joined += (joined.empty() ? "" : ",") + std::to_string(n);
        return joined;
    };
    const auto those = [&](const auto& inside) {
        std::multiset<std::string> some;
        for (const std::string& r : all)
            if (inside(number_at(r, 0), number_at(r, 8))) some.insert(r);
        return some;
    };

    const double x0 = to_metres(to_lattice(mid_x - 9)), x1 = to_metres(to_lattice(mid_x + 7)),
                 y0 = to_metres(to_lattice(mid_y - 6)), y1 = to_metres(to_lattice(mid_y + 11));
    const json cut = test::run_json({"export", small.city, "--out", out, "--bounds", text({x0, y0, x1, y1})});
    const auto boxed = those([&](double x, double y) { return x >= x0 && x < x1 && y >= y0 && y < y1; });
    CHECK(boxed.size() > 500);
    CHECK(boxed.size() < all.size());
    CHECK((records_of(out) == boxed));
    CHECK(cut["splats"] == boxed.size());

    write(small.dir / "slope.wkt", "POLYGON((" + std::to_string(low_x - 5) + " " + std::to_string(low_y - 5) +
                                       "," + std::to_string(high_x + 5) + " " + std::to_string(low_y - 5) +
                                       "," + std::to_string(low_x - 5) + " " + std::to_string(high_y + 5) +
                                       "))");
    test::run_json({"export", small.city, "--out", out, "--polygon", small.dir / "slope.wkt"});
    const auto sloped = those([&](double x, double y) {
        return (x - low_x + 5) / (high_x - low_x + 10) + (y - low_y + 5) / (high_y - low_y + 10) < 1;
    });
    CHECK(sloped.size() > 500);
    CHECK((records_of(out) == sloped));

    // A file for each tile: together all splats, and each is what --tiles gives.
    const json tiles = test::run_json({"export", small.city, "--per-tile", "--out", small.dir / "tiles"});
    CHECK(tiles["splats"] == all.size());
    REQUIRE(tiles["files"].size() > 2);
    std::multiset<std::string> together;
    for (const auto& file : tiles["files"]) together.merge(records_of(file.get<std::string>()));
    CHECK((together == all));
    std::string key = std::filesystem::path(tiles["files"][1].get<std::string>()).stem().string();
    std::replace(key.begin(), key.end(), '_', '/');
    test::run_json({"export", small.city, "--out", out, "--tiles", key});
    CHECK((records_of(out) == records_of(tiles["files"][1].get<std::string>())));

    const auto refuses = [&](std::vector<std::string> more, const std::string& named, int code = 2) {
        more.insert(more.begin(), {"export", small.city, "--out", out});
        const test::Outcome outcome = test::citysplat(more);
        INFO(outcome.err);
        CHECK(outcome.exit_code == code);
        CHECK_THAT(outcome.err, Catch::Contains(named));
    };
    refuses({"--bounds", text({x1, y0, x0, y1})}, "min x, min y, max x, max y");
    refuses({"--bounds", "1,2,3"}, "--bounds");
    refuses({"--bounds", "0,0,nan,1"}, "--bounds");
    refuses({"--bounds", "0,0,0.00001,1"}, "nothing lies between");
    refuses({"--bounds", "-5000,-5000,-4900,-4900"}, "it reaches from");
    refuses({"--tiles", "0/999/999"}, "no such tile");
    refuses({"--tiles", "0/x/1"}, "level/x/y");
    refuses({"--tiles", key, "--bounds", "-5000,-5000,-4900,-4900"}, "--bounds, --tiles");
    refuses({"--polygon", small.dir / "none"}, "none", 74);
    refuses({"--polygon", small.drive + "/truth.json"}, "no inside", 65);
    refuses({"--format", "gpkg", "--bounds", "0,0,1,1"}, "whole generation");
}

TEST_CASE("pictures, scans and comparisons know regions, and a LAS without extra bytes is the plain points") {
    const test::SmallCity small;
    const json all = test::run_json({"export", small.city, "--out", small.dir / "a.las", "--format", "las"});
    const json plain = test::run_json(
        {"export", small.city, "--out", small.dir / "p.las", "--format", "las", "--no-extra-bytes"});
    CHECK(plain["splats"] == all["splats"]);
    const auto splats = all["splats"].get<std::uint64_t>();
    CHECK(std::filesystem::file_size(small.dir / "p.las") <
          std::filesystem::file_size(small.dir / "a.las") - splats * 15);
    const json info = test::run_json({"info", small.dir / "p.las"});
    CHECK(info["points"] == splats);

    const json tiles = test::run_json({"export", small.city, "--per-tile", "--out", small.dir / "tiles"});
    std::string key = std::filesystem::path(tiles["files"][0].get<std::string>()).stem().string();
    std::replace(key.begin(), key.end(), '_', '/');
    const std::vector<std::string> run{"simulate",     small.city,       "--sensor", "vlp-16",
                                       "--trajectory", small.trajectory, "--to",     "302400.4"};
    const auto simulate = [&](const std::string& name, const std::vector<std::string>& more) {
        std::vector<std::string> words = run;
        words.insert(words.end(), {"--out", small.dir / name});
        words.insert(words.end(), more.begin(), more.end());
        return test::run_json(words);
    };
    const json whole = simulate("whole", {}), part = simulate("part", {"--tiles", key});
    CHECK(part["hits"].get<std::uint64_t>() > 0);
    CHECK(part["hits"].get<std::uint64_t>() < whole["hits"].get<std::uint64_t>());

    const std::vector<std::string> compare{"compare", small.dir / "whole", "--reference", small.city};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), compare.begin(), compare.end());
        return more;
    };
    const json far = test::run_json(with({})), near = test::run_json(with({"--tiles", key, "--per-tile"})),
               each = test::run_json(with({"--per-tile"}));
    CHECK(near["points"].get<std::uint64_t>() > 0);
    CHECK(near["points"].get<std::uint64_t>() < far["points"].get<std::uint64_t>());
    CHECK(near["tiles"].size() == 1);
    CHECK(each["tiles"][key] == near["tiles"][key]);
    std::uint64_t sum = 0;
    for (const auto& [name, of] : each["tiles"].items()) sum += of["points"].get<std::uint64_t>();
    CHECK(sum == far["points"].get<std::uint64_t>());
    CHECK(each["c2c_mean_m"] == far["c2c_mean_m"]);
    const auto out = test::citysplat(with({"--bounds", "9000,9000,9001,9001"}));
    CHECK(out.exit_code == 2);
    CHECK_THAT(out.err, Catch::Contains("no simulated point lies there"));
}
