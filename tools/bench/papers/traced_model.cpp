#include "bench/papers/traced_model.hpp"

#include "bench/bench_clock.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "mesh/mesh_generation.hpp"
#include "splat/splat_processor.hpp"

namespace citysplat::bench {

namespace {

SplatTile make_splats(const PaperDrive& drive, const splat::SplatParams& params) {
    splat::SplatProcessor processor(params, drive.classes);
    Progress quiet;
    processor.set_calibration(processor.calibrate(drive.store, CancelToken(), quiet));
    auto out = processor.process(drive.store.read(drive.store.bounds(), processor.initial_halo_steps()),
                                 CancelToken());
    if (!out.certified()) throw InputError("the drive does not fit one tile");
    return std::move(out.splats);
}

MeshTile make_mesh(const PaperDrive& drive, std::int64_t voxel_steps, const mesh::CornerField& field) {
    const std::int64_t halo = mesh::reach_steps(voxel_steps, field);
    tiling::Region region = drive.store.read(drive.store.bounds().widened(halo), halo);
    std::erase_if(region.points, [&](const TilePoint& p) { return drive.classes.at(p.label).dynamic; });
    return mesh::make_mesh(std::move(region), voxel_steps, field, CancelToken());
}

}  // namespace

TracedModel::TracedModel() : tracer_(trace::make_group_tracer()) {}

TracedModel TracedModel::of_splats(const PaperDrive& drive, const splat::SplatParams& params) {
    TracedModel model;
    SplatTile tile;
    model.made_cpu_s = measure([&] { tile = make_splats(drive, params); }).cpu_s;
    model.primitives = tile.size();
    model.tiles_.push_back(model.tracer_->load(tile));
    model.set_ = model.tracer_->bind(model.tiles_);
    return model;
}

TracedModel TracedModel::of_mesh(const PaperDrive& drive, std::int64_t voxel_steps,
                                 const mesh::CornerField& field) {
    TracedModel model;
    MeshTile tile;
    model.made_cpu_s = measure([&] { tile = make_mesh(drive, voxel_steps, field); }).cpu_s;
    if (tile.empty()) throw InputError("the mesh has no triangle");
    model.primitives = tile.triangle_count();
    model.tiles_.push_back(model.tracer_->load(tile));
    model.set_ = model.tracer_->bind(model.tiles_);
    return model;
}

TracedModel TracedModel::of_poisson(const PaperDrive& drive, const PoissonOptions& options) {
    SplatTile surfels;
    const double prepared_cpu_s =
        measure([&] { surfels = make_splats(drive, splat::SplatParams::of(splat::Method::surfels)); }).cpu_s;
    const PoissonMesh made = reconstruct(surfels, options);
    if (!made.missing.empty()) throw InputError(made.missing);
    TracedModel model;
    model.made_cpu_s = prepared_cpu_s + made.cpu_s;
    model.primitives = made.mesh.triangles.size();
    model.stand(made.mesh, made.origin_m);
    return model;
}

void TracedModel::stand(const TriangleMesh& mesh, Vec3d origin_m) {
    tiles_.push_back(tracer_->load(mesh));
    set_ = tracer_->bind({});
    place_ = std::make_unique<trace::PoseKey>(trace::PoseKey{{1, 0, 0, 0, 1, 0, 0, 0, 1}, origin_m});
    trace::Part part;
    part.shape = tiles_[0].get();
    part.motion.keys = place_.get();
    part.facts = {.id = trace::kFirstPart, .label = 0, .instance = 1};
    parts_.push_back(part);
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
