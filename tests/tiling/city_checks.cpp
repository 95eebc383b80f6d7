#include "tiling/city_checks.hpp"

#include "core/math/rng_hd.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>

namespace citysplat::test {

using namespace tiling;
namespace fs = std::filesystem;

namespace {

/// A processor whose city-wide means are given.
class WithMeans final : public TileProcessor {
  public:
    WithMeans(std::unique_ptr<TileProcessor> inner, const Calibration& means)
        : inner_(std::move(inner)), means_(means) {}
    Calibration calibrate(const RegionReader&, const CancelToken&, Progress&) const override {
        return means_;
    }
    void set_calibration(const Calibration& c) override { inner_->set_calibration(c); }
    Hash128 parameters_key() const override { return inner_->parameters_key(); }
    std::int64_t initial_halo_steps() const override { return inner_->initial_halo_steps(); }
    std::size_t estimated_bytes(std::uint64_t points) const override {
        return inner_->estimated_bytes(points);
    }
    TileOutput process(Region region, const CancelToken& cancel) const override {
        return inner_->process(std::move(region), cancel);
    }

  private:
    std::unique_ptr<TileProcessor> inner_;
    Calibration means_;
};

/// What a tile is made from, found the slow way: its box with its halo, and all points in it.
using Signature = std::vector<std::int64_t>;

/// Signatures of the tiles of the last clean build.
std::set<Signature> signatures(const Drive& d) {
    Catalog catalog = Catalog::open_to_read(CityPaths(d.last_clean()).catalog());
    const TileGrid grid(static_cast<double>(d.maker.tile_m));
    std::set<Signature> all;
    for (const ProductRow& tile : catalog.tiles(catalog.latest()->id)) {
        const LatticeBox box = grid.core(tile.tile).widened(tile.halo_steps);
        std::vector<std::array<std::int64_t, 5>> points;
        for (const auto& [name, cloud] : d.files)
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

SplatTile load(const fs::path& city, const TileKey& tile) {
    const CityReader reader(city);
    for (std::size_t i = 0; i < reader.tiles().size(); ++i)
        if (reader.tiles()[i].key == tile) return reader.load(i);
    throw std::runtime_error("no such tile");
}

}  // namespace

BuildReport CityMaker::build(const fs::path& city, const BuildOptions& options,
                             const std::optional<Calibration>& means) const {
    std::unique_ptr<TileProcessor> made = processor();
    if (means) made = std::make_unique<WithMeans>(std::move(made), *means);
    CancelToken cancel;
    Progress progress;
    return build_city(city, *made, options, cancel, progress);
}

WorkReport CityMaker::work_as(const Shard& shard, const fs::path& city, const BuildOptions& options) const {
    CancelToken cancel;
    Progress progress;
    join_or_plan(city, *processor(), options, cancel, progress);
    WorkOptions work;
    work.begin_with = shard;
    work.threads = options.threads;
    work.memory_bytes = options.memory_bytes;
    return work_on_plan(
        city, [this](const GenerationRow&) { return processor(); }, work, cancel, progress);
}

BuildOptions random_edit(Drive& d, std::uint64_t key) {
    const auto pick = [key](std::uint64_t c, std::uint64_t n) { return rng::bits(key, c) % n; };
    const auto some_file = [&] {
        auto it = d.files.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(pick(0, d.files.size())));
        return it->first;
    };
    const auto where = [&](std::uint64_t c) { return rng::uniform(key, c, 0, 150); };
    switch (pick(1, 7)) {
        case 0:  // a new file
            d.put("new" + std::to_string(key % 1000) + ".cloud",
                  d.maker.street(key, 1000 + where(2), 2000 + where(3) / 4, 20));
            break;
        case 1: {  // one more point
            const std::string name = some_file();
            auto points = d.files[name];
            const double x = 1000 + where(2);
            points.push_back({.x = x, .y = 2000 + where(3) / 4, .z = 1, .gps_time = 0.1 * x, .label = 9});
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
                BuildOptions options = d.options();
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

CityMaker toy_maker() {
    return {
        [] { return std::make_unique<ToyProcessor>(); },
        [](std::uint64_t seed, double x, double y, double length) { return street(seed, x, y, length, 3); }};
}

CityMaker carving_maker() {
    // The sensor of Drive is at x = 10 t, y = 2020, z = 2: it looks at a wall 15 m aside, through a lane 7 m
    // aside.
    const auto passing_street = [](std::uint64_t seed, double x, double, double length) {
        std::vector<CloudPoint> points;
        const auto see = [&](double time_s, double px, double py, double pz, std::uint16_t label) {
            points.push_back(
                {.x = px, .y = py, .z = pz, .gps_time = time_s, .label = label, .intensity = label});
        };
        const auto rays = static_cast<std::uint64_t>(length * 200);
        for (std::uint64_t i = 0; i < rays; ++i) {
            const auto u = [k = rng::key(seed, i)](std::uint64_t c, double low, double high) {
                return rng::uniform(k, c, low, high);
            };
            const double at = x + u(0, 0, length);
            see(at * 0.1, at + u(1, -8, 8), 2035 + u(2, -0.02, 0.02), u(3, 0.5, 1.5), 2);
        }
        for (double at = x + 4; at < x + length; at += 9)
            for (std::uint64_t i = 0; i < 60; ++i) {
                const auto u = [k = rng::key(seed + 1, i)](std::uint64_t c, double low, double high) {
                    return rng::uniform(k, c, low, high);
                };
                see(at * 0.1 + u(0, 0, 0.1), at + u(1, 0, 1), 2027 + u(2, 0, 0.3), u(3, 1.3, 1.75), kPassing);
            }
        return points;
    };
    return {[] { return std::make_unique<ToyProcessor>(0.2); }, passing_street, 16, true, true};
}

Drive::Drive(CityMaker made_by) : maker(std::move(made_by)) {
    std::ofstream(dir / "drive.tum") << "0 0 2020 2 0 0 0 1\n100000 1000000 2020 2 0 0 0 1\n";
}

void Drive::put(const std::string& name, std::vector<CloudPoint> points) {
    write_cloud(path(name), points);
    files[name] = std::move(points);
}

BuildOptions Drive::options() const {
    std::vector<fs::path> inputs;
    for (const auto& [name, points] : files) inputs.push_back(path(name));
    BuildOptions options = toy_options(inputs);
    options.tile_size_m = maker.tile_m;
    options.carve = maker.carve;
    if (maker.trajectory)
        for (BuildInput& input : options.inputs) input.trajectory = dir / "drive.tum";
    return options;
}

BuildReport Drive::clean_build(const std::optional<Calibration>& means) {
    ++cleans;
    return maker.build(last_clean(), options(), means);
}

void check_independence(const CityMaker& maker, std::initializer_list<std::int64_t> sizes_m) {
    Drive d(maker);
    d.put("a.cloud", maker.street(1, 651'234, 6'860'100, 60));
    d.put("b.cloud", maker.street(2, 651'260, 6'860'090, 40));
    const BuildReport reference = d.build();
    REQUIRE(reference.splats > 500);
    REQUIRE((reference.removed > 200) == maker.carve);
    int n = 0;
    const auto check = [&](const BuildOptions& options) {
        const BuildReport report = maker.build(d.dir / ("city" + std::to_string(n++)), options);
        CHECK(report.digest == reference.digest);
        CHECK(report.splats == reference.splats);
        CHECK(report.removed == reference.removed);
        return report.tiles_total;
    };
    for (const std::int64_t size_m : sizes_m) {
        INFO("tiles of " << size_m << " m");
        auto options = d.options();
        options.tile_size_m = size_m;
        const std::uint64_t tiles = check(options);
        if (size_m < 64) continue;  // a tile is not divided below the size of its halo
        INFO("divided where dense, one thread");
        options.most_tile_points = reference.points.kept / 20;
        options.threads = 1;
        CHECK(check(options) > tiles);
    }
    auto options = d.options();
    std::reverse(options.inputs.begin(), options.inputs.end());
    check(options);

    auto all = d.files["a.cloud"];
    all.insert(all.end(), d.files["b.cloud"].begin(), d.files["b.cloud"].end());
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[rng::bits(7, i) % i]);
    d.files.clear();
    d.put("merged.cloud", all);
    check(d.options());
    d.files.clear();
    for (std::size_t i = 0; i < 5; ++i) {
        const auto at = [&](std::size_t k) {
            return all.begin() + static_cast<std::ptrdiff_t>(all.size() * k / 5);
        };
        d.put("part" + std::to_string(i) + ".cloud", {at(i), at(i + 1)});
    }
    check(d.options());
}

void check_edits(const CityMaker& maker, std::uint64_t seed, int edits) {
    Drive d(maker);
    d.put("a.cloud", maker.street(seed, 1000, 2000, 90));
    d.put("b.cloud", maker.street(seed + 1, 1060, 2010, 80));
    BuildOptions options = d.options();
    std::set<Signature> made;  // tiles that were ever made
    std::optional<Calibration> means;
    for (int i = 0; i <= edits; ++i) {
        INFO("seed " << seed << ", edit " << i);
        const BuildReport built = maker.build(d.city, options);
        // The means are frozen at the first build: the clean city must have the same.
        if (!means) means = built.calibration;
        CHECK(d.clean_build(means).digest == built.digest);
        const std::set<Signature> now = signatures(d);
        std::uint64_t had_to = 0;
        for (const Signature& s : now) had_to += made.insert(s).second;
        REQUIRE(built.tiles_built == had_to);
        REQUIRE(built.tiles_total == now.size());
        options = random_edit(d, rng::key(seed, static_cast<std::uint64_t>(i)));
    }
}

void check_non_interference(const CityMaker& maker) {
    Drive clean(maker), dirty(maker);
    const auto points = maker.street(5, 1000, 2000, 120);
    clean.put("a.cloud", points);
    const BuildReport report = clean.build();
    const auto tiles = Catalog::open_to_read(CityPaths(clean.city).catalog()).tiles(1);
    const ProductRow& tile = tiles[tiles.size() / 2];
    REQUIRE(tile.splats > 50);
    const LatticeBox box =
        TileGrid(static_cast<double>(maker.tile_m)).core(tile.tile).widened(tile.halo_steps);
    auto garbage = points;
    std::size_t changed = 0;
    for (std::size_t i = 0; i < garbage.size(); ++i) {
        CloudPoint& p = garbage[i];
        if (box.contains(to_lattice(p.x), to_lattice(p.y))) continue;
        ++changed;
        p.z += rng::uniform(3, i, -300, 300);
        p.label = static_cast<std::uint16_t>(rng::bits(4, i));
        if (i % 3 == 0) p.withheld = 1;
    }
    REQUIRE(changed > garbage.size() / 4);
    dirty.put("a.cloud", garbage);
    static_cast<void>(maker.build(dirty.city, dirty.options(), report.calibration));
    const SplatTile a = load(clean.city, tile.tile), b = load(dirty.city, tile.tile);
    REQUIRE(a.bytes().size() == b.bytes().size());
    CHECK(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin()));
}

}  // namespace citysplat::test
