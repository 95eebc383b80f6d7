#include "mesh/scenes.hpp"
#include "view/tiles3d/mesh_pyramid.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::test;
using view::MeshPyramid;

namespace {

/// Across a corner of four cells of 64 m.
constexpr Vec3d kPlace{432064, 5412288, 320};

class Tiles final : public TileSource {
  public:
    explicit Tiles(double tile_size_m) {
        std::vector<WorldPoint> cloud;
        const Vec3d sensor = kPlace + Vec3d{0, 0, 5};
        add_patch(cloud, {kPlace + Vec3d{-10, -8, 0}, {20, 0, 0.3}, {0, 16, 0}, sensor, 60000, 1, 0.01, 7});
        add_patch(cloud, {kPlace + Vec3d{-10, 8, 0}, {20, 0.5, 0}, {0, 0.1, 4}, sensor, 20000, 2, 0.01, 1});
        const mesh::MeshParams params;
        meshes_ = mesh_tiles(MemoryCity(std::move(cloud)), params, tile_size_m);
        for (std::size_t i = 0; i < meshes_.size(); ++i) {
            Box3d box = kEmptyBox;
            for (std::size_t v = 0; v < meshes_[i].vertex_count(); ++v)
                box.grow(meshes_[i].world_m(meshes_[i].vertex(v)));
            entries_.push_back({.key = {0, static_cast<std::int32_t>(i), 0, ProductKind::mesh},
                                .splats = meshes_[i].triangle_count(),
                                .payload_bytes = 1,
                                .min = box.min,
                                .max = box.max});
        }
    }
    std::span<const TileEntry> tiles() const override { return entries_; }
    ProductKind kind() const override { return ProductKind::mesh; }
    SplatTile load(std::size_t) const override { throw std::logic_error("no splats here"); }
    MeshTile load_mesh(std::size_t tile) const override {
        return MeshTile(meshes_[tile].frame(), vertices(tile), triangles(tile));
    }
    const ClassMap& classes() const override { return classes_; }

    std::size_t triangle_count() const {
        std::size_t sum = 0;
        for (const TileEntry& entry : entries_) sum += entry.splats;
        return sum;
    }

  private:
    std::vector<MeshVertex> vertices(std::size_t tile) const {
        std::vector<MeshVertex> all;
        for (std::size_t i = 0; i < meshes_[tile].vertex_count(); ++i) all.push_back(meshes_[tile].vertex(i));
        return all;
    }
    std::vector<MeshTriangle> triangles(std::size_t tile) const {
        std::vector<MeshTriangle> all;
        for (std::size_t i = 0; i < meshes_[tile].triangle_count(); ++i)
            all.push_back(meshes_[tile].triangle(i));
        return all;
    }

    std::vector<MeshTile> meshes_;
    std::vector<TileEntry> entries_;
    ClassMap classes_;
};

/// All cubes of a level.
std::vector<io::GlbPart> level_of(MeshPyramid& pyramid, int level) {
    std::vector<splat::CubeId> cubes = pyramid.cubes().roots();
    while (!cubes.empty() && cubes[0].level > level) {
        std::vector<splat::CubeId> below;
        for (const auto& id : cubes)
            for (const auto& child : id.children())
                if (pyramid.cubes().may_exist(child)) below.push_back(child);
        cubes = std::move(below);
    }
    std::vector<io::GlbPart> parts;
    for (const auto& id : cubes) parts.push_back(pyramid.part(id, CancelToken()));
    return parts;
}

bool same(const std::vector<io::GlbPart>& a, const std::vector<io::GlbPart>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        const auto equal = [](Vec3f p, Vec3f q) { return p.x == q.x && p.y == q.y && p.z == q.z; };
        return x.triangles == y.triangles && x.label == y.label && x.intensity == y.intensity &&
               std::equal(x.positions.begin(), x.positions.end(), y.positions.begin(), y.positions.end(),
                          equal) &&
               std::equal(x.normals.begin(), x.normals.end(), y.normals.begin(), y.normals.end(), equal);
    });
}

double area_m2(const std::vector<io::GlbPart>& parts) {
    double area = 0;
    for (const io::GlbPart& part : parts)
        for (const auto& [a, b, c] : part.triangles) {
            const Vec3f& p = part.positions[a];
            area += 0.5 * static_cast<double>(length(cross(part.positions[b] - p, part.positions[c] - p)));
        }
    return area;
}

}  // namespace

TEST_CASE("levels of a mesh do not know tiles, and lose triangles but no surface") {
    const Tiles small(7), large(128);
    REQUIRE(small.tiles().size() > large.tiles().size());
    MeshPyramid pyramid(small), other(large);
    REQUIRE(pyramid.cubes().roots().front().level == splat::kLastCellLevel + 1);
    std::size_t before = 0;
    double whole_m2 = 0;
    for (int level = 0; level <= 4; ++level) {
        INFO(level);
        const auto parts = level_of(pyramid, level);
        CHECK(same(parts, level_of(other, level)));
        std::size_t triangles = 0;
        for (const io::GlbPart& part : parts) triangles += part.triangles.size();
        if (level == 0) {
            CHECK(triangles == small.triangle_count());
            whole_m2 = area_m2(parts);
            CHECK(whole_m2 > 300);
        } else {
            CHECK(triangles > 0);
            CHECK(triangles < (level == 1 ? before + 1 : before / 2));
            // Ends recede by half a voxel, noise is evened out.
            CHECK(area_m2(parts) > 0.7 * whole_m2);
            CHECK(area_m2(parts) < 1.1 * whole_m2);
        }
        before = triangles;
    }
}

TEST_CASE("a vertex of a level stays near the vertices that it stands for and has the class of most") {
    const Tiles city(32);
    MeshPyramid pyramid(city);
    const auto finest = level_of(pyramid, 0);
    for (const int level : {1, 3}) {
        const double voxel_m = 0.125 * (1 << level);
        for (const io::GlbPart& part : level_of(pyramid, level))
            for (std::size_t i = 0; i < part.positions.size(); i += 7) {
                const Vec3d at = part.origin_m + vec_cast<double>(part.positions[i]);
                double nearest = 1e9;
                std::uint16_t label = 0;
                for (const io::GlbPart& leaf : finest)
                    for (std::size_t j = 0; j < leaf.positions.size(); ++j) {
                        const double d = length(leaf.origin_m + vec_cast<double>(leaf.positions[j]) - at);
                        if (d < nearest) nearest = d, label = leaf.label[j];
                    }
                CHECK(nearest < 0.9 * voxel_m);
                if (at.y < kPlace.y + 6) CHECK((label == 7 && part.label[i] == 7));
            }
    }
}

TEST_CASE("sums of a voxel are those of the eight below, in whatever order they come") {
    std::vector<view::MeshPoint> points;
    for (std::int64_t i = 0; i < 500; ++i)
        points.push_back({{(i * 7919) % 9000 - 4000, (i * 104729) % 7000 - 3000, (i * 31) % 900},
                          pack_normal(normalized(Vec3d{0.1 * static_cast<double>(i % 7), 0.2, 1})),
                          static_cast<std::uint16_t>(i % 3),
                          static_cast<std::uint16_t>(i)});
    const auto whole = view::coarser(view::first_voxels(points), 1);
    std::reverse(points.begin(), points.end());
    const auto again = view::coarser(view::first_voxels(points), 1);
    REQUIRE(whole.size() == again.size());
    std::int64_t count = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        CHECK(whole[i].voxel == again[i].voxel);
        CHECK(whole[i].at == again[i].at);
        CHECK(whole[i].normal == again[i].normal);
        count += whole[i].count;
        for (const std::int64_t at : whole[i].at) CHECK((at >= 0 && at < whole[i].count * 4096));
    }
    CHECK(count == 500);
}
