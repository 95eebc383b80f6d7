#pragma once

#include "model/tile_source.hpp"
#include "model/trajectory.hpp"

#include <memory>
#include <string>

namespace citysplat::bench {

/// The city at `path` or, when that is empty, a street of about `splats` discs made in memory: road, façades
/// with reliefs, poles and foliage, at UTM-like coordinates, tiles of 32 m, in curve order like a built city.
std::unique_ptr<TileSource> open_or_make_city(const std::string& path, std::size_t splats);

/// A drive at 10 m/s along the made street.
Trajectory drive_through_made_city(double seconds);

std::uint64_t count_splats(const TileSource& city);

}  // namespace citysplat::bench
