#pragma once

#include "cuda/trace_params_hd.hpp"
#include "model/disc_bounds_hd.hpp"
#include "trace/splat_columns_hd.hpp"

#include <cstdint>

/// From the columns of a splat tile, as they lie on disk, to what the OptiX programs need.
namespace citysplat::gpu {

using trace::SplatColumns;

/// Box of a disc, laid out as OptixAabb.
struct DiscBox {
    float min_x, min_y, min_z, max_x, max_y, max_z;
};
static_assert(sizeof(DiscBox) == 24);

struct DecodedSplats {
    trace::TraceDisc* discs;
    trace::SplatFacts* facts;
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
    const Disc disc = trace::disc_of(columns, i);
    out.discs[i] = trace::make_trace_disc(disc, columns.label[i]);
    out.facts[i] = trace::facts_of(columns, i);
    out.boxes[i] = box_around(disc);
}

}  // namespace citysplat::gpu
