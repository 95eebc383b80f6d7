#include "core/error.hpp"
#include "core/rng_hd.hpp"
#include "tiling/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kTile_m = 16;

/// What a tile is made from, found the slow way: its box with its halo, and all points in it.
using Signature = std::vector<std::int64_t>;

struct Drive {
    TempDir dir{memory_directory()};
    fs::path city = dir / "city";
    std::map<std::string, std::vector<CloudPoint>> files;  ///< the inputs as they should be
    std::set<Signature> made;                              ///< tiles that were ever made
    int cleans = 0;

    fs::path path(const std::string& name) const { return dir / name; }
    void put(const std::string& name, std::vector<CloudPoint> points) {
        write_cloud(path(name), points);
        files[name] = std::move(points);
    }
    BuildOptions options() const {
        std::vector<fs::path> inputs;
        for (const auto& [name, points] : files) inputs.push_back(path(name));
        return toy_options(inputs);
    }
    BuildReport clean_build() { return build_toy(dir / ("clean" + std::to_string(cleans++)), options()); }

    /// Signatures of the tiles of the last clean build.
    std::set<Signature> signatures() const {
        const CityPaths clean(dir / ("clean" + std::to_string(cleans - 1)));
        Catalog catalog = Catalog::open_to_read(clean.catalog());
        const TileGrid grid(kTile_m);
        std::set<Signature> all;
        for (const ProductRow& tile : catalog.tiles(catalog.latest()->id)) {
            const LatticeBox box = grid.core(tile.tile).widened(tile.halo_steps);
            std::vector<std::array<std::int64_t, 5>> points;
            for (const auto& [name, cloud] : files)
                for (const CloudPoint& p : cloud) {
                    const std::int64_t x = to_lattice(p.x), y = to_lattice(p.y);
                    if (box.contains(x, y)) points.push_back({x, y, to_lattice(p.z), p.label, p.intensity});
                }
            std::sort(points.begin(), points.end());
            points.erase(std::unique(points.begin(), points.end()), points.end());
            Signature signature{box.min_x, box.min_y, box.max_x, box.max_y};
            for (const auto& p : points) signature.insert(signature.end(), p.begin(), p.end());
            all.insert(std::move(signature));
        }
        return all;
    }
};

/// Changes the inputs in one random way; returns the options that tell the builder.
BuildOptions random_edit(Drive& d, std::uint64_t key) {
    const auto pick = [key](std::uint64_t c, std::uint64_t n) { return rng::bits(key, c) % n; };
    const auto some_file = [&] {
        auto it = d.files.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(pick(0, d.files.size())));
        return it->first;
    };
    const auto where = [&](std::uint64_t c) { return rng::uniform(key, c, 0, 150); };
    BuildOptions options;
    switch (pick(1, 7)) {
        case 0:  // a new file
            d.put("new" + std::to_string(key % 1000) + ".cloud",
                  street(key, 1000 + where(2), 2000 + where(3) / 4, 20, 3));
            break;
        case 1: {  // one more point
            const std::string name = some_file();
            auto points = d.files[name];
            points.push_back({.x = 1000 + where(2), .y = 2000 + where(3) / 4, .z = 1, .label = 9});
            d.put(name, points);
            break;
        }
        case 2: {  // a few points fewer, in one place
            const std::string name = some_file();
            auto points = d.files[name];
            const double x = 1000 + where(2);
            std::erase_if(points, [x](const CloudPoint& p) { return p.x > x && p.x < x + 3; });
            if (points.size() > 20) d.put(name, points);
            break;
        }
        case 3: {  // the same bytes, a new time
            fs::last_write_time(d.path(some_file()),
                                fs::file_time_type::clock::now() + std::chrono::seconds(key % 99));
            break;
        }
        case 4: {  // renamed
            const std::string name = some_file(), to = "moved" + std::to_string(key % 1000) + ".cloud";
            fs::rename(d.path(name), d.path(to));
            d.files[to] = d.files[name];
            d.files.erase(name);
            break;
        }
        case 5:  // removed
            if (d.files.size() > 1) {
                const std::string name = some_file();
                d.files.erase(name);
                options = d.options();
                options.remove.push_back(d.path(name));
                return options;
            }
            break;
        case 6:  // the same points in another order
            const std::string name = some_file();
            auto points = d.files[name];
            std::reverse(points.begin(), points.end());
            d.put(name, points);
            break;
    }
    return d.options();
}

/// After every edit: the digest of a clean build, and exactly the tiles made that had never been.
void check_edits(std::uint64_t seed, int edits) {
    Drive d;
    d.put("a.cloud", street(seed, 1000, 2000, 90, 3));
    d.put("b.cloud", street(seed + 1, 1060, 2010, 80, 3));
    BuildOptions options = d.options();
    for (int i = 0; i <= edits; ++i) {
        INFO("seed " << seed << ", edit " << i);
        const BuildReport built = build_toy(d.city, options);
        // The calibration is frozen at the first build: the clean city must have the same.
        static_cast<void>(d.clean_build());
        REQUIRE(CityReader(d.dir / ("clean" + std::to_string(d.cleans - 1))).generation().digest ==
                built.digest);
        const std::set<Signature> now = d.signatures();
        std::uint64_t had_to = 0;
        for (const Signature& s : now) had_to += d.made.insert(s).second;
        REQUIRE(built.tiles_built == had_to);
        REQUIRE(built.tiles_total == now.size());
        options = random_edit(d, rng::key(seed, static_cast<std::uint64_t>(i)));
    }
}

}  // namespace

TEST_CASE("after random edits the city equals a clean build, and only what had to be was made") {
    check_edits(11, 8);
    check_edits(12, 8);
}

TEST_CASE("fifty random edit sequences give clean cities", "[slow]") {
    for (std::uint64_t seed = 100; seed < 150; ++seed) check_edits(seed, 12);
}

TEST_CASE("a tile is rebuilt for a stated reason") {
    Drive d;
    d.put("a.cloud", street(1, 1000, 2000, 90, 3));
    const BuildReport first = build_toy(d.city, d.options());
    REQUIRE(first.explanations.size() == first.tiles_built);
    for (const Explanation& e : first.explanations) CHECK(e.reason == Reason::new_tile);

    // One point in the middle of a tile core (1040 … 1056, 2000 … 2016): no halo of 2 m reaches it.
    auto points = d.files["a.cloud"];
    points.push_back({.x = 1048, .y = 2008, .z = 1, .label = 7});
    d.put("a.cloud", points);
    const BuildReport inner = build_toy(d.city, d.options());
    REQUIRE(inner.explanations.size() == 1);
    CHECK(inner.explanations[0].reason == Reason::changed_core);
    CHECK(inner.explanations[0].tile == TileKey{0, 65, 125});

    // One near the edge: the neighbour sees it in its halo.
    points.push_back({.x = 1055.5, .y = 2008, .z = 1, .label = 7});
    d.put("a.cloud", points);
    const BuildReport edge = build_toy(d.city, d.options());
    REQUIRE(edge.explanations.size() == 2);
    CHECK(edge.explanations[0].reason == Reason::changed_core);
    CHECK(edge.explanations[1].reason == Reason::changed_halo);

    const BuildReport other = build_toy(d.city, d.options(), 0.7);
    CHECK(other.tiles_built == other.tiles_total);
    for (const Explanation& e : other.explanations) CHECK(e.reason == Reason::algorithm);
    auto options = d.options();
    options.parameters = "{\"radius\":0.8}";
    const BuildReport named = build_toy(d.city, options, 0.8);
    for (const Explanation& e : named.explanations) CHECK(e.reason == Reason::parameters);
    // Back to what there was: everything is found again.
    CHECK(build_toy(d.city, d.options()).tiles_built == 0);

    options = d.options();
    options.tile_size_m = 32;
    const BuildReport coarse = build_toy(d.city, options);
    CHECK(coarse.tiles_built == coarse.tiles_total);
    CHECK(coarse.digest == edge.digest);
}

TEST_CASE("calibration stays frozen until it is asked for") {
    Drive d;
    d.put("a.cloud", street(1, 1000, 2000, 60, 3));
    const BuildReport first = build_toy(d.city, d.options());
    d.put("b.cloud", street(2, 1200, 2000, 30, 3));
    const BuildReport second = build_toy(d.city, d.options());
    CHECK(second.calibration == first.calibration);
    CHECK(second.tiles_reused >= first.tiles_total);
    auto options = d.options();
    options.recalibrate = true;
    const BuildReport third = build_toy(d.city, options);
    CHECK_FALSE(third.calibration == first.calibration);
    CHECK(third.tiles_built == third.tiles_total);
    CHECK(third.calibration == d.clean_build().calibration);
}

TEST_CASE("garbage beyond core and halo does not change a byte of a tile") {
    Drive clean, dirty;
    const auto points = street(5, 1000, 2000, 120, 3);
    clean.put("a.cloud", points);
    build_toy(clean.city, clean.options());
    Catalog catalog = Catalog::open_to_read(CityPaths(clean.city).catalog());
    const auto tiles = catalog.tiles(1);
    const ProductRow& tile = tiles[tiles.size() / 2];
    const LatticeBox box = TileGrid(kTile_m).core(tile.tile).widened(tile.halo_steps);
    auto garbage = points;
    for (std::size_t i = 0; i < garbage.size(); ++i) {
        CloudPoint& p = garbage[i];
        if (box.contains(to_lattice(p.x), to_lattice(p.y))) continue;
        p.z += rng::uniform(3, i, -300, 300);
        p.label = static_cast<std::uint16_t>(rng::bits(4, i));
        if (i % 3 == 0) p.withheld = 1;
    }
    dirty.put("a.cloud", garbage);
    ToyProcessor processor;
    processor.set_calibration({});
    build_toy(dirty.city, dirty.options());
    // The toy's calibration is a mean over all intensities, which the garbage leaves alone unless withheld:
    // compare the splats, not the keys.
    const CityReader a(clean.city), b(dirty.city);
    const auto load = [&](const CityReader& city) {
        for (std::size_t i = 0; i < city.tiles().size(); ++i)
            if (city.tiles()[i].key == tile.tile) return city.load(i);
        throw std::runtime_error("no such tile");
    };
    const SplatTile sa = load(a), sb = load(b);
    REQUIRE(sa.bytes().size() == sb.bytes().size());
    CHECK(std::equal(sa.bytes().begin(), sa.bytes().end(), sb.bytes().begin()));
}

TEST_CASE("an input that changes while it is read is not used") {
    Drive d;
    d.put("a.cloud", street(1, 1000, 2000, 60, 3));
    const BuildReport first = build_toy(d.city, d.options());
    d.put("b.cloud", street(2, 1100, 2000, 60, 3));
    auto options = d.options();
    options.open = [&](const fs::path& path, const std::string&) {
        auto file = open_cloud(path);
        if (path.filename() == "b.cloud") {
            // Somebody appends to the file after it was opened.
            auto more = d.files["b.cloud"];
            more.push_back({.x = 1101, .y = 2001});
            write_cloud(path, more);
        }
        return file;
    };
    // The stamp is taken before the file is opened.
    CHECK_THROWS_AS(build_toy(d.city, options), BusyError);
    CHECK(CityReader(d.city).generation().digest == first.digest);
    CHECK(CityReader(d.city).generation().id == first.generation);
}

TEST_CASE("a dry run predicts and touches nothing") {
    Drive d;
    d.put("a.cloud", street(1, 1000, 2000, 60, 3));
    auto options = d.options();
    options.dry_run = true;
    const BuildReport dry = build_toy(d.city, options);
    CHECK(dry.inputs_read == 1);
    CHECK(dry.points.read == d.files["a.cloud"].size());
    CHECK(dry.predicted_disk_bytes > 0);
    CHECK_THROWS_AS(CityReader(d.city), ConfigError);
    const BuildReport built = build_toy(d.city, d.options());
    CHECK(built.published);
}

TEST_CASE("a failing tile stops the build, or with keep-going is listed; nothing is published") {
    Drive d;
    d.put("a.cloud", street(1, 1000, 2000, 90, 3));
    class Failing final : public TileProcessor {
      public:
        Calibration calibrate(const RegionReader& r, const CancelToken& c, Progress& p) const override {
            return toy.calibrate(r, c, p);
        }
        void set_calibration(const Calibration& c) override { toy.set_calibration(c); }
        Hash128 parameters_key() const override { return toy.parameters_key(); }
        std::int64_t initial_halo_steps() const override { return toy.initial_halo_steps(); }
        std::size_t estimated_bytes(std::uint64_t n) const override { return toy.estimated_bytes(n); }
        TileOutput process(const Region& region, const CancelToken& cancel) const override {
            if (region.frame.x_m == 1040) throw InputError("no good");
            return toy.process(region, cancel);
        }
        ToyProcessor toy;
    } failing;
    CancelToken cancel;
    Progress progress;
    CHECK_THROWS_WITH(build_city(d.city, failing, d.options(), cancel, progress), "no good");
    auto options = d.options();
    options.keep_going = true;
    const BuildReport report = build_city(d.city, failing, options, cancel, progress);
    CHECK_FALSE(report.published);
    REQUIRE(report.failures.size() >= 1);
    CHECK(report.failures[0].message == "no good");
    // What succeeded is not made again.
    const BuildReport again = build_toy(d.city, d.options());
    CHECK(again.tiles_built == report.failures.size());
    CHECK(again.digest == d.clean_build().digest);
}

TEST_CASE("cancellation stops the build and the next one goes on") {
    Drive d;
    d.put("a.cloud", street(1, 1000, 2000, 90, 3));
    CancelToken cancel;
    cancel.request();
    ToyProcessor processor;
    Progress progress;
    CHECK_THROWS_AS(build_city(d.city, processor, d.options(), cancel, progress), Interrupted);
    CHECK(build_toy(d.city, d.options()).published);
}
