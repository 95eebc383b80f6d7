#pragma once

#include "mesh/corner_field.hpp"
#include "tiling/tile_processor.hpp"

#include <vector>

namespace citysplat::bench {

/// IMLS with which Roldão et al. (2019) compare: at a corner x the mean of n·(x − p) over the points p within
/// `radius_m`, weighted by e^(−|x − p|²/h²), with normals from the nearest points of each point. Not
/// mesh::ImlsField, whose parameters and normals are those of another paper. For one region.
class PaperImls final : public mesh::CornerField {
  public:
    struct Params {
        double radius_m = 1, h_m = 1.0 / 3;  ///< ω·k_max, and a third of it
        std::size_t neighbours = 10;         ///< N_min
    };
    /// Takes the points of a region that make_mesh() will be given as well.
    PaperImls(const tiling::Region& region, std::int64_t voxel_steps, const Params& params);

    std::unique_ptr<Worker> make_worker(const mesh::VoxelPoints& points,
                                        const CancelToken& cancel) const override;
    int reach_voxels() const override { return reach_; }

  private:
    Params params_;
    int reach_;
    std::vector<Vec3d> normals_;  ///< in the order of VoxelPoints; zero: none
};

}  // namespace citysplat::bench
