#include "io/write/export_mesh.hpp"

#include "core/output_file.hpp"
#include "io/write/cloud_header.hpp"
#include "model/assembled/welded_mesh.hpp"
#include "model/splat_hd.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace citysplat::io {

namespace {

struct WorldVertex {
    Vec3d place;
    Vec3f normal;
    MeshVertex facts;
};

constexpr auto kFields = field_table<WorldVertex>(
    FieldOf{"x", "m", "", [](const WorldVertex& v) { return v.place.x; }},
    FieldOf{"y", "m", "", [](const WorldVertex& v) { return v.place.y; }},
    FieldOf{"z", "m", "", [](const WorldVertex& v) { return v.place.z; }},
    FieldOf{"nx", "", "normal", [](const WorldVertex& v) { return v.normal.x; }},
    FieldOf{"ny", "", "", [](const WorldVertex& v) { return v.normal.y; }},
    FieldOf{"nz", "", "", [](const WorldVertex& v) { return v.normal.z; }},
    FieldOf{"label", "", "semantic class", [](const WorldVertex& v) { return v.facts.label; }},
    FieldOf{"intensity", "", "", [](const WorldVertex& v) { return v.facts.intensity; }});

std::string header_of(const WeldedMesh& mesh) {
    const std::string comment = "citysplat mesh";
    std::string header = ply_header(kFields.fields(), mesh.vertices().size(), std::span(&comment, 1));
    header.insert(header.rfind("end_header"), "element face " + std::to_string(mesh.triangles().size()) +
                                                  "\nproperty list uchar uint vertex_indices\n");
    return header;
}

/// How many records are made before they are written.
constexpr std::size_t kRecordsAtOnce = 1 << 16;

/// Calls put(at, item) for all items and writes what it puts: `bytes` each.
template <class Items, class Put>
void write_records(FileWriter& out, const Items& items, std::size_t bytes, const CancelToken& cancel,
                   const Put& put_item) {
    std::vector<std::byte> records;
    for (std::size_t first = 0; first < items.size(); first += kRecordsAtOnce) {
        cancel.check();
        const std::size_t count = std::min(kRecordsAtOnce, items.size() - first);
        records.resize(count * bytes);
        std::byte* at = records.data();
        for (std::size_t i = first; i < first + count; ++i) put_item(at, items[i]);
        out.write(records);
    }
}

}  // namespace

ExportedMesh export_mesh_ply(const TileSource& city, const std::filesystem::path& path,
                             const CancelToken& cancel, Progress& progress) {
    OutputFile file(path);
    WeldedMesh mesh;
    {
        Progress::Stage stage(progress, "export", city.tiles().size(), "tiles");
        for (std::size_t t = 0; t < city.tiles().size(); ++t) {
            cancel.check();
            mesh.add(city.load_mesh(t));
            stage.advance(1);
        }
    }
    FileWriter& out = file.writer();
    out.text(header_of(mesh));
    write_records(out, mesh.vertices(), kFields.kBytes, cancel,
                  [](std::byte*& at, const WeldedMesh::Vertex& v) {
                      const Vec3d place{to_metres(v.at.x), to_metres(v.at.y), to_metres(v.at.z)};
                      kFields.put(at, {place, unpack_normal(v.facts.normal), v.facts});
                  });
    write_records(out, mesh.triangles(), 1 + sizeof(MeshTriangle), cancel,
                  [](std::byte*& at, const MeshTriangle& triangle) {
                      put(at, std::uint8_t{3});
                      put(at, triangle);
                  });
    file.commit(true);
    return {mesh.vertices().size(), mesh.triangles().size()};
}

}  // namespace citysplat::io
