#pragma once

#include "adjust/thickness.hpp"
#include "model/class_map.hpp"
#include "splat/params/splat_params.hpp"
#include "tiling/tile_processor.hpp"

namespace citysplat::splat {

/// City-wide means over a sample of some 130 000 points (city_sample.hpp), which depends on the set of points
/// alone. All sums are whole numbers. The sample is held in memory, some 35 MB.
///
///   R̄   distance to the K-th nearest neighbour, at most `radius_cap_m`
///   Ē   |n·(p_k − p_i)| over the points p_k of all plain neighbourhoods (K nearest within R̄)
///   δ̄   splats within R̄ of a splat, as they are to be expected from the neighbourhoods (only when
///       resampling; docs/adr/0304)
///
/// The same places tell how thick surfaces are between passes (city_thickness.hpp).
struct MeasuredCity {
    tiling::Calibration means;
    adjust::Thickness thickness;
};
MeasuredCity measure_city(const SplatParams& params, const ClassMap& classes,
                          const tiling::RegionReader& reader, const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::splat
