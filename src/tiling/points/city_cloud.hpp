#pragma once

#include "io/point_file.hpp"
#include "tiling/points/city_points.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace citysplat::tiling {

/// The points that a generation of a city (default: the latest) was made from, as one cloud: on the lattice,
/// without duplicates and dropped points, block by block from the city's own archives. The generation stays
/// pinned for the life of the file. Throws as CityReader does.
std::unique_ptr<PointFile> open_city_cloud(const std::filesystem::path& city,
                                           std::optional<std::int64_t> generation = {});

/// The same of the points that `read` finds in each square of `side_cells` × `side_cells` cells. `side_cells`
/// divides a sector.
struct CloudPart {
    std::function<Region(const CityPoints& points, const LatticeBox& square)> read;
    int side_cells;
};
std::unique_ptr<PointFile> open_city_cloud(const std::filesystem::path& city, CloudPart part,
                                           std::optional<std::int64_t> generation);

}  // namespace citysplat::tiling
