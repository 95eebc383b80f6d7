#pragma once

#include "mesh/corner_field.hpp"
#include "model/triangle_mesh.hpp"
#include "splat/params/splat_params.hpp"
#include "tiling/tile_processor.hpp"
#include "trace/tracer.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace citysplat::bench {

/// A model of a drive, made as one tile in memory, that rays can be cast at: splats as a tile of a city,
/// triangles as a part that stands.
class TracedModel {
  public:
    /// Throws InputError when the drive does not fit one tile.
    static TracedModel of_splats(const tiling::RegionReader& drive, const splat::SplatParams& params);
    static TracedModel of_mesh(const tiling::RegionReader& drive, std::int64_t voxel_steps,
                               const mesh::CornerField& field);
    /// `origin_m`: where the frame of the mesh is in the world.
    static TracedModel of_triangles(const TriangleMesh& mesh, Vec3d origin_m);

    /// Puts the first hits of the rays into `hits`, in parallel.
    void cast(std::span<const trace::Ray> rays, std::vector<trace::Hit>& hits) const;

    std::uint64_t primitives = 0;
    double made_cpu_s = 0;  ///< without what tracing needs

  private:
    TracedModel();

    std::unique_ptr<trace::Tracer> tracer_;
    std::vector<trace::TracerTilePtr> tiles_;
    trace::TileSetPtr set_;
    std::unique_ptr<trace::PoseKey> place_;
    std::vector<trace::Part> parts_;
};

}  // namespace citysplat::bench
