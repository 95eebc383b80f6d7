#pragma once

#include "core/class_map.hpp"
#include "splat/splat_params.hpp"
#include "tiling/tile_processor.hpp"

namespace citysplat::splat {

/// City-wide means over a sample that depends on nothing but the points: cells of 4 m in absolute
/// coordinates, each taken with a probability that makes about 300 000 points of the whole city, chosen by
/// a hash of the cell. Small clouds are taken whole. All sums are whole numbers.
///
///   R̄   distance to the K-th nearest neighbour, at most `radius_cap_m`
///   Ē   |n·(p_k − p_i)| over the points p_k of all plain neighbourhoods (K nearest within R̄)
///   δ̄   splats within R̄ of a splat, itself included, without the non-surface group (only when resampling;
///       from every other cell of the sample)
tiling::Calibration measure_calibration(const SplatParams& params, const ClassMap& classes,
                                        const tiling::RegionReader& reader, const CancelToken& cancel,
                                        Progress& progress);

}  // namespace citysplat::splat
