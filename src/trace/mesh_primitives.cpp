#include "trace/mesh_primitives.hpp"

#include "core/math/rng_hd.hpp"
#include "model/splat_hd.hpp"
#include "model/splat_id_hd.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

namespace citysplat::trace {

namespace {

/// Triangles that tracers keep together.
constexpr std::size_t kTogether = 16;

/// A triangle on its way to its place: twice its middle, and its number in the mesh, which decides where two
/// have the same middle.
struct Item {
    float middle[3];
    std::uint32_t number;
};

Item item_of(const TraceTriangle& t, std::uint32_t number) {
    const auto middle = [](float a, float b, float c) { return std::min({a, b, c}) + std::max({a, b, c}); };
    return {{middle(t.a.x, t.b.x, t.c.x), middle(t.a.y, t.b.y, t.c.y), middle(t.a.z, t.b.z, t.c.z)}, number};
}

/// Halves the items along the axis where they extend most, again and again. The first half is the largest
/// power of two of whole runs of sixteen: then sixteen consecutive runs are a box as well, and sixteen of
/// these.
void sort_by_halves(std::span<Item> items) {
    while (items.size() > kTogether) {
        int widest = 0;
        float extent = -1;
        for (int axis = 0; axis < 3; ++axis) {
            const auto [low, high] = std::minmax_element(
                items.begin(), items.end(),
                [axis](const Item& a, const Item& b) { return a.middle[axis] < b.middle[axis]; });
            if (!(high->middle[axis] - low->middle[axis] > extent)) continue;
            extent = high->middle[axis] - low->middle[axis];
            widest = axis;
        }
        const std::size_t runs = (items.size() + kTogether - 1) / kTogether;
        const std::size_t half = std::bit_ceil(runs) / 2 * kTogether;
        std::nth_element(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(half), items.end(),
                         [widest](const Item& a, const Item& b) {
                             return a.middle[widest] != b.middle[widest] ? a.middle[widest] < b.middle[widest]
                                                                         : a.number < b.number;
                         });
        sort_by_halves(items.first(half));
        items = items.subspan(half);
    }
    // What nth_element() leaves inside of a run is not told by the standard.
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.number < b.number; });
}

SplatFacts facts_of(const TraceTriangle& t, const MeshMaterial& material) {
    const Vec3d a = vec_cast<double>(t.a), b = vec_cast<double>(t.b), c = vec_cast<double>(t.c);
    const Vec3d normal = cross(b - a, c - a);
    const bool has_area = dot(normal, normal) > 0;
    return {0, has_area ? pack_normal(normal) : pack_normal({0, 0, 1}),
            static_cast<std::uint16_t>(material.reflectance * 65535.0f + 0.5f),
            MeshPrimitives::kRecordedRange_m, 0};
}

/// The name of a triangle: a hash of its corners in the world and of what it says, whichever corner comes
/// first. Never 0. Ids are written to files: the formula must not change.
std::uint64_t triangle_id(const MeshTile& tile, const std::array<MeshVertex, 3>& corners,
                          const TriangleFacts& facts) {
    std::array<LatticePoint, 3> at;
    for (std::size_t i = 0; i < 3; ++i) at[i] = tile.world(corners[i]);
    std::rotate(at.begin(), std::min_element(at.begin(), at.end()), at.end());
    std::uint64_t id =
        std::uint64_t{facts.normal} | std::uint64_t{facts.label} << 32 | std::uint64_t{facts.intensity} << 48;
    for (const LatticePoint& p : at)
        id = rng::mix(id + static_cast<std::uint64_t>(p.x) * kIdX + static_cast<std::uint64_t>(p.y) * kIdY +
                      static_cast<std::uint64_t>(p.z) * kIdZ);
    return id != 0 ? id : 1;
}

}  // namespace

MeshPrimitives::MeshPrimitives(const TriangleMesh& mesh) {
    mesh.check("mesh");
    Given given;
    for (std::size_t i = 0; i < mesh.triangles.size(); ++i) {
        const auto& [a, b, c] = mesh.triangles[i];
        given.triangles.push_back(
            {mesh.vertices[a], mesh.vertices[b], mesh.vertices[c], mesh.material(i).label});
        given.facts.push_back(facts_of(given.triangles.back(), mesh.material(i)));
    }
    take(given);
}

MeshPrimitives::MeshPrimitives(const MeshTile& tile) {
    const auto place = [](const MeshVertex& v) {
        constexpr float kStep = 1.0f / 8192.0f;  // exact: a 24-bit integer times a power of two
        return Vec3f{static_cast<float>(v.x) * kStep, static_cast<float>(v.y) * kStep,
                     static_cast<float>(v.z) * kStep};
    };
    Given given;
    for (std::size_t i = 0; i < tile.triangle_count(); ++i) {
        const auto corners = tile.corners(i);
        const TriangleFacts facts_here = citysplat::facts_of(corners);
        given.triangles.push_back(
            {place(corners[0]), place(corners[1]), place(corners[2]), facts_here.label});
        given.facts.push_back({triangle_id(tile, corners, facts_here), facts_here.normal,
                               facts_here.intensity, facts_here.range, facts_here.incidence});
    }
    take(given);
}

void MeshPrimitives::take(const Given& given) {
    box = kEmptyBox;
    std::vector<Item> order;
    order.reserve(given.triangles.size());
    for (std::uint32_t i = 0; i < given.triangles.size(); ++i) {
        const TraceTriangle& t = given.triangles[i];
        for (const Vec3f corner : {t.a, t.b, t.c}) box.grow(vec_cast<double>(corner));
        order.push_back(item_of(t, i));
    }
    sort_by_halves(order);
    triangles.reserve(order.size());
    facts.reserve(order.size());
    for (const Item& item : order) {
        triangles.push_back(given.triangles[item.number]);
        facts.push_back(given.facts[item.number]);
    }
}

}  // namespace citysplat::trace
