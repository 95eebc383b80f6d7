#include "core/error.hpp"
#include "io/input/adjusted_file.hpp"
#include "tiling/city_checks.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <iomanip>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

TEST_CASE("after random edits the city equals a clean build, and only what had to be was made") {
    check_edits(toy_maker(), 11, 8);
    check_edits(toy_maker(), 12, 8);
}

TEST_CASE("the same square of two grids is two tiles: tile sizes may change between edits") {
    Drive d;
    const auto points = street(1, 1000, 2000, 90, 3);
    d.put("a.cloud", points);
    auto options = d.options();
    options.tile_size_m = 64;
    options.most_tile_points = points.size() / 8;  // dense tiles divide into the squares of the finer grids
    build_toy(d.city, options);
    for (const std::int64_t size_m : {32, 64, 16, 32}) {
        INFO("tiles of " << size_m << " m");
        auto changed = d.files["a.cloud"];
        changed.push_back({.x = 1003.0 + static_cast<double>(size_m), .y = 2009, .z = 1, .label = 7});
        for (const bool edit : {false, true}) {
            if (edit) d.put("a.cloud", changed);
            options = d.options();
            options.tile_size_m = size_m;
            const BuildReport built = build_toy(d.city, options);
            const BuildReport clean = build_toy(d.dir / ("c" + std::to_string(d.cleans++)), options);
            CHECK(built.digest == clean.digest);
            CHECK(built.splats == clean.splats);
            CHECK(built.tiles_total == clean.tiles_total);
        }
    }
}

TEST_CASE("fifty random edit sequences give clean cities", "[slow]") {
    for (std::uint64_t seed = 100; seed < 150; ++seed) check_edits(toy_maker(), seed, 12);
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

TEST_CASE("far points come and go by their number alone: copies change nothing, neighbours bring them in") {
    Drive d;
    d.put("a.cloud", street(1, 1000, 2000, 60, 3));
    std::vector<CloudPoint> far;
    for (int i = 0; i < 12; ++i) far.push_back({.x = 6399.5 - 0.5 * i, .y = 6410});
    d.put("far.cloud", far);
    const BuildReport first = build_toy(d.city, d.options());
    CHECK(first.far_outliers == 12);
    const auto expect = [&](std::uint64_t far_outliers) {
        const BuildReport now = build_toy(d.city, d.options());
        CHECK(now.far_outliers == far_outliers);
        const BuildReport clean = d.clean_build(first.calibration);
        CHECK(now.digest == clean.digest);
        CHECK(now.far_outliers == clean.far_outliers);
        return now.digest;
    };
    // The same points once more, and with them their neighbours in the next sector.
    auto more = far;
    more.insert(more.end(), far.begin(), far.end());
    d.put("more.cloud", more);
    CHECK(expect(12) == first.digest);
    for (int i = 0; i < 3; ++i) far.push_back({.x = 6400.5 + 0.5 * i, .y = 6410});
    d.put("more.cloud", far);
    CHECK(expect(15) == first.digest);
    far.push_back({.x = 6402, .y = 6410});
    d.put("more.cloud", far);
    CHECK(expect(0) != first.digest);

    // What the city was is known without the archives of inputs that are replaced.
    Catalog catalog = Catalog::open_to_read(CityPaths(d.city).catalog());
    const auto inputs = catalog.inputs(catalog.latest()->id);
    for (const InputRow& input : inputs)
        if (fs::path(input.path).filename() == "more.cloud")
            fs::remove(CityPaths(d.city).object(catalog.source(input.source).object));
    far.pop_back();
    d.put("more.cloud", far);
    CHECK(expect(15) == first.digest);
}

TEST_CASE("garbage beyond core and halo does not change a byte of a tile") {
    check_non_interference(toy_maker());
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

TEST_CASE(
    "of many small inputs, those that can be read are kept when some cannot, and the first error counts") {
    Drive d;
    for (int i = 0; i < 200; ++i)
        d.put("part" + std::to_string(1000 + i) + ".cloud",
              street(7, 1000 + 2 * (i % 190), 2000, 2, 3));  // the last ten are copies of the first
    const auto failing = [](const fs::path& path) {
        struct Damaged : PointFile {
            explicit Damaged(const fs::path& p) : name(p.filename().string()), file(open_cloud(p)) {}
            const PointFileInfo& info() const override { return file->info(); }
            std::size_t block_count() const override { return file->block_count(); }
            void read_block(std::size_t, PointBatch&) const override {
                throw InputError(name + " is damaged");
            }
            std::string name;
            std::unique_ptr<PointFile> file;
        };
        return std::make_unique<Damaged>(path);
    };
    auto options = d.options();
    options.open = [&](const fs::path& path, const std::string&) -> std::unique_ptr<PointFile> {
        const auto name = path.filename();
        if (name == "part1020.cloud" || name == "part1090.cloud") return failing(path);
        return open_cloud(path);
    };
    CHECK_THROWS_WITH(build_toy(d.city, options), Catch::Contains("part1020.cloud is damaged"));
    CHECK_THROWS_AS(CityReader(d.city), Error);  // nothing was published

    const BuildReport all = build_toy(d.city, d.options());
    CHECK(all.inputs == 200);
    CHECK(all.inputs_read ==
          200 - 126 - 10);  // known: the sound ones of the first batch of 128, and the copies
    auto one_by_one = d.options();
    one_by_one.memory_bytes = 1 << 10;  // too little for two inputs at a time
    CHECK(build_toy(d.dir / "other", one_by_one).digest == all.digest);
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

TEST_CASE("a failing tile stops the build, or with keep-going is listed, and nothing is published") {
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
        TileOutput process(Region region, const CancelToken& cancel) const override {
            if (region.frame.x_m == 1040) throw InputError("no good");
            return toy.process(std::move(region), cancel);
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

namespace {

/// A carved street whose clouds are moved to where an adjusted trajectory puts them.
struct AdjustedStreet {
    CityMaker maker = carving_maker();
    TempDir dir{memory_directory()};
    fs::path city = dir / "city", given = dir / "given.tum", adjusted = dir / "adjusted.tum";
    std::vector<fs::path> clouds;
    int cleans = 0;

    AdjustedStreet() {
        write_poses(given, 0, 0);
        adjust(0.3, 0);
    }

    /// The way of the carved street, shifted by waves up to `wave_m` until `bend_s`, and by twice as much
    /// afterwards.
    void write_poses(const fs::path& path, double wave_m, double bend_s) const {
        std::ofstream out(path);
        out << std::fixed << std::setprecision(9);
        for (double t = 95; t <= 125; t += 0.5) {
            const double wave = (t < bend_s ? 1 : 2) * wave_m * std::sin(t);
            out << t << " " << 10 * t + wave / 3 << " " << 2020 + wave << " " << 2 + wave / 2 << " 0 0 0 1\n";
        }
    }
    void adjust(double wave_m, double bend_s) const { write_poses(adjusted, wave_m, bend_s); }

    void put(const std::string& name, std::uint64_t seed, double x, double length) {
        const fs::path path = dir / name;
        std::ofstream out(path);
        out << std::fixed << std::setprecision(4);
        for (const CloudPoint& p : maker.street(seed, x, 2000, length))
            out << p.x << " " << p.y << " " << p.z << " " << p.gps_time << " " << p.intensity << "\n";
        if (std::find(clouds.begin(), clouds.end(), path) == clouds.end()) clouds.push_back(path);
    }

    /// Builds with these inputs named; the city's other inputs are looked at as on any night.
    BuildReport build(const fs::path& where, const std::vector<fs::path>& named,
                      const std::optional<Calibration>& means = {},
                      const std::vector<fs::path>& removed = {}) const {
        BuildOptions options;
        ReadOptions read;
        read.text_columns = "x y z gps_time intensity";
        read.intensity_range = {0, 65535};
        read.adjustment = io::read_adjustment(given, {}, adjusted);
        for (const fs::path& path : named)
            options.inputs.push_back({path, given, io::reading_of({path}, read, {})});
        options.remove = removed;
        options.tile_size_m = maker.tile_m;
        options.carve = true;
        options.parameters = "{}";
        options.threads = 2;
        return maker.build(where, options, means);
    }
    BuildReport clean(const Calibration& means) {
        return build(dir / ("clean" + std::to_string(cleans++)), clouds, means);
    }
};

}  // namespace

TEST_CASE("with adjusted trajectories and carving, an edited city is that of a clean build") {
    AdjustedStreet s;
    s.put("a.xyz", 1, 1000, 60);
    s.put("b.xyz", 2, 1080, 60);
    BuildReport report = s.build(s.city, s.clouds);
    REQUIRE(report.removed > 0);
    const auto check = [&](const BuildReport& built) {
        const BuildReport clean = s.clean(report.calibration);
        CHECK(built.digest == clean.digest);
        CHECK(built.splats == clean.splats);
        CHECK(built.removed == clean.removed);
        CHECK(built.points.without_sensor == clean.points.without_sensor);
    };
    check(report);
    const Hash128 first = report.digest;

    // The trajectory is adjusted anew, from 114 s on: nobody names an input.
    s.adjust(0.3, 114);
    BuildReport built = s.build(s.city, {});
    CHECK(built.inputs_read == 2);
    CHECK(built.digest != first);
    check(built);

    // Only the end of it: what lies before is read again and found to be the same.
    s.write_poses(s.adjusted, 0.3, 118);
    built = s.build(s.city, {});
    CHECK(built.tiles_built > 0);
    CHECK(built.tiles_reused > 0);
    check(built);

    s.put("c.xyz", 3, 1040, 50);
    built = s.build(s.city, {s.dir / "c.xyz"});
    CHECK(built.inputs_read == 1);
    check(built);

    s.put("a.xyz", 4, 1000, 50);
    built = s.build(s.city, {});
    CHECK(built.inputs_read == 1);
    check(built);

    const fs::path b = s.dir / "b.xyz";
    std::erase(s.clouds, b);
    check(s.build(s.city, {}, {}, {b}));

    // And back.
    std::swap(s.clouds.front(), s.clouds.back());
    check(s.build(s.city, {}));
    CHECK(s.build(s.city, {}).tiles_built == 0);
}
