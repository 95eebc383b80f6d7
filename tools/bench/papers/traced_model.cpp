#include "bench/papers/traced_model.hpp"

#include "bench/bench_clock.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "mesh/mesh_generation.hpp"
#include "model/class_map.hpp"
#include "splat/splat_processor.hpp"

#include <map>

namespace citysplat::bench {

namespace {

/// With one material for each class.
TriangleMesh triangles_of(const MeshTile& tile) {
    TriangleMesh mesh;
    std::map<std::uint16_t, std::uint16_t> material_of;
    for (std::size_t i = 0; i < tile.vertex_count(); ++i)
        mesh.vertices.push_back(vec_cast<float>(tile.world_m(tile.vertex(i)) - tile.frame().origin_m()));
    for (std::size_t i = 0; i < tile.triangle_count(); ++i) {
        const std::uint16_t label = facts_of(tile.corners(i)).label;
        const auto [entry, is_new] =
            material_of.try_emplace(label, static_cast<std::uint16_t>(mesh.materials.size()));
        if (is_new) mesh.materials.push_back({.name = "class", .label = label});
        mesh.material_of.push_back(entry->second);
        mesh.triangles.push_back(tile.triangle(i));
    }
    return mesh;
}

SplatTile make_splats(const tiling::RegionReader& drive, const splat::SplatParams& params) {
    splat::SplatProcessor processor(params, ClassMap::load("synthetic"));
    Progress quiet;
    processor.set_calibration(processor.calibrate(drive, CancelToken(), quiet));
    auto out = processor.process(drive.read(drive.bounds(), processor.initial_halo_steps()), CancelToken());
    if (!out.certified()) throw InputError("the drive does not fit one tile");
    return std::move(out.splats);
}

}  // namespace

TracedModel::TracedModel() : tracer_(trace::make_group_tracer()) {}

TracedModel TracedModel::of_splats(const tiling::RegionReader& drive, const splat::SplatParams& params) {
    TracedModel model;
    SplatTile tile;
    model.made_cpu_s = measure([&] { tile = make_splats(drive, params); }).cpu_s;
    model.primitives = tile.size();
    model.tiles_.push_back(model.tracer_->load(tile));
    model.set_ = model.tracer_->bind(model.tiles_);
    return model;
}

TracedModel TracedModel::of_mesh(const tiling::RegionReader& drive, std::int64_t voxel_steps,
                                 const mesh::CornerField& field) {
    MeshTile tile;
    const double made_cpu_s =
        measure([&] {
            const ClassMap classes = ClassMap::load("synthetic");
            const std::int64_t halo = mesh::reach_steps(voxel_steps, field);
            tiling::Region region = drive.read(drive.bounds().widened(halo), halo);
            std::erase_if(region.points, [&](const TilePoint& p) { return classes.at(p.label).dynamic; });
            tile = mesh::make_mesh(std::move(region), voxel_steps, field, CancelToken());
        }).cpu_s;
    if (tile.empty()) throw InputError("the mesh has no triangle");
    TracedModel model = of_triangles(triangles_of(tile), tile.frame().origin_m());
    model.made_cpu_s = made_cpu_s;
    return model;
}

TracedModel TracedModel::of_triangles(const TriangleMesh& mesh, Vec3d origin_m) {
    TracedModel model;
    model.primitives = mesh.triangles.size();
    model.tiles_.push_back(model.tracer_->load(mesh));
    model.set_ = model.tracer_->bind({});
    model.place_ = std::make_unique<trace::PoseKey>(trace::PoseKey{{1, 0, 0, 0, 1, 0, 0, 0, 1}, origin_m});
    trace::Part part;
    part.shape = model.tiles_[0].get();
    part.motion.keys = model.place_.get();
    part.facts = {.id = trace::kFirstPart, .label = 0, .instance = 1};
    model.parts_.push_back(part);
    return model;
}

void TracedModel::cast(std::span<const trace::Ray> rays, std::vector<trace::Hit>& hits) const {
    constexpr std::size_t kBatch = 4096;
    hits.assign(rays.size(), {});
    for_each_chunk(rays.size(), kBatch, CancelToken(), [&](std::size_t begin, std::size_t end) {
        tracer_->closest({*set_, parts_}, rays.subspan(begin, end - begin),
                         std::span(hits).subspan(begin, end - begin));
    });
}

}  // namespace citysplat::bench
