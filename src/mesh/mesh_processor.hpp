#pragma once

#include "mesh/mesh_params.hpp"
#include "mesh/tsdf_field.hpp"
#include "model/class_map.hpp"
#include "tiling/tile_processor.hpp"

namespace citysplat::mesh {

/// Makes the mesh of a tile from its points, those of moving classes left out. One halo suffices for every
/// tile, so that each is certified at once.
class MeshProcessor final : public tiling::TileProcessor {
  public:
    /// Throws ConfigError when a parameter is out of range.
    MeshProcessor(const MeshParams& params, ClassMap classes);

    std::vector<ProductKind> kinds() const override { return {ProductKind::mesh}; }
    /// A mesh has no city-wide means: there is nothing to measure.
    tiling::Calibration calibrate(const tiling::RegionReader&, const CancelToken&, Progress&) const override {
        return {};
    }
    void set_calibration(const tiling::Calibration&) override {}
    Hash128 parameters_key() const override;
    std::int64_t initial_halo_steps() const override;
    std::size_t estimated_bytes(std::uint64_t points) const override;
    tiling::TileOutput process(tiling::Region region, const CancelToken& cancel) const override;

    std::int64_t reach_steps() const override { return initial_halo_steps(); }

    const MeshParams& params() const { return params_; }

  private:
    MeshParams params_;
    TsdfField field_;
    ClassMap classes_;
};

}  // namespace citysplat::mesh
