#pragma once

#include "bench/papers/paper_drive.hpp"
#include "bench/papers/poisson.hpp"
#include "mesh/corner_field.hpp"
#include "splat/params/splat_params.hpp"
#include "trace/tracer.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace citysplat::bench {

/// A model of a drive, made as one tile in memory, that rays can be cast at: splats and meshes as a tile of a
/// city, triangles of others as a part that stands.
class TracedModel {
  public:
    /// Throws InputError when the drive does not fit one tile.
    static TracedModel of_splats(const PaperDrive& drive, const splat::SplatParams& params);
    static TracedModel of_mesh(const PaperDrive& drive, std::int64_t voxel_steps,
                               const mesh::CornerField& field);
    /// Of the centres of surfels. Throws InputError that says why there is no mesh.
    static TracedModel of_poisson(const PaperDrive& drive, const PoissonOptions& options);

    /// Puts the first hits of the rays into `hits`, in parallel.
    void cast(std::span<const trace::Ray> rays, std::vector<trace::Hit>& hits) const;

    std::uint64_t primitives = 0;
    double made_cpu_s = 0;  ///< without what tracing needs

  private:
    TracedModel();
    /// `origin_m`: where the frame of the mesh is in the world.
    void stand(const TriangleMesh& mesh, Vec3d origin_m);

    std::unique_ptr<trace::Tracer> tracer_;
    std::vector<trace::TracerTilePtr> tiles_;
    trace::TileSetPtr set_;
    std::unique_ptr<trace::PoseKey> place_;
    std::vector<trace::Part> parts_;
};

}  // namespace citysplat::bench
