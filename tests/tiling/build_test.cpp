#include "core/error.hpp"
#include "tiling/city_checks.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

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
    check_independence(toy_maker());
}

TEST_CASE("what is carved out is the same for any tile size, refinement, thread count and order") {
    check_independence(carving_maker(), {10, 25, 64, 128});
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

TEST_CASE(
    "a tile whose halo does not reach far enough is read again with more, and the splats are the same") {
    TwoDrives d;
    CancelToken cancel;
    Progress progress;
    const auto build = [&](const std::string& name, double halo_m) {
        ToyProcessor processor(0.5, halo_m);
        return build_city(d.dir / name, processor, toy_options({d.file_a, d.file_b}), cancel, progress);
    };
    const BuildReport enough = build("enough", 8), scarce = build("scarce", 0.5);
    CHECK(enough.halo_widened == 0);
    CHECK(scarce.halo_widened > scarce.tiles_total / 2);
    CHECK(scarce.digest == enough.digest);
    CHECK(scarce.splats == enough.splats);
}
