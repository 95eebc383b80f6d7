#include "core/file.hpp"
#include "mesh/city_processor.hpp"
#include "mesh/city_recipe.hpp"
#include "mesh/mesh_processor.hpp"
#include "model/assembled/welded_mesh.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/care/mirror.hpp"
#include "tiling/care/pack.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/product_kinds.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <set>

using namespace citysplat;
using namespace citysplat::tiling;
using namespace citysplat::test;

namespace fs = std::filesystem;

namespace {

using Kinds = std::vector<ProductKind>;
constexpr auto kSplats = ProductKind::splats, kMesh = ProductKind::mesh, kImls = ProductKind::imls;

/// Toy splats and real meshes; IMLS has its largest voxels, whatever is asked for.
std::unique_ptr<mesh::CityProcessor> processor_of(const Kinds& kinds, double voxel_m) {
    std::vector<std::unique_ptr<TileProcessor>> parts;
    const auto add_mesh = [&](auto params, double edge_m) {
        params.voxel_m = edge_m;
        if constexpr (std::is_same_v<decltype(params), mesh::ImlsParams>) params.least_points = 5;
        parts.push_back(std::make_unique<mesh::MeshProcessor>(params, ClassMap()));
    };
    for (const ProductKind kind : kinds) switch (kind) {
            case kSplats:
                parts.push_back(std::make_unique<ToyProcessor>());
                break;
            case kMesh:
                add_mesh(mesh::MeshParams(), voxel_m);
                break;
            case kImls:
                add_mesh(mesh::ImlsParams(), 0.25);
                break;
        }
    return std::make_unique<mesh::CityProcessor>(std::move(parts));
}

/// Two drives through a street, and cities of them.
struct Street {
    TempDir dir;
    fs::path city = dir / "city", a = dir / "a.cloud", b = dir / "b.cloud", trajectory = dir / "way.tum";

    Street() {
        write_cloud(a, drive(1, 1000));
        write_cloud(b, drive(2, 1030));
        std::ofstream way(trajectory);
        way << std::fixed;
        for (int x = 990; x <= 1080; x += 10) way << x << " " << x << " 2020 4 0 0 0 1\n";
    }
    /// Each point is seen from the middle of the street beside it.
    static std::vector<CloudPoint> drive(std::uint64_t seed, double x) {
        auto points = street(seed, x, 2000, 30, 60);
        for (CloudPoint& p : points) p.gps_time = p.x;
        return points;
    }
    BuildOptions options(const std::vector<fs::path>& inputs) const {
        BuildOptions options = toy_options();
        for (const auto& path : inputs) options.inputs.push_back({path, trajectory});
        options.tile_size_m = 16;
        return options;
    }
    BuildReport build(const fs::path& where, const Kinds& kinds, const std::vector<fs::path>& inputs,
                      double voxel_m = 0.5) const {
        return build_with(where, kinds, options(inputs), voxel_m);
    }
    static BuildReport build_with(const fs::path& where, const Kinds& kinds, BuildOptions options,
                                  double voxel_m = 0.5) {
        const auto processor = processor_of(kinds, voxel_m);
        options.parameters = "{\"voxel\":" + std::to_string(voxel_m) + "}";
        CancelToken cancel;
        Progress progress;
        return build_city(where, *processor, options, cancel, progress);
    }
    static Hash128 digest_of(const fs::path& where, ProductKind kind) {
        const CityReader reader(where, {}, kind);
        Hash128 digest;
        for (std::size_t i = 0; i < reader.tiles().size(); ++i)
            digest += has_triangles(kind) ? reader.load_mesh(i).digest() : reader.load(i).digest();
        return digest;
    }
    static void check_whole(const fs::path& where) {
        CancelToken cancel;
        Progress progress;
        for (const Damage& damage : verify_city(where, true, cancel, progress).corrupt)
            FAIL_CHECK(damage.what << ": " << damage.problem);
    }
};

}  // namespace

TEST_CASE("splats and mesh of a city are those of two cities, and each comes and goes alone") {
    const Street s;
    const auto splats = s.build(s.dir / "splats", {kSplats}, {s.a, s.b});
    const auto mesh = s.build(s.dir / "mesh", {kMesh}, {s.a, s.b});
    REQUIRE(splats.splats > 100);
    REQUIRE(mesh.triangles > 1000);
    CHECK(splats.triangles == 0);
    CHECK(mesh.splats == 0);
    CHECK_THROWS_WITH(CityReader(s.dir / "mesh"), Catch::Contains("no splats, only mesh"));
    CHECK_THROWS_WITH(CityReader(s.dir / "splats", {}, kMesh), Catch::Contains("has no mesh, only splats"));
    CHECK(CityReader(s.dir / "splats").generation().products.empty());

    // A mesh beside the splats that are there.
    const auto first = s.build(s.city, {kSplats}, {s.a, s.b});
    CHECK(first.digest == splats.digest);
    const auto both = s.build(s.city, {kSplats, kMesh}, {});
    CHECK(both.splats == splats.splats);
    CHECK(both.triangles == mesh.triangles);
    CHECK(both.tiles_built == mesh.tiles_built);
    CHECK(both.tiles_checked == mesh.tiles_checked);  // no splat was looked at
    CHECK(both.published);
    for (const auto& e : both.explanations) CHECK(e.reason == Reason::new_product);
    CHECK(Street::digest_of(s.city, kSplats) == splats.digest);
    CHECK(Street::digest_of(s.city, kMesh) == mesh.digest);
    Hash128 sum = splats.digest;
    sum += mesh.digest;
    CHECK(both.digest == sum);
    Street::check_whole(s.city);
    CHECK_FALSE(s.build(s.city, {kSplats, kMesh}, {}).published);

    // Another voxel size is another mesh, and the same splats.
    const auto finer = s.build(s.city, {kSplats, kMesh}, {}, 0.4);
    CHECK(finer.triangles != mesh.triangles);
    CHECK(finer.tiles_checked == mesh.tiles_checked);
    CHECK(Street::digest_of(s.city, kSplats) == splats.digest);

    // Without the splats; and back to what was before, which is remembered.
    const Hash128 only_mesh = Street::digest_of(s.city, kMesh);
    CHECK(s.build(s.city, {kMesh}, {}, 0.4).splats == 0);
    CHECK(Street::digest_of(s.city, kMesh) == only_mesh);
    const auto back = s.build(s.city, {kSplats, kMesh}, {});
    CHECK(back.digest == sum);
    CHECK(back.tiles_built == 0);
    Street::check_whole(s.city);
}

TEST_CASE("the meshes of a city do not know tiles, files, their order, or what was built before") {
    const Street s;
    const ProductKind kind = GENERATE(kMesh, kImls);
    CAPTURE(kProductKinds.of(kind));
    const auto truth = s.build(s.city, {kind}, {s.a, s.b});
    REQUIRE(truth.triangles > 500);
    BuildOptions other = s.options({s.b, s.a});
    other.tile_size_m = 64;
    other.threads = 1;
    CHECK(Street::build_with(s.dir / "large", {kind}, other).digest == truth.digest);
    other.tile_size_m = 7;
    other.most_tile_points = 2000;
    CHECK(Street::build_with(s.dir / "small", {kind}, other).digest == truth.digest);

    // Step by step: only tiles in reach of the new points are made.
    s.build(s.dir / "steps", {kind}, {s.a});
    const auto grown = s.build(s.dir / "steps", {kind}, {s.b});
    CHECK(grown.digest == truth.digest);
    CHECK(grown.tiles_reused > 0);
    BuildOptions without = s.options({});
    without.remove = {s.b};
    const auto shrunk = Street::build_with(s.dir / "steps", {kind}, without);
    CHECK(shrunk.digest == s.build(s.dir / "a", {kind}, {s.a}).digest);

    // Borders are welded: the tiles have the open edges of the whole mesh and no others.
    const auto welded = [kind](const fs::path& where) {
        const CityReader reader(where, {}, kind);
        WeldedMesh mesh;
        for (std::size_t i = 0; i < reader.tiles().size(); ++i) mesh.add(reader.load_mesh(i));
        return std::pair(mesh.vertices().size(), mesh.triangles().size());
    };
    CHECK(CityReader(s.dir / "small", {}, kind).tiles().size() >
          CityReader(s.dir / "large", {}, kind).tiles().size());
    CHECK(welded(s.dir / "small") == welded(s.dir / "large"));
}

TEST_CASE("two meshes of a city come and go each alone") {
    const Street s;
    const auto mesh = s.build(s.dir / "mesh", {kMesh}, {s.a, s.b});
    const auto imls = s.build(s.dir / "imls", {kImls}, {s.a, s.b});
    const auto first = s.build(s.city, {kMesh}, {s.a, s.b});
    const auto both = s.build(s.city, {kMesh, kImls}, {});
    CHECK(both.triangles == mesh.triangles + imls.triangles);
    CHECK(both.tiles_built == imls.tiles_built);
    CHECK(both.tiles_checked == imls.tiles_checked);  // the mesh was not looked at
    CHECK(Street::digest_of(s.city, kMesh) == mesh.digest);
    CHECK(Street::digest_of(s.city, kImls) == imls.digest);
    CHECK(imls.digest != mesh.digest);
    Street::check_whole(s.city);
    CHECK_THROWS_WITH(CityReader(s.city), Catch::Contains("no splats, only mesh,imls"));
    CHECK_THROWS_WITH(CityReader(s.dir / "imls", {}, kMesh), Catch::Contains("--product imls,mesh"));
    CHECK_THROWS_AS(CityReader(s.city, {}, kImls).load(0), std::logic_error);

    CHECK(s.build(s.city, {kImls}, {}).digest == imls.digest);
    CHECK(s.build(s.city, {kMesh}, {}).digest == first.digest);
}

TEST_CASE("plan, work and publish make all products") {
    const Street s;
    const auto truth = s.build(s.dir / "plain", {kSplats, kMesh, kImls}, {s.a, s.b});
    const auto processor = processor_of({kSplats, kMesh, kImls}, 0.5);
    BuildOptions options = s.options({s.a, s.b});
    options.parameters = "{}";
    CancelToken cancel;
    Progress progress;
    const PlanReport plan = plan_city(s.city, *processor, options, cancel, progress);
    REQUIRE(plan.open);
    std::set<ProductKind> planned;
    for (const PlannedTile& tile : plan.open->plan.planned) planned.insert(tile.key.kind);
    CHECK(planned.size() == 3);
    const MakeProcessor make = [](const GenerationRow& next) {
        CHECK(kinds_of(next).size() == 3);
        return processor_of({kSplats, kMesh, kImls}, 0.5);
    };
    for (int worker = 0; worker < 2; ++worker)
        CHECK(work_on_plan(s.city, make, impatient(), cancel, progress).tiles_left == 0);
    const PublishReport published = publish_plan(s.city);
    CHECK(published.digest == truth.digest);
    CHECK(published.splats == truth.splats);
    CHECK(published.triangles == truth.triangles);
    Street::check_whole(s.city);

    // A worker that makes another mesh is refused.
    plan_city(s.city, *processor_of({kSplats, kMesh, kImls}, 0.3), options, cancel, progress);
    CHECK_THROWS_AS(work_on_plan(s.city, make, {}, cancel, progress), ConfigError);
}

TEST_CASE("a city with a mesh is packed, copied, repaired and cleaned like any other") {
    const Street s;
    const auto old = s.build(s.city, {kSplats, kMesh, kImls}, {s.a});
    const auto latest = s.build(s.city, {kSplats, kMesh, kImls}, {s.b});
    CancelToken cancel;
    Progress progress;
    pack_city(s.city, s.dir / "pack", cancel, progress);
    unpack_city(s.dir / "pack", s.dir / "unpacked", cancel, progress);
    mirror_city(s.city, s.dir / "copy", cancel, progress);
    for (const char* copy : {"unpacked", "copy"}) {
        Street::check_whole(s.dir / copy);
        CHECK(CityReader(s.dir / copy, {}, kMesh).generation().digest == latest.digest);
    }
    const Hash128 mesh = Street::digest_of(s.city, kMesh), imls = Street::digest_of(s.city, kImls);

    // The catalog is lost: the objects say all of it.
    fs::remove(s.city / "catalog.sqlite");
    repair_city(s.city, cancel);
    Street::check_whole(s.city);
    CHECK(Street::digest_of(s.city, kMesh) == mesh);
    CHECK(Street::digest_of(s.city, kImls) == imls);
    CHECK(CityReader(s.city, 1, kMesh).generation().digest == old.digest);
    CHECK_FALSE(s.build(s.city, {kSplats, kMesh, kImls}, {}).published);

    // A damaged mesh is found, set aside and made again.
    const fs::path damaged = [&] {
        Catalog catalog = Catalog::open_to_read(s.city / "catalog.sqlite");
        const auto tiles = of_kind(catalog.tiles(catalog.latest()->id), kMesh);
        const auto largest = std::max_element(tiles.begin(), tiles.end(), [](const auto& x, const auto& y) {
            return x.object_bytes < y.object_bytes;
        });
        return CityPaths(s.city).object(*largest->object);
    }();
    {
        fs::permissions(damaged, fs::perms::owner_write, fs::perm_options::add);
        std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(3000);
        file.put('x');
    }
    const VerifyReport report = verify_city(s.city, true, cancel, progress);
    REQUIRE(report.corrupt.size() == 1);
    CHECK_THAT(report.corrupt[0].what, Catch::Contains("(mesh)"));
    CHECK(set_damaged_aside(s.city, report.corrupt, cancel) == 1);
    s.build(s.city, {kSplats, kMesh, kImls}, {});
    Street::check_whole(s.city);
    CHECK(Street::digest_of(s.city, kMesh) == mesh);
}

TEST_CASE("the recipe of a city is remembered in words") {
    mesh::CityRecipe recipe;
    CHECK(recipe.text() == recipe.splats.text());
    recipe.products = {kSplats, kMesh};
    recipe.mesh.voxel_m = 0.1;
    recipe.mesh.two_sided = false;
    GenerationRow row;
    row.parameters = recipe.text();
    const mesh::CityRecipe again = mesh::city_recipe_of(row, "a city");
    CHECK(again.products == recipe.products);
    CHECK(again.mesh == recipe.mesh);
    recipe.products = {kSplats, kMesh, kImls};
    recipe.imls.sigma = 1.5;
    row.parameters = recipe.text();
    CHECK(mesh::city_recipe_of(row, "a city").imls == recipe.imls);
    CHECK(mesh::city_recipe_of(row, "a city").mesh == recipe.mesh);
    row.parameters = splat::Recipe{}.text();
    CHECK(mesh::city_recipe_of(row, "a city").products == Kinds{kSplats});
    row.parameters = R"({"products":"spoons"})";
    CHECK_THROWS_AS(mesh::city_recipe_of(row, "a city"), CorruptionError);

    const auto refused = [](mesh::CityRecipeChanges changes, const char* words) {
        CHECK_THROWS_WITH(mesh::city_recipe_for("/nowhere", changes), Catch::Contains(words));
    };
    refused({.splats = {}, .products = "spoons", .voxel_m = {}, .mesh = {}}, "splats,mesh");
    refused({.splats = {}, .products = "", .voxel_m = 0.1, .mesh = {}}, "--product mesh");
    refused({.splats = {}, .products = "mesh", .voxel_m = 0.0001, .mesh = {}}, "voxel_m");
    refused({.splats = {}, .products = "mesh", .voxel_m = {}, .mesh = {"depth=3"}}, "most_level");
    refused({.splats = {}, .products = "mesh", .voxel_m = {}, .mesh = {"most_level=two"}}, "whole number");
    refused({.splats = {}, .products = "imls", .voxel_m = {}, .mesh = {"most_level=2"}}, "imls has voxel_m");
    refused({.splats = {}, .products = "imls", .voxel_m = {}, .mesh = {"mesh.truncation=2"}}, "no such");
    refused({.splats = {}, .products = "imls", .voxel_m = 0.5, .mesh = {}}, "IMLS parameter voxel_m");
    const auto made = mesh::city_recipe_for(
        "/nowhere", {.splats = {}, .products = "mesh,splats,mesh", .voxel_m = 0.1, .mesh = {"most_level=3"}});
    CHECK(made.products == Kinds{kSplats, kMesh});
    CHECK(made.mesh.most_level == 3);
    const auto two =
        mesh::city_recipe_for("/nowhere", {.splats = {},
                                           .products = "imls,mesh",
                                           .voxel_m = 0.1,
                                           .mesh = {"truncation=1.5", "imls.least_points=7", "sigma=1"}});
    CHECK(two.mesh.voxel_m == 0.1);
    CHECK(two.imls == mesh::ImlsParams{.voxel_m = 0.1, .sigma = 1, .truncation = 1.5, .least_points = 7});
    CHECK(two.mesh.truncation == 1.5);
    CHECK(two.mesh.least_points == 10);
}
