#include "core/error.hpp"
#include "mesh/scenes.hpp"
#include "trace/resident_city.hpp"
#include "trace/tracer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <tuple>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::trace;

namespace {

/// Tiles of a mesh as a city.
class MeshCity final : public TileSource {
  public:
    explicit MeshCity(std::vector<MeshTile> tiles) {
        for (MeshTile& tile : tiles) {
            if (tile.empty()) continue;
            Box3d box = kEmptyBox;
            for (std::size_t i = 0; i < tile.vertex_count(); ++i) box.grow(tile.world_m(tile.vertex(i)));
            entries_.push_back({{}, tile.triangle_count(), tile.bytes().size(), box.min, box.max});
            tiles_.push_back(std::move(tile));
        }
    }
    std::span<const TileEntry> tiles() const override { return entries_; }
    ProductKind kind() const override { return ProductKind::mesh; }
    SplatTile load(std::size_t) const override { throw std::logic_error("there are no splats"); }
    MeshTile load_mesh(std::size_t tile) const override {
        const MeshTile& from = tiles_[tile];
        MeshTile copy(from.frame(), from.vertex_count(), from.triangle_count());
        std::memcpy(copy.mutable_bytes().data(), from.bytes().data(), from.bytes().size());
        return copy;
    }
    const ClassMap& classes() const override { return classes_; }

  private:
    std::vector<MeshTile> tiles_;
    std::vector<TileEntry> entries_;
    ClassMap classes_;
};

MeshCity city_of_tiles(double tile_size_m) { return MeshCity(mesh_tiles(street_city(), {}, tile_size_m)); }

/// From a sensor in the street in all directions.
std::vector<Ray> rays_around(std::size_t count) {
    std::vector<Ray> rays;
    for (std::size_t i = 0; i < count; ++i) {
        const double a = rng::uniform(1, 2 * i, -3.14159, 3.14159),
                     up = rng::uniform(1, 2 * i + 1, -0.6, 0.4);
        const Vec3d direction = normalized(Vec3d{std::cos(a), std::sin(a), up});
        const double x = 4 + 12 * static_cast<double>(i) / static_cast<double>(count);
        rays.push_back({kScene + Vec3d{x, 0.01234, 2.0567}, vec_cast<float>(direction), 0.0f, 60.0f});
    }
    return rays;
}

bool same(const Hit& a, const Hit& b) {
    const auto all = [](const Hit& h) {
        return std::tuple(h.t, h.normal, h.splat_id, h.range_m, h.label, h.intensity, h.acquired_range_m,
                          h.acquired_incidence, h.instance);
    };
    return all(a) == all(b);
}
std::size_t count_different(const std::vector<Hit>& a, const std::vector<Hit>& b) {
    std::size_t different = 0;
    for (std::size_t i = 0; i < a.size(); ++i) different += !same(a[i], b[i]);
    return different;
}

std::vector<Hit> hits_of(const Tracer& tracer, const MeshCity& city, const std::vector<Ray>& rays,
                         std::uint64_t budget_bytes = std::uint64_t{1} << 30) {
    CacheOptions options;
    options.budget_bytes = budget_bytes;
    ResidentCity resident(city, tracer, options);
    std::vector<Hit> hits(rays.size());
    resident.closest(rays, hits, CancelToken());
    return hits;
}

}  // namespace

TEST_CASE("rays meet a mesh where its surfaces are") {
    const MeshCity city = city_of_tiles(16);
    const auto rays = rays_around(20000);
    const auto hits = hits_of(*make_group_tracer(), city, rays);
    std::size_t on_road = 0, on_facade = 0, on_sign = 0, off = 0;
    for (std::size_t i = 0; i < rays.size(); ++i) {
        const Hit& hit = hits[i];
        if (!hit.exists()) continue;
        const Vec3d at = rays[i].origin + vec_cast<double>(rays[i].direction) * hit.range_m - kScene;
        const Vec3d normal = vec_cast<double>(unpack_normal(hit.normal));
        CHECK(hit.instance == 0);
        if (hit.label == 1 && at.y < 3.5) {
            ++on_road;
            off += std::fabs(at.z - 0.01 * at.x) > 0.02 || normal.z < 0.95;
        } else if (hit.label == 2 && at.z > 0.5) {
            ++on_facade;
            off += normal.y > -0.9;
        } else if (hit.label == 3) {
            ++on_sign;
            off += std::fabs(normal.x) < 0.9 || std::fabs(at.x - 12) > 0.1;
        }
    }
    CHECK(on_road > 3000);
    CHECK(on_facade > 1500);
    CHECK(on_sign > 20);
    CHECK(off < (on_road + on_facade) / 200);
}

TEST_CASE("what rays meet in a mesh depends neither on tiles nor on what is resident") {
    const auto rays = rays_around(6000);
    const auto tracer = make_group_tracer();
    const auto truth = hits_of(*tracer, city_of_tiles(512), rays);
    CHECK(std::count_if(truth.begin(), truth.end(), [](const Hit& hit) { return hit.exists(); }) > 2000);
    for (const double size : {16.0, 3.0})
        CHECK(count_different(hits_of(*tracer, city_of_tiles(size), rays), truth) == 0);

    const MeshCity small = city_of_tiles(3);
    std::uint64_t largest = 0, all = 0;
    for (const TileEntry& e : small.tiles()) {
        largest = std::max<std::uint64_t>(largest, tracer->estimated_mesh_bytes(e.splats));
        all += tracer->estimated_mesh_bytes(e.splats);
    }
    for (const std::uint64_t budget : {all, all / 3, largest})
        CHECK(count_different(hits_of(*tracer, small, rays, budget), truth) == 0);
    CHECK_THROWS_AS(hits_of(*tracer, small, rays, largest - 1), UsageError);
    for (std::uint32_t i = 0; i < small.tiles().size(); ++i)
        CHECK(tracer->load(small.load_mesh(i))->bytes() <=
              tracer->estimated_mesh_bytes(small.tiles()[i].splats));
}

TEST_CASE("every tracer meets a mesh alike") {
    const MeshCity city = city_of_tiles(16);
    const auto rays = rays_around(1500);
    const auto truth = hits_of(*make_embree_tracer(), city, rays);
    for (const std::string& set : group_instruction_sets()) {
        INFO(set);
        CHECK(count_different(hits_of(*make_group_tracer({.instruction_set = set}), city, rays), truth) == 0);
    }
    // And the first few hits.
    const auto lists = [&](const Tracer& tracer) {
        ResidentCity resident(city, tracer, {});
        std::vector<HitList> found(rays.size());
        resident.nearest(rays, {4, 100.0f}, found, CancelToken());
        return found;
    };
    const auto ours = lists(*make_group_tracer()), theirs = lists(*make_embree_tracer());
    std::size_t different = 0, several = 0;
    for (std::size_t i = 0; i < rays.size(); ++i) {
        several += theirs[i].count > 1;
        different += ours[i].count != theirs[i].count;
        for (std::uint32_t h = 0; h < std::min(ours[i].count, theirs[i].count); ++h)
            different += !same(ours[i].hits[h], theirs[i].hits[h]);
    }
    CHECK(several > 10);
    CHECK(different == 0);
}
