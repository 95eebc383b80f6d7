#pragma once

#include "core/disc_bounds_hd.hpp"
#include "core/lattice.hpp"
#include "core/splat_hd.hpp"
#include "core/splat_id_hd.hpp"
#include "cuda/trace_params_hd.hpp"

#include <cstdint>

/// From the columns of a splat tile, as they lie on disk, to what the OptiX programs need.
namespace citysplat::gpu {

/// The columns of a tile in device memory (core/splat_tile.hpp).
struct SplatColumns {
    const std::uint32_t *x, *y, *z, *normal;
    const std::uint16_t *radius, *label, *intensity;
    const std::uint8_t *incidence, *frame;
    LatticePoint origin;  ///< of the tile's frame
};

/// Box of a disc, laid out as OptixAabb.
struct DiscBox {
    float min_x, min_y, min_z, max_x, max_y, max_z;
};
static_assert(sizeof(DiscBox) == 24);

struct DecodedSplats {
    sim::TraceDisc* discs;
    sim::SplatFacts* facts;
    DiscBox* boxes;
};

CITYSPLAT_HD inline DiscBox box_around(const Disc& disc) {
    const Vec3f slack{kBoxSlack_m, kBoxSlack_m, kBoxSlack_m};
    const Vec3f reach = disc_reach(disc.normal, disc.radius) + slack;
    const Vec3f low = disc.centre - reach, high = disc.centre + reach;
    return {low.x, low.y, low.z, high.x, high.y, high.z};
}

CITYSPLAT_HD inline void decode_splat(const SplatColumns& columns, std::uint32_t i,
                                      const DecodedSplats& out) {
    const Disc disc =
        unpack_disc(columns.x[i], columns.y[i], columns.z[i], columns.normal[i], columns.radius[i]);
    out.discs[i] = sim::make_trace_disc(disc, columns.label[i]);
    out.discs[i].label |= static_cast<std::uint32_t>(columns.frame[i]) << 16;
    const SplatIdentity identity{columns.origin.x + unpack_position(columns.x[i]),
                                 columns.origin.y + unpack_position(columns.y[i]),
                                 columns.origin.z + unpack_position(columns.z[i]),
                                 columns.normal[i],
                                 columns.radius[i],
                                 columns.label[i],
                                 columns.intensity[i],
                                 unpack_attribute(columns.z[i]),
                                 columns.incidence[i]};
    out.facts[i] = {splat_id(identity), identity.normal, identity.intensity, identity.range,
                    identity.incidence};
    out.boxes[i] = box_around(disc);
}

}  // namespace citysplat::gpu
