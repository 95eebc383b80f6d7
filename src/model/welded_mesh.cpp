#include "model/welded_mesh.hpp"

#include "core/math/rng_hd.hpp"

#include <limits>
#include <stdexcept>

namespace citysplat {

std::size_t WeldedMesh::NameHash::operator()(const Name& name) const {
    std::uint64_t h = rng::mix(static_cast<std::uint64_t>(name.at.x) + name.normal);
    h = rng::mix(h + static_cast<std::uint64_t>(name.at.y));
    return rng::mix(h + static_cast<std::uint64_t>(name.at.z));
}

void WeldedMesh::add(const MeshTile& tile) {
    constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
    if (vertices_.size() + tile.vertex_count() >= kNone)
        throw std::length_error("a mesh has more vertices than numbers of 32 bits can name");
    std::vector<std::uint32_t> number(tile.vertex_count(), kNone);
    triangles_.reserve(triangles_.size() + tile.triangle_count());
    for (std::size_t t = 0; t < tile.triangle_count(); ++t) {
        MeshTriangle triangle = tile.triangle(t);
        for (std::uint32_t& corner : triangle) {
            std::uint32_t& known = number[corner];
            if (known == kNone) {
                const MeshVertex facts = tile.vertex(corner);
                const LatticePoint at = tile.world(facts);
                const auto next = static_cast<std::uint32_t>(vertices_.size());
                const auto [place, is_new] = number_of_.try_emplace({at, facts.normal}, next);
                if (is_new) vertices_.push_back({at, facts});
                known = place->second;
            }
            corner = known;
        }
        triangles_.push_back(triangle);
    }
}

}  // namespace citysplat
