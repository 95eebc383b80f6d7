#pragma once

#include "mesh/corner_field.hpp"
#include "mesh/imls_field.hpp"
#include "mesh/mesh_params.hpp"
#include "model/class_map.hpp"
#include "tiling/tile_processor.hpp"

#include <memory>

namespace citysplat::mesh {

/// Makes the mesh of a tile from its points, those of moving classes left out. One halo suffices for every
/// tile, so that each is certified at once.
class MeshProcessor final : public tiling::TileProcessor {
  public:
    /// By the adaptive TSDF (ProductKind::mesh). Throws ConfigError when a parameter is out of range.
    MeshProcessor(const MeshParams& params, ClassMap classes);
    /// By IMLS (ProductKind::imls). Throws the same.
    MeshProcessor(const ImlsParams& params, ClassMap classes);

    std::vector<ProductKind> kinds() const override { return {kind_}; }
    /// A mesh has no city-wide means: there is nothing to measure.
    tiling::Calibration calibrate(const tiling::RegionReader&, const CancelToken&, Progress&) const override {
        return {};
    }
    void set_calibration(const tiling::Calibration&) override {}
    Hash128 parameters_key() const override { return key_; }
    std::int64_t initial_halo_steps() const override;
    std::size_t estimated_bytes(std::uint64_t points) const override;
    tiling::TileOutput process(tiling::Region region, const CancelToken& cancel) const override;

    std::int64_t reach_steps() const override { return initial_halo_steps(); }

  private:
    ProductKind kind_;
    std::unique_ptr<const CornerField> field_;
    std::int64_t voxel_steps_;
    ClassMap classes_;
    Hash128 key_;
};

}  // namespace citysplat::mesh
