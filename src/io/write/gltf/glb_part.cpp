#include "io/write/gltf/glb_part.hpp"

#include "model/splat_hd.hpp"

namespace citysplat::io {

void GlbPart::clear() {
    name.clear();
    positions.clear(), normals.clear(), intensity.clear(), label.clear(), radius_m.clear(), triangles.clear();
}

void GlbPart::take(const SplatTile& tile) {
    clear();
    origin_m = tile.frame().origin_m();
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Disc disc = tile.disc(i);
        positions.push_back(disc.centre);
        normals.push_back(disc.normal);
        radius_m.push_back(disc.radius);
    }
    intensity.assign(tile.intensity().begin(), tile.intensity().end());
    label.assign(tile.label().begin(), tile.label().end());
}

void GlbPart::take(const MeshTile& tile) {
    clear();
    if (tile.empty()) return;
    origin_m = tile.frame().origin_m();
    for (std::size_t i = 0; i < tile.vertex_count(); ++i) {
        const MeshVertex v = tile.vertex(i);
        positions.push_back(vec_cast<float>(Vec3d{to_metres(v.x), to_metres(v.y), to_metres(v.z)}));
        normals.push_back(unpack_normal(v.normal));
    }
    intensity.assign(tile.intensity().begin(), tile.intensity().end());
    label.assign(tile.label().begin(), tile.label().end());
    for (std::size_t i = 0; i < tile.triangle_count(); ++i) triangles.push_back(tile.triangle(i));
}

}  // namespace citysplat::io
