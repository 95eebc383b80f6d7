#pragma once

#include "trace/mesh_primitives.hpp"
#include "trace/tracer.hpp"

#include <span>

/// Parts by brute force: every ray that passes the box of a part against every primitive in it. This is the
/// definition of a hit on a part; the reference tracer uses it.
namespace citysplat::trace {

/// The primitives of a shape: discs or triangles.
struct ShapeView {
    std::span<const TraceDisc> discs;
    std::span<const TraceTriangle> triangles;
    const SplatFacts* facts;
    Box3d box;  ///< in the frame of the shape, large enough for every hit
};

/// A shape of the reference tracer.
class ReferenceShape : public TracerTile {
  public:
    virtual ShapeView shape() const = 0;
};

/// A mesh as such a shape.
class ReferenceMesh final : public ReferenceShape {
  public:
    explicit ReferenceMesh(const TriangleMesh& mesh) : primitives_(mesh) {}
    explicit ReferenceMesh(const MeshTile& tile) : primitives_(tile), origin_(tile.frame().origin_m()) {}
    std::size_t bytes() const override {
        return primitives_.triangles.size() * (sizeof(TraceTriangle) + sizeof(SplatFacts));
    }
    ShapeView shape() const override;
    Vec3d origin() const { return origin_; }  ///< in the world, of a tile
    bool empty() const { return primitives_.triangles.empty(); }

  private:
    MeshPrimitives primitives_;
    Vec3d origin_{0, 0, 0};
};

/// See Tracer. The shapes of the parts are ReferenceShapes.
void closest_on_parts(std::span<const Part> parts, std::span<const Ray> rays, std::span<Hit> hits);
void nearest_on_parts(std::span<const Part> parts, std::span<const Ray> rays, std::uint32_t depth,
                      float gap_m, std::span<HitList> lists);

/// Puts a hit in its place among the first `depth`; what is more than `reach_m` behind the first goes.
void put_in_order(const Hit& hit, std::uint32_t depth, float reach_m, HitList& list);

}  // namespace citysplat::trace
