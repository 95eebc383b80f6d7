#pragma once

#include "core/class_map.hpp"
#include "splat/splat_params.hpp"
#include "tiling/tile_processor.hpp"

namespace citysplat::splat {

/// City-wide means over a sample that depends on nothing but the points: about 200 000 of them in about 600
/// cells of 2 m in absolute coordinates, cells and points chosen by hash. Small clouds are taken whole. All
/// sums are whole numbers. The neighbourhoods of the sample are held in memory, some 50 MB.
///
///   R̄   distance to the K-th nearest neighbour, at most `radius_cap_m`
///   Ē   |n·(p_k − p_i)| over the points p_k of all plain neighbourhoods (K nearest within R̄)
///   δ̄   splats within R̄ of a splat, itself included, without the non-surface group (only when resampling;
///       from one in fifteen of the cells)
tiling::Calibration measure_calibration(const SplatParams& params, const ClassMap& classes,
                                        const tiling::RegionReader& reader, const CancelToken& cancel,
                                        Progress& progress);

}  // namespace citysplat::splat
