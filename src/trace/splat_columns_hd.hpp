#pragma once

#include "core/math/lattice.hpp"
#include "model/splat_hd.hpp"
#include "model/splat_id_hd.hpp"
#include "trace/tile_view_hd.hpp"

#include <cstdint>

/// From the columns of a splat tile, as they lie on disk, to what tracers keep.
namespace citysplat::trace {

/// The columns of a tile (model/splat_tile.hpp), in the memory of the CPU or of a device.
struct SplatColumns {
    const std::uint32_t *x, *y, *z, *normal;
    const std::uint16_t *radius, *label, *intensity;
    const std::uint8_t* incidence;
    LatticePoint origin;  ///< of the tile's frame
};

CITYSPLAT_HD inline Disc disc_of(const SplatColumns& columns, std::uint32_t i) {
    return unpack_disc(columns.x[i], columns.y[i], columns.z[i], columns.normal[i], columns.radius[i]);
}

CITYSPLAT_HD inline SplatFacts facts_of(const SplatColumns& columns, std::uint32_t i) {
    const SplatIdentity identity{columns.origin.x + unpack_position(columns.x[i]),
                                 columns.origin.y + unpack_position(columns.y[i]),
                                 columns.origin.z + unpack_position(columns.z[i]),
                                 columns.normal[i],
                                 columns.radius[i],
                                 columns.label[i],
                                 columns.intensity[i],
                                 unpack_attribute(columns.z[i]),
                                 columns.incidence[i]};
    return {splat_id(identity), identity.normal, identity.intensity, identity.range, identity.incidence};
}

}  // namespace citysplat::trace
