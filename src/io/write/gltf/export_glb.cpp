#include "io/write/gltf/export_glb.hpp"

#include "core/output_file.hpp"
#include "io/write/gltf/glb_writer.hpp"

#include <cmath>

namespace citysplat::io {

namespace {

void take_splats(const SplatTile& tile, GlbPart& part) {
    part.clear();
    part.origin_m = tile.frame().origin_m();
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Disc disc = tile.disc(i);
        part.positions.push_back(disc.centre);
        part.normals.push_back(disc.normal);
        part.radius_m.push_back(disc.radius);
    }
    part.intensity.assign(tile.intensity().begin(), tile.intensity().end());
    part.label.assign(tile.label().begin(), tile.label().end());
}

}  // namespace

std::uint64_t export_glb(const TileSource& city, const std::filesystem::path& path, const CancelToken& cancel,
                         Progress& progress) {
    GlbLabel label{.crs = city.crs()};
    if (!city.tiles().empty()) {
        const Vec3d m = city.tiles()[0].min;
        label.origin_m = {std::floor(m.x), std::floor(m.y), std::floor(m.z)};
    }
    OutputFile file(path);
    GlbWriter writer(file.writer(), label, city.tiles().size());
    Progress::Stage stage(progress, "export", city.tiles().size(), "tiles");
    GlbPart part;
    std::uint64_t splats = 0;
    for (std::size_t t = 0; t < city.tiles().size(); ++t) {
        cancel.check();
        take_splats(city.load(t), part);
        part.name = "tile " + city.tiles()[t].key.text();
        splats += part.positions.size();
        writer.add(part);
        stage.advance(1);
    }
    writer.finish();
    file.commit(true);
    return splats;
}

}  // namespace citysplat::io
