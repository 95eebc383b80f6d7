#include "trace/tracer.hpp"

#include "core/error.hpp"

namespace citysplat::trace {

TracerTilePtr Tracer::load(const MeshTile&) const {
    throw UnavailableError(name() + " knows no meshes of cities; use --backend cpu");
}

std::size_t Tracer::estimated_mesh_bytes(std::uint64_t) const { return 0; }

}  // namespace citysplat::trace
