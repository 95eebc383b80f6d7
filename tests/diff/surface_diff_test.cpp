#include "diff/surface_diff.hpp"

#include "diff/catalog_diff.hpp"
#include "diff/drive_distance.hpp"
#include "diff/made_street.hpp"
#include "diff/splat_diff.hpp"
#include "splat/splat_processor.hpp"
#include "temp_dir.hpp"
#include "tiling/points/city_points.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace citysplat;
using namespace citysplat::test;
using diff::SurfaceChange;

namespace {

/// A city made of one drive, and then of two.
struct TwoDrives {
    TempDir dir{memory_directory()};
    std::filesystem::path city = dir / "city";
    tiling::BuildReport first, second;

    TwoDrives(const Scene& before, const Scene& after, double length_m, MadeDrive again = {}) {
        drive_through(before, length_m, {}, dir.path(), "old");
        if (again.seed == 1) again.seed = 2;
        if (again.begin_s == 1000) again.begin_s = 90000;
        drive_through(after, length_m, again, dir.path(), "new");
        first = build("old", {});
        second = build("new", {});
    }
    tiling::BuildReport build(const std::string& name, std::vector<tiling::CandidateGate> gates) const {
        tiling::BuildOptions options = toy_options();
        options.inputs.push_back({dir / (name + ".cloud"), dir / (name + ".tum")});
        options.tile_size_m = 32;
        options.carve = true;
        options.gates = std::move(gates);
        splat::SplatParams params = splat::SplatParams::of(splat::Method::descriptors);
        params.resample = false;
        splat::SplatProcessor processor(params, ClassMap());
        CancelToken cancel;
        Progress progress;
        return tiling::build_city(city, processor, options, cancel, progress);
    }
    diff::SurfaceDiff surfaces(const diff::SurfaceDiffOptions& options = {}) const {
        tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(city).catalog());
        const tiling::ObjectStore store{tiling::CityPaths(city)};
        const auto old_sources = tiling::sources_of(catalog, catalog.inputs(1));
        const auto all = tiling::sources_of(catalog, catalog.inputs(2));
        CancelToken cancel;
        Progress progress;
        return diff::compare_surfaces(
            store,
            {diff::Epoch{old_sources, catalog.tiles(1)},
             diff::Epoch{tiling::sources_added(old_sources, all), catalog.tiles(2)}},
            options, cancel, progress);
    }
};

/// The area of clusters of a kind that overlap a box, widened by 30 cm.
double area_in(const diff::SurfaceDiff& found, SurfaceChange kind, const Box& box) {
    double area = 0;
    for (const auto& c : found.clusters) {
        const bool touches = c.max.x > box.min.x - 0.3 && c.min.x < box.max.x + 0.3 &&
                             c.max.y > box.min.y - 0.3 && c.min.y < box.max.y + 0.3 &&
                             c.max.z > box.min.z - 0.3 && c.min.z < box.max.z + 0.3;
        if (touches && c.kind == kind) area += c.area_m2;
    }
    return area;
}

Box box_at(Vec3d min, Vec3d size) { return {min, min + size, kThing}; }

std::string told(const diff::SurfaceDiff& found) {
    std::string text;
    for (const auto& c : found.clusters)
        text += std::string(diff::kSurfaceChanges.of(c.kind)) + " " + std::to_string(c.area_m2) + " m2 at " +
                std::to_string(c.centre.x) + " " + std::to_string(c.centre.y) + " " +
                std::to_string(c.centre.z) + " by " + std::to_string(c.distance_m) + ", label " +
                std::to_string(c.label) + ", looks " + std::to_string(c.looks) + "\n";
    return text;
}

}  // namespace

TEST_CASE("what was removed, added and moved is found, and nothing else") {
    constexpr double kLength_m = 48;
    Scene before = Scene::street(kLength_m), after = before;
    const Box car = box_at({12, 3.5, 0}, {4, 1.8, 1.5}), panel = box_at({20, -5, 1}, {0.08, 0.8, 0.8}),
              crate = box_at({26, 4, 0}, {0.9, 0.9, 0.9}), kiosk = box_at({33, 3.8, 0}, {1.5, 1.2, 2.2}),
              kiosk_now = box_at({36.2, 3.8, 0}, {1.5, 1.2, 2.2}),
              cladding = box_at({40, -9, 0.5}, {4, 0.15, 3});
    before.boxes.insert(before.boxes.end(), {car, panel, kiosk});
    after.boxes.insert(after.boxes.end(), {crate, kiosk_now, cladding});
    const TwoDrives drives(before, after, kLength_m);
    const diff::SurfaceDiff found = drives.surfaces();
    INFO(told(found));
    CHECK(area_in(found, SurfaceChange::gone, car) > 3);
    CHECK(area_in(found, SurfaceChange::gone, panel) > 0.3);
    CHECK(area_in(found, SurfaceChange::appeared, crate) > 0.5);
    CHECK(area_in(found, SurfaceChange::gone, kiosk) > 1);
    CHECK(area_in(found, SurfaceChange::appeared, kiosk_now) > 1);
    CHECK(area_in(found, SurfaceChange::moved, cladding) > 6);
    for (const auto& c : found.clusters) {
        const auto is_at = [&c](const Box& box) {
            return c.centre.x > box.min.x - 0.5 && c.centre.x < box.max.x + 0.5 &&
                   c.centre.y > box.min.y - 0.5 && c.centre.y < box.max.y + 0.5;
        };
        INFO("a cluster at " << c.centre.x << " " << c.centre.y << " " << c.centre.z);
        CHECK((is_at(car) || is_at(panel) || is_at(crate) || is_at(kiosk) || is_at(kiosk_now) ||
               is_at(cladding)));
        if (c.kind == SurfaceChange::moved) {
            CHECK(std::abs(c.distance_m) == Approx(0.15).margin(0.03));
            CHECK(c.area_m2 > 6);  // of 12: the scanner is sparse, not every voxel has enough points
            CHECK(c.area_m2 < 14);
        }
        CHECK(c.significance > 1);
    }
    CHECK(found.areas.seen_again > 300);
}

TEST_CASE("what hides behind something is not seen, not gone") {
    constexpr double kLength_m = 32;
    Scene before = Scene::street(kLength_m), after = before;
    const Box crate = box_at({15, 5.5, 0}, {1.2, 1.2, 1.2}), lorry = box_at({9, 2.5, 0}, {13, 2.4, 3.6});
    before.boxes.push_back(crate);
    after.boxes.push_back(lorry);  // in front of where the crate stood
    const TwoDrives drives(before, after, kLength_m);
    const diff::SurfaceDiff found = drives.surfaces();
    INFO(told(found));
    CHECK(area_in(found, SurfaceChange::gone, crate) == 0);
    CHECK(area_in(found, SurfaceChange::appeared, lorry) > 10);
    CHECK(found.areas.not_seen > 1);

    // The other way round: the lorry left, and nobody knows whether the crate was there.
    const TwoDrives back(after, before, kLength_m);
    const diff::SurfaceDiff other = back.surfaces();
    INFO(told(other));
    CHECK(area_in(other, SurfaceChange::gone, lorry) > 10);
    CHECK(area_in(other, SurfaceChange::appeared, crate) == 0);
    CHECK(other.areas.seen_first > 1);
}

TEST_CASE("two noisy drives of one street show no change, whatever the lane") {
    const Scene scene = Scene::street(40);
    for (const double lane : {0.0, 1.5}) {
        const TwoDrives drives(scene, scene, 40, {.seed = 5, .y_m = lane});
        const diff::SurfaceDiff found = drives.surfaces();
        INFO(told(found));
        CHECK(found.clusters.empty());
        CHECK(found.areas.seen_again > 300);
    }
}

TEST_CASE("a kilometre between two noisy drives has at most one false cluster", "[slow]") {
    const Scene scene = Scene::street(1000);
    for (const std::uint64_t seed : {11u, 12u, 13u}) {
        const TwoDrives drives(scene, scene, 1000,
                               {.seed = seed, .y_m = 0.5 * static_cast<double>(seed % 3)});
        const diff::SurfaceDiff found = drives.surfaces();
        WARN("seed " << seed << ": " << found.clusters.size() << " clusters\n" << told(found));
        CHECK(found.clusters.size() <= 1);
    }
}

TEST_CASE("a drive shifted by 30 cm is far from the city, a good one is near") {
    const Scene scene = Scene::street(24);
    CancelToken cancel;
    const TwoDrives good(scene, scene, 24);
    drive_through(scene, 24, {.seed = 7, .begin_s = 7e5, .shift = {0.2, 0.2, 0.1}}, good.dir.path(),
                  "shifted");
    drive_through(scene, 24, {.seed = 8, .begin_s = 8e5}, good.dir.path(), "third");
    const auto gate = diff::drive_distance_gate(0.10, cancel);
    const auto shifted = good.build("shifted", {gate});
    REQUIRE(shifted.gates.size() == 1);
    INFO(shifted.gates[0].text);
    CHECK(shifted.held_back);
    CHECK(shifted.gates[0].value > 0.15);
    const auto third = good.build("third", {gate});
    INFO(third.gates[0].text);
    CHECK_FALSE(third.held_back);
    CHECK(third.gates[0].value < 0.08);
    CHECK(third.published);
}

TEST_CASE("the catalog says which inputs and tiles differ and why, and equal splats cancel") {
    const Scene scene = Scene::street(16);
    const TwoDrives drives(scene, scene, 16);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(drives.city).catalog());
    const auto from = *catalog.generation(1), to = *catalog.generation(2);
    const diff::CatalogDiff found = diff::compare_catalog(catalog, from, to);
    REQUIRE(found.inputs.size() == 1);
    CHECK(found.inputs[0].change == diff::Change::added);
    CHECK(found.tiles.size() == found.counts.differing());
    for (const auto& tile : found.tiles)
        CHECK((tile.reason == tiling::Reason::changed_core || tile.reason == tiling::Reason::changed_halo ||
               tile.reason == tiling::Reason::new_tile));
    CHECK(diff::compare_catalog(catalog, to, to).tiles.empty());

    // Against a multiset difference of all splats.
    const tiling::ObjectStore store{tiling::CityPaths(drives.city)};
    CancelToken cancel;
    for (const std::uint64_t budget : {std::uint64_t{1} << 30, std::uint64_t{100'000}}) {
        const auto splats = diff::compare_splats(store, catalog.tiles(1), catalog.tiles(2), budget, cancel);
        CHECK(splats.all.gone > 0);
        CHECK(splats.all.added > 0);
        CHECK(to.splats - from.splats == splats.all.added - splats.all.gone);
        CHECK(splats.all.gone < from.splats);
        const auto nothing = diff::compare_splats(store, catalog.tiles(2), catalog.tiles(2), budget, cancel);
        CHECK(nothing.all.before == 0);
    }
}
