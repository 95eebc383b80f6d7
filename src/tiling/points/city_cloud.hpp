#pragma once

#include "io/point_file.hpp"

#include <filesystem>
#include <memory>

namespace citysplat::tiling {

/// The points that the latest generation of a city was made from, as one cloud: on the lattice, without
/// duplicates and dropped points, block by block from the city's own archives. The generation stays pinned
/// for the life of the file. Throws as CityReader does.
std::unique_ptr<PointFile> open_city_cloud(const std::filesystem::path& city);

}  // namespace citysplat::tiling
