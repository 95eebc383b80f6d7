#pragma once

#include "adjust/thickness.hpp"
#include "model/class_map.hpp"
#include "tiling/tile_processor.hpp"

namespace citysplat::splat {

/// How thick the surfaces of a city are because passes disagree, over a sample of its places: as many, evenly
/// along the city, as hold some four million points. Depends on the set of points alone. Points without a
/// time or a sensor and those of moving classes take no part. Times are those of time slots
/// (model/point.hpp).
adjust::Thickness measure_thickness(const tiling::RegionReader& reader, const ClassMap& classes,
                                    const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::splat
