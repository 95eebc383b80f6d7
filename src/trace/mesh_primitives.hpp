#pragma once

#include "core/math/box.hpp"
#include "model/mesh_tile.hpp"
#include "model/triangle_mesh.hpp"
#include "trace/ray_triangle_hd.hpp"
#include "trace/tile_view_hd.hpp"

#include <vector>

namespace citysplat::trace {

/// The triangles of a mesh as tracers keep them, neighbours next to each other. Their order is a function of
/// the mesh alone: the place of a triangle in it is part of the ids of hits.
///
/// A triangle says about itself what a splat would that was recorded from 10 m away, head-on, with the part
/// of the full scale that the material's reflectance is: the sensor's law of intensity then treats both
/// alike.
struct MeshPrimitives {
    std::vector<TraceTriangle> triangles;
    std::vector<SplatFacts> facts;
    Box3d box;  ///< around all of them

    static constexpr std::uint8_t kRecordedRange_m = 10;

    /// Throws InputError when the mesh does not pass its check().
    explicit MeshPrimitives(const TriangleMesh& mesh);
    /// In the frame of the tile; may be none. Here a triangle says what its vertices do, and has an id that
    /// is a hash of what it is, the same in every tiling of the city.
    explicit MeshPrimitives(const MeshTile& tile);

  private:
    struct Given {
        std::vector<TraceTriangle> triangles;
        std::vector<SplatFacts> facts;
    };
    void take(const Given& given);
};

}  // namespace citysplat::trace
