#pragma once

#include "mesh/corner_field.hpp"
#include "mesh/mesh_params.hpp"

namespace citysplat::mesh {

/// The adaptive TSDF of the paper (MeshParams). For a corner v, of the neighbourhoods H^1(v), H^2(v), …: the
/// first that has enough points (eq. 1), and in whose plane v lies where points are to be expected (eq. 3).
/// The value is the distance of v from that plane (eq. 4), positive on the side from which it was seen
/// (eq. 2, asked of the sight lines of the neighbourhood's points).
///
/// Where sight lines come from both sides, the points of each side are taken for themselves, with all
/// conditions, and the corner has a value for each side that qualifies.
class TsdfField final : public CornerField {
  public:
    /// Requires valid parameters.
    explicit TsdfField(const MeshParams& params);

    std::unique_ptr<Worker> make_worker(const VoxelPoints& points, const CancelToken& cancel) const override;
    int reach_voxels() const override { return params_.most_level; }

  private:
    MeshParams params_;
};

}  // namespace citysplat::mesh
