#include "io/write/gltf/export_glb.hpp"

#include "core/output_file.hpp"
#include "io/write/gltf/glb_writer.hpp"

#include <cmath>

namespace citysplat::io {

GlbCounts export_glb(const TileSource& city, const std::filesystem::path& path, const CancelToken& cancel,
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
    GlbCounts counts;
    for (std::size_t t = 0; t < city.tiles().size(); ++t) {
        cancel.check();
        if (has_triangles(city.kind()))
            part.take(city.load_mesh(t));
        else
            part.take(city.load(t));
        part.name = "tile " + city.tiles()[t].key.text();
        counts.vertices += part.positions.size();
        counts.triangles += part.triangles.size();
        writer.add(part);
        stage.advance(1);
    }
    writer.finish();
    file.commit(true);
    return counts;
}

}  // namespace citysplat::io
