#pragma once

#include "core/math/lattice.hpp"
#include "model/point.hpp"
#include "model/trajectory.hpp"
#include "tiling/store/catalog.hpp"

#include <cstdint>
#include <optional>

/// Which points of a file enter the city, and as what. Every rule looks at one point alone, so that the order
/// of points and the way they are split into files cannot matter; each drop is counted by its reason.
/// (Identical points collapse later, and far outliers are left out by city_points.hpp.)
namespace citysplat::tiling {

/// Higher than any terrain, deeper than any sea, in any vertical datum.
inline constexpr double kMaxHeight_m = 12'000.0;

/// A point on the lattice. `point.x` and `point.y` are not set: they depend on the frame.
struct LatticeSample {
    std::int64_t x, y;
    TilePoint point;
};

/// Applies the rules to point `i` of a batch. Nothing when it is dropped; `counts` says why.
std::optional<LatticeSample> accept_point(const PointBatch& batch, std::size_t i, SensorPath& path,
                                          PointCounts& counts);

}  // namespace citysplat::tiling
