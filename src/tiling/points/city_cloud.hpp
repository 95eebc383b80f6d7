#pragma once

#include "io/point_file.hpp"
#include "tiling/points/city_points.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace citysplat::tiling {

/// The points that the latest generation of a city was made from, as one cloud: on the lattice, without
/// duplicates and dropped points, block by block from the city's own archives. The generation stays pinned
/// for the life of the file. Throws as CityReader does.
std::unique_ptr<PointFile> open_city_cloud(const std::filesystem::path& city);

/// The same of the points that `read` finds in each square of `side_cells` × `side_cells` cells. `side_cells`
/// divides a sector.
struct CloudPart {
    std::function<Region(const CityPoints& points, const LatticeBox& square)> read;
    int side_cells;
};
std::unique_ptr<PointFile> open_city_cloud(const std::filesystem::path& city, CloudPart part);

}  // namespace citysplat::tiling
