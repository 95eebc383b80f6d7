#pragma once

#include "adjust/thickness.hpp"
#include "splat/params/class_table.hpp"
#include "tiling/tile_processor.hpp"

#include <cstddef>
#include <mutex>
#include <vector>

namespace citysplat::splat {

/// How thick the surfaces of a city are because passes disagree, over a sample of its places: as many, evenly
/// along the city, as hold some four million points. Depends on the set of points alone. Points without a
/// time or a sensor and those of moving classes take no part. Times are those of time slots
/// (model/point.hpp). Safe to use from several threads; requires that the classes outlive it.
class ThicknessSample {
  public:
    /// `places` as in SamplePlan.
    ThicknessSample(const std::vector<LatticeBox>& places, const tiling::RegionReader& reader,
                    const ClassTable& classes);

    /// Shows it the points of a place, without a halo. It looks at some places only.
    void see(std::size_t place, const tiling::Region& region);
    adjust::Thickness result() const { return all_; }

  private:
    const ClassTable& classes_;
    std::size_t step_;  ///< from one place to the next that is looked at
    std::mutex adding_;
    adjust::Thickness all_;
};

}  // namespace citysplat::splat
