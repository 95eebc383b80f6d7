#include "core/error.hpp"
#include "core/rng_hd.hpp"
#include "tiling/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace {

/// Two crossing drives far from the origin.
struct TwoDrives {
    TempDir dir{memory_directory()};
    std::vector<CloudPoint> a = street(1, 651'234, 6'860'100, 120, 6),
                            b = street(2, 651'260, 6'860'090, 60, 4);
    std::filesystem::path file_a = dir / "a.cloud", file_b = dir / "b.cloud";
    TwoDrives() {
        write_cloud(file_a, a);
        write_cloud(file_b, b);
    }
};

void shuffle(std::vector<CloudPoint>& points, std::uint64_t seed) {
    for (std::size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[rng::bits(seed, i) % i]);
}

}  // namespace

TEST_CASE("a city is built, read back and accounted for") {
    TwoDrives d;
    const BuildReport report = build_toy(d.dir / "city", toy_options({d.file_a, d.file_b}));
    CHECK(report.published);
    CHECK(report.generation == 1);
    CHECK(report.points.read == d.a.size() + d.b.size());
    CHECK(report.points.kept == report.points.read);
    CHECK(report.tiles_built == report.tiles_total);

    const CityReader city(d.dir / "city");
    CHECK(city.generation().digest == report.digest);
    Hash128 digest;
    std::uint64_t splats = 0;
    for (std::size_t i = 0; i < city.tiles().size(); ++i) {
        const SplatTile tile = city.load(i);
        CHECK(tile.size() == city.tiles()[i].splats);
        digest += tile.digest();
        splats += tile.size();
    }
    CHECK(digest == report.digest);
    CHECK(splats == report.splats);
    CHECK(splats > 100);
}

TEST_CASE("the digest does not depend on tile size, splitting, threads, order or division into files") {
    TwoDrives d;
    const Hash128 digest = build_toy(d.dir / "reference", toy_options({d.file_a, d.file_b})).digest;
    int n = 0;
    const auto digest_of = [&](const BuildOptions& options) {
        return build_toy(d.dir / ("city" + std::to_string(n++)), options).digest;
    };
    for (const std::int64_t size_m : {7, 10, 25, 50, 64, 200}) {
        auto options = toy_options({d.file_a, d.file_b});
        options.tile_size_m = size_m;
        CHECK(digest_of(options) == digest);
        options.most_tile_points = 3000;
        options.threads = 1;
        CHECK(digest_of(options) == digest);
    }
    CHECK(digest_of(toy_options({d.file_b, d.file_a})) == digest);

    auto all = d.a;
    all.insert(all.end(), d.b.begin(), d.b.end());
    shuffle(all, 7);
    write_cloud(d.dir / "merged.cloud", all);
    CHECK(digest_of(toy_options({d.dir / "merged.cloud"})) == digest);
    std::vector<std::filesystem::path> parts;
    for (std::size_t i = 0; i < 5; ++i) {
        parts.push_back(d.dir / ("part" + std::to_string(i) + ".cloud"));
        const auto at = [&](std::size_t k) {
            return all.begin() + static_cast<std::ptrdiff_t>(all.size() * k / 5);
        };
        write_cloud(parts.back(), {at(i), at(i + 1)});
    }
    CHECK(digest_of(toy_options(parts)) == digest);
}

TEST_CASE("a build with nothing to do makes no generation and no tile") {
    TwoDrives d;
    const auto first = build_toy(d.dir / "city", toy_options({d.file_a, d.file_b}));
    const auto again = build_toy(d.dir / "city", toy_options());
    CHECK_FALSE(again.published);
    CHECK(again.generation == first.generation);
    CHECK(again.digest == first.digest);
    CHECK(again.tiles_built == 0);
    CHECK(again.tiles_checked == 0);
    CHECK(again.inputs_read == 0);
}

TEST_CASE("a city without inputs is not built, and a first build that was interrupted starts again") {
    TwoDrives d;
    CHECK_THROWS_AS(build_toy(d.dir / "city", toy_options()), UsageError);
    CancelToken cancel;
    cancel.request();
    ToyProcessor processor;
    Progress progress;
    CHECK_THROWS_AS(build_city(d.dir / "city", processor, toy_options({d.file_a}), cancel, progress),
                    Interrupted);
    CHECK_THROWS_AS(build_toy(d.dir / "city", toy_options()), UsageError);
    CHECK(build_toy(d.dir / "city", toy_options({d.file_a})).published);
}
