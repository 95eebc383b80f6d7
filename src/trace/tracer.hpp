#pragma once

#include "model/mesh_tile.hpp"
#include "model/splat_tile.hpp"
#include "model/triangle_mesh.hpp"
#include "trace/hit_hd.hpp"
#include "trace/part.hpp"
#include "trace/ray_disc_hd.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// The one contract between those who cast rays and those who find what they meet. Groups of rays implement
/// it on the CPU, OptiX on the GPU, and Embree as the reference that both are held against. What a ray hits
/// is defined by ray_disc_hd.hpp and the order in hit_hd.hpp alone: the ray starts at lattice_origin() and
/// meets each disc as meets() says; of all hits the first in order wins. Which tiles the discs are in changes
/// nothing. Parts (trace/part.hpp) are met in their own frames, their triangles as ray_triangle_hd.hpp says.
namespace citysplat::trace {

/// A tile made ready for tracing by a Tracer. Immutable; evicted when the last owner lets go.
class TracerTile {
  public:
    virtual ~TracerTile() = default;
    virtual std::size_t bytes() const = 0;  ///< splats, discs and acceleration structure
};
using TracerTilePtr = std::shared_ptr<const TracerTile>;

/// Tiles bound together so that rays can meet them; keeps them resident. Immutable.
class TileSet {
  public:
    virtual ~TileSet() = default;
};
using TileSetPtr = std::shared_ptr<const TileSet>;

/// Every member may be called from several threads at once.
class Tracer {
  public:
    virtual ~Tracer() = default;
    virtual std::string name() const = 0;

    /// Builds what tracing needs. Throws CorruptionError when a splat is not finite, ResourceError when
    /// memory runs out.
    virtual TracerTilePtr load(const SplatTile& tile) const = 0;
    /// The shape of a part. Throws InputError when the mesh does not pass its check(), ResourceError when
    /// memory runs out.
    virtual TracerTilePtr load(const TriangleMesh& mesh) const = 0;
    /// A tile of a city that is a mesh. Throws UnavailableError when the tracer knows none, CorruptionError
    /// when a triangle has a corner that is not there.
    virtual TracerTilePtr load(const MeshTile& tile) const;
    /// What load() would keep, without loading; never less than TracerTile::bytes().
    virtual std::size_t estimated_bytes(std::uint64_t splats) const = 0;
    virtual std::size_t estimated_mesh_bytes(std::uint64_t triangles) const;
    /// Requires different tiles of this tracer, of a city of splats or of meshes.
    virtual TileSetPtr bind(std::span<const TracerTilePtr> tiles) const = 0;

    /// Memory of all live tiles of this tracer, the acceleration structures' own books included.
    virtual std::size_t resident_bytes() const = 0;

    /// How many rays a call should bring, judging from the first kSampleRays of all there are. Neighbouring
    /// rays should be next to each other; where they are not, a tracer may want more at once.
    virtual std::size_t batch_rays(std::span<const Ray> sample) const = 0;
    static constexpr std::size_t kSampleRays = 512;

    /// Puts the first hit of each ray into `hits`, unless what is there (from other scenes) comes before it.
    /// Start with Hit{}. Throws InputError when a ray is not finite or
    /// longer than the tracer is made for.
    virtual void closest(const Scene& scene, std::span<const Ray> rays, std::span<Hit> hits) const = 0;
    /// Merges the first `depth` hits of each ray into `lists`. Hits farther than (depth − 1)·`gap_m` behind a
    /// ray's first may be left out: they cannot belong to its surface. Start with HitList{}.
    virtual void nearest(const Scene& scene, std::span<const Ray> rays, std::uint32_t depth, float gap_m,
                         std::span<HitList> lists) const = 0;
};

/// The tracer of the CPU. Each result is the same on every machine.
struct GroupOptions {
    std::string instruction_set;      ///< "": the best; the others are for comparison
    float max_range_m = kMaxRange_m;  ///< of rays; shorter ones can do with smaller boxes
};
/// Throws UnavailableError when the instruction set is not one of group_instruction_sets().
std::unique_ptr<Tracer> make_group_tracer(const GroupOptions& options = {});
/// What this machine can run, best first: some of "avx512", "avx2", "sse4", "neon", "scalar".
std::vector<std::string> group_instruction_sets();

/// The reference: another traversal by other people. Tests, benches and `selftest` use it, nothing else.
struct EmbreeOptions {
    std::string isa;   ///< "", or the widest instruction set Embree may use: "sse4.2", "avx2", …
    bool simd = true;  ///< false: the scalar disc test, for comparison
    unsigned splats_per_leaf = 1;     ///< consecutive splats under one box of the hierarchy
    float max_range_m = kMaxRange_m;  ///< of rays; shorter ones can do with smaller boxes
};
std::unique_ptr<Tracer> make_embree_tracer(const EmbreeOptions& options = {});

}  // namespace citysplat::trace
