#include "trace/mesh_primitives.hpp"

#include "model/splat_hd.hpp"

#include <algorithm>
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

}  // namespace

MeshPrimitives::MeshPrimitives(const TriangleMesh& mesh) {
    mesh.check("mesh");
    std::vector<TraceTriangle> given;
    given.reserve(mesh.triangles.size());
    box = kEmptyBox;
    for (std::size_t i = 0; i < mesh.triangles.size(); ++i) {
        const auto& [a, b, c] = mesh.triangles[i];
        given.push_back({mesh.vertices[a], mesh.vertices[b], mesh.vertices[c], mesh.material(i).label});
        for (const std::uint32_t v : {a, b, c}) box.grow(vec_cast<double>(mesh.vertices[v]));
    }
    std::vector<Item> order;
    order.reserve(given.size());
    for (std::uint32_t i = 0; i < given.size(); ++i) order.push_back(item_of(given[i], i));
    sort_by_halves(order);
    triangles.reserve(given.size());
    facts.reserve(given.size());
    for (const Item& item : order) {
        triangles.push_back(given[item.number]);
        facts.push_back(facts_of(given[item.number], mesh.material(item.number)));
    }
}

}  // namespace citysplat::trace
