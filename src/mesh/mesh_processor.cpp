#include "mesh/mesh_processor.hpp"

#include "mesh/mesh_generation.hpp"
#include "mesh/tsdf_field.hpp"

#include <utility>

namespace citysplat::mesh {

namespace {

/// Raised whenever the same points and parameters give other triangles than before.
constexpr std::uint32_t kAlgorithmVersion = 1;
constexpr std::uint32_t kImlsVersion = 1;

template <class Field, class Params>
std::unique_ptr<const CornerField> field_of(const Params& params) {
    params.validate();
    return std::make_unique<Field>(params);
}

template <class Params>
Hash128 key_of(const char* method, std::uint32_t version, const Params& params, const ClassMap& classes) {
    Hasher hasher;
    hasher.text(method).number(version);
    params.add_to(hasher);
    classes.add_to(hasher);
    return hasher.finish();
}

}  // namespace

MeshProcessor::MeshProcessor(const MeshParams& params, ClassMap classes)
    : kind_(ProductKind::mesh),
      field_(field_of<TsdfField>(params)),
      voxel_steps_(params.voxel_steps()),
      classes_(std::move(classes)),
      key_(key_of("adaptive tsdf", kAlgorithmVersion, params, classes_)) {}

MeshProcessor::MeshProcessor(const ImlsParams& params, ClassMap classes)
    : kind_(ProductKind::imls),
      field_(field_of<ImlsField>(params)),
      voxel_steps_(params.voxel_steps()),
      classes_(std::move(classes)),
      key_(key_of("imls", kImlsVersion, params, classes_)) {}

std::int64_t MeshProcessor::initial_halo_steps() const { return mesh::reach_steps(voxel_steps_, *field_); }

std::size_t MeshProcessor::estimated_bytes(std::uint64_t points) const {
    // Bytes a point: the region 28 and the same by voxel 24, keys and their sorting 32, the voxel itself 16
    // where each point has its own. Triangles (12 and half a vertex of 24, twice while pieces are joined, and
    // the index that joins them) come after the points. Measured on a tile of 3 M points of a street: 120 at
    // voxels of 0.1 and 0.2 m, 160 at 0.05 m, 235 at 0.03 m with two triangles a point.
    constexpr std::size_t kBytesPerPoint = 240, kBuffers = 24u << 20;
    return static_cast<std::size_t>(points) * kBytesPerPoint + kBuffers;
}

tiling::TileOutput MeshProcessor::process(tiling::Region region, const CancelToken& cancel) const {
    std::erase_if(region.points, [this](const TilePoint& p) { return classes_.at(p.label).dynamic; });
    tiling::TileOutput output;
    output.mesh = make_mesh(std::move(region), voxel_steps_, *field_, cancel);
    return output;
}

}  // namespace citysplat::mesh
