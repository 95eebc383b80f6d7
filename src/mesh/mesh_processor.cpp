#include "mesh/mesh_processor.hpp"

#include "mesh/mesh_generation.hpp"

#include <utility>

namespace citysplat::mesh {

namespace {

/// Raised whenever the same points and parameters give other triangles than before.
constexpr std::uint32_t kAlgorithmVersion = 1;

const MeshParams& valid(const MeshParams& params) {
    params.validate();
    return params;
}

}  // namespace

MeshProcessor::MeshProcessor(const MeshParams& params, ClassMap classes)
    : params_(valid(params)), field_(params_), classes_(std::move(classes)) {}

Hash128 MeshProcessor::parameters_key() const {
    Hasher hasher;
    hasher.text("adaptive tsdf").number(kAlgorithmVersion);
    params_.add_to(hasher);
    classes_.add_to(hasher);
    return hasher.finish();
}

std::int64_t MeshProcessor::initial_halo_steps() const {
    return mesh::reach_steps(params_.voxel_steps(), field_);
}

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
    output.mesh = make_mesh(std::move(region), params_.voxel_steps(), field_, cancel);
    return output;
}

}  // namespace citysplat::mesh
